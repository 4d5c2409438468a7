// SPDX-License-Identifier: MIT
//
// See output.h.
#include "kmesctl/output.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "kmesctl/command.h"

namespace kmes::kmesctl {
namespace {

volatile sig_atomic_t stop_signal_kept = 0;
volatile sig_atomic_t is_writing = 0;

// Sends a signal repeatedly. One signal would not suffice: it can come just before a write, or
// during a write that has already written a part.
void interrupt_writes() {
    constexpr itimerval kEvery10Ms = {{0, 10'000}, {0, 10'000}};
    setitimer(ITIMER_REAL, &kEvery10Ms, nullptr);
}

void keep(int signal) {
    const int kept_errno = errno;
    stop_signal_kept = signal;
    if (is_writing != 0) interrupt_writes();
    errno = kept_errno;
}

void do_nothing(int /*signal*/) {}

// While it exists, a kept signal interrupts blocking system calls.
class Interruptible {
  public:
    Interruptible() {
        is_writing = 1;
        if (stop_signal() != 0) interrupt_writes();
    }
    ~Interruptible() {
        constexpr itimerval kNever = {};
        is_writing = 0;
        if (stop_signal() != 0) setitimer(ITIMER_REAL, &kNever, nullptr);
    }
    Interruptible(const Interruptible&) = delete;
    Interruptible& operator=(const Interruptible&) = delete;
};

}  // namespace

void Output::flush() {
    const Interruptible interruptible;
    std::string_view rest = pending_;
    while (!rest.empty()) {
        const ssize_t written = write(STDOUT_FILENO, rest.data(), rest.size());
        if (written >= 0) {
            rest.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno == EAGAIN) {
            pollfd until_ready = {STDOUT_FILENO, POLLOUT, 0};
            poll(&until_ready, 1, -1);
        } else if (errno == EPIPE) {
            throw PipeClosed();
        } else if (errno != EINTR) {
            throw Failure(kExitFailed,
                          fmt::format("cannot write to standard output: {}", strerror(errno)));
        }
        if (stop_signal() != 0 && written < 0) break;
    }
    pending_.clear();
}

void Output::check_reader() {
    pollfd reader = {STDOUT_FILENO, 0, 0};
    if (poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0) throw PipeClosed();
}

bool Output::is_terminal() {
    const char* term = getenv("TERM");
    return isatty(STDOUT_FILENO) == 1 && term != nullptr && *term != '\0' &&
           strcmp(term, "dumb") != 0;
}

bool Output::wants_colors() {
    const char* no_color = getenv("NO_COLOR");
    return is_terminal() && (no_color == nullptr || *no_color == '\0');
}

bool is_ignored(int signal) {
    struct sigaction action = {};
    return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void keep_signals(std::initializer_list<int> signals) {
    struct sigaction action = {};
    action.sa_handler = keep;  // without SA_RESTART
    for (const int signal : signals) {
        if (!is_ignored(signal)) sigaction(signal, &action, nullptr);
    }
    action.sa_handler = do_nothing;
    sigaction(SIGALRM, &action, nullptr);
}

int stop_signal() {
    return stop_signal_kept;
}

void end_by_signal(int number) {
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    signal(number, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &only, nullptr);
    raise(number);
}

void end_by_stop_signal() {
    if (const int kept = stop_signal(); kept != 0) end_by_signal(kept);
}

}  // namespace kmes::kmesctl
