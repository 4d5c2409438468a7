// SPDX-License-Identifier: MIT
//
// The traced process: its attaches, its mappings, its child processes, its report so far, and its
// end. The event loop of the stage reports each event. Testee neither waits nor judges.
#ifndef KMES_CONFORMANCE_STAGE_TESTEE_H_
#define KMES_CONFORMANCE_STAGE_TESTEE_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "conformance/stage/testee_report.h"
#include "conformance/stage/testee_steps.h"
#include "conformance/stage/work_clock.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance {

class Testee {
  public:
    Testee(TesteeSteps& steps, WorkClock& clock) : steps_(steps), clock_(clock) {}

    // Makes the tracer, which starts no program yet.
    Tracer& make_tracer(const TracerOptions& options);
    bool has_tracer() const { return tracer_ != nullptr; }
    Tracer& tracer() const { return *tracer_; }
    // Throws SuiteError if the processor's watchpoints contradict the stepper (--stepper
    // watchpoints).
    void check_watchpoints() const;

    // -- Its report --
    TesteeReport& report() { return report_; }
    const TesteeReport& report() const { return report_; }
    // Reads the new part of the report, for example while a thread is stopped at a guard. records()
    // then contains it. Throws Stop at a flood.
    void read_report();
    const RecordParser& records() const { return report_.records(); }
    const Progress& progress() const { return report_.progress(); }
    bool has_ended(std::uint32_t cpu) const { return progress().ended(cpu); }
    bool has_refused(std::uint32_t cpu) const { return progress().refused(cpu); }
    // True if every event is delivered on every CPU that has not ended.
    bool owes_nothing() const { return report_.owes_nothing(); }

    // -- Its process --
    const std::vector<Attached>& attaches() const { return attaches_; }
    const std::vector<Mapped>& maps() const { return maps_; }
    // Returns the processor time of all its threads. Nothing: it has no process, or the time cannot
    // be read.
    std::optional<Clock::duration> processor_time() const;
    // True if it has one thread, and has made no child process that may read the rings.
    bool is_single_thread() const { return !has_forked_ && tracer_->testee_threads().size() == 1; }
    // True if it has made a child process that may read the rings. (A child of vfork executes
    // another program, or exits.)
    bool has_forked() const { return has_forked_; }
    // True if such a child shares its memory.
    bool has_twin() const { return has_twin_; }
    // Another process that has called kmes_attach; 0: there is none.
    pid_t foreign_process() const { return foreign_process_; }
    // Its end. Nothing: it has not ended.
    const std::optional<Ended>& end() const { return end_; }

    // -- Reported by the event loop --
    void note(const Attached& event) { attaches_.push_back(event); }
    void note(const Mapped& event) { maps_.push_back(event); }
    void note(const Forked& event);
    void note(const ForeignAttach& event) { foreign_process_ = event.pid; }
    void note(const Ended& event);

  private:
    TesteeSteps& steps_;
    WorkClock& clock_;
    std::unique_ptr<Tracer> tracer_;
    TesteeReport report_;
    std::vector<Attached> attaches_;
    std::vector<Mapped> maps_;
    std::optional<Ended> end_;
    pid_t foreign_process_ = 0;
    bool has_forked_ = false;
    bool has_twin_ = false;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_TESTEE_H_
