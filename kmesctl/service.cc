// SPDX-License-Identifier: MIT
//
// See service.h.
#include "kmesctl/service.h"

#include <system_error>

#include "kmesctl/output.h"

namespace kmes::kmesctl {

sigset_t block_end_signals() {
    sigset_t ends;
    sigemptyset(&ends);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        if (!is_ignored(signal)) sigaddset(&ends, signal);
    }
    sigprocmask(SIG_BLOCK, &ends, nullptr);
    return ends;
}

void wait_for_end(const sigset_t& ends) {
    int signal = 0;
    while (sigwait(&ends, &signal) != 0) continue;
}

void start_rings(Producer* producer) {
    if (const int error = producer->start_without_registry(); error != 0)
        throw std::system_error(-error, std::generic_category(), "cannot make the rings");
}

}  // namespace kmes::kmesctl
