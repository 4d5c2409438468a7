// SPDX-License-Identifier: MIT
//
// The notification protocol of systemd for a service, sd_notify(3), without libsystemd.
#ifndef KMES_KMESCTL_SERVICE_MANAGER_H_
#define KMES_KMESCTL_SERVICE_MANAGER_H_

#include <string>

namespace kmes::kmesctl {

// Sends `state` ("READY=1") to the socket that $NOTIFY_SOCKET names. Without that variable it does
// nothing. A service manager that does not answer is not an error of the service.
void notify_service_manager(const std::string& state);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_SERVICE_MANAGER_H_
