// SPDX-License-Identifier: MIT
//
// The exceptions by which the parts of a stage end a case early.
#ifndef KMES_CONFORMANCE_STAGE_STOP_H_
#define KMES_CONFORMANCE_STAGE_STOP_H_

#include <string>
#include <string_view>

#include "conformance/model/finding.h"
#include "conformance/model/verdict.h"
#include "conformance/stage/monitor.h"

namespace kmes::conformance {

// The verdict and the finding that end the case. run_with_monitors() catches it.
struct Stop {
    Verdict verdict = Verdict::fail;
    Finding finding;
};

// Thrown instead of Stop if the case allows it (Findings::allow_early_exit): the testee has exited
// with a non-zero status after a failed kmes_attach.
struct EarlyExit {};

// Throws Stop with this finding: the testee has failed.
[[noreturn]] void stop_with(Finding finding);
// The same with a finding of the case.
[[noreturn]] void stop_failed(std::string_view clause, std::string_view message);
// Throw Stop if the run cannot decide or cannot be staged: the outcome is inconclusive or
// unsupported.
[[noreturn]] void stop_inconclusive(std::string message);
[[noreturn]] void stop_unsupported(std::string message);
// Throws Stop if a monitor has seen a fault after which the case need not continue.
void stop_at_fault(const Monitors& monitors);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_STOP_H_
