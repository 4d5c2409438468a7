// SPDX-License-Identifier: MIT
//
// How a run on a stage ends: from states and findings to one outcome, and the runs themselves
// (run_on_stage, check_set_up).
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>

#include "conformance/failure/run_record.h"
#include "conformance/oracle/layout.h"
#include "conformance/stage/stage.h"
#include "conformance/stage/state_text.h"

namespace kmes::conformance {

namespace {

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
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

// A limit that nobody lives to see is none.
std::string far_limit_text(const Inspection& inspection, const WaitDescription& wait) {
    for (const ThreadState& thread : inspection.threads) {
        if (!wait.on_futex || thread.tid != wait.thread) continue;
        if (const auto seconds = far_limit_seconds(thread))
            return fmt::format("; the limit of its wait is {} s ahead", *seconds);
    }
    return "";
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

// A sleeper's state in the words of a finding: the thread that waits on a word of this CPU, or the
// first one that is blocked.
WaitDescription Stage::describe_wait(const Inspection& inspection, std::uint32_t cpu,
                                     const kmes::conformance::Event* owed) const {
    WaitDescription description;
    description.clause = case_.clause;
    const auto look = write_pos_read_.find(rings_->history().present_buffer(cpu));
    description.was_seen =
        owed && look != write_pos_read_.end() && owed->published_operation <= look->second;
    description.was_there = !owed || owed->published_operation <= round_begun_.at(cpu);
    for (const ThreadState& thread : inspection.threads) {
        for (const FutexWord& word : thread.words) {
            const std::optional<BufferIndex> index = index_of(word.place.buffer);
            if (!index) continue;
            description.others_wait = true;
            const Buffer& buffer = rings_->history().buffer(*index);
            if (buffer.cpu != cpu) continue;
            description.thread = thread.tid;
            description.on_futex = true;
            description.where = "futex";
            description.cpu = cpu;
            description.mapping_offset = word.place.offset_bytes;
            description.expected = word.value_expected;
            description.present = word.value_there;
            description.is_private = word.is_private;
            description.retired_buffer = buffer.retired;
            description.asked = rings_->need_wake(*index) != 0;
            description.counted_before =
                owed && counter_read_last_.contains(rings_->history().present_buffer(cpu)) &&
                rings_->is_counted_before(cpu, owed->sequence, description.expected);
            description.read_instead = value_read_instead(*index, word.value_expected);
            // On a retired buffer the round counts in which generation had changed already.
            if (buffer.retired)
                description.was_there &= buffer.retired_operation <= round_begun_.at(cpu);
            return description;
        }
    }
    if (!inspection.threads.empty()) {
        description.thread = inspection.threads.front().tid;
        description.where = call_text(inspection.threads.front().call_number);
    }
    return description;
}

// The last value that it read from the futex_counter of a buffer, where it never read `expected`.
std::optional<std::uint32_t> Stage::value_read_instead(BufferIndex buffer,
                                                       std::uint32_t expected) const {
    const auto read = counters_read_.find(buffer);
    if (read == counters_read_.end() || read->second.empty()) return std::nullopt;
    const std::deque<std::uint32_t>& values = read->second;
    if (std::find(values.begin(), values.end(), expected) != values.end()) return std::nullopt;
    return values.back();
}

// All is delivered, and it sleeps on a buffer that nothing comes in any more.
void Stage::stop_at_retired(const Inspection& inspection) const {
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        if (progress_->ended(cpu) || rings_->history().tolerated(cpu)) continue;
        const WaitDescription wait = describe_wait(inspection, cpu, nullptr);
        if (wait.on_futex && wait.retired_buffer) stop_with(asleep_on_retired(cpu, wait));
    }
}

// Every instruction of the testee is looked at: how long it takes says nothing of it.
bool Stage::is_stepped() const {
    return tracer_->stepping() == Stepping::kSingleStep && (is_recording() || !guarded_.empty());
}

void Stage::stop_hung(const std::string& what, Quiet quiet) {
    read_report();
    stands_still_ = true;
    const Inspection inspection = tracer_->inspect();
    const std::string state = describe_threads(inspection);
    const auto given_ms = static_cast<std::uint64_t>(time_to_hang(quiet).count());
    has_hung_ = quiet != Quiet::for_good;
    if (attaches_.empty())
        stop_with(contract_finding(
            fmt::format("it runs, and has not called kmes_attach (system call 1091) in {} ms{}",
                        given_ms, quiet == Quiet::spinning ? " of processor time" : "")));
    note("state of the testee: " + state);
    if (is_stepped() && (quiet == Quiet::spinning || quiet == Quiet::no))
        stop_inconclusive(
            fmt::format("it runs step by step, thousands of times slower than by itself, and has "
                        "not come to its next sleep or record in {} ms{}",
                        given_ms, quiet == Quiet::spinning ? " of processor time" : ""));
    if (has_hung_ && settings_.patience < 1)
        note("it has hung in cases before this one, and is given less time here");
    std::string waited = "every thread is blocked for good";
    if (quiet == Quiet::settling)
        waited = fmt::format(
            "nothing has moved for {} ms, in which every thread was blocked or in "
            "timed waits",
            given_ms);
    else if (quiet == Quiet::spinning)
        waited = fmt::format(
            "it has used {} ms of processor time, and has neither written a record nor slept",
            given_ms);
    else if (quiet == Quiet::no)
        waited = fmt::format("{} ms were given, and the testee runs on", given_ms);
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        const kmes::conformance::Event* owed =
            progress_->ended(cpu) ? nullptr : progress_->first_undelivered(cpu);
        if (!owed) continue;
        const WaitDescription wait = describe_wait(inspection, cpu, owed);
        const std::string far = far_limit_text(inspection, wait);
        if (quiet == Quiet::for_good || (quiet == Quiet::settling && !far.empty())) {
            Finding finding = lost_wake_up(cpu, owed->sequence, owed->type, wait);
            finding.message += far;
            stop_with(finding);
        }
        Finding finding = contract_finding(fmt::format(
            "CPU {}: event {} is published and in the buffer, and is not delivered; {} ({})", cpu,
            owed->sequence, waited, state));
        finding.code = FindingCode::missing_event;
        finding.clause = case_.clause;
        finding.cpu = cpu;
        finding.sequence = owed->sequence;
        stop_with(finding);
    }
    // Everything is delivered, and somebody else may be the one who sleeps.
    if (has_forked_ && inspection.other_processes)
        stop_inconclusive(
            "the testee has child processes, which may be the ones that sleep: the suite follows "
            "one process. Let it consume with threads in the run that is judged");
    if (waits_by_io_uring(inspection) || tracer_->has_io_uring())
        stop_inconclusive(
            "it has an io_uring, and may sleep on futex_counter by that: the suite does not see "
            "it. Let it use the futex calls in the run that is judged");
    if (ending_) stop_with(never_ended(state, waited));
    stop_at_lost_counter();
    if (quiet == Quiet::for_good) stop_at_retired(inspection);
    Finding finding = contract_finding(
        fmt::format("waited for {}; it did not come: {} ({})", what, waited, state));
    finding.clause = case_.clause;
    name_repeats(finding);
    name_forged(finding, inspection);
    stop_with(finding);
}

// Those of the forged buffers that are still worked on.
void Stage::name_forged(Finding& finding, const Inspection& inspection) const {
    constexpr std::size_t kNamed = 3;
    const History& history = rings_->history();
    std::set<std::uint32_t> slept_on;
    for (const ThreadState& thread : inspection.threads) {
        for (const FutexWord& word : thread.words) {
            if (const auto index = index_of(word.place.buffer))
                slept_on.insert(history.buffer(*index).cpu);
        }
    }
    std::vector<std::string> names;
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        if (!history.tolerated(cpu) || progress_->ended(cpu) || slept_on.contains(cpu)) continue;
        if (names.empty()) finding.cpu = cpu;
        names.push_back(fmt::format("CPU {} ({})", cpu,
                                    history.buffer(history.present_buffer(cpu)).fault_detail));
    }
    if (names.empty()) return;
    const std::size_t more = names.size() - std::min(names.size(), kNamed);
    names.resize(names.size() - more);
    finding.message +=
        "; neither refused nor slept on: " + fmt::format("{}", fmt::join(names, ", "));
    if (more > 0) finding.message += fmt::format(" and {} more", more);
}

// Why somebody may run and run, as far as it shows in what is done again and again.
void Stage::name_repeats(Finding& finding) const {
    const History& history = rings_->history();
    const std::uint64_t maps_again = maps_again_.count(history.buffer_count());
    const std::uint64_t attaches_again = attaches_again_.count(history.buffer_count());
    if (maps_again > Repeats::kTooMany) {
        finding.clause = clause_by_situation(case_.clause, "5.1.8.3");
        finding.message += fmt::format(
            "; {} times it has mapped a buffer that it had mapped before, and nothing has been "
            "replaced meanwhile: a buffer is replaced where its generation is another than when "
            "it was first read, in all 64 bits",
            maps_again);
    } else if (attaches_again > Repeats::kTooMany) {
        finding.clause = clause_by_situation(case_.clause, "5.1.8.3");
        finding.message += fmt::format(
            "; {} times it has called kmes_attach, and nothing has been replaced meanwhile: of a "
            "CPU that has ended, or that it refuses, generation says nothing to it any more",
            attaches_again);
    } else if (refused_waits_.count(history.operations()) > Repeats::kTooMany) {
        finding.clause = "5.1.8.2-3";
        finding.message +=
            "; its futex waits return at once, one after the other: they expect another value "
            "than futex_counter has";
    }
}

// A counter that no wake of the producer's accounts for.
void Stage::stop_at_lost_counter() const {
    const History& history = rings_->history();
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        const BufferIndex index = history.present_buffer(cpu);
        if (history.tolerated(cpu)) continue;
        const Buffer& buffer = history.buffer(index);
        if (rings_->counter(index) - buffer.futex_counter_lowest <=
            buffer.futex_counter_highest - buffer.futex_counter_lowest)
            continue;
        stop_with(write_outside(cpu, kFutexWordOffset, sizeof(std::uint32_t), ""));
    }
}

// Why it gave up, as far as that is to be seen.
Finding Stage::with_reason(Finding finding, const Ended& ended) const {
    const int error = attaches_.empty() ? 0 : attaches_.back().error;
    if (error != 0) {
        finding.clause = "contract-1";
        finding.message +=
            fmt::format("; its last kmes_attach, with {} slots, said {}",
                        attaches_.back().request.slots_requested, strerrorname_np(error));
    } else if (ended.exit_status != 0) {
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
            finding.clause = case_.clause;
            return finding;
        }
        case EndKind::kExited: {
            std::vector<std::uint32_t> missing;
            for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
                if (!progress_->ended(cpu)) missing.push_back(cpu);
            }
            if (!ended.attached)
                return contract_finding(fmt::format(
                    "it exited with status {} and never called kmes_attach (system call 1091)",
                    ended.exit_status));
            return with_reason(
                ended_too_early(ended.exit_status,
                                (missing.size() == 1 ? "CPU " : "CPUs ") + ranges_text(missing)),
                ended);
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
            "a seccomp filter of the testee's own killed it; the suite serves kmes_attach by "
            "openat "
            "and mmap in its stead, which that filter has to let through (with mprotect, munmap, "
            "close and getpid)");
    if (ended_->sanitizer_needs_ptrace)
        stop_inconclusive(
            "the testee was built with a sanitizer that needs ptrace for itself; run it with "
            "ASAN_OPTIONS=detect_leaks=0, or build it without");
    if (!findings_.empty()) {
        const Finding first = findings_.front();
        findings_.erase(findings_.begin());
        stop_with(first);
    }
    if (ended_->kind != EndKind::kExited || ended_->exit_status != 0) {
        if (const char* call = tracer_->call_refused_by_guards(); call != nullptr)
            stop_inconclusive(fmt::format(
                "it gave up behind a call of {} while the ring was guarded, which the kernel "
                "refuses then where it reads the ring (EFAULT). Let it copy by itself, or by "
                "write, writev, sendmsg, vmsplice or process_vm_readv, in the run that is judged",
                call));
    }
    if (foreign_process_ != 0)
        stop_inconclusive(fmt::format(
            "it ended ({}) when process {} had called kmes_attach, and got EPERM: the suite serves "
            "the first process that calls it, and no other. Let one process read all CPUs in the "
            "run that is judged",
            ended_->text, foreign_process_));
    stop_with(end_finding(*ended_));
}

// -- The end ---------------------------------------------------------------------------------

void Stage::wait_for_exit() {
    const auto pending = [this] { return !ended_; };
    wait_while(pending, pending, "the testee to exit");
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
        wait_while(pending, pending, "the testee to exit");
    }
    read_report();
    if (ended_->sanitizer_needs_ptrace || ended_->kind != EndKind::kExited) stop_ended();
    JudgeOptions options = judge_options();
    options.cut_short = true;
    return judge_run(options, std::nullopt);
}

CaseOutcome Stage::finish_refused() {
    const auto pending = [this] { return !ended_; };
    wait_while(pending, pending, "the testee to refuse every buffer");
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
            if (!ended_ && sound_cpus_ended() && is_at_rest()) asleep_for_good = true;
            return !ended_ && !asleep_for_good;
        },
        [&] { return !sound_cpus_ended(); }, "the testee to exit or to sleep");
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
    for (const auto& [index, id] : served_) {
        if (std::optional<Finding> finding = rings_->check_metadata(index)) add(*finding);
    }
    return make_outcome(all, by_driver, options);
}

// Everything that is needed to judge this run again, to run it again and to see it.
std::shared_ptr<const RunRecord> Stage::make_record(const std::vector<Finding>& findings,
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

// What a child of the testee's process consumes is neither served nor followed.
void Stage::stop_at_child(const Finding& finding) const {
    if (!has_forked_ || !finding.cpu) return;
    const bool is_mapped =
        std::any_of(ever_mapped_.begin(), ever_mapped_.end(),
                    [&](BufferIndex buffer) { return cpu_of(buffer) == *finding.cpu; });
    if (is_mapped) return;
    stop_inconclusive(fmt::format(
        "the testee has made child processes, and has not mapped the buffer of CPU {} itself: the "
        "suite follows one process. Let it consume with threads in the run that is judged ({})",
        *finding.cpu, finding.message));
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
    }
    std::string text;
    for (std::size_t i = 1; i < findings.size(); ++i)
        text += fmt::format("also {} {}: {}\n", findings[i].clause, finding_name(findings[i].code),
                            findings[i].message);
    for (const std::string& line : notes_) text += line + "\n";
    if (const std::uint64_t lost = tracer_ ? tracer_->lost_stops() : 0; lost > 0)
        text += fmt::format("threads that this machine did not let go, found again: {}\n", lost);
    outcome.details = text;
    if (findings.empty()) return outcome;
    recorder_.finish(findings.front());
    outcome.record = make_record(findings, by_driver, options);
    if (!tracer_) return outcome;
    outcome.details += block("standard error of the testee", tracer_->standard_error());
    for (const Finding& finding : findings) {
        if (!finding.cpu || *finding.cpu >= cpus()) continue;
        outcome.details += block(fmt::format("history of CPU {}", *finding.cpu),
                                 describe_history(rings_->history(), parser_, *finding.cpu));
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

CaseOutcome run_on_stage(const Case& the_case, const StageSettings& settings) {
    Stage stage(settings, the_case);
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

namespace {

// Why `path` cannot be started; empty if it can, as far as one can see from outside.
std::string why_not_startable(const std::string& path) {
    struct stat status{};
    if (stat(path.c_str(), &status) != 0) return strerror(errno);
    if (S_ISDIR(status.st_mode)) return "it is a folder";
    if (access(path.c_str(), X_OK) != 0) return "it is not executable (chmod +x)";
    return "";
}

// As execvp would find it.
std::string why_no_program(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        const std::string why = why_not_startable(name);
        return why.empty() ? "" : fmt::format("{}: {}", name, why);
    }
    const char* path = getenv("PATH");
    const std::string folders = path ? path : "/bin:/usr/bin";
    for (std::size_t begin = 0; begin <= folders.size();) {
        const std::size_t end = std::min(folders.find(':', begin), folders.size());
        const std::string folder = folders.substr(begin, end - begin);
        if (why_not_startable((folder.empty() ? "." : folder) + "/" + name).empty()) return "";
        begin = end + 1;
    }
    if (why_not_startable("./" + name).empty())
        return fmt::format("{}: not in PATH; the one in this folder is ./{}", name, name);
    return fmt::format("{}: not in PATH, and no file of this folder", name);
}

}  // namespace

std::string describe_stepper(const StageSettings& settings) {
    constexpr int kLooksAtMost = 200;
    std::string reason;
    Case first_look;
    first_look.id = "first-look";
    first_look.run = [&reason](Stage& stage) {
        RingsSetup setup = stage.default_setup();
        setup.cpus = 1;
        stage.set_up(setup);
        stage.set_on_mapped([&](const Mapped& mapped) {
            stage.guard_mapping(mapped, Stage::Guarded::metadata);
            reason = stage.tracer().stepping_reason();
        });
        stage.start();
        for (int look = 0; look < kLooksAtMost && reason.empty(); ++look) stage.let_run(10);
        return CaseOutcome{Verdict::pass, "", "", ""};
    };
    StageSettings alone = settings;
    alone.debug = false;
    alone.debugger = nullptr;
    run_on_stage(first_look, alone);
    return reason.empty() ? "not known: the testee mapped no buffer in a first look" : reason;
}

std::string check_set_up(const StageSettings& settings) {
    if (settings.testee.empty()) return "no testee is named: PROGRAM ARGS... go behind --";
    if (std::string why = why_no_program(settings.testee.front()); !why.empty()) return why;
    if (std::string why = why_not_traceable(); !why.empty()) return why;
    if (!settings.device.empty()) return why_no_device(settings.device);
    return "";
}

}  // namespace kmes::conformance
