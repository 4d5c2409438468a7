// SPDX-License-Identifier: MIT
//
// How a run on a stage ends early: what its parts throw past the case.
#ifndef KMES_CONFORMANCE_STAGE_STOP_H_
#define KMES_CONFORMANCE_STAGE_STOP_H_

#include <string>
#include <string_view>

#include "conformance/model/finding.h"
#include "conformance/model/verdict.h"
#include "conformance/stage/monitor.h"

namespace kmes::conformance {

// Thrown by the waits; caught by run_with_monitors.
struct Stop {
    Verdict verdict = Verdict::fail;
    Finding finding;
};

// Thrown instead by a stage that may be given up (Findings::let_give_up): the testee has ended with
// a non-zero status after a kmes_attach that failed.
struct GivenUp {};

// Throws Stop with this finding: the testee has failed.
[[noreturn]] void stop_with(Finding finding);
// The same with a finding of the case's own.
[[noreturn]] void stop_failed(std::string_view clause, std::string_view message);
// Thrown where the run lacks a means: the outcome is inconclusive or unsupported.
[[noreturn]] void stop_inconclusive(std::string message);
[[noreturn]] void stop_unsupported(std::string message);
// Throws Stop if one of the monitors has seen a fault after which the case need not go on.
void stop_at_fault(const Monitors& monitors);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_STOP_H_
