// SPDX-License-Identifier: MIT
//
// The scheduling policy of the runner. Its threads and its testees take turns on the processors, so
// it needs a fair policy.
#ifndef KMES_CONFORMANCE_MAIN_SCHEDULING_H_
#define KMES_CONFORMANCE_MAIN_SCHEDULING_H_

namespace kmes::conformance {

// Gives up a real-time policy (`chrt -f`) of the calling thread: there, one thread of the runner
// could keep all others from running for ever. Threads and testees that are started later inherit
// the ordinary policy. A testee may choose a real-time policy for itself.
void leave_real_time();

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SCHEDULING_H_
