// SPDX-License-Identifier: MIT
// Shared parts of the commands that serve a producer in this process until a signal.
#ifndef KMES_KMESCTL_SERVICE_H_
#define KMES_KMESCTL_SERVICE_H_

#include <signal.h>

#include <cstdint>
#include <string>

#include "kmes/user/producer.h"

namespace kmes::kmesctl {

// Blocks the signals that end a service, and returns them. Call it before any thread of the
// producer exists.
sigset_t block_end_signals();

// Returns after one of them has come.
void wait_for_end(const sigset_t& ends);

// Returns the value of --capacity, or throws a Failure of kExitUsage.
std::uint64_t capacity_option(const std::string& text);

// Serves at an address. Throws a Failure that names the folder if that does not exist, and
// otherwise as Producer::serve.
void serve_at(Producer* producer, const std::string& address, unsigned mode = 0600);

// Makes the rings of a new producer. Throws std::system_error if that fails.
void start_rings(Producer* producer);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_SERVICE_H_
