// SPDX-License-Identifier: MIT
//
// Takes the events of the tracer and reports each to the parts of the stage, to the monitors and to
// the hooks of the case.
#ifndef KMES_CONFORMANCE_STAGE_EVENT_LOOP_H_
#define KMES_CONFORMANCE_STAGE_EVENT_LOOP_H_

#include "conformance/stage/rings.h"
#include "conformance/stage/rings_observer.h"
#include "conformance/tracer/events.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

class Debugger;
class Stage;
class Tracer;
struct StageParts;

class EventLoop : private RingsObserver {
  public:
    explicit EventLoop(StageParts& parts) : parts_(parts) {}
    // The debugger is called at each event before this stage acts on the event.
    void set_debugger(Debugger& debugger, Stage& stage);

    // Starts the testee.
    void start();
    // Runs the testee until the next event or until `deadline`, and acts on the event.
    void pump(TimePoint deadline);
    // True while the stage waits for an event or acts on it. Threads are stopped for the event.
    bool is_in_pump() const { return is_in_pump_; }
    // Call it after an action on a thread has failed: the process may be about to end. Returns
    // false if the process lives. Returns true if it has ended after the end of every CPU, when it
    // may exit at any time. Throws Stop if it has ended earlier.
    bool has_gone_or_stop();

  private:
    void connect(Tracer& tracer);
    // RingsObserver: the history learns how much of the report existed before the operation.
    void before_operation() override;
    void on_buffer(BufferIndex buffer) override;
    void stop_at_the_longest_run() const;
    void handle(const TracerEvent& event);
    void on(const Attached& event);
    void on(const Mapped& event);
    void on(const FutexWait& event);
    void on(const FutexWaitEnd& event);
    void on(const WriteFault& event);
    void on(const GuardHit& event);
    void on(const Ended& event);
    void on(const Forked& event);
    void on(const Executed& event);
    void on(const OutputLimit& event);
    void on(const TracerTrouble& event);
    void on_other(const TracerEvent& event);
    void note_access(const GuardHit& hit);

    StageParts& parts_;
    Debugger* debugger_ = nullptr;
    Stage* debugged_ = nullptr;
    bool is_in_pump_ = false;
    // In pump(). A wait that took long because the machine stood still counts for half a second.
    Clock::duration waited_{};
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_EVENT_LOOP_H_
