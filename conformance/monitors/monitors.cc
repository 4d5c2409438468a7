// SPDX-License-Identifier: MIT
//
// See monitors.h and run.h.
#include "conformance/monitors/monitors.h"

#include "conformance/monitors/run.h"
#include "conformance/stage/run.h"

namespace kmes::conformance {

Monitors make_monitors(Stage& stage) {
    Monitors monitors;
    monitors.push_back(make_mapping_monitor(stage));
    monitors.push_back(make_store_monitor(stage));
    monitors.push_back(make_shared_futex_monitor(stage));
    monitors.push_back(make_need_wake_monitor(stage));
    monitors.push_back(make_whole_lines_monitor(stage));
    monitors.push_back(make_resource_monitor(stage));
    monitors.push_back(make_idle_monitor(stage));
    return monitors;
}

CaseOutcome run_on_stage(const Case& the_case, const StageSettings& settings) {
    return run_with_monitors(the_case, settings, make_monitors);
}

}  // namespace kmes::conformance
