// SPDX-License-Identifier: MIT
//
// The limits of a failure file, and the names in it for values of enumerations. Only for its writer
// and its reader.
#ifndef KMES_CONFORMANCE_FAILURE_FILE_LIMITS_H_
#define KMES_CONFORMANCE_FAILURE_FILE_LIMITS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "conformance/model/operations.h"

namespace kmes::conformance {

inline constexpr std::size_t kMaximumTextFieldBytes = std::size_t{1} << 17;
inline constexpr std::size_t kMaximumWords =
    1'000'000;  // of a command line: more than execve takes
inline constexpr std::size_t kMaximumMoves = 10'000;
inline constexpr std::size_t kMaximumPoints = 20'000;
// The limit for the phase of a move: a play lasts up to the phase of its last move.
inline constexpr std::uint32_t kMaximumPhase = 100'000;
inline constexpr std::size_t kMaximumFindings = 1000;
inline constexpr std::size_t kMaximumSteps = 10'000;
inline constexpr std::size_t kMaximumReportBytes = std::size_t{16} << 20;
inline constexpr std::size_t kReportBytesOfALongRun = std::size_t{1} << 20;
inline constexpr std::size_t kMaximumReportLines = 2'000'000;
inline constexpr std::size_t kMaximumStandardErrorBytes = std::size_t{1} << 20;
inline constexpr std::uint32_t kMaximumCpus = 1024;
inline constexpr std::uint64_t kMaximumCapacityBytes = std::uint64_t{1} << 40;

// In the order of the enumerations.
inline constexpr std::array<std::string_view, 7> kFaultNames = {
    "none", "magic", "version", "capacity", "data_offset", "corrupt_content", "reserved_not_zero"};
static_assert(static_cast<std::size_t>(BufferFault::reserved_not_zero) + 1 == kFaultNames.size());
inline constexpr std::array<std::string_view, 3> kPositionRuleNames = {"keep", "tail_at", "shift"};

constexpr std::string_view fault_name(BufferFault fault) {
    return kFaultNames[static_cast<std::size_t>(fault)];
}
constexpr std::string_view position_rule_name(PositionRule rule) {
    return kPositionRuleNames[static_cast<std::size_t>(rule)];
}

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_FAILURE_FILE_LIMITS_H_
