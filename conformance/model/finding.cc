// SPDX-License-Identifier: MIT
//
// The names of the findings.
#include "conformance/model/finding.h"

#include <vector>

namespace kmes::conformance {

std::string_view finding_name(FindingCode code) {
    switch (code) {
        case FindingCode::malformed_record:
            return "malformed-record";
        case FindingCode::unknown_cpu:
            return "unknown-cpu";
        case FindingCode::invented_event:
            return "invented-event";
        case FindingCode::early_event:
            return "early-event";
        case FindingCode::torn_event:
            return "torn-event";
        case FindingCode::misread_event:
            return "misread-event";
        case FindingCode::wrong_cpu:
            return "wrong-cpu";
        case FindingCode::doubled_event:
            return "doubled-event";
        case FindingCode::reordered_event:
            return "reordered-event";
        case FindingCode::missing_event:
            return "missing-event";
        case FindingCode::late_event:
            return "late-event";
        case FindingCode::wrong_loss_count:
            return "wrong-loss-count";
        case FindingCode::missing_loss:
            return "missing-loss";
        case FindingCode::wrong_generation:
            return "wrong-generation";
        case FindingCode::missing_generation:
            return "missing-generation";
        case FindingCode::refused_without_reason:
            return "refused-without-reason";
        case FindingCode::not_refused:
            return "not-refused";
        case FindingCode::delivered_from_refused:
            return "delivered-from-refused";
        case FindingCode::after_end:
            return "after-end";
        case FindingCode::after_refusal:
            return "after-refusal";
        case FindingCode::ended_too_early:
            return "ended-too-early";
        case FindingCode::lost_wake_up:
            return "lost-wake-up";
        case FindingCode::never_ended:
            return "never-ended";
        case FindingCode::crash:
            return "crash";
        case FindingCode::wrong_exit_status:
            return "wrong-exit-status";
        case FindingCode::write_outside:
            return "write-outside";
        case FindingCode::wrong_need_wake:
            return "wrong-need-wake";
        case FindingCode::read_outside:
            return "read-outside";
        case FindingCode::wrong_mapping:
            return "wrong-mapping";
        case FindingCode::contract:
            return "contract";
    }
    return "contract";
}

std::span<const std::string_view> finding_names() {
    static const std::vector<std::string_view> kNames = [] {
        std::vector<std::string_view> names;
        for (int code = 0; code <= static_cast<int>(FindingCode::contract); ++code)
            names.push_back(finding_name(static_cast<FindingCode>(code)));
        return names;
    }();
    return kNames;
}

}  // namespace kmes::conformance
