// SPDX-License-Identifier: MIT
//
// How a run on a stage ends: the end events, the exit of the testee, and the outcome that follows
// from its records and from all findings.
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

    // The end event on every CPU that has not ended. Once; finish() does it where the case has not.
    void emit_ends();
    bool has_begun() const { return has_begun_; }
    // After the end: a testee that rests is no worse than one that exits.
    bool may_stay() const { return may_stay_; }

    // Emits the end event on every CPU, waits for the exit, judges.
    CaseOutcome finish();
    // The same for a run in which the testee is right to end by itself, or with another status, at
    // any time from now on (an attach that fails: the contract allows both).
    CaseOutcome finish_any_exit();
    // The same where every buffer must be refused: it refuses each and exits with 0, or exits with
    // another status at any time.
    CaseOutcome finish_refused();
    // The same where a CPU is tolerated (level robust): it may also stay asleep there for ever, but
    // neither spin, nor crash, nor leave the other CPUs undrained.
    CaseOutcome finish_tolerant();
    // Judges what there is, with the finding that ended the run.
    CaseOutcome outcome_of(const Stop& stop);

  private:
    JudgeOptions judge_options() const;
    void stop_at_child(const Finding& finding) const;
    CaseOutcome judge_run(const JudgeOptions& options, std::optional<Finding> first);
    CaseOutcome make_outcome(const std::vector<Finding>& findings,
                             const std::vector<Finding>& by_driver, const JudgeOptions& options);
    std::shared_ptr<RunRecord> make_record(const std::vector<Finding>& findings,
                                           const std::vector<Finding>& by_driver,
                                           const JudgeOptions& options);

    StageParts& parts_;
    bool has_begun_ = false;
    bool may_stay_ = false;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_ENDING_H_
