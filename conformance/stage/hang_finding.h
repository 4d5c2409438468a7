// SPDX-License-Identifier: MIT
//
// The finding about a consumer that makes no progress: which thread sleeps on which word, which
// event is owed, and why the consumer may run for ever.
#ifndef KMES_CONFORMANCE_STAGE_HANG_FINDING_H_
#define KMES_CONFORMANCE_STAGE_HANG_FINDING_H_

#include <string>

#include "conformance/stage/liveness.h"

namespace kmes::conformance {

struct StageParts;

// The testee makes no progress in this way, and was to do `what`. Throws Stop.
[[noreturn]] void stop_hung(StageParts& parts, const std::string& what, Stall stall);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_HANG_FINDING_H_
