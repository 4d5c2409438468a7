// SPDX-License-Identifier: MIT
//
// See second_instance.h. The tracing thread polls, and reacts to each request within kSecondPoll.
#include "conformance/stage/second_instance.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "conformance/oracle/driver_findings.h"
#include "conformance/stage/attach_form.h"
#include "conformance/stage/end_finding.h"
#include "conformance/stage/stepping.h"
#include "conformance/stage/stop.h"

namespace kmes::conformance {

namespace {

constexpr std::chrono::milliseconds kSecondPoll{2};

// Removes the operations that belong to the first consumer: only those of the producer count.
HistoryLog of_the_producer_alone(const HistoryLog& all) {
    HistoryLog log = all;
    std::erase_if(log.operations, [](const LoggedOperation& operation) {
        return operation.kind == OperationKind::checkpoint_idle ||
               operation.kind == OperationKind::note_draining;
    });
    // Times are lengths of the first consumer's report.
    for (LoggedOperation& operation : log.operations) operation.report_bytes = 0;
    log.report_bytes = 0;
    return log;
}

}  // namespace

SecondInstance::SecondInstance(const StageSettings& settings, Rings& rings)
    : program_(settings.testee),
      stepping_(stepping_of(settings.stepper)),
      rings_(rings),
      progress_(rings.history()) {
    for (std::uint32_t cpu = 0; cpu < rings.cpus(); ++cpu)
        served_.push_back(rings.backend().served(rings.history().current_buffer(cpu)));
    answer_.capacity_bytes = rings.capacity_bytes();
    answer_.device = rings.backend().attach_device();
    thread_ = std::thread([this] { trace(); });
}

SecondInstance::~SecondInstance() {
    quit_ = true;
    thread_.join();
}

// -- The thread ------------------------------------------------------------------------------

void SecondInstance::trace() {
    try {
        TracerOptions options;
        options.stepping = stepping_;
        Tracer tracer(options);
        trace_until_quit(tracer);
    } catch (const std::exception& error) {
        const std::lock_guard<std::mutex> guard(lock_);
        trouble_.what = error.what();
    }
}

void SecondInstance::trace_until_quit(Tracer& tracer) {
    for (std::uint32_t cpu = 0; cpu < served_.size(); ++cpu) {
        const BufferId id = tracer.add_buffer(served_[cpu]);
        cpu_of_[id] = cpu;
        answer_.buffers.push_back(id);
    }
    tracer.set_attach_call(attach_call_of(layout()));
    tracer.handlers().attach = [this](const AttachRequest&) { return answer_; };
    tracer.handlers().is_interrupted = [this] { return quit_.load(); };
    tracer.start(program_);
    while (!quit_) {
        const TracerEvent event = tracer.wait(Clock::now() + kSecondPoll);
        const bool is_quiet = std::holds_alternative<TimedOut>(event);
        const bool for_good = is_quiet && tracer.inspect().all_blocked_for_good;
        const std::lock_guard<std::mutex> guard(lock_);
        blocked_for_good_ = for_good;
        handle(tracer, event);
        unread_ += tracer.output().read_report();
        threads_ = tracer.testee_threads();
        for (const pid_t tid : access_stop_.take_released()) tracer.release(tid);
    }
}

void SecondInstance::handle(Tracer& tracer, const TracerEvent& event) {
    if (const auto* mapped = std::get_if<Mapped>(&event)) {
        if (mapped->error == 0) tracer.guards().add(mapped->mapping.id, 0, kMetadataPages);
    } else if (const auto* hit = std::get_if<GuardHit>(&event)) {
        on(tracer, *hit);
    } else if (const auto* wait = std::get_if<FutexWait>(&event)) {
        on(*wait);
    } else if (const auto* end = std::get_if<FutexWaitEnd>(&event)) {
        waits_.erase(end->tid);
    } else if (const auto* ended = std::get_if<Ended>(&event)) {
        ended_ = *ended;
        waits_.clear();
    } else if (const auto* trouble = std::get_if<TracerTrouble>(&event)) {
        trouble_ = *trouble;
    }
}

void SecondInstance::on(const FutexWait& wait) {
    for (const FutexWord& word : wait.words) {
        const auto cpu = cpu_of_.find(word.place.buffer);
        if (cpu == cpu_of_.end()) continue;
        waits_[wait.tid] = {cpu->second, word.value_expected, wait.limit != TimeLimit::kNone};
    }
    ++waits_entered_;
}

void SecondInstance::on(Tracer& tracer, const GuardHit& hit) {
    const std::uint32_t cpu = cpu_of_.at(hit.place.buffer);
    if (access_stop_.hold_if_due(hit, cpu)) return tracer.hold(hit.tid);
    GuardStep step = tracer.guards().step(hit.tid);
    if (step.outcome == GuardStep::Outcome::kDone)
        access_stop_.note_done(hit, cpu, std::move(step));
}

// -- The caller ------------------------------------------------------------------------------

void SecondInstance::update() {
    std::string bytes;
    {
        const std::lock_guard<std::mutex> guard(lock_);
        if (trouble_.reason != TracerTrouble::Reason::none_known)
            stop_inconclusive("the second instance: " + trouble_.what);
        if (!trouble_.what.empty())
            throw SuiteError("tracer of the second instance: " + trouble_.what);
        bytes = std::exchange(unread_, {});
    }
    if (bytes.empty()) return;
    parser_.feed(bytes);
    progress_.update(parser_);
}

void SecondInstance::stop_before_access(std::uint64_t nth) {
    const std::lock_guard<std::mutex> guard(lock_);
    access_stop_.begin(nth);
    waits_entered_before_ = waits_entered_;
}

void SecondInstance::resume() {
    const std::lock_guard<std::mutex> guard(lock_);
    access_stop_.end();
}

bool SecondInstance::is_stopped() const {
    const std::lock_guard<std::mutex> guard(lock_);
    return access_stop_.is_stopped();
}

bool SecondInstance::has_slept_since() const {
    const std::lock_guard<std::mutex> guard(lock_);
    return waits_entered_ != waits_entered_before_ && !waits_.empty();
}

std::vector<AccessStop::Access> SecondInstance::take_accesses() {
    const std::lock_guard<std::mutex> guard(lock_);
    return access_stop_.take_accesses();
}

bool SecondInstance::is_asleep(std::uint32_t cpu) const {
    const std::lock_guard<std::mutex> guard(lock_);
    const std::uint32_t counter = rings_.counters().of(rings_.history().current_buffer(cpu));
    return std::any_of(waits_.begin(), waits_.end(), [&](const auto& entry) {
        const Wait& wait = entry.second;
        return wait.has_limit || (wait.cpu == cpu && wait.value_expected == counter);
    });
}

bool SecondInstance::is_blocked_for_good() const {
    const std::lock_guard<std::mutex> guard(lock_);
    return blocked_for_good_;
}

std::optional<Ended> SecondInstance::ended() const {
    const std::lock_guard<std::mutex> guard(lock_);
    return ended_;
}

std::vector<pid_t> SecondInstance::threads() const {
    const std::lock_guard<std::mutex> guard(lock_);
    return threads_;
}

std::vector<Finding> SecondInstance::judge() {
    update();
    parser_.finish();
    const std::optional<Ended> end = ended();
    if (end) stop_if_killed_from_outside(*end);
    JudgeOptions options;
    options.clause = "E12";
    options.exited_with_zero = end && end->kind == EndKind::kExited && end->exit_status == 0;
    options.cut_short = !options.exited_with_zero;
    const History history = history_from(of_the_producer_alone(rings_.history().log()));
    std::vector<Finding> findings = conformance::judge(history, parser_, options);
    if (end && end->kind == EndKind::kKilled)
        findings.insert(findings.begin(),
                        crash(end->signal, "", end->fault ? end->fault->describe() : ""));
    else if (end && !options.exited_with_zero)
        findings.insert(findings.begin(), wrong_exit_status(end->exit_status));
    return findings;
}

}  // namespace kmes::conformance
