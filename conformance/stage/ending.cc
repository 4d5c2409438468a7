// SPDX-License-Identifier: MIT
//
// See ending.h.
#include "conformance/stage/ending.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "conformance/model/case_id.h"
#include "conformance/model/run_record.h"
#include "conformance/model/step_texts.h"
#include "conformance/oracle/judge.h"
#include "conformance/stage/data_names.h"
#include "conformance/stage/end_finding.h"
#include "conformance/stage/stage_parts.h"

namespace kmes::conformance {

namespace {

std::string block(const std::string& title, const std::string& text) {
    if (text.empty()) return "";
    std::string out = title + ":\n";
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        out += "    " + text.substr(begin, end - begin) + "\n";
        begin = end + 1;
    }
    return out;
}

}  // namespace

void Ending::emit_ends() {
    if (parts_.holding.is_frozen()) parts_.holding.thaw();
    if (has_begun_) return;
    has_begun_ = true;
    for (std::uint32_t cpu = 0; cpu < parts_.cpus(); ++cpu) {
        if (!parts_.testee.has_ended(cpu))
            parts_.rings->emit(cpu, parts_.rings->events().make_end());
    }
}

JudgeOptions Ending::judge_options() const {
    JudgeOptions options;
    options.clause = clause_of_id(parts_.the_case.id);
    return options;
}

CaseOutcome Ending::finish() {
    if (!parts_.holding.is_frozen() && !has_begun_ && !parts_.testee.end()) {
        for (const auto& monitor : parts_.monitors) monitor->finishing();
    }
    emit_ends();
    parts_.waits.exited("an exit");
    parts_.testee.read_report();
    const std::optional<Ended>& end = parts_.testee.end();
    JudgeOptions options = judge_options();
    options.exited_with_zero = end->kind == EndKind::kExited && end->exit_status == 0;
    std::optional<Finding> first;
    if (end->sanitizer_needs_ptrace || end->kind == EndKind::kKilled || !end->attached)
        stop_ended(parts_);
    if (!options.exited_with_zero) first = wrong_exit_status(end->exit_status);
    return judge_run(options, first);
}

CaseOutcome Ending::finish_any_exit() {
    if (!parts_.testee.end()) parts_.waits.exited("an exit");
    parts_.testee.read_report();
    const std::optional<Ended>& end = parts_.testee.end();
    if (end->sanitizer_needs_ptrace || end->kind != EndKind::kExited) stop_ended(parts_);
    JudgeOptions options = judge_options();
    options.cut_short = true;
    return judge_run(options, std::nullopt);
}

CaseOutcome Ending::finish_refused() {
    parts_.waits.exited("an R record of every CPU");
    parts_.testee.read_report();
    const std::optional<Ended>& end = parts_.testee.end();
    if (end->sanitizer_needs_ptrace || end->kind != EndKind::kExited) stop_ended(parts_);
    JudgeOptions options = judge_options();
    options.exited_with_zero = end->exit_status == 0;
    options.cut_short = end->exit_status != 0;
    return judge_run(options, std::nullopt);
}

CaseOutcome Ending::finish_tolerant() {
    emit_ends();
    const std::optional<Ended>& end = parts_.testee.end();
    bool asleep_for_good = false;
    const auto sound_cpus_ended = [this] {
        for (std::uint32_t cpu = 0; cpu < parts_.cpus(); ++cpu) {
            if (!parts_.testee.progress().ended(cpu) && !parts_.rings->history().tolerated(cpu))
                return false;
        }
        return true;
    };
    parts_.waits.while_pending(
        [&] {
            // The testee may stay from now on, so a rest that is detected too early blames no one.
            may_stay_ = sound_cpus_ended();
            if (!end && may_stay_ && parts_.liveness.check_for_rest()) asleep_for_good = true;
            return !end && !asleep_for_good;
        },
        [&] { return !sound_cpus_ended(); }, "an exit or a sleep");
    if (end && (end->kind != EndKind::kExited || end->exit_status != 0)) stop_ended(parts_);
    JudgeOptions options = judge_options();
    options.cut_short = !end;
    options.exited_with_zero = end.has_value();
    return judge_run(options, std::nullopt);
}

CaseOutcome Ending::judge_run(const JudgeOptions& options, std::optional<Finding> first) {
    parts_.testee.report().finish();
    parts_.rings->verify();
    std::vector<Finding> all = parts_.findings.all();
    std::vector<Finding> by_driver = parts_.findings.all();
    const auto add = [&](const Finding& finding) {
        all.push_back(finding);
        by_driver.push_back(finding);
    };
    std::vector<Finding> judged = judge(parts_.rings->history(), parts_.testee.records(), options);
    all.insert(all.end(), judged.begin(), judged.end());
    if (first) add(*first);
    for (const auto& monitor : parts_.monitors) {
        if (std::optional<Finding> finding = monitor->fault()) add(*finding);
    }
    return make_outcome(all, by_driver, options);
}

// Returns all data to judge this run again, to repeat it and to show it.
std::shared_ptr<RunRecord> Ending::make_record(const std::vector<Finding>& findings,
                                               const std::vector<Finding>& by_driver,
                                               const JudgeOptions& options) {
    auto record = std::make_shared<RunRecord>();
    record->schedule = parts_.settings.schedule;
    record->history = parts_.rings->history().log();
    record->report = parts_.testee.report().text();
    record->report_left_out = parts_.testee.report().bytes_left_out();
    record->judge_options = options;
    record->driver_findings = by_driver;
    record->findings = findings;
    record->timeline = parts_.recorder.timeline();
    record->has_all_accesses = parts_.settings.record_accesses;
    if (!parts_.testee.has_tracer()) return record;
    // The tracer has shortened it, and says where.
    record->standard_error = parts_.testee.tracer().output().standard_error();
    return record;
}

// The process that has called kmes_attach is the consumer (contract). A later child inherits its
// buffers, and may read them or sleep on them. The suite does not follow the child.
void Ending::stop_at_child(const Finding& finding) const {
    if (!parts_.testee.has_forked()) return;
    stop_inconclusive(fmt::format(
        "the consumer has made child processes after kmes_attach, which may be the ones that read "
        "or sleep. The suite follows one process: use threads in the judged run ({})",
        finding.message));
}

CaseOutcome Ending::make_outcome(std::vector<Finding> findings, std::vector<Finding> by_driver,
                                 const JudgeOptions& options) {
    // A thread has the same name in the message and in the trace.
    for (std::vector<Finding>* all : {&findings, &by_driver}) {
        for (Finding& finding : *all)
            finding.message = parts_.recorder.with_thread_numbers(finding.message);
    }
    if (!findings.empty()) stop_at_child(findings.front());
    CaseOutcome outcome;
    outcome.verdict = findings.empty() ? Verdict::pass : Verdict::fail;
    if (!findings.empty()) {
        outcome.clause = findings.front().clause;
        outcome.message = findings.front().message;
    } else {
        outcome.clause = parts_.the_case.clause();
        if (!parts_.findings.in_part().empty())
            outcome.message = std::string(kInPart) + parts_.findings.in_part();
    }
    std::string text;
    for (std::size_t i = 1; i < findings.size(); ++i)
        text += fmt::format("also {} {}: {}\n", findings[i].clause, finding_name(findings[i].code),
                            findings[i].message);
    for (const std::string& line : parts_.findings.notes())
        text += parts_.recorder.with_thread_numbers(line) + "\n";
    if (const std::uint64_t lost =
            parts_.testee.has_tracer() ? parts_.testee.tracer().effects().lost_stops : 0;
        lost > 0)
        text += fmt::format("stops of threads that the kernel did not report: {}\n", lost);
    outcome.details = text;
    if (findings.empty()) return outcome;
    parts_.recorder.finish(findings.front());
    if (const std::string cause = stale_capacity_of(parts_.recorder.timeline()); !cause.empty())
        outcome.message += std::string(kTheCause) + cause;
    const std::shared_ptr<RunRecord> record = make_record(findings, by_driver, options);
    outcome.record = record;
    if (!parts_.testee.has_tracer()) return outcome;
    outcome.details +=
        block("standard error of the testee", parts_.testee.tracer().output().standard_error());
    for (const Finding& finding : findings) {
        if (!finding.cpu || *finding.cpu >= parts_.cpus()) continue;
        const std::string history =
            describe_history(parts_.rings->history(), parts_.testee.records(), *finding.cpu);
        outcome.details += block(fmt::format("history of CPU {}", *finding.cpu), history);
        record->history_excerpt = history;
        break;
    }
    for (std::size_t i = 0;
         i < std::min<std::size_t>(parts_.testee.records().comments().size(), 20); ++i)
        outcome.details += "# " + parts_.testee.records().comments()[i].text + "\n";
    return outcome;
}

// Returns the failure of a testee that has ended. A process that has ended has no processor time,
// and no line about its memory in /proc. That must not pass for a machine on which these cannot be
// read: an unsupported case fails no run.
std::optional<CaseOutcome> Ending::failure_of_ended() {
    if (!parts_.testee.has_tracer() || parts_.findings.may_exit_early()) return std::nullopt;
    try {
        if (!parts_.events.has_gone_or_stop()) return std::nullopt;
        CaseOutcome outcome = has_begun_ ? finish() : finish_any_exit();
        if (outcome.verdict == Verdict::fail) return outcome;
    } catch (const Stop& end) {
        return outcome_of(end);
    }
    return std::nullopt;
}

CaseOutcome Ending::outcome_of(const Stop& stop) {
    if (stop.verdict == Verdict::unsupported) {
        if (std::optional<CaseOutcome> failure = failure_of_ended()) return *failure;
    }
    if (stop.verdict != Verdict::fail)
        return CaseOutcome{stop.verdict, std::string(parts_.the_case.clause()),
                           stop.finding.message, ""};
    parts_.testee.read_report();
    parts_.testee.report().finish();
    JudgeOptions options = judge_options();
    options.cut_short = true;
    // The judge reports a malformed line itself, as its first finding.
    const bool is_judged = stop.finding.code == FindingCode::malformed_record;
    std::vector<Finding> by_driver;
    if (!is_judged) by_driver.push_back(stop.finding);
    by_driver.insert(by_driver.end(), parts_.findings.all().begin(), parts_.findings.all().end());
    const std::vector<Finding> judged =
        judge(parts_.rings->history(), parts_.testee.records(), options);
    // A finding about earlier actions of the testee explains more than a finding about its hang, or
    // about its early exit after every CPU was ended or refused.
    const bool is_of_the_end =
        parts_.findings.stands_still() ||
        (stop.finding.code == FindingCode::ended_too_early && parts_.testee.progress().all_ended());
    std::vector<Finding> all;
    const auto append = [&all](const std::vector<Finding>& more) {
        all.insert(all.end(), more.begin(), more.end());
    };
    if (is_judged) {
        append(judged);
        append(parts_.findings.all());
    } else if (is_of_the_end) {
        append(parts_.findings.all());
        append(judged);
        append({stop.finding});
    } else {
        append(by_driver);
        append(judged);
    }
    CaseOutcome outcome = make_outcome(all, by_driver, options);
    outcome.has_hung = parts_.findings.has_hung();
    return outcome;
}

}  // namespace kmes::conformance
