// SPDX-License-Identifier: MIT
//
// The life of a run: start, the loop of wait, kill. Knows how stops are received and threads
// resumed, not what they mean.

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

#include "conformance/tracer/interest.h"
#include "conformance/tracer/open_files.h"
#include "conformance/tracer/patience.h"
#include "conformance/tracer/resume_hook.h"

namespace kmes::conformance {
namespace {

// The longest sleep of the loop between two checks of the output files.
constexpr auto kTick = std::chrono::milliseconds(20);
// A testee may stop so often that there is always a stop to handle. After this time and this many
// iterations, wait() returns nevertheless. If it is to take only what is there already, it needs
// fewer.
constexpr auto kBusyLimit = std::chrono::milliseconds(500);
constexpr int kBusyTurns = 200;
// With more threads they take turns, which costs a call each time.
constexpr size_t kFewThreads = 6;
// Killed processes are gone in microseconds; only a kernel in trouble needs longer.
constexpr auto kKillLimit = std::chrono::seconds(20);
constexpr int kLowestRunnerFd = 10;
constexpr long kTraceOptions = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                               PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD |
                               PTRACE_O_EXITKILL;

int duplicate(int fd) {
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, kLowestRunnerFd);
    if (copy < 0)
        throw std::system_error(errno, std::generic_category(), "a descriptor of a served buffer");
    return copy;
}

sigset_t only_child_signal() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    return set;
}

}  // namespace

namespace tracing {

std::optional<user_regs_struct> read_registers(pid_t tid) {
    user_regs_struct registers{};
    if (ptrace(PTRACE_GETREGS, tid, 0, &registers) != 0) return std::nullopt;
    return registers;
}

bool write_registers(pid_t tid, const user_regs_struct& registers) {
    return ptrace(PTRACE_SETREGS, tid, 0, &registers) == 0;
}

long call_number_of(const user_regs_struct& registers) {
    return static_cast<int32_t>(registers.orig_rax);
}

void arguments_of(const user_regs_struct& r, uint64_t (&arguments)[6]) {
    const uint64_t values[6] = {r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9};
    std::copy(std::begin(values), std::end(values), std::begin(arguments));
}

void set_arguments(user_regs_struct& r, const uint64_t (&arguments)[6]) {
    r.rdi = arguments[0];
    r.rsi = arguments[1];
    r.rdx = arguments[2];
    r.r10 = arguments[3];
    r.r8 = arguments[4];
    r.r9 = arguments[5];
}

}  // namespace tracing

namespace {

const char* first_reason(Stepping stepping) {
    switch (stepping) {
        case Stepping::kAutomatic:
            return "guard pages: nothing prevents them";
        case Stepping::kGuardPages:
            return "guard pages, as asked for";
        case Stepping::kSingleStep:
            return "single steps, as asked for";
        case Stepping::kWatchpoints:
            return "single steps, checked by the processor's watchpoints, as asked for";
    }
    return "";
}

}  // namespace

Tracer::Engine::Engine(TracerOptions options)
    : options_(std::move(options)),
      stepping_(options_.stepping == Stepping::kSingleStep ||
                        options_.stepping == Stepping::kWatchpoints
                    ? Stepping::kSingleStep
                    : Stepping::kGuardPages),
      stepping_reason_(first_reason(options_.stepping)),
      checks_by_watchpoints_(options_.stepping == Stepping::kWatchpoints),
      output_texts_{BoundedText(options_.shown_output_bytes),
                    BoundedText(options_.shown_output_bytes)} {
    if (checks_by_watchpoints_) watch_check_.unavailable = probe_watchpoints();
    // A blocked SIGCHLD stays pending, so a stop between a check and a sleep ends the sleep. If it
    // were ignored, or with SA_NOCLDSTOP, stops would be hidden.
    const sigset_t child_signal = only_child_signal();
    pthread_sigmask(SIG_BLOCK, &child_signal, &old_mask_);
    struct sigaction action{};
    action.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &action, &old_action_);
}

Tracer::Engine::~Engine() {
    kill_all();
    let_apart();
    for (const ServedFile& file : files_) {
        close(file.metadata_fd);
        if (file.data_fd >= 0) close(file.data_fd);
        if (file.view != nullptr) munmap(file.view, file.layout_bytes());
    }
    sigaction(SIGCHLD, &old_action_, nullptr);
    if (!sigismember(&old_mask_, SIGCHLD)) {
        const sigset_t child_signal = only_child_signal();
        const timespec now{};
        while (sigtimedwait(&child_signal, nullptr, &now) > 0) continue;
    }
    pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

BufferId Tracer::Engine::add_buffer(const ServedBuffer& buffer) {
    if (buffer.capacity_bytes == 0 || buffer.capacity_bytes % kPageBytes != 0) {
        throw std::invalid_argument(
            "add_buffer: capacity_bytes must be a multiple of 4096 and not 0, not " +
            std::to_string(buffer.capacity_bytes));
    }
    const uint64_t expected = buffer.expected_mapping_bytes != 0
                                  ? buffer.expected_mapping_bytes
                                  : buffer.metadata_bytes + 2 * buffer.capacity_bytes;
    struct stat metadata{};
    struct stat data{};
    const bool has_data_file = !buffer.is_kernel_buffer;
    if (fstat(buffer.metadata_fd, &metadata) != 0 ||
        (has_data_file && fstat(buffer.data_fd, &data) != 0)) {
        throw std::system_error(errno, std::generic_category(), "add_buffer: fstat of its files");
    }
    if (static_cast<uint64_t>(metadata.st_size) < expected ||
        (has_data_file && static_cast<uint64_t>(data.st_size) < buffer.capacity_bytes)) {
        throw std::invalid_argument("add_buffer: metadata_fd must be at least " +
                                    std::to_string(expected) + " bytes long and data_fd " +
                                    std::to_string(buffer.capacity_bytes));
    }
    ServedFile file;
    file.metadata_bytes = buffer.metadata_bytes;
    file.capacity_bytes = buffer.capacity_bytes;
    file.expected_mapping_bytes = expected;
    file.takes_only_whole_mapping = buffer.takes_only_whole_mapping;
    file.identity = {metadata.st_dev, metadata.st_ino};
    file.metadata_fd = duplicate(buffer.metadata_fd);
    try {
        if (has_data_file) file.data_fd = duplicate(buffer.data_fd);
    } catch (...) {
        close(file.metadata_fd);
        throw;
    }
    files_.push_back(file);
    return files_.size() - 1;
}

void Tracer::Engine::refuse_start(EndKind kind, int error, std::string text) {
    Ended ended;
    ended.kind = kind;
    ended.error = error;
    ended.text = std::move(text);
    ended_ = ended;
}

void Tracer::Engine::start(const std::vector<std::string>& arguments) {
    if (started_) throw std::logic_error("Tracer::start: a Tracer starts one program");
    started_ = true;
    if (arguments.empty() || arguments[0].empty()) {
        refuse_start(EndKind::kNotStarted, ENOENT, "no program was named");
        return;
    }
    const Abilities& abilities = probe_abilities(options_.simulate_outer_filter);
    if (!abilities.why_not_traceable.empty()) {
        refuse_start(EndKind::kNotTraceable, EPERM, abilities.why_not_traceable);
        return;
    }
    interception_ = options_.interception;
    if (interception_ == Interception::kAutomatic) {
        interception_ = abilities.seccomp_trace ? Interception::kSeccomp : Interception::kEveryCall;
    }
    if (report_write_handler_ || call_handler_) interception_ = Interception::kEveryCall;
    report_ = std::make_unique<CaptureFile>("kmes-report");
    output_files_[0] = std::make_unique<CaptureFile>("kmes-stdout");
    output_files_[1] = std::make_unique<CaptureFile>("kmes-stderr");
    if (options_.pin_to_one_processor) bring_together();  // the child inherits it
    plan_.fixed_addresses = options_.fixed_addresses;
    plan_.arguments = arguments;
    plan_.environment = testee_environment(options_.extra_environment);
    plan_.candidates = executable_candidates(arguments[0], plan_.environment);
    if (options_.simulate_outer_filter) plan_.outer_filter = outer_filter();
    if (interception_ == Interception::kSeccomp)
        plan_.filter = interest_filter(options_.report_futex);
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    plan_.standard_input = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, kLowestRunnerFd);
    close(null);
    plan_.standard_output = output_files_[0]->open_for_append();
    plan_.standard_error = output_files_[1]->open_for_append();
    plan_.report = report_->open_for_append();
    launch_ = std::make_unique<Launch>(plan_);
    for (const int fd :
         {plan_.standard_input, plan_.standard_output, plan_.standard_error, plan_.report})
        close(fd);
    first_process_ = launch_->pid();
    if (ptrace(PTRACE_SEIZE, first_process_, 0, kTraceOptions) != 0) {
        const int error = errno;
        kill(first_process_, SIGKILL);
        int status = 0;
        while (waitpid(first_process_, &status, __WALL) < 0 && errno == EINTR) continue;
        refuse_start(EndKind::kNotTraceable, error,
                     std::string("ptrace refused the child: ") + strerror(error));
        return;
    }
    processes_[first_process_].pid = first_process_;
    add_thread(first_process_, first_process_).is_new = false;
    restore_open_files(first_process_);
    launch_->let_go();
}

Thread* Tracer::Engine::find(pid_t tid) {
    const auto found = threads_.find(tid);
    return found == threads_.end() ? nullptr : &found->second;
}

Process& Tracer::Engine::process_of(const Thread& thread) {
    Process& process = processes_[thread.process];
    process.pid = thread.process;
    return process;
}

std::optional<Tracer::Engine::Received> Tracer::Engine::receive(TimePoint deadline) {
    const auto received = timer_.wait(deadline);
    nothing_to_wait_for_ = received && received->first < 0 && received->second == ECHILD;
    if (!received || received->first < 0) return std::nullopt;
    return Received{received->first, received->second};
}

Thread& Tracer::Engine::add_thread(pid_t tid, pid_t process) {
    Thread& thread = threads_[tid];
    thread.tid = tid;
    thread.process = process;
    let_newborn_apart(tid);
    return thread;
}

Thread& Tracer::Engine::record(const Received& received) {
    const bool is_known = threads_.count(received.tid) != 0;
    if (!is_known) {
        const auto status = read_status(received.tid);
        const Thread& thread = add_thread(
            received.tid, status && status->process != 0 ? status->process : received.tid);
        if (processes_.count(thread.process) == 0) {
            process_of(thread).is_new_fork_of_testee =
                status && testee_ != 0 && status->parent == testee_;
        }
    }
    Thread& thread = threads_[received.tid];
    if (WIFSTOPPED(received.status)) {
        thread.stopped = true;
        thread.status = received.status;
        classify(thread);
    }
    return thread;
}

std::optional<int> Tracer::Engine::wait_for_thread(pid_t tid) {
    for (;;) {
        int status = 0;
        const pid_t got = waitpid(-1, &status, __WALL | __WNOTHREAD);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return std::nullopt;
        if (got == tid && WIFSTOPPED(status)) return status;
        put_off(record({got, status}), status);
        if (got == tid) return std::nullopt;
    }
}

void Tracer::Engine::put_off(Thread& thread, int status) {
    thread.in_backlog = true;
    // Its end is known, so nobody may wait for a stop of it.
    if (!WIFSTOPPED(status)) thread.is_zombie = true;
    backlog_.push_back({thread.tid, status});
}

// Drops the thread's stops; keeps its end.
bool Tracer::Engine::drop_from_backlog(pid_t tid) {
    const bool dropped = std::erase_if(backlog_, [&](const Received& entry) {
                             return entry.tid == tid && WIFSTOPPED(entry.status);
                         }) != 0;
    if (Thread* thread = find(tid)) {
        thread->in_backlog = std::any_of(backlog_.begin(), backlog_.end(),
                                         [&](const Received& entry) { return entry.tid == tid; });
    }
    return dropped;
}

bool Tracer::Engine::handle_backlog() {
    for (auto entry = backlog_.begin(); entry != backlog_.end(); ++entry) {
        Thread* thread = find(entry->tid);
        const bool must_wait =
            frozen_ && thread != nullptr && is_testee(*thread) && WIFSTOPPED(entry->status);
        if (must_wait) continue;
        const Received received = *entry;
        backlog_.erase(entry);
        if (thread != nullptr) thread->in_backlog = false;
        handle(received.tid, received.status);
        return true;
    }
    return false;
}

bool Tracer::Engine::may_run(const Thread& thread) const {
    return thread.stopped && !thread.in_backlog && thread.queued_events == 0 && !thread.held &&
           !(frozen_ && is_testee(thread));
}

void Tracer::Engine::resume_ready() {
    // The thread of the last event resumes last. If it ran from event to event, step_guarded would
    // stop the others again before they have done anything.
    Thread* last = nullptr;
    for (auto& [tid, thread] : threads_) {
        if (!may_run(thread)) continue;
        if (tid == last_event_thread_) {
            last = &thread;
        } else {
            resume(thread);
        }
    }
    if (last != nullptr) resume(*last);
}

void Tracer::Engine::resume(Thread& thread) {
    const bool may_step = is_single_stepped(thread) && !takes_signal(thread);
    if (may_step && !is_in_masked_call(thread) && !look_before_step(thread)) return;
    const bool steps = settle_signals(thread) && may_step;
    // A thread that runs freely would get the watchpoints' traps.
    if (!steps && thread.watched_page != 0) arm_watchpoints(thread);
    const bool every_call = interception_ == Interception::kEveryCall || thread.entry_handled ||
                            thread.wait || thread.redirect || thread.kept_signal ||
                            (is_testee(thread) && any_guards());
    int request = every_call ? PTRACE_SYSCALL : PTRACE_CONT;
    if (steps) request = thread.leaves_for_kernel ? PTRACE_SYSCALL : PTRACE_SINGLESTEP;
    if (thread.now == StopKind::kGroup) request = PTRACE_LISTEN;
    thread.is_in_group_stop = request == PTRACE_LISTEN;
    thread.is_stepping = request == PTRACE_SINGLESTEP;
    if (thread.is_stepping) {
        lift_trap(thread);
        thread.was_stepped = true;
    }
    if (thread.shows_trap_flag && !thread.is_stepping) clear_trap_flag(thread);
    const int signal_number = thread.deliver_signal;
    // A signal passed to a different kind of stop comes back in a stop of its own, without its
    // information.
    if (signal_number != 0 && thread.now != StopKind::kSignal) thread.replay = thread.signal_info;
    thread.stopped = false;
    thread.now = StopKind::kNone;
    thread.deliver_signal = 0;
    thread.pending.reset();
    const bool counts = !options_.lose_resume_of_leader || thread.tid == thread.process;
    if (counts && ++resumes_ == options_.simulate_lost_resume) return;
    if (resume_hook) resume_hook(thread.tid);
    // ESRCH: the thread was killed, and its end will be received.
    ptrace(static_cast<__ptrace_request>(request), thread.tid, 0, signal_number);
}

void Tracer::Engine::push(Thread& thread, TracerEvent event) {
    ++thread.queued_events;
    events_.emplace_back(thread.tid, std::move(event));
}

// What is there already is taken even after the deadline, but with a bound.
TracerEvent Tracer::Engine::wait(TimePoint deadline) {
    if (!started_) throw std::logic_error("Tracer::wait: start() comes first");
    resume_ready();
    const TimePoint last = std::max(deadline, Clock::now());
    for (int turns = 0;; ++turns) {
        part_if_idle();
        if (!events_.empty()) {
            auto [tid, event] = std::move(events_.front());
            events_.pop_front();
            if (Thread* thread = find(tid)) --thread->queued_events;
            last_event_thread_ = tid;
            return event;
        }
        if (ended_) return *ended_;
        if (turns > kBusyTurns && Clock::now() - kBusyLimit >= last) return TimedOut{};
        if (handle_backlog()) continue;
        // (At this point all received stops are in the threads' records.)
        revive_lost_threads();
        if (!events_.empty() || handle_backlog()) continue;
        const auto received = receive(std::min(deadline, Clock::now() + kTick));
        if (nothing_to_wait_for_) {
            refuse_start(EndKind::kKilled, ECHILD,
                         "every process of the run has ended, and another part of the runner took "
                         "their statuses");
            continue;
        }
        if (Clock::now() >= next_output_check_) {
            next_output_check_ = Clock::now() + kTick;
            check_output_limits();
        }
        if (!received) {
            if (events_.empty() && Clock::now() >= deadline) return TimedOut{};
            continue;
        }
        Thread& thread = record(*received);
        const bool takes_turns = threads_.size() > kFewThreads;
        const bool must_wait =
            frozen_ && is_testee(thread) && thread.stopped && WIFSTOPPED(received->status);
        if (takes_turns || must_wait) {
            put_off(thread, received->status);
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
    while (const auto received = timer_.wait({})) {
        if (received->first < 0) return;
        put_off(record({received->first, received->second}), received->second);
    }
}

void Tracer::Engine::hold(pid_t tid) {
    if (Thread* thread = find(tid)) thread->held = true;
}

void Tracer::Engine::release(pid_t tid) {
    if (Thread* thread = find(tid)) thread->held = false;
}

void Tracer::Engine::pump_output() {
    for (int i = 0; i < 2; ++i) {
        if (output_files_[i]) output_texts_[i].take(*output_files_[i]);
    }
}

// Reading a flood takes long, and a living testee continues to write meanwhile. Such a report stays
// unread, and wait() reports the flood.
std::string Tracer::Engine::read_report() {
    constexpr uint64_t kFloodBytes = uint64_t{1} << 28;  // RecordLimits::maximum_report_bytes
    if (!report_ || (!ended_ && report_->unread_bytes() > kFloodBytes)) return "";
    return report_->read_new(kFloodBytes + 1);
}

// Earlier text on the standard output is no part of the report.
void Tracer::Engine::choose_report(const Process& process) {
    if (!process.reports_to_output) return;
    pump_output();
    std::swap(report_, output_files_[0]);
}

void Tracer::Engine::check_output_limits() {
    const CaptureFile* files[] = {report_.get(), output_files_[0].get(), output_files_[1].get()};
    const OutputLimit::File names[] = {OutputLimit::File::kReport,
                                       OutputLimit::File::kStandardOutput,
                                       OutputLimit::File::kStandardError};
    bool must_pump = false;
    for (int i = 0; i < 3; ++i) {
        const uint64_t unread = files[i] != nullptr ? files[i]->unread_bytes() : 0;
        if (unread <= options_.output_limit_bytes) continue;
        must_pump = must_pump || i > 0;
        if (!limit_sent_[i]) push(OutputLimit{names[i], unread});
        limit_sent_[i] = true;
    }
    if (must_pump) pump_output();
}

void Tracer::Engine::kill_all() {
    if (started_ && !ended_) {
        Ended ended;
        ended.kind = EndKind::kKilled;
        ended.pid = testee_ != 0 ? testee_ : first_process_;
        ended.signal = SIGKILL;
        ended.attached = attached_;
        ended.mapped = !mappings_.empty();
        ended.text = "killed by the runner";
        ended_ = ended;
    }
    Patience patience(kKillLimit);
    frozen_ = false;
    bool must_kill = true;
    while (!threads_.empty() && !patience.is_over(all_threads())) {
        for (const auto& [tid, thread] : threads_) {
            if (must_kill) kill(thread.process, SIGKILL);
        }
        const auto received = receive(Clock::now() + kTick);
        if (nothing_to_wait_for_) break;
        // A stop may come from a child that was born while its parent died.
        must_kill = !received || WIFSTOPPED(received->status);
        if (!received) continue;
        record(*received);
        if (!WIFSTOPPED(received->status)) handle_gone(received->tid, received->status);
    }
    threads_.clear();
    processes_.clear();
    backlog_.clear();
    events_.clear();
    testee_ = 0;
}

std::vector<pid_t> Tracer::Engine::all_threads() const {
    std::vector<pid_t> tids;
    for (const auto& [tid, thread] : threads_) tids.push_back(tid);
    return tids;
}

std::vector<pid_t> Tracer::Engine::testee_threads() const {
    std::vector<pid_t> tids;
    for (const auto& [tid, thread] : threads_) {
        if (is_testee(thread)) tids.push_back(tid);
    }
    return tids;
}

}  // namespace kmes::conformance
