// SPDX-License-Identifier: MIT
//
// SIGINT, SIGTERM and SIGHUP.
#include "conformance/main/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "conformance/report/verdict.h"

namespace kmes::conformance {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler stores to it");

void on_signal(int) {
    if (interrupted.exchange(true)) ::_exit(kExitSuite);
}

}  // namespace

const std::atomic<bool>& watch_interrupts() {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
    // A terminal that is closed; not where somebody has asked that it be ignored (nohup).
    struct sigaction before = {};
    ::sigaction(SIGHUP, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
    return interrupted;
}

}  // namespace kmes::conformance
