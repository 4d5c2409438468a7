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

}  // namespace

StopFlag& watch_interrupts() {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
    // A terminal that is closed; not where somebody has asked that it be ignored (nohup).
    struct sigaction before = {};
    ::sigaction(SIGHUP, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
    return stop;
}

}  // namespace kmes::conformance
