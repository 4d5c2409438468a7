// SPDX-License-Identifier: MIT
//
// The traced process: what it has attached, mapped, made and written so far, and how it ended. The
// event loop of the stage reports each event. It neither waits nor judges.
#ifndef KMES_CONFORMANCE_STAGE_TESTEE_H_
#define KMES_CONFORMANCE_STAGE_TESTEE_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "conformance/stage/recorder.h"
#include "conformance/stage/testee_report.h"
#include "conformance/stage/work_clock.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance {

class Testee {
  public:
    Testee(Recorder& recorder, WorkClock& clock) : recorder_(recorder), clock_(clock) {}

    // Makes the tracer, which starts no program yet.
    Tracer& make_tracer(const TracerOptions& options);
    bool has_tracer() const { return tracer_ != nullptr; }
    Tracer& tracer() const { return *tracer_; }
    // Throws where the processor's watchpoints contradict the stepper (--stepper watchpoints).
    void check_watchpoints() const;

    // -- Its report --
    TesteeReport& report() { return report_; }
    const TesteeReport& report() const { return report_; }
    // So that records() has what is written by now: where a thread stands at a guard. Throws Stop
    // at a flood.
    void read_report();
    const RecordParser& records() const { return report_.records(); }
    const Progress& progress() const { return report_.progress(); }
    bool has_ended(std::uint32_t cpu) const { return progress().ended(cpu); }
    bool has_refused(std::uint32_t cpu) const { return progress().refused(cpu); }
    // Every event is delivered on every CPU that has not ended.
    bool owes_nothing() const { return report_.owes_nothing(); }

    // -- Its process --
    const std::vector<Attached>& attaches() const { return attaches_; }
    const std::vector<Mapped>& maps() const { return maps_; }
    // Of all its threads. Nothing: it has none, or this cannot be read here.
    std::optional<Clock::duration> processor_time() const;
    // It is one thread, and has made no other process.
    bool is_single_thread() const { return !has_forked_ && tracer_->testee_threads().size() == 1; }
    // It has made a child process that may read the rings. (A child of vfork executes another
    // program, or ends.)
    bool has_forked() const { return has_forked_; }
    // Such a child is in its own memory.
    bool has_twin() const { return has_twin_; }
    // The process that has called kmes_attach beside the testee; 0: none has.
    pid_t foreign_process() const { return foreign_process_; }
    // How it ended. Nothing: it has not.
    const std::optional<Ended>& end() const { return end_; }

    // -- Told by the event loop --
    void note(const Attached& event) { attaches_.push_back(event); }
    void note(const Mapped& event) { maps_.push_back(event); }
    void note(const Forked& event);
    void note(const ForeignAttach& event) { foreign_process_ = event.pid; }
    void note(const Ended& event);

  private:
    Recorder& recorder_;
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
