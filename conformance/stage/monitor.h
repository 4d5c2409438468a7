// SPDX-License-Identifier: MIT
//
// The interface of a monitor: an invariant that holds in every case. The stage reports what
// happens, and the monitor blames by its own clause (Findings::blame). A monitor never changes what
// happens. conformance/monitors has the monitors.
#ifndef KMES_CONFORMANCE_STAGE_MONITOR_H_
#define KMES_CONFORMANCE_STAGE_MONITOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "conformance/model/finding.h"
#include "conformance/tracer/events.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

class Stage;

class Monitor {
  public:
    Monitor() = default;
    virtual ~Monitor() = default;
    Monitor(const Monitor&) = delete;
    Monitor& operator=(const Monitor&) = delete;

    // The thread of each event does not run until the function has returned.
    // The consumer has mapped a buffer, or failed to.
    virtual void mapped(const Mapped&) {}
    // A thread enters a futex wait on a ring word.
    virtual void wait_begins(const FutexWait&) {}
    // The next instruction accesses a guarded page. May be called twice for one access.
    virtual void accesses(const GuardHit&) {}
    // The consumer stores to a page that it may not write.
    virtual void store_refused(const WriteFault&) {}
    // The next system call writes to the report. Only while the case stops each system call.
    virtual void writes_report(const ReportWrite&) {}

    // The consumer has delivered all events of this CPU and sleeps there.
    virtual void asleep(std::uint32_t /*cpu*/) {}
    // The case has played everything but the end events.
    virtual void finishing() {}
    // Returns a fault after which the case need not continue. May be called at any time.
    virtual std::optional<Finding> fault() const { return std::nullopt; }
};

using Monitors = std::vector<std::unique_ptr<Monitor>>;
// Makes the monitors of a stage, which outlives them.
using MonitorFactory = std::function<Monitors(Stage&)>;

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_MONITOR_H_
