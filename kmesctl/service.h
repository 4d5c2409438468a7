// SPDX-License-Identifier: MIT
//
// What the commands have in common that serve a producer in this process until a signal.
#ifndef KMES_KMESCTL_SERVICE_H_
#define KMES_KMESCTL_SERVICE_H_

#include <signal.h>

#include "kmes/user/producer.h"

namespace kmes::kmesctl {

// Blocks the signals that end a service, and returns them. Before any thread of the producer
// exists.
sigset_t block_end_signals();

// Returns when one of them has come.
void wait_for_end(const sigset_t& ends);

// Makes the rings of a new producer. A std::system_error where that fails.
void start_rings(Producer* producer);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_SERVICE_H_
