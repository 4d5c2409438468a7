// SPDX-License-Identifier: MIT
//
// Takes the events of the tracer and reports each to the parts of the stage, to the monitors and to
// the hooks of the case.
#ifndef KMES_CONFORMANCE_STAGE_EVENT_LOOP_H_
#define KMES_CONFORMANCE_STAGE_EVENT_LOOP_H_

#include <functional>

#include "conformance/stage/rings.h"
#include "conformance/tracer/events.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

class Tracer;
struct StageParts;

class EventLoop {
  public:
    explicit EventLoop(StageParts& parts) : parts_(parts) {}
    // Called at each event before anything else.
    void set_on_event(std::function<void(const TracerEvent&)> function);

    // Starts the testee.
    void start();
    // Lets the testee run until the next event, or until `deadline`, and acts on the event.
    void pump(TimePoint deadline);
    // Events are being acted on: threads stand still for that.
    bool is_in_pump() const { return is_in_pump_; }
    // An action on a thread may have failed because its process ends: the testee does that, and its
    // end says more. True: it has ended every CPU before, and may end whatever its other threads
    // do. Throws Stop if it has ended too early. False: it lives.
    bool has_gone_or_stop();

  private:
    void connect(Tracer& tracer);
    void serve(BufferIndex buffer);
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
    std::function<void(const TracerEvent&)> on_event_;
    bool is_in_pump_ = false;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_EVENT_LOOP_H_
