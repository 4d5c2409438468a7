// SPDX-License-Identifier: MIT
//
// The finding for a consumer that makes no progress. It names the blocked thread and its word, the
// event that the consumer owes, and the reason for an endless run.
#ifndef KMES_CONFORMANCE_STAGE_HANG_FINDING_H_
#define KMES_CONFORMANCE_STAGE_HANG_FINDING_H_

#include <string>

#include "conformance/stage/liveness.h"

namespace kmes::conformance {

struct StageParts;

// Throws the finding as Stop. `what` names the expected action of the testee, and `stall` the way
// in which it makes no progress.
[[noreturn]] void stop_hung(StageParts& parts, const std::string& what, Stall stall);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_HANG_FINDING_H_
