// SPDX-License-Identifier: MIT
//
// The monitors: invariants that hold in every case, whatever it is about. Each blames by its own
// clause, and states the precondition under which it blames. A correct consumer is never blamed.
#ifndef KMES_CONFORMANCE_MONITORS_MONITORS_H_
#define KMES_CONFORMANCE_MONITORS_MONITORS_H_

#include <memory>

#include "conformance/stage/monitor.h"

namespace kmes::conformance {

// contract-2: each mmap is of a whole buffer, shared, for reads and writes. Precondition:
// kmes_attach returned the true capacity.
std::unique_ptr<Monitor> make_mapping_monitor(Stage& stage);

// 5.1.6, contract: a consumer stores only 0 or 1, and only to need_wake. No precondition.
std::unique_ptr<Monitor> make_store_monitor(Stage& stage);

// E17: a wait on a ring word is a shared wait. No precondition.
std::unique_ptr<Monitor> make_shared_futex_monitor(Stage& stage);

// 5.1.8.2-1: need_wake is 1 while the consumer sleeps without a timeout. Preconditions: no thread
// can wake by itself, and only the consumer has stored to the need_wake of this buffer.
std::unique_ptr<Monitor> make_need_wake_monitor(Stage& stage);

// contract-3: each write to the report ends with a newline. Preconditions: two threads or more
// write to it, and the case stops each system call. (In every case the judge blames lines that
// mixed, and records that are written after the consumer has gone to sleep.)
std::unique_ptr<Monitor> make_whole_lines_monitor(Stage& stage);

// 5.1.8.3-6: the consumer releases descriptors, mappings and memory of replaced buffers.
// Preconditions: a buffer was replaced at least 80 times, and a count grows in each interval and
// still after two more seconds. A case of that clause counts by itself.
std::unique_ptr<Monitor> make_resource_monitor(Stage& stage);

// 5.1.8.2: a consumer with nothing to do uses no processor. Preconditions: every event is
// delivered, no access is guarded, and one thread has run for a while without a voluntary context
// switch. The samples of idle_samples.h then decide. A case of that clause measures by itself.
std::unique_ptr<Monitor> make_idle_monitor(Stage& stage);

// Makes all monitors.
Monitors make_monitors(Stage& stage);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MONITORS_MONITORS_H_
