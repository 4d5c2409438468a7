// SPDX-License-Identifier: MIT
//
// The sockets that systemd passes to a service that it starts for them, sd_listen_fds(3), without
// libsystemd.
#ifndef KMES_KMESCTL_PASSED_SOCKETS_H_
#define KMES_KMESCTL_PASSED_SOCKETS_H_

#include <vector>

#include "kmes/user/producer.h"

namespace kmes::kmesctl {

struct PassedSocket {
    int fd;
    Serves serves;  // by its name: "attach", "emit", or both for any other name
};

// None where $LISTEN_PID is not this process. Removes the variables, so that no child believes
// them. A Failure of kExitFailed for a variable that is malformed, and for a descriptor that is not
// open; whether it is a socket is for the producer to check. Call it before this process opens any
// file.
std::vector<PassedSocket> passed_sockets();

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_PASSED_SOCKETS_H_
