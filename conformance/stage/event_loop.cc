// SPDX-License-Identifier: MIT
//
// See event_loop.h.
#include "conformance/stage/event_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>

#include "conformance/model/layout.h"
#include "conformance/oracle/driver_findings.h"
#include "conformance/stage/attach_form.h"
#include "conformance/stage/debugger.h"
#include "conformance/stage/end_finding.h"
#include "conformance/stage/scoped_flag.h"
#include "conformance/stage/stage_parts.h"
#include "conformance/stage/stepping.h"
#include "conformance/stage/stop.h"
#include "conformance/tracer/patience.h"

namespace kmes::conformance {

namespace {

using std::chrono::milliseconds;

// A wait of the runner that is late by this much: the runner was descheduled, or the machine
// stopped.
constexpr milliseconds kLate{500};
// How long an ending process may take until it has ended, and the interval of the checks.
constexpr milliseconds kGoing{2000};
constexpr milliseconds kPoll{3};

}  // namespace

void EventLoop::set_debugger(Debugger& debugger, Stage& stage) {
    debugger_ = &debugger;
    debugged_ = &stage;
}

void EventLoop::start() {
    TracerOptions options;
    // The tracer can detach only without a seccomp filter (Tracer::detach).
    if (parts_.settings.debug) options.interception = Interception::kEveryCall;
    options.stepping = stepping_of(parts_.settings.stepper);
    options.keep_stacks = parts_.recorder.on();
    options.processor = parts_.settings.processor;
    Tracer& tracer = parts_.testee.make_tracer(options);
    connect(tracer);
    parts_.clock.note_work();
    tracer.start(parts_.settings.testee);
}

void EventLoop::connect(Tracer& tracer) {
    tracer.handlers().attach = [this](const AttachRequest& request) {
        parts_.hooks.attach(request);
        return parts_.attach_answers.next(*parts_.rings);
    };
    tracer.set_attach_call(attach_call_of(layout()), parts_.attach_answers.least_fd());
    tracer.handlers().is_interrupted = [this] { return parts_.settings.stop->load(); };
    parts_.rings->set_observer(*this);
    if (parts_.guards.has_plain_hits()) {
        tracer.handlers().guarded_access = [this](const GuardHit& hit) {
            note_access(hit);
            return parts_.guards.count_if_plain(hit) ? GuardAnswer::kStep : GuardAnswer::kEvent;
        };
    }
    if (parts_.hooks.wants_calls()) {
        tracer.handlers().call = [this](pid_t tid, long number) {
            if (parts_.hooks.holds_at_call(tid, number)) parts_.testee.tracer().hold(tid);
        };
    }
    if (parts_.hooks.wants_report_writes()) {
        tracer.handlers().report_write = [this](const ReportWrite& write) {
            for (const auto& monitor : parts_.monitors) monitor->writes_report(write);
            if (parts_.hooks.holds_at(write)) parts_.testee.tracer().hold(write.tid);
        };
    }
}

void EventLoop::before_operation() {
    parts_.waits.let_fall_asleep_again();
    parts_.testee.read_report();
    parts_.rings->history().set_report_bytes(parts_.testee.records().bytes_fed());
}

void EventLoop::on_buffer(BufferIndex buffer) {
    const ServedBuffer served = parts_.attach_answers.served(*parts_.rings, buffer);
    parts_.buffers.serve(buffer, parts_.testee.tracer().add_buffer(served));
}

void EventLoop::pump(TimePoint deadline) {
    if (parts_.settings.stop->load()) throw SuiteError("interrupted");
    stop_at_the_longest_run();
    const ScopedFlag in_pump(is_in_pump_);
    parts_.wait_log.begin_event();
    const TimePoint begin = Clock::now();
    const TracerEvent event = parts_.testee.tracer().wait(deadline);
    const TimePoint end = Clock::now();
    const Clock::duration late = end - deadline;
    if (late > kLate) parts_.clock.exclude(late);
    waited_ += std::min<Clock::duration>(end - begin, kLate);
    // Lines that were written before the event also precede it in the timeline.
    if (parts_.recorder.on()) parts_.testee.read_report();
    handle(event);
    parts_.testee.read_report();
}

// Every other limit counts the time without progress. A testee that needs a second for each event
// would take hours for one case.
void EventLoop::stop_at_the_longest_run() const {
    const double seconds = parts_.settings.longest_run_seconds * parts_.settings.timeout_scale;
    if (parts_.settings.debug || std::chrono::duration<double>(waited_).count() <= seconds) return;
    stop_inconclusive(
        fmt::format("the case was not over after {:.0f} s, although the consumer continued; "
                    "--timeout-scale gives it more time",
                    seconds));
}

bool EventLoop::has_gone_or_stop() {
    Tracer& tracer = parts_.testee.tracer();
    const std::optional<Ended>& end = parts_.testee.end();
    Patience patience(kGoing);
    while (!end && !patience.is_over(tracer.testee_threads())) {
        if (parts_.settings.stop->load()) throw SuiteError("interrupted");
        const TracerEvent event = tracer.wait(Clock::now() + kPoll);
        if (const auto* ended = std::get_if<Ended>(&event)) on(*ended);
    }
    parts_.testee.read_report();
    if (end && !parts_.testee.progress().all_ended()) stop_ended(parts_);
    return end.has_value();
}

void EventLoop::handle(const TracerEvent& event) {
    if (std::holds_alternative<TimedOut>(event)) return;
    if (debugger_ != nullptr) {
        debugger_->at(*debugged_, event);
        parts_.clock.note_work();  // the person at the debugger may have taken long
    }
    if (const auto* attached = std::get_if<Attached>(&event)) return on(*attached);
    if (const auto* mapped = std::get_if<Mapped>(&event)) return on(*mapped);
    if (const auto* wait = std::get_if<FutexWait>(&event)) return on(*wait);
    if (const auto* end = std::get_if<FutexWaitEnd>(&event)) return on(*end);
    if (const auto* fault = std::get_if<WriteFault>(&event)) return on(*fault);
    if (const auto* hit = std::get_if<GuardHit>(&event)) return on(*hit);
    if (const auto* ended = std::get_if<Ended>(&event)) return on(*ended);
    on_other(event);
}

void EventLoop::on(const Attached& event) {
    parts_.clock.note_change();
    parts_.testee.note(event);
    parts_.recorder.testee().attached(event);
    if (event.error != 0) return;
    parts_.liveness.note_attach(event);
    parts_.hooks.attached(event);
}

void EventLoop::on(const Mapped& event) {
    parts_.clock.note_change();
    parts_.testee.note(event);
    parts_.recorder.testee().mapped(event);
    const BufferIndex buffer = parts_.buffers.index_of(event.buffer).value();
    if (event.error == 0) {
        if (parts_.buffers.note_mapped(buffer, event.mapping.id, event.tid))
            parts_.clock.note_work();
        else
            parts_.liveness.note_mapped_again();
        parts_.wait_log.begin_iteration(parts_.cpu_of(buffer));
        parts_.guards.record_accesses_of(event.mapping);
        parts_.hooks.mapped(event);
    }
    for (const auto& monitor : parts_.monitors) monitor->mapped(event);
}

void EventLoop::on(const FutexWait& event) {
    const bool is_nap = parts_.wait_log.enter(event);
    parts_.recorder.testee().wait_begins(event);
    for (const auto& monitor : parts_.monitors) monitor->wait_begins(event);
    if (!is_nap) parts_.clock.note_change();
    for (const FutexWord& word : event.words) {
        const std::optional<std::uint32_t> cpu = parts_.wait_log.sleep_on(event, word);
        if (cpu) parts_.hooks.wait(event, *cpu);
    }
}

void EventLoop::on(const FutexWaitEnd& event) {
    const std::optional<WaitLog::End> end = parts_.wait_log.leave(event);
    if (!end) return;
    if (!end->had_limit && !end->is_interrupted) parts_.clock.note_change();
    parts_.hooks.wait_end(event);
    parts_.wait_log.forget(event);
    const std::int64_t result = parts_.hooks.wake_result();
    const bool is_replaced = result != 0 && event.result == 0 && !event.thread_ended;
    parts_.recorder.testee().wait_ends(event, is_replaced ? result : 0);
    if (!is_replaced) return;
    // Only a wait with a limit can time out.
    if (result == -ETIMEDOUT && !end->had_limit) return;
    parts_.testee.tracer().set_wait_result(event.tid, result);
    parts_.hooks.count_wake_result();
}

void EventLoop::on(const WriteFault& event) {
    parts_.clock.note_work();
    parts_.recorder.accesses().refused(event);
    for (const auto& monitor : parts_.monitors) monitor->store_refused(event);
}

void EventLoop::note_access(const GuardHit& hit) {
    for (const auto& monitor : parts_.monitors) monitor->accesses(hit);
    parts_.reads.note(hit);
}

void EventLoop::on(const GuardHit& event) {
    note_access(event);
    parts_.guards.hit(event);
}

void EventLoop::on(const Ended& event) {
    parts_.testee.note(event);
    parts_.wait_log.forget_all();
}

void EventLoop::on(const Forked& event) {
    parts_.clock.note_change();
    parts_.testee.note(event);
    parts_.findings.note(fmt::format("the consumer made a child process, {}", event.child_pid));
}

void EventLoop::on(const Executed& event) {
    if (!parts_.testee.maps().empty())
        stop_inconclusive(fmt::format(
            "process {} replaced its program (execve) after it had mapped buffers, which the "
            "suite does not follow. Map them in the program that reads them in the judged run",
            event.pid));
    // As before the first attach: the program that maps the buffers is the testee.
    parts_.wait_log.forget_all();
    parts_.findings.note(
        fmt::format("process {} replaced its program before it mapped a buffer", event.pid));
}

void EventLoop::on(const OutputLimit& event) {
    if (event.file == OutputLimit::File::kReport)
        stop_with(contract_finding(
            fmt::format("the consumer floods its report: {} bytes unread", event.unread_bytes)));
    parts_.findings.note(
        "the consumer floods its standard output or error; the middle is left out");
}

void EventLoop::on(const TracerTrouble& event) {
    // Reported before the end of the consumer: a consumer without the rights exits.
    if (event.reason == TracerTrouble::Reason::its_rights)
        stop_inconclusive(event.what +
                          "; the suite serves kmes_attach and each mmap by openat in the "
                          "consumer: change user, root folder, filter or process namespace "
                          "only after the last of these calls");
    // In an ending process every action fails, and a thread can be stuck. Every other reason is
    // known, and not the consumer's fault.
    const bool may_be_its_end = event.reason == TracerTrouble::Reason::none_known ||
                                event.reason == TracerTrouble::Reason::stuck;
    if (!may_be_its_end) stop_inconclusive(event.what);
    if (has_gone_or_stop()) return;
    if (event.reason == TracerTrouble::Reason::stuck) stop_inconclusive(event.what);
    throw SuiteError("tracer: " + event.what);
}

void EventLoop::on_other(const TracerEvent& event) {
    if (const auto* other = std::get_if<FutexOther>(&event)) {
        parts_.findings.note(fmt::format("thread {} called futex with operation {} on a ring word",
                                         other->tid, other->operation));
    } else if (const auto* forked = std::get_if<Forked>(&event)) {
        on(*forked);
    } else if (const auto* executed = std::get_if<Executed>(&event)) {
        on(*executed);
    } else if (const auto* limit = std::get_if<OutputLimit>(&event)) {
        on(*limit);
    } else if (const auto* foreign = std::get_if<ForeignAttach>(&event)) {
        parts_.testee.note(*foreign);
        parts_.findings.note(
            fmt::format("process {}, which is not the consumer, called kmes_attach and got EPERM",
                        foreign->pid));
    } else if (const auto* trouble = std::get_if<TracerTrouble>(&event)) {
        on(*trouble);
    }
}

}  // namespace kmes::conformance
