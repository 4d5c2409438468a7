// SPDX-License-Identifier: MIT
//
// The end of a run on a stage: the end events, the exit of the testee, and the outcome. The outcome
// follows from the records of the testee and from all findings.
#ifndef KMES_CONFORMANCE_STAGE_ENDING_H_
#define KMES_CONFORMANCE_STAGE_ENDING_H_

#include <memory>
#include <optional>
#include <vector>

#include "conformance/model/finding.h"
#include "conformance/model/judge_options.h"
#include "conformance/model/verdict.h"
#include "conformance/stage/stop.h"

namespace kmes::conformance {

struct RunRecord;
struct StageParts;

class Ending {
  public:
    explicit Ending(StageParts& parts) : parts_(parts) {}

    // Emits the end event on every CPU that has not ended. Only the first call does so. finish()
    // and finish_tolerant() call it if the case has not.
    void emit_ends();
    bool has_begun() const { return has_begun_; }
    // True if the testee may rest after the end instead of an exit.
    bool may_stay() const { return may_stay_; }

    // Emits the end event on every CPU, waits for the exit, and judges the run.
    CaseOutcome finish();
    // Waits for an exit with any status, and judges the run. For a run in which an attach fails:
    // the contract then allows an exit at any time, with status 0 or another.
    CaseOutcome finish_any_exit();
    // Waits for the exit, and judges a run in which every buffer must be refused. The testee
    // refuses each and exits with 0, or it exits with another status at any time.
    CaseOutcome finish_refused();
    // As finish(), for a run with a tolerated CPU (level robust). The testee may stay asleep on
    // that CPU for ever. It may neither spin nor crash, and it must drain the other CPUs.
    CaseOutcome finish_tolerant();
    // Returns the outcome of a run that `stop` has ended. If the verdict is "fail", judges the
    // report so far as well.
    CaseOutcome outcome_of(const Stop& stop);

  private:
    JudgeOptions judge_options() const;
    std::optional<CaseOutcome> failure_of_ended();
    void stop_at_child(const Finding& finding) const;
    CaseOutcome judge_run(const JudgeOptions& options, std::optional<Finding> first);
    CaseOutcome make_outcome(std::vector<Finding> findings, std::vector<Finding> by_driver,
                             const JudgeOptions& options);
    std::shared_ptr<RunRecord> make_record(const std::vector<Finding>& findings,
                                           const std::vector<Finding>& by_driver,
                                           const JudgeOptions& options);

    StageParts& parts_;
    bool has_begun_ = false;
    bool may_stay_ = false;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_ENDING_H_
