// SPDX-License-Identifier: MIT
//
// All cases, in the order in which they run: from the first call to the wildest.
#include "conformance/cases/registry.h"

#include "conformance/cases/play.h"

namespace kmes::conformance {

const std::vector<Case>& all_cases() {
    static const std::vector<Case> cases = [] {
        std::vector<Case> made;
        const auto add = [&made](const auto&... tables) {
            (made.insert(made.end(), tables.begin(), tables.end()), ...);
        };
        add(kAttachCases, kFirstEndCases, kFirstBufferCases, kEventCases, kPositionCases);
        add_drain_cases(made);
        // Before whatever has a resize in it: a mistake there is named by the plainest.
        add_first_resize_cases(made);
        add(kNextBufferCases);
        add_lap_cases(made);
        add_overtaken_cases(made);
        add_one_by_one_cases(made);
        add_pending_cases(made);
        add_backlog_cases(made);
        add_sleep_cases(made);
        add_store_buffer_cases(made);
        add_resize_cases(made);
        add_several_change_cases(made);
        add_switch_cases(made);
        add(kLaterAttachCases);
        add_burst_cases(made);
        add(kPositionStepCases);
        add_other_cpu_cases(made);
        add(kOldPositionCases, kLargeHeaderCases);
        add_gap_over_swap_cases(made);
        add_several_cpu_cases(made);
        add(kRecordCases);
        add_spurious_wake_cases(made);
        add_thousand_unread_cases(made);
        add(kOtherEndCases, kManyCpuCases, kThreeHundredCases, kMebibyteCases);
        add_full_next_buffer_cases(made);
        add(kZeroPositionCases);
        add_left_flag_cases(made);
        add(kSizeCases, kEndedCpuCases);
        add_unusual_round_cases(made);
        add_independent_cpu_cases(made);
        add(kLoadCases, kExploredCases, kNumberCases, kMuchCases, kInterruptedAttachCases,
            kLeakCases);
        add_idle_cases(made);
        add(kSharedCases, kOneImageCases, kEventImageCases, kPageImageCases);
        return made;
    }();
    return cases;
}

}  // namespace kmes::conformance
