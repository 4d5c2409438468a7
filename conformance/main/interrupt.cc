// SPDX-License-Identifier: MIT
//
// See interrupt.h.
#include "conformance/main/interrupt.h"

#include <signal.h>

namespace kmes::conformance {
namespace {

StopFlag stop;

void on_signal(int signal_number) {
    stop.ask(signal_number);
}

void do_nothing(int) {}

}  // namespace

StopFlag& watch_interrupts() {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
    // The terminal was closed. Respect a user who ignores that (nohup).
    struct sigaction before = {};
    ::sigaction(SIGHUP, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
    return stop;
}

void report_failed_writes() {
    for (const int signal_number : {SIGXFSZ, SIGPIPE}) {
        struct sigaction action = {};
        ::sigaction(signal_number, nullptr, &action);
        if (action.sa_handler != SIG_DFL) continue;
        action.sa_handler = do_nothing;
        action.sa_flags = SA_RESTART;
        ::sigemptyset(&action.sa_mask);
        ::sigaction(signal_number, &action, nullptr);
    }
}

}  // namespace kmes::conformance
