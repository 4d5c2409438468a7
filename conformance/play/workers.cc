// SPDX-License-Identifier: MIT
//
// See workers.h.
#include "conformance/play/workers.h"

#include <sched.h>

namespace kmes::conformance {

std::vector<int> allowed_processors() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> all;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return all;
    for (int i = 0; i < CPU_SETSIZE; ++i) {
        if (CPU_ISSET(i, &set)) all.push_back(i);
    }
    return all;
}

ChildSignalBlocked::ChildSignalBlocked() {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &action, &action_before_);
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &child, &mask_before_);
}

ChildSignalBlocked::~ChildSignalBlocked() {
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    sigaction(SIGCHLD, &action_before_, nullptr);
}

}  // namespace kmes::conformance
