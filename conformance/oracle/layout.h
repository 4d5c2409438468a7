// SPDX-License-Identifier: MIT
//
// Where what stands in a metadata page (5.1.6.1 to 5.1.6.3), and in the header of an event (event
// model). For those who look at accesses or write such bytes themselves; the core is not asked.
#ifndef KMES_CONFORMANCE_ORACLE_LAYOUT_H_
#define KMES_CONFORMANCE_ORACLE_LAYOUT_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "conformance/model/layout.h"

namespace kmes::conformance {

inline constexpr std::uint64_t kGenerationOffset = 32;
inline constexpr std::uint64_t kWritePosOffset = 64;
inline constexpr std::uint64_t kTailPosOffset = 72;
inline constexpr std::uint64_t kFutexCounterOffset = 128;
// Of the form of the layout that this process has (docs/layouts.md).
// (References to what a constructor function has set before any other initialisation. clang gives
// no order to the initialisation of inline variables, and tables of cases use these numbers.)
extern const std::uint64_t& kNeedWakeOffset;

inline constexpr std::uint64_t kEventSizeAt = 0;
inline constexpr std::uint64_t kHeaderSizeAt = 4;
inline constexpr std::uint64_t kSequenceAt = 16;
extern const std::uint64_t& kTypeLengthAt;

struct Field {
    std::uint64_t offset;
    std::uint64_t bytes;
    std::string_view name;

    constexpr bool holds(std::uint64_t byte) const { return overlaps(byte, 1); }
    // Some of `size` bytes from `begin` on are of this field.
    constexpr bool overlaps(std::uint64_t begin, std::uint64_t size) const {
        return begin < offset + bytes && offset < begin + size;
    }
};

// All fields of the metadata, in their order.
const std::vector<Field>& metadata_fields();

// The field of the metadata that begins there.
const Field& field_at(std::uint64_t offset);

// The fields of an event's header before the type, in their order.
const std::vector<Field>& header_fields();

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_ORACLE_LAYOUT_H_
