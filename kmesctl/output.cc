// SPDX-License-Identifier: MIT
//
// See output.h.
#include "kmesctl/output.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "kmesctl/command.h"

namespace kmes::kmesctl {
namespace {

volatile sig_atomic_t stop_signal_kept = 0;

void keep(int signal) {
    stop_signal_kept = signal;
}

}  // namespace

void Output::flush() {
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
}

int stop_signal() {
    return stop_signal_kept;
}

void end_by_stop_signal() {
    const int kept = stop_signal();
    if (kept == 0) return;
    signal(kept, SIG_DFL);
    raise(kept);
}

}  // namespace kmes::kmesctl
