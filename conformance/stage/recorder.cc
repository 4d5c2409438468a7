// SPDX-License-Identifier: MIT
//
// See recorder.h.
#include "conformance/stage/recorder.h"

#include <fmt/format.h>

#include <utility>

#include "conformance/stage/verdict_marks.h"

namespace kmes::conformance {

void Recorder::scheduled(const std::string& text, pid_t thread) {
    if (on()) log_.add_scheduled(text, thread);
}

std::string Recorder::with_thread_numbers(const std::string& message) {
    return log_.threads().put_into(message);
}

void Recorder::finish(const Finding& finding) {
    if (!on() || finished_) return;
    finished_ = true;
    log_.put_places();
    TimelineStep verdict;
    verdict.kind = StepKind::end;
    verdict.cpu = finding.cpu;
    verdict.sequence = finding.sequence;
    verdict.clause = finding.clause;
    verdict.text = fmt::format("FAILED, {}: {}", finding_name(finding.code), finding.message);
    log_.add(std::move(verdict));
    VerdictMarks marks(log_.timeline(), log_.facts(), log_.has_rings() ? &log_.history() : nullptr);
    marks.mark_all(finding, log_.timeline().last_number());
}

}  // namespace kmes::conformance
