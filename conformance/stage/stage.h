// SPDX-License-Identifier: MIT
//
// The environment of a case: buffers and their producer (Rings), one traced testee (Testee), and
// the waits between them (Waits). A case is straight-line code. If a crash, a lost wake-up or a
// limit ends it early, the stage throws Stop, which becomes the outcome.
//
// Stage makes and owns the parts, and each part has one responsibility. It does nothing else.
#ifndef KMES_CONFORMANCE_STAGE_STAGE_H_
#define KMES_CONFORMANCE_STAGE_STAGE_H_

#include <cstdint>
#include <memory>

#include "conformance/model/case.h"
#include "conformance/model/settings.h"
#include "conformance/oracle/driver_findings.h"
#include "conformance/stage/monitor.h"
#include "conformance/stage/stage_parts.h"
#include "conformance/stage/stop.h"
#include "conformance/tracer/patience.h"

namespace kmes::conformance {

class Stage {
  public:
    // `make_monitors` may be empty.
    Stage(const StageSettings& settings, const Case& the_case, const MonitorFactory& make_monitors);
    ~Stage();

    const StageSettings& settings() const { return parts_->settings; }
    const Case& the_case() const { return parts_->the_case; }
    std::uint32_t cpus() const { return parts_->cpus(); }
    std::uint64_t capacity_bytes() const;

    // -- The course of a case, in this order --
    RingsSetup default_setup() const;
    // Makes the rings. For a case that needs other rings than those of --cpus and --capacity.
    // Otherwise the first call of rings() makes them.
    void set_up(const RingsSetup& setup);
    Rings& rings();
    const Rings& rings() const { return *parts_->rings; }
    // Starts the testee.
    void start();
    // See Waits::asleep.
    void wait_asleep() { parts_->waits.asleep(); }
    void wait_asleep(std::uint32_t cpu) { parts_->waits.asleep(cpu); }
    // Resizes every CPU to the same capacity, as a registry change would (5.1.3).
    void resize(std::uint64_t capacity_bytes, PositionRule rule = PositionRule::keep,
                std::uint64_t position = 0);
    // See Ending::finish.
    CaseOutcome finish() { return parts_->ending.finish(); }

    // -- The parts --
    AttachAnswers& attach_answers() { return parts_->attach_answers; }
    Hooks& hooks() { return parts_->hooks; }
    Testee& testee() { return parts_->testee; }
    const Testee& testee() const { return parts_->testee; }
    const ServedBuffers& buffers() const { return parts_->buffers; }
    const WaitLog& wait_log() const { return parts_->wait_log; }
    Guards& guards() { return parts_->guards; }
    Holding& holding() { return parts_->holding; }
    Waits& waits() { return parts_->waits; }
    Findings& findings() { return parts_->findings; }
    Ending& ending() { return parts_->ending; }
    // Records the steps for the trace of a failure.
    Recorder& recorder() { return parts_->recorder; }

  private:
    std::unique_ptr<StageParts> parts_;
};

// True if `mapped` is a mapping of the current buffer of this CPU.
bool is_present(const Stage& stage, const Mapped& mapped, std::uint32_t cpu);
// True if the testee has mapped the current buffer of this CPU.
bool has_mapped_current_buffer(const Stage& stage, std::uint32_t cpu);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_STAGE_H_
