// SPDX-License-Identifier: MIT
//
// Records what happens on a stage as steps in plain words: the timeline for the trace of a failure.
// It changes nothing and judges nothing. At the end it gets the finding, and marks the steps that
// decided it. Knows no case and no way to print.
//
// Recorder owns the log. It also owns one class for each actor, which describes the steps of that
// actor.
#ifndef KMES_CONFORMANCE_STAGE_RECORDER_H_
#define KMES_CONFORMANCE_STAGE_RECORDER_H_

#include <sys/types.h>

#include <string>
#include <utility>

#include "conformance/model/finding.h"
#include "conformance/model/timeline.h"
#include "conformance/stage/access_steps.h"
#include "conformance/stage/producer_steps.h"
#include "conformance/stage/step_log.h"
#include "conformance/stage/testee_steps.h"

namespace kmes::conformance {

class Rings;

class Recorder {
  public:
    // If `on` is false, a call costs one comparison. For a run that is one of thousands.
    explicit Recorder(bool on) : log_(on) {}

    // To be called before the first step. `rings` outlives the last call of the recorder.
    void watch(const Rings& rings, StepLog::FindBuffer find_buffer) {
        log_.watch(rings, std::move(find_buffer));
    }

    bool on() const { return log_.on(); }
    const Timeline& timeline() const { return log_.timeline(); }

    // The rings report their operations to this part.
    ProducerSteps& producer() { return producer_; }
    // The stage reports the actions of the testee to these parts.
    AccessSteps& accesses() { return accesses_; }
    TesteeSteps& testee() { return testee_; }
    // Adds an action of the suite, for example that it stops one thread or resumes all.
    void scheduled(const std::string& text, pid_t thread = 0);

    // Returns the message with the numbers of the threads in the trace instead of their ids.
    std::string with_thread_numbers(const std::string& message);
    // Adds the verdict as the last step, and marks the steps that decided it. Later calls do
    // nothing.
    void finish(const Finding& finding);

  private:
    StepLog log_;
    ProducerSteps producer_{log_};
    AccessSteps accesses_{log_};
    TesteeSteps testee_{log_, accesses_};
    bool finished_ = false;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_RECORDER_H_
