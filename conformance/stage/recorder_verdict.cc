// SPDX-License-Identifier: MIT
//
// The last step, which states the verdict. See recorder.h.
#include <fmt/format.h>

#include "conformance/stage/recorder.h"
#include "conformance/stage/rings.h"
#include "conformance/stage/verdict_marks.h"

namespace kmes::conformance {

// "thread 24601" of a message is one of the picture's threads.
std::string Recorder::with_thread_numbers(std::string message) const {
    for (const auto& [tid, number] : threads_) {
        const std::string name = fmt::format("thread {} ", tid);
        for (std::size_t at = message.find(name); at != std::string::npos;
             at = message.find(name, at + 1))
            message.replace(at, name.size(), fmt::format("thread {} ", number));
    }
    return message;
}

void Recorder::finish(const Finding& finding) {
    if (!on_ || finished_) return;
    finished_ = true;
    places_.put_into(timeline_);
    TimelineStep verdict;
    verdict.kind = StepKind::end;
    verdict.cpu = finding.cpu;
    verdict.sequence = finding.sequence;
    verdict.clause = finding.clause;
    verdict.text = fmt::format("FAILED, {}: {}", finding_name(finding.code),
                               with_thread_numbers(finding.message));
    add(std::move(verdict));
    VerdictMarks marks(timeline_, facts_, rings_ == nullptr ? nullptr : &history());
    marks.mark_all(finding, timeline_.last_number());
}

}  // namespace kmes::conformance
