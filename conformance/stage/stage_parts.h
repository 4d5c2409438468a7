// SPDX-License-Identifier: MIT
//
// The parts of a stage, each after the parts that it needs. Only for the files of this folder:
// EventLoop, Guards, Liveness, Holding, Waits and Ending get all parts.
#ifndef KMES_CONFORMANCE_STAGE_STAGE_PARTS_H_
#define KMES_CONFORMANCE_STAGE_STAGE_PARTS_H_

#include <cstdint>
#include <memory>

#include "conformance/model/case.h"
#include "conformance/model/settings.h"
#include "conformance/stage/attach_answers.h"
#include "conformance/stage/ending.h"
#include "conformance/stage/event_loop.h"
#include "conformance/stage/findings.h"
#include "conformance/stage/guards.h"
#include "conformance/stage/holding.h"
#include "conformance/stage/hooks.h"
#include "conformance/stage/liveness.h"
#include "conformance/stage/metadata_reads.h"
#include "conformance/stage/monitor.h"
#include "conformance/stage/nudges.h"
#include "conformance/stage/recorder.h"
#include "conformance/stage/rings.h"
#include "conformance/stage/served_buffers.h"
#include "conformance/stage/testee.h"
#include "conformance/stage/wait_log.h"
#include "conformance/stage/waits.h"
#include "conformance/stage/work_clock.h"

namespace kmes::conformance {

struct StageParts {
    StageParts(const StageSettings& settings_, const Case& the_case_)
        : settings(settings_),
          the_case(the_case_),
          recorder(settings.record_timeline),
          testee(recorder.testee(), clock),
          wait_log(buffers, clock, settings.timeout_scale),
          reads(buffers),
          attach_answers(settings, buffers),
          events(*this),
          guards(*this),
          liveness(*this),
          holding(*this),
          waits(*this),
          ending(*this) {}

    std::uint32_t cpus() const { return rings ? rings->cpus() : settings.cpus; }
    std::uint32_t cpu_of(BufferIndex buffer) const { return rings->history().buffer(buffer).cpu; }

    const StageSettings& settings;
    const Case& the_case;
    Recorder recorder;
    WorkClock clock;
    std::unique_ptr<Rings> rings;  // made by Stage::set_up
    Testee testee;
    ServedBuffers buffers;
    WaitLog wait_log;
    MetadataReads reads;
    AttachAnswers attach_answers;
    Monitors monitors;
    Hooks hooks;
    Findings findings;
    Nudges nudges;
    EventLoop events;
    Guards guards;
    Liveness liveness;
    Holding holding;
    Waits waits;
    Ending ending;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_STAGE_PARTS_H_
