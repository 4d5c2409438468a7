// SPDX-License-Identifier: MIT
//
// How a run on a stage ends: from ends and findings to one outcome, and the runs themselves
// (run_with_monitors).
#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "conformance/model/run_record.h"
#include "conformance/stage/data_names.h"
#include "conformance/stage/run.h"
#include "conformance/stage/stage.h"
#include "conformance/stage/state_text.h"

namespace kmes::conformance {

namespace {

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

// The error of a futex wait after which a thread did nothing but end the consumer: "EINTR". Empty:
// there is none, or nothing was recorded. If the thread that ended it is unknown, the last step of
// any thread counts.
std::string_view error_of_last_wait(const Timeline& timeline) {
    constexpr std::pair<std::string_view, std::string_view> kErrors[] = {
        {"EINTR", "returns EINTR"},
        {"EINTR", "is interrupted"},
        {"ETIMEDOUT", "returns ETIMEDOUT"},
        {"ETIMEDOUT", "time limit of the wait expires"},
        {"EAGAIN", "futex_counter has another value"}};
    const std::vector<TimelineStep>& steps = timeline.steps();
    int ended_by = 0;
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
        if (step->kind == StepKind::end) ended_by = step->thread;
        if (ended_by != 0 && step->thread != ended_by) continue;
        const bool is_clear =
            step->kind == StepKind::access && step->text.starts_with("sets need_");
        const bool is_other = step->kind == StepKind::producer || step->kind == StepKind::scheduler;
        if (step->kind == StepKind::end || is_clear || is_other) continue;
        if (step->kind != StepKind::wait_end) return "";
        for (const auto& [name, text] : kErrors) {
            if (step->text.find(text) != std::string::npos) return name;
        }
        return "";
    }
    return "";
}

// Whatever the case tests, a consumer that takes an interrupted wait for an error breaks 5.1.8.2.
bool blame_last_wait(const Timeline& timeline, Finding& finding) {
    const std::string_view error = error_of_last_wait(timeline);
    if (error.empty()) return false;
    finding.clause = "5.1.8.2-5";
    finding.message +=
        fmt::format(". Evidence: its last action was a futex wait that returned {}", error);
    return true;
}

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

void Stage::stop_with(Finding finding) {
    throw Stop{Verdict::fail, std::move(finding)};
}

void Stage::blame(std::string_view clause, const std::string& message) {
    Finding finding = contract_finding(message);
    finding.clause = clause;
    blame(std::move(finding));
}

// A line that nobody can read may be the very record that is waited for.
void Stage::stop_at_malformed() const {
    if (parser_.malformed().empty()) return;
    Finding finding = contract_finding(parser_.malformed().front().message);
    finding.code = FindingCode::malformed_record;
    throw Stop{Verdict::fail, std::move(finding)};
}

// Why it gave up, as far as that is to be seen.
Finding Stage::with_reason(Finding finding, const Ended& ended) const {
    const int error = attaches_.empty() ? 0 : attaches_.back().error;
    if (error != 0) {
        finding.clause = "contract-1";
        finding.message +=
            fmt::format(". Evidence: the last kmes_attach, with {} slots, returned {}",
                        attaches_.back().request.slots_requested, strerrorname_np(error));
    } else if (ended.exit_status != 0 && !blame_last_wait(recorder_.timeline(), finding)) {
        finding.clause = case_.clause;
    }
    return finding;
}

Finding Stage::end_finding(const Ended& ended) const {
    switch (ended.kind) {
        case EndKind::kKilled: {
            Finding finding =
                crash(ended.signal, strsignal(ended.signal) ? strsignal(ended.signal) : "",
                      ended.fault ? ended.fault->describe() : std::string());
            const bool gave_up = ended.signal == SIGABRT;
            if (!gave_up || !blame_last_wait(recorder_.timeline(), finding))
                finding.clause = case_.clause;
            return finding;
        }
        case EndKind::kExited: {
            std::vector<std::uint32_t> missing;
            for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
                if (!progress_->ended(cpu)) missing.push_back(cpu);
            }
            if (!ended.attached)
                return contract_finding(
                    fmt::format("the consumer exited with status {}; expected a call of "
                                "kmes_attach (system call 1091) first",
                                ended.exit_status));
            Finding finding = ended_too_early(
                ended.exit_status, (missing.size() == 1 ? "CPU " : "CPUs ") + ranges_text(missing));
            if (ended.exit_status == 0 && missing.size() == 1)
                finding.message += "; " + last_delivery_text(last_delivery(missing.front()));
            return with_reason(std::move(finding), ended);
        }
        case EndKind::kNotStarted:
        case EndKind::kNotTraceable:
            break;
    }
    return contract_finding(ended.text);
}

void Stage::stop_ended() {
    read_report();
    if (ended_->kind == EndKind::kNotStarted || ended_->kind == EndKind::kNotTraceable)
        throw SuiteError(ended_->text);
    if (ended_->kind == EndKind::kKilled && ended_->signal == SIGSYS)
        stop_inconclusive(
            "the consumer's own seccomp filter killed it. It has to allow the calls by which the "
            "suite serves kmes_attach and mmap: openat, fcntl, mmap, mprotect, munmap, close");
    if (ended_->sanitizer_needs_ptrace)
        stop_inconclusive(
            "the consumer was built with a sanitizer that needs ptrace for itself; run it with "
            "ASAN_OPTIONS=detect_leaks=0, or build it without");
    const bool has_failed_to_attach = !attaches_.empty() && attaches_.back().error != 0;
    if (may_give_up_ && has_failed_to_attach && findings_.empty() &&
        ended_->kind == EndKind::kExited && ended_->exit_status != 0)
        throw GivenUp{};
    if (!findings_.empty()) {
        const Finding first = findings_.front();
        findings_.erase(findings_.begin());
        stop_with(first);
    }
    if (ended_->kind != EndKind::kExited || ended_->exit_status != 0) {
        if (const char* call = tracer_->call_refused_by_guards(); call != nullptr)
            stop_inconclusive(fmt::format(
                "the consumer exited after {} failed with EFAULT on a guarded page. In the judged "
                "run, copy by loads, or by write, writev, sendmsg, vmsplice or process_vm_readv",
                call));
    }
    stop_if_foreign(fmt::format("the consumer ended ({})", ended_->text));
    if (has_forked_ && !buffers_.has_mapped_any() && ended_->attached)
        stop_inconclusive(
            fmt::format("the consumer ended ({}) before it mapped a buffer, and has child "
                        "processes. The suite follows the first process that calls kmes_attach: "
                        "let that one read all CPUs, in the foreground",
                        ended_->text));
    if (has_twin_)
        stop_inconclusive(fmt::format(
            "the consumer ended ({}), and had a second process in its memory (clone with "
            "CLONE_VM), which the suite does not follow. Use threads in the judged run",
            ended_->text));
    stop_with(end_finding(*ended_));
}

// A process beside the testee was to read some of the CPUs: what the testee does is no wonder.
void Stage::stop_if_foreign(const std::string& what) const {
    if (foreign_process_ == 0) return;
    stop_inconclusive(
        fmt::format("{} after process {} got EPERM from kmes_attach. The suite serves only the "
                    "first process that calls it: let one process read all CPUs in the judged run",
                    what, foreign_process_));
}

// -- The end ---------------------------------------------------------------------------------

void Stage::wait_for_exit() {
    const auto pending = [this] { return !ended_; };
    wait_while(pending, pending, "an exit");
    read_report();
}

void Stage::emit_ends() {
    if (frozen_) thaw();
    if (ending_) return;
    ending_ = true;
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        if (!progress_->ended(cpu)) rings_->emit(cpu, rings_->make_end());
    }
}

JudgeOptions Stage::judge_options() const {
    JudgeOptions options;
    options.clause = clause_of_case(case_.id);
    return options;
}

CaseOutcome Stage::finish() {
    if (!frozen_ && !ending_ && !ended_) {
        for (const auto& monitor : monitors_) monitor->finishing();
    }
    emit_ends();
    wait_for_exit();
    JudgeOptions options = judge_options();
    options.exited_with_zero = ended_->kind == EndKind::kExited && ended_->exit_status == 0;
    std::optional<Finding> first;
    if (ended_->sanitizer_needs_ptrace || ended_->kind == EndKind::kKilled || !ended_->attached)
        stop_ended();
    if (!options.exited_with_zero) first = wrong_exit_status(ended_->exit_status);
    return judge_run(options, first);
}

CaseOutcome Stage::finish_any_exit() {
    if (!ended_) {
        const auto pending = [this] { return !ended_; };
        wait_while(pending, pending, "an exit");
    }
    read_report();
    if (ended_->sanitizer_needs_ptrace || ended_->kind != EndKind::kExited) stop_ended();
    JudgeOptions options = judge_options();
    options.cut_short = true;
    return judge_run(options, std::nullopt);
}

CaseOutcome Stage::finish_refused() {
    const auto pending = [this] { return !ended_; };
    wait_while(pending, pending, "an R record of every CPU");
    read_report();
    if (ended_->sanitizer_needs_ptrace || ended_->kind != EndKind::kExited) stop_ended();
    JudgeOptions options = judge_options();
    options.exited_with_zero = ended_->exit_status == 0;
    options.cut_short = ended_->exit_status != 0;
    return judge_run(options, std::nullopt);
}

CaseOutcome Stage::finish_tolerant() {
    emit_ends();
    bool asleep_for_good = false;
    const auto sound_cpus_ended = [this] {
        for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
            if (!progress_->ended(cpu) && !rings_->history().tolerated(cpu)) return false;
        }
        return true;
    };
    wait_while(
        [&] {
            // It is right to stay, and cannot be blamed for a rest that is told too soon.
            may_stay_ = sound_cpus_ended();
            if (!ended_ && may_stay_ && is_at_rest()) asleep_for_good = true;
            return !ended_ && !asleep_for_good;
        },
        [&] { return !sound_cpus_ended(); }, "an exit or a sleep");
    if (ended_ && (ended_->kind != EndKind::kExited || ended_->exit_status != 0)) stop_ended();
    JudgeOptions options = judge_options();
    options.cut_short = !ended_;
    return judge_run(options, std::nullopt);
}

CaseOutcome Stage::judge_run(const JudgeOptions& options, std::optional<Finding> first) {
    parser_.finish();
    rings_->verify();
    std::vector<Finding> all = findings_;
    std::vector<Finding> by_driver = findings_;
    const auto add = [&](const Finding& finding) {
        all.push_back(finding);
        by_driver.push_back(finding);
    };
    std::vector<Finding> judged = judge(rings_->history(), parser_, options);
    all.insert(all.end(), judged.begin(), judged.end());
    if (first) add(*first);
    for (const auto& monitor : monitors_) {
        if (std::optional<Finding> finding = monitor->fault()) add(*finding);
    }
    return make_outcome(all, by_driver, options);
}

// Everything that is needed to judge this run again, to run it again and to see it.
std::shared_ptr<RunRecord> Stage::make_record(const std::vector<Finding>& findings,
                                              const std::vector<Finding>& by_driver,
                                              const JudgeOptions& options) {
    constexpr std::size_t kStandardErrorBytesKept = 65536;
    auto record = std::make_shared<RunRecord>();
    record->schedule = settings_.schedule;
    record->history = rings_->history().log();
    record->report = report_;
    record->report_left_out = parser_.bytes_fed() - report_.size();
    record->judge_options = options;
    record->driver_findings = by_driver;
    record->findings = findings;
    record->timeline = recorder_.timeline();
    if (!tracer_) return record;
    const std::string text = tracer_->standard_error();
    record->standard_error =
        text.substr(text.size() - std::min(text.size(), kStandardErrorBytesKept));
    return record;
}

// The process that has called kmes_attach is the consumer (contract). A child that it makes
// afterwards has its buffers, and may read them or sleep on them; the suite does not follow it.
void Stage::stop_at_child(const Finding& finding) const {
    if (!has_forked_) return;
    stop_inconclusive(fmt::format(
        "the consumer has made child processes after kmes_attach, which may be the ones that read "
        "or sleep. The suite follows one process: use threads in the judged run ({})",
        finding.message));
}

CaseOutcome Stage::make_outcome(const std::vector<Finding>& findings,
                                const std::vector<Finding>& by_driver,
                                const JudgeOptions& options) {
    if (!findings.empty()) stop_at_child(findings.front());
    CaseOutcome outcome;
    outcome.verdict = findings.empty() ? Verdict::pass : Verdict::fail;
    if (!findings.empty()) {
        outcome.clause = findings.front().clause;
        outcome.message = findings.front().message;
    } else {
        outcome.clause = case_.clause;
        if (!in_part_.empty()) outcome.message = std::string(kInPart) + in_part_;
    }
    std::string text;
    for (std::size_t i = 1; i < findings.size(); ++i)
        text += fmt::format("also {} {}: {}\n", findings[i].clause, finding_name(findings[i].code),
                            findings[i].message);
    for (const std::string& line : notes_) text += line + "\n";
    if (const std::uint64_t lost = tracer_ ? tracer_->lost_stops() : 0; lost > 0)
        text += fmt::format("stops of threads that the kernel did not report: {}\n", lost);
    outcome.details = text;
    if (findings.empty()) return outcome;
    recorder_.finish(findings.front());
    if (const std::string cause = stale_capacity_of(recorder_.timeline()); !cause.empty())
        outcome.message += "; the cause: the consumer " + cause;
    const std::shared_ptr<RunRecord> record = make_record(findings, by_driver, options);
    outcome.record = record;
    if (!tracer_) return outcome;
    outcome.details += block("standard error of the testee", tracer_->standard_error());
    for (const Finding& finding : findings) {
        if (!finding.cpu || *finding.cpu >= cpus()) continue;
        const std::string history = describe_history(rings_->history(), parser_, *finding.cpu);
        outcome.details += block(fmt::format("history of CPU {}", *finding.cpu), history);
        record->history_excerpt = history;
        break;
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(parser_.comments().size(), 20); ++i)
        outcome.details += "# " + parser_.comments()[i].text + "\n";
    return outcome;
}

CaseOutcome Stage::outcome_of(const Stop& stop) {
    if (stop.verdict != Verdict::fail)
        return CaseOutcome{stop.verdict, std::string(case_.clause), stop.finding.message, ""};
    read_report();
    parser_.finish();
    JudgeOptions options = judge_options();
    options.cut_short = true;
    // The judge says it of a malformed line, first of all.
    const bool is_judged = stop.finding.code == FindingCode::malformed_record;
    std::vector<Finding> by_driver;
    if (!is_judged) by_driver.push_back(stop.finding);
    by_driver.insert(by_driver.end(), findings_.begin(), findings_.end());
    const std::vector<Finding> judged = judge(rings_->history(), parser_, options);
    // What it did before says more than that it did nothing any more. The same of one that has
    // ended, or refused, every CPU and then exits.
    const bool is_of_the_end =
        stands_still_ || (stop.finding.code == FindingCode::ended_too_early && all_ended());
    std::vector<Finding> all;
    const auto append = [&all](const std::vector<Finding>& more) {
        all.insert(all.end(), more.begin(), more.end());
    };
    if (is_judged) {
        append(judged);
        append(findings_);
    } else if (is_of_the_end) {
        append(findings_);
        append(judged);
        append({stop.finding});
    } else {
        append(by_driver);
        append(judged);
    }
    CaseOutcome outcome = make_outcome(all, by_driver, options);
    outcome.has_hung = has_hung_;
    return outcome;
}

CaseOutcome run_with_monitors(const Case& the_case, const StageSettings& settings,
                              const MonitorFactory& make_monitors) {
    Stage stage(settings, the_case);
    if (make_monitors) stage.set_monitors(make_monitors(stage));
    try {
        CaseOutcome outcome = the_case.run(stage);
        stage.check_watchpoints();
        return outcome;
    } catch (const Stop& stop) {
        try {
            return stage.outcome_of(stop);
        } catch (const Stop& again) {
            return CaseOutcome{again.verdict, again.finding.clause, again.finding.message, ""};
        }
    } catch (const NotStageable& reason) {
        return CaseOutcome{Verdict::unsupported, std::string(the_case.clause), reason.what(), ""};
    } catch (const std::exception& error) {
        return CaseOutcome{Verdict::suite_error, "", first_line(error.what()), ""};
    }
}

}  // namespace kmes::conformance
