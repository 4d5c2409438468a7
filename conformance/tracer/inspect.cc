// SPDX-License-Identifier: MIT
//
// Finds the activity of each thread of the testee: it runs, or it sleeps in a call that may end by
// itself after a time. "All are blocked" is an observed state, not a guess from elapsed time. Knows
// /proc and the arguments of waiting calls.

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/memory.h"
#include "conformance/tracer/proc.h"
#include "conformance/tracer/traced_calls.h"

namespace kmes::conformance {
namespace {

constexpr int64_t kNanosecondsInSecond = 1'000'000'000;
constexpr int64_t kNanosecondsInMillisecond = 1'000'000;
constexpr uint64_t kPolledAtMost = 64;

void limit_by_timespec(ThreadState& state, uint64_t address, TimeLimit kind) {
    if (address == 0) return;
    state.limit = kind;
    if (const auto time = read_value<timespec>(state.tid, address)) {
        state.limit_ns = static_cast<int64_t>(time->tv_sec) * kNanosecondsInSecond + time->tv_nsec;
    }
}

void limit_by_milliseconds(ThreadState& state, uint64_t argument) {
    const auto milliseconds = static_cast<int32_t>(argument);
    if (milliseconds < 0) return;
    state.limit = TimeLimit::kRelative;
    state.limit_ns = milliseconds * kNanosecondsInMillisecond;
}

// Finds the timeout of waiting calls other than futexes.
void find_limit(ThreadState& state) {
    const uint64_t* a = state.arguments;
    switch (state.call_number) {
        case SYS_nanosleep:
            limit_by_timespec(state, a[0], TimeLimit::kRelative);
            break;
        case SYS_clock_nanosleep:
            state.limit_clock = static_cast<int>(a[0]);
            limit_by_timespec(
                state, a[2],
                (a[1] & TIMER_ABSTIME) != 0 ? TimeLimit::kAbsolute : TimeLimit::kRelative);
            break;
        case SYS_poll:
            limit_by_milliseconds(state, a[2]);
            break;
        case SYS_epoll_wait:
        case SYS_epoll_pwait:
            limit_by_milliseconds(state, a[3]);
            break;
        case SYS_ppoll:
        case SYS_rt_sigtimedwait:
            limit_by_timespec(state, a[2], TimeLimit::kRelative);
            break;
        case SYS_epoll_pwait2:
        case SYS_semtimedop:
            limit_by_timespec(state, a[3], TimeLimit::kRelative);
            break;
        case SYS_pselect6:
        case SYS_io_getevents:
        case SYS_recvmmsg:
            limit_by_timespec(state, a[4], TimeLimit::kRelative);
            break;
        case SYS_select:
            // A timeval. Only its presence matters here, so the microseconds need no case of their
            // own.
            if (a[4] != 0) state.limit = TimeLimit::kRelative;
            break;
        case SYS_mq_timedsend:
        case SYS_mq_timedreceive:
            limit_by_timespec(state, a[4], TimeLimit::kAbsolute);
            break;
        default:
            break;
    }
}

bool can_end_by_itself(const ThreadState& state) {
    return state.limit != TimeLimit::kNone || state.is_restarted || state.is_up_to_kernel;
}

// A pipe, socket or eventfd becomes ready by another thread or process. A timer, a disk or a device
// becomes ready by itself.
bool is_up_to_kernel(pid_t tid, uint64_t fd) {
    constexpr std::string_view kUpToSomebody[] = {"pipe:", "socket:", "anon_inode:[eventfd]",
                                                  "anon_inode:[signalfd]", "anon_inode:[pidfd]"};
    const std::string link = fd_link(tid, static_cast<int>(fd));
    return !link.empty() &&
           std::none_of(std::begin(kUpToSomebody), std::end(kUpToSomebody),
                        [&](std::string_view kind) { return link.starts_with(kind); });
}

// Whether `is_so` holds for a file of a poll. The array and its length are the first arguments.
bool is_any_polled(const ThreadState& state, bool (*is_so)(pid_t tid, uint64_t fd)) {
    const uint64_t count = std::min(state.arguments[1], kPolledAtMost);
    for (uint64_t i = 0; i < count; ++i) {
        const auto polled = read_value<pollfd>(state.tid, state.arguments[0] + i * sizeof(pollfd));
        if (polled && polled->fd >= 0 && is_so(state.tid, static_cast<uint64_t>(polled->fd)))
            return true;
    }
    return false;
}

// Whether `is_so` holds for a file of an epoll: the lines "tfd: NUMBER ..." of its fdinfo.
bool is_one_of_epoll(pid_t tid, uint64_t epoll, bool (*is_so)(pid_t tid, uint64_t fd)) {
    constexpr std::string_view kName = "tfd:";
    const auto content = read_small_file("/proc/" + std::to_string(tid) + "/fdinfo/" +
                                         std::to_string(static_cast<int32_t>(epoll)));
    if (!content) return false;
    for (size_t at = content->find(kName); at != std::string::npos; at = content->find(kName, at)) {
        at += kName.size();
        if (is_so(tid, strtoull(content->c_str() + at, nullptr, 10))) return true;
    }
    return false;
}

// Calls that only another thread, another process or a signal ends. (The futex calls are described
// elsewhere.)
bool is_up_to_somebody(long number) {
    switch (number) {
        case SYS_pause:
        case SYS_rt_sigsuspend:
        case SYS_rt_sigtimedwait:
        case SYS_wait4:
        case SYS_waitid:
        case SYS_recvfrom:
        case SYS_recvmsg:
        case SYS_recvmmsg:
        case SYS_sendto:
        case SYS_sendmsg:
        case SYS_sendmmsg:
        case SYS_connect:
        case SYS_accept:
        case SYS_accept4:
        case SYS_flock:
        case SYS_fcntl:
        case SYS_semop:
        case SYS_semtimedop:
        case SYS_msgrcv:
        case SYS_msgsnd:
        case SYS_mq_timedsend:
        case SYS_mq_timedreceive:
            return true;
        default:
            return false;
    }
}

// Whether `is_so` holds for a file that this call waits for; nothing if it is no read, write or
// poll.
std::optional<bool> is_any_file(const ThreadState& state, bool (*is_so)(pid_t tid, uint64_t fd)) {
    switch (state.call_number) {
        case SYS_read:
        case SYS_readv:
        case SYS_write:
        case SYS_writev:
            return is_so(state.tid, state.arguments[0]);
        case SYS_poll:
        case SYS_ppoll:
            return is_any_polled(state, is_so);
        case SYS_epoll_wait:
        case SYS_epoll_pwait:
        case SYS_epoll_pwait2:
            return is_one_of_epoll(state.tid, state.arguments[0], is_so);
        default:
            return std::nullopt;
    }
}

// Whether the kernel may end this call by itself, without a timeout. True for an unknown call: the
// server of a file system (FUSE) may take any time for calls that name or use its files.
bool waits_for_kernel(const ThreadState& state) {
    return is_any_file(state, is_up_to_kernel).value_or(!is_up_to_somebody(state.call_number));
}

// A socket, or a signalfd: a timer of the process may send the signal.
bool is_open_to_others(pid_t tid, uint64_t fd) {
    const std::string link = fd_link(tid, static_cast<int>(fd));
    return link.starts_with("socket:") || link == "anon_inode:[signalfd]";
}

// Whether a process outside of the run may end this call without a timeout.
bool waits_for_others(const ThreadState& state) {
    switch (state.call_number) {
        case SYS_pause:
        case SYS_rt_sigsuspend:
        case SYS_wait4:
        case SYS_waitid:
            return false;
        default:
            return is_any_file(state, is_open_to_others)
                .value_or(is_up_to_somebody(state.call_number));
    }
}

// Whether the process has timers whose signals may interrupt any call. (The kernel does not list
// those of setitimer.)
bool has_timers(pid_t process) {
    const auto content = read_small_file("/proc/" + std::to_string(process) + "/timers");
    return content && !content->empty();
}

}  // namespace

namespace tracing {

Activity activity_of(pid_t tid) {
    const auto status = read_status(tid);
    if (!status) return Activity::kEnded;
    switch (status->state) {
        case 't':
        case 'T':
            return Activity::kHeld;
        case 'Z':
        case 'X':
            return Activity::kEnded;
        case 'S':
        case 'D':
            return Activity::kBlocked;
        default:
            return Activity::kRunning;
    }
}

bool process_has_io_uring(pid_t tid) {
    if (tid == 0) return false;
    const std::vector<int> fds = list_fds(tid);
    return std::any_of(fds.begin(), fds.end(),
                       [=](int fd) { return fd_link(tid, fd) == "anon_inode:[io_uring]"; });
}

}  // namespace tracing

// Adds the timeout and the ring words of a thread that sleeps in a system call.
void Tracer::Engine::describe_blocked(ThreadState& state, const Thread& thread) {
    state.is_restarted = state.call_number == SYS_restart_syscall;
    std::optional<FutexWait> wait;
    if (thread.call.wait) {
        // The call was seen at its entry, before its pointers were redirected. Read the values
        // again.
        wait = thread.call.wait->report;
        for (FutexWord& word : wait->words) {
            word.value_there = static_cast<uint32_t>(
                buffers_.value_of({word.place, sizeof(uint32_t), true, false}));
        }
    } else {
        wait = futex_calls_.read_wait(state.tid, state.call_number, state.arguments);
    }
    if (wait) {
        state.words = std::move(wait->words);
        state.limit = wait->limit;
        state.limit_ns = wait->limit_ns;
        state.limit_clock = wait->limit_clock;
        state.is_restarted = false;
        return;
    }
    const auto operation = static_cast<int>(state.arguments[1] & FUTEX_CMD_MASK);
    if (state.call_number == SYS_futex && operation != FUTEX_WAKE) {
        limit_by_timespec(state, state.arguments[3],
                          operation == FUTEX_WAIT ? TimeLimit::kRelative : TimeLimit::kAbsolute);
    } else if (state.call_number == SYS_futex_waitv) {
        limit_by_timespec(state, state.arguments[3], TimeLimit::kAbsolute);
    } else if (state.call_number == kFutexWaitCall) {
        limit_by_timespec(state, state.arguments[4], TimeLimit::kAbsolute);
    } else {
        find_limit(state);
        state.is_up_to_kernel = waits_for_kernel(state);
        state.is_up_to_others = waits_for_others(state);
    }
}

ThreadState Tracer::Engine::state_of(const Thread& thread, const ThreadStatus& status) {
    ThreadState state;
    state.tid = thread.tid;
    switch (status.state) {
        case 't':
        case 'T':
            state.activity = Activity::kHeld;
            return state;
        case 'Z':
        case 'X':
            state.activity = Activity::kEnded;
            return state;
        case 'D':
            // The thread sleeps in the kernel (a disk, membarrier). A spinning thread is never in
            // this state.
            state.activity = Activity::kBlocked;
            state.is_up_to_kernel = true;
            return state;
        case 'S':
            break;
        default:
            return state;
    }
    const auto call = read_current_call(thread.tid);
    if (!call || !call->blocked || call->number < 0) return state;
    state.activity = Activity::kBlocked;
    state.call_number = call->number;
    std::copy(std::begin(call->arguments), std::end(call->arguments), std::begin(state.arguments));
    describe_blocked(state, thread);
    return state;
}

Inspection Tracer::Engine::inspect() {
    Inspection inspection;
    if (tracees_.testee() == 0 || end_.is_over()) return inspection;
    std::vector<uint64_t> switches;
    bool is_steady = true;
    for (const auto& [tid, thread] : tracees_.threads()) {
        if (!is_testee(thread)) {
            inspection.other_processes = true;
            continue;
        }
        const auto status = read_status(tid);
        ThreadState state;
        state.tid = tid;
        state.activity = Activity::kEnded;
        if (status) state = state_of(thread, *status);
        // A thread with a stop that the tracer has not received yet has the state 't'. A received
        // stop counts as held too.
        if (state.activity == Activity::kBlocked && thread.stopped)
            state.activity = Activity::kHeld;
        switches.push_back(status ? status->context_switches : 0);
        const uint64_t caught = status ? status->caught_signals : 0;
        inspection.others_may_end_it = inspection.others_may_end_it || state.is_up_to_others ||
                                       (caught & signal_bit(SIGALRM)) != 0;
        inspection.threads.push_back(std::move(state));
    }
    // If a thread was not switched between its two checks, it slept from the first to the second.
    // Then all threads slept at the same time: between the last first check and the first second
    // check.
    size_t blocked = 0;
    bool is_for_good = true;
    for (size_t i = 0; i < inspection.threads.size(); ++i) {
        const ThreadState& state = inspection.threads[i];
        if (state.activity == Activity::kEnded) continue;
        const auto status = read_status(state.tid);
        is_steady = is_steady && state.activity == Activity::kBlocked && status &&
                    status->state == 'S' && status->context_switches == switches[i];
        is_for_good = is_for_good && !can_end_by_itself(state);
        ++blocked;
    }
    inspection.all_blocked =
        is_steady && blocked > 0 && events_.is_empty() && stops_.is_backlog_empty();
    inspection.all_blocked_for_good =
        inspection.all_blocked && is_for_good && !has_timers(tracees_.testee());
    return inspection;
}

}  // namespace kmes::conformance
