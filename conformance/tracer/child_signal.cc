// SPDX-License-Identifier: MIT
//
// See child_signal.h.

#include "conformance/tracer/child_signal.h"

#include <ctime>

namespace kmes::conformance::tracing {
namespace {

sigset_t only_child_signal() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    return set;
}

}  // namespace

ChildSignal::ChildSignal() {
    const sigset_t child_signal = only_child_signal();
    pthread_sigmask(SIG_BLOCK, &child_signal, &old_mask_);
    struct sigaction action{};
    action.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &action, &old_action_);
}

ChildSignal::~ChildSignal() {
    sigaction(SIGCHLD, &old_action_, nullptr);
    if (!sigismember(&old_mask_, SIGCHLD)) {
        const sigset_t child_signal = only_child_signal();
        const timespec now{};
        while (sigtimedwait(&child_signal, nullptr, &now) > 0) continue;
    }
    pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

}  // namespace kmes::conformance::tracing
