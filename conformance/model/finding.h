// SPDX-License-Identifier: MIT
//
// A finding about a testee: a stable code, the clause, and a message that needs no knowledge of the
// suite. Plain data.
#ifndef KMES_CONFORMANCE_MODEL_FINDING_H_
#define KMES_CONFORMANCE_MODEL_FINDING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kmes::conformance {

enum class FindingCode {
    // Found in the records.
    malformed_record,
    unknown_cpu,
    invented_event,
    early_event,
    torn_event,
    misread_event,
    wrong_cpu,
    doubled_event,
    reordered_event,
    missing_event,
    late_event,
    wrong_loss_count,
    missing_loss,
    wrong_generation,
    missing_generation,
    refused_without_reason,
    not_refused,
    delivered_from_refused,
    after_end,
    after_refusal,
    ended_too_early,
    // Found by the driver.
    lost_wake_up,
    never_ended,
    crash,
    wrong_exit_status,
    write_outside,
    wrong_need_wake,
    read_outside,
    wrong_mapping,
    contract,
};

// Stable, lower-case with hyphens: "torn-event".
std::string_view finding_name(FindingCode code);
// All names, in the order of FindingCode.
std::span<const std::string_view> finding_names();

struct Finding {
    FindingCode code = FindingCode::contract;
    std::string clause;   // "5.1.8.1-5", "E21", "contract"
    std::string message;  // one line
    std::optional<std::uint32_t> cpu;
    std::uint64_t sequence = 0;  // 0: none
    std::uint64_t line = 0;      // of the report; 0: none
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_FINDING_H_
