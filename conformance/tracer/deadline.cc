// SPDX-License-Identifier: MIT
//
// See deadline.h. A signal between its unblocking and waitpid would be lost. Therefore the timer is
// periodic.

#include "conformance/tracer/deadline.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <system_error>

namespace kmes::conformance::tracing {
namespace {

constexpr long kAgainAfterNs = 1'000'000;
constexpr int64_t kNanosecondsInSecond = 1'000'000'000;

int timer_signal() {
    return SIGRTMAX - 3;
}

void do_nothing(int) {}

// The handler stays installed: another thread may use its timer after this one is gone.
void install_handler() {
    struct sigaction action{};
    action.sa_handler = do_nothing;
    sigaction(timer_signal(), &action, nullptr);
}

}  // namespace

DeadlineTimer::DeadlineTimer() {
    static std::once_flag once;
    std::call_once(once, install_handler);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = timer_signal();
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0)
        throw std::system_error(errno, std::generic_category(), "timer_create");
    // (The timer sends nothing before it is armed.)
    sigemptyset(&own_signal_);
    sigaddset(&own_signal_, timer_signal());
    sigset_t before;
    pthread_sigmask(SIG_BLOCK, &own_signal_, &before);
    was_blocked_ = sigismember(&before, timer_signal()) == 1;
}

DeadlineTimer::~DeadlineTimer() {
    timer_delete(timer_);
    if (!was_blocked_) pthread_sigmask(SIG_UNBLOCK, &own_signal_, nullptr);
}

void DeadlineTimer::arm(TimePoint at) {
    const auto since =
        std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
    itimerspec setting{};
    setting.it_value = {static_cast<time_t>(since / kNanosecondsInSecond),
                        static_cast<long>(since % kNanosecondsInSecond)};
    setting.it_interval = {0, kAgainAfterNs};
    timer_settime(timer_, TIMER_ABSTIME, &setting, nullptr);
    armed_at_ = at;
}

std::optional<std::pair<pid_t, int>> DeadlineTimer::wait(TimePoint deadline) {
    for (;;) {
        const TimePoint now = Clock::now();
        const bool is_over = now >= deadline;
        int status = 0;
        pid_t got = 0;
        int error = 0;
        if (is_over) {
            got = waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG);
            error = errno;
        } else {
            // An earlier alarm costs one more iteration, but saves setting the timer at each wait.
            if (armed_at_ > deadline || armed_at_ <= now) arm(deadline);
            pthread_sigmask(SIG_UNBLOCK, &own_signal_, nullptr);
            got = waitpid(-1, &status, __WALL | __WNOTHREAD);
            error = errno;
            pthread_sigmask(SIG_BLOCK, &own_signal_, nullptr);
        }
        if (got > 0) return std::pair{got, status};
        if (got < 0 && error != EINTR) return std::pair{pid_t{-1}, error};
        if (is_over) return std::nullopt;
    }
}

}  // namespace kmes::conformance::tracing
