// SPDX-License-Identifier: MIT
//
// The protocols of systemd for a service: notification and socket activation, without libsystemd.
#ifndef KMES_KMESCTL_SERVICE_MANAGER_H_
#define KMES_KMESCTL_SERVICE_MANAGER_H_

#include <optional>
#include <string>

namespace kmes::kmesctl {

// Sends `state` ("READY=1") to the socket that $NOTIFY_SOCKET names. Without that variable it does
// nothing. A service manager that does not answer is not an error of the service.
void notify_service_manager(const std::string& state);

// The listening socket that the service manager passed (LISTEN_PID, LISTEN_FDS), close-on-exec; the
// variables are removed, so that no child takes them for its own. Nothing: none was passed. A
// Failure where more than one was passed, or one that is not a listening SOCK_SEQPACKET socket.
std::optional<int> passed_socket();

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_SERVICE_MANAGER_H_
