// SPDX-License-Identifier: MIT
//
// All cases, in the order in which they run: from the first call to the wildest.
#include "conformance/cases/registry.h"

#include "conformance/cases/play.h"

namespace kmes::conformance {

const std::vector<Case>& all_cases() {
    static const std::vector<Case> cases = [] {
        std::vector<Case> made;
        add_attach_cases(made);
        add_first_end_cases(made);
        add_buffer_cases(made);
        add_event_cases(made);
        add_drain_cases(made);
        // Before whatever has a resize in it: a mistake there is named by the plainest.
        add_first_resize_cases(made);
        add_next_buffer_cases(made);
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
        add_later_attach_cases(made);
        add_burst_cases(made);
        add_position_cases(made);
        add_other_cpu_cases(made);
        add_old_position_cases(made);
        add_large_header_cases(made);
        add_gap_over_swap_cases(made);
        add_several_cpu_cases(made);
        add_record_cases(made);
        add_spurious_wake_cases(made);
        add_thousand_unread_cases(made);
        add_end_event_cases(made);
        add_many_cpu_cases(made);
        add_three_hundred_cases(made);
        add_mebibyte_cases(made);
        add_full_next_buffer_cases(made);
        add_zero_position_cases(made);
        add_left_flag_cases(made);
        add_event_size_cases(made);
        add_ended_cpu_cases(made);
        add_unusual_round_cases(made);
        add_independent_cpu_cases(made);
        add_load_cases(made);
        add_explore_cases(made);
        add_resource_cases(made);
        add_leak_cases(made);
        add_idle_cases(made);
        add_shared_cases(made);
        add_robust_image_cases(made);
        return made;
    }();
    return cases;
}

}  // namespace kmes::conformance
