// SPDX-License-Identifier: MIT
//
// The life of a run: start, the loop of wait, kill. Knows how stops are received and threads
// resumed, not the meaning of a stop.

#include "conformance/tracer/engine.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <system_error>

#include "conformance/tracer/limited_access.h"
#include "conformance/tracer/open_files.h"
#include "conformance/tracer/patience.h"
#include "conformance/tracer/resume_hook.h"
#include "conformance/tracer/spare_file.h"
#include "conformance/tracer/traced_calls.h"

namespace kmes::conformance {
namespace {

// The longest sleep of the loop, which checks the output files.
constexpr auto kTick = std::chrono::milliseconds(20);
// A testee may stop so often that there is always a stop to handle. After this time and this many
// iterations, wait() returns nevertheless. A wait that only takes stops that are there already
// needs fewer.
constexpr auto kBusyLimit = std::chrono::milliseconds(500);
constexpr int kBusyTurns = 200;
// Above this number, the threads take turns, which costs one more call for each stop.
constexpr size_t kFewThreads = 6;
// A call or a step of the tracer in a thread takes microseconds. If it takes longer, the thread
// hangs in the kernel.
constexpr auto kStopLimit = std::chrono::seconds(20);
// Killed processes are gone in microseconds; only a kernel in trouble needs longer.
constexpr auto kKillLimit = std::chrono::seconds(20);
constexpr int kLowestRunnerFd = 10;
constexpr long kTraceOptions = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                               PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD |
                               PTRACE_O_EXITKILL;

}  // namespace

Tracer::Engine::Engine(TracerOptions options)
    : options_(std::move(options)),
      stepping_(options_.stepping, options_.simulate_blind_stepper),
      output_(options_.output_limit_bytes, options_.shown_output_bytes),
      pointers_(tracees_, mappings_, events_, effects_),
      futex_calls_(mappings_, buffers_),
      processor_(options_.processor, options_.pin_to_one_processor) {}

Tracer::Engine::~Engine() {
    kill_all();
    processor_.restore(tracees_.all_threads());
}

void Tracer::Engine::refuse_start(EndKind kind, int error, std::string text) {
    Ended ended;
    ended.kind = kind;
    ended.error = error;
    ended.text = std::move(text);
    end_.set(std::move(ended));
}

void Tracer::Engine::start(const std::vector<std::string>& arguments) {
    program_.begin();
    if (arguments.empty() || arguments[0].empty()) {
        refuse_start(EndKind::kNotStarted, ENOENT, "no program was named");
        return;
    }
    const Abilities& abilities = probe_abilities(options_.simulate_outer_filter);
    if (!abilities.why_not_traceable.empty()) {
        refuse_start(EndKind::kNotTraceable, EPERM, abilities.why_not_traceable);
        return;
    }
    program_.choose_interception(options_.interception, abilities.seccomp_trace,
                                 handlers_.report_write || handlers_.call);
    keep_spare_file();
    output_.open();
    if (options_.pin_to_one_processor) share_processor();  // the child inherits it
    LaunchPlan& plan = program_.plan();
    plan.fixed_addresses = options_.fixed_addresses;
    plan.arguments = arguments;
    plan.environment = testee_environment(options_.extra_environment);
    plan.candidates = executable_candidates(arguments[0], plan.environment);
    if (options_.simulate_outer_filter) plan.outer_filter = outer_filter();
    if (program_.interception() == Interception::kSeccomp)
        plan.filter = traced_calls_filter(options_.report_futex);
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    plan.standard_input = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, kLowestRunnerFd);
    close(null);
    plan.standard_output = output_.output_for_append();
    plan.standard_error = output_.error_for_append();
    plan.report = output_.report_for_append();
    const pid_t pid = program_.launch();
    if (ptrace(PTRACE_SEIZE, pid, 0, kTraceOptions) != 0) {
        const int error = errno;
        kill(pid, SIGKILL);
        int status = 0;
        while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR) continue;
        refuse_start(EndKind::kNotTraceable, error,
                     std::string("ptrace refused the child: ") + strerror(error));
        return;
    }
    tracees_.process(pid);
    add_thread(pid, pid).is_new = false;
    restore_open_files(pid);
    program_.let_go();
}

Thread& Tracer::Engine::add_thread(pid_t tid, pid_t process) {
    Thread& thread = tracees_.add(tid, process);
    processor_.restore_new_thread(tid);
    return thread;
}

Thread& Tracer::Engine::record(const Received& received) {
    if (find(received.tid) == nullptr) {
        const auto status = read_status(received.tid);
        const Thread& thread = add_thread(
            received.tid, status && status->process != 0 ? status->process : received.tid);
        if (!tracees_.knows_process(thread.process)) {
            process_of(thread).is_new_fork_of_testee =
                status && tracees_.testee() != 0 && status->parent == tracees_.testee();
        }
    }
    Thread& thread = *find(received.tid);
    if (WIFSTOPPED(received.status)) {
        thread.stopped = true;
        thread.status = received.status;
        classify(thread);
    }
    return thread;
}

// The stops of other threads go to the backlog. A thread that does not stop counts as gone.
std::optional<int> Tracer::Engine::wait_for_thread(pid_t tid) {
    std::optional<Patience> patience;
    for (;;) {
        const auto received = stops_.receive(Clock::now() + kTick);
        if (stops_.is_childless()) return std::nullopt;
        if (received && received->tid == tid && WIFSTOPPED(received->status))
            return received->status;
        if (received) {
            stops_.put_off(record(*received), received->status);
            if (received->tid == tid) return std::nullopt;
            continue;
        }
        Thread* thread = find(tid);
        if (thread == nullptr || is_interrupted()) return std::nullopt;
        if (!patience) patience.emplace(kStopLimit);
        if (!patience->is_over({tid})) continue;
        note_no_return(*thread);
        return std::nullopt;
    }
}

bool Tracer::Engine::handle_backlog() {
    const auto received = stops_.take_first([this](const Received& entry) {
        const Thread* thread = find(entry.tid);
        const bool must_wait =
            thread != nullptr && tracees_.is_frozen(*thread) && WIFSTOPPED(entry.status);
        return !must_wait;
    });
    if (!received) return false;
    if (Thread* thread = find(received->tid)) thread->in_backlog = false;
    handle(received->tid, received->status);
    return true;
}

void Tracer::Engine::resume_ready() {
    // The thread of the last event resumes last. If it ran from event to event, step_guarded would
    // stop the others again before they have done anything.
    Thread* last = nullptr;
    for (auto& [tid, thread] : tracees_.threads()) {
        if (!tracees_.may_run(thread)) continue;
        if (tid == events_.last_thread()) {
            last = &thread;
        } else {
            resume(thread);
        }
    }
    if (last != nullptr) resume(*last);
}

void Tracer::Engine::resume(Thread& thread) {
    const bool may_step = is_single_stepped(thread) && !takes_signal(thread);
    if (may_step && !is_in_masked_call(thread) && !read_operands_before_step(thread)) return;
    const bool steps = settle_signals(thread) && may_step;
    // A thread that runs freely would get the watchpoints' traps.
    if (!steps && thread.step.watched.page != 0) arm_watchpoints(thread);
    const bool every_call = program_.interception() == Interception::kEveryCall ||
                            thread.call.entry_handled || thread.call.wait || thread.call.redirect ||
                            thread.call.makes_task || thread.signal.kept ||
                            (is_testee(thread) && mappings_.any_guards());
    int request = every_call ? PTRACE_SYSCALL : PTRACE_CONT;
    if (steps) request = thread.step.leaves_for_kernel ? PTRACE_SYSCALL : PTRACE_SINGLESTEP;
    if (thread.now == StopKind::kGroup) request = PTRACE_LISTEN;
    thread.is_in_group_stop = request == PTRACE_LISTEN;
    thread.step.is_stepping = request == PTRACE_SINGLESTEP;
    if (thread.step.is_stepping) {
        thread.mask.lift_trap(thread.tid);
        thread.step.was_stepped = true;
    }
    if (thread.step.trap_flag.is_shown() && !thread.step.is_stepping)
        thread.step.trap_flag.clear(thread.tid);
    const int signal_number = thread.signal.deliver;
    // A signal passed to a different kind of stop comes back in a stop of its own, without its
    // information.
    if (signal_number != 0 && thread.now != StopKind::kSignal)
        thread.signal.replay = thread.signal.info;
    thread.stopped = false;
    thread.now = StopKind::kNone;
    thread.signal.deliver = 0;
    thread.guard.pending.reset();
    const bool counts = !options_.lose_resume_of_leader || thread.tid == thread.process;
    if (counts && ++resumes_ == options_.simulate_lost_resume) return;
    if (resume_hook) resume_hook(thread.tid);
    // ESRCH: the thread was killed, and its end will be received.
    ptrace(static_cast<__ptrace_request>(request), thread.tid, 0, signal_number);
}

// Takes stops that are there already even after the deadline, but only for a bounded time.
TracerEvent Tracer::Engine::wait(TimePoint deadline) {
    if (!program_.has_begun()) throw std::logic_error("Tracer::wait: start() comes first");
    resume_ready();
    const TimePoint last = std::max(deadline, Clock::now());
    for (int turns = 0;; ++turns) {
        unshare_if_idle();
        if (take_exceeded_limit()) note_exceeded_limit();
        if (!events_.is_empty()) {
            TracerEvent event = events_.pop();
            if (Thread* thread = find(events_.last_thread())) --thread->queued_events;
            return event;
        }
        if (end_.is_over()) return end_.ended();
        if (turns > kBusyTurns && Clock::now() - kBusyLimit >= last) return TimedOut{};
        if (handle_backlog()) continue;
        // (At this point all received stops are in the threads' records.)
        resume_lost_threads();
        if (!events_.is_empty() || handle_backlog()) continue;
        const auto received = stops_.receive(std::min(deadline, Clock::now() + kTick));
        if (stops_.is_childless()) {
            refuse_start(EndKind::kKilled, ECHILD,
                         "every process of the run has ended, and another part of the runner took "
                         "their statuses");
            continue;
        }
        for (const OutputLimit& limit : output_.check_limits()) push(limit);
        if (!received) {
            if (events_.is_empty() && Clock::now() >= deadline) return TimedOut{};
            continue;
        }
        Thread& thread = record(*received);
        const bool takes_turns = tracees_.threads().size() > kFewThreads;
        const bool must_wait =
            tracees_.is_frozen(thread) && thread.stopped && WIFSTOPPED(received->status);
        if (takes_turns || must_wait) {
            stops_.put_off(thread, received->status);
        } else {
            handle(received->tid, received->status);
        }
        if (takes_turns) receive_all();
    }
}

// The kernel searches for a stop among the threads in the order of their age. If many stop again
// and again, the youngest would never be found. Therefore all stopped threads are received, and
// each has its turn.
void Tracer::Engine::receive_all() {
    while (const auto received = stops_.receive({}))
        stops_.put_off(record(*received), received->status);
}

std::string Tracer::Engine::read_report() {
    return output_.read_report(end_.is_over());
}

void Tracer::Engine::share_processor() {
    if (!processor_.prolong()) processor_.share(tracees_.testee_threads());
}

void Tracer::Engine::unshare_if_idle() {
    if (processor_.is_over() && !mappings_.any_guards()) processor_.restore(tracees_.all_threads());
}

void Tracer::Engine::unshare_processor() {
    processor_.end();
    unshare_if_idle();
}

// A child that was born while its parent died is traced, and unknown until its first stop.
bool Tracer::Engine::has_tracees() {
    return !tracees_.threads().empty() ||
           (stops_.has_children() && !processes_traced_by(gettid()).empty());
}

void Tracer::Engine::kill_all() {
    if (program_.has_begun() && !end_.is_over()) {
        const pid_t pid = tracees_.testee() != 0 ? tracees_.testee() : program_.pid();
        Ended ended = end_.begin(EndKind::kKilled, pid, !mappings_.is_empty());
        ended.signal = SIGKILL;
        ended.text = "killed by the runner";
        end_.set(std::move(ended));
    }
    Patience patience(kKillLimit);
    tracees_.set_frozen(false);
    bool must_kill = true;
    while (has_tracees() && !patience.is_over(tracees_.all_threads())) {
        for (const auto& [tid, thread] : tracees_.threads()) {
            if (must_kill) kill(thread.process, SIGKILL);
        }
        const auto received = stops_.receive(Clock::now() + kTick);
        if (stops_.is_childless()) break;
        must_kill = !received;
        if (!received) continue;
        const pid_t process = record(*received).process;
        if (WIFSTOPPED(received->status)) {
            kill(process, SIGKILL);
        } else {
            handle_gone(received->tid, received->status);
        }
    }
    tracees_.reap_orphans();  // no parent is left
    tracees_.clear();
    stops_.clear_backlog();
    events_.clear();
}

}  // namespace kmes::conformance
