// SPDX-License-Identifier: MIT
// The sockets that systemd passes to an activated service, sd_listen_fds(3), without libsystemd.
#ifndef KMES_KMESCTL_PASSED_SOCKETS_H_
#define KMES_KMESCTL_PASSED_SOCKETS_H_

#include <vector>

#include "kmes/user/producer.h"

namespace kmes::kmesctl {

struct PassedSocket {
    int fd;
    Serves serves;  // from its name: "attach", "emit", or both for any other name
};

// Returns none if $LISTEN_PID is not this process. Removes the variables, so that no child uses
// them. Throws a Failure of kExitFailed for a malformed variable, and for a descriptor that is not
// open. The producer checks whether it is a socket. Call it before this process opens any file.
std::vector<PassedSocket> passed_sockets();

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_PASSED_SOCKETS_H_
