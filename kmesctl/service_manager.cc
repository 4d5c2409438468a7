// SPDX-License-Identifier: MIT
//
// See service_manager.h.
#include "kmesctl/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace kmes::kmesctl {

void notify_service_manager(const std::string& state) {
    const char* name = getenv("NOTIFY_SOCKET");
    sockaddr_un address{};
    if (name == nullptr || (name[0] != '/' && name[0] != '@')) return;
    const std::size_t bytes = strlen(name);
    if (bytes < 2 || bytes >= sizeof address.sun_path) return;
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, name, bytes);
    if (name[0] == '@') address.sun_path[0] = '\0';
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + bytes);
    // Does not block: a service manager that hangs has a full queue.
    sendto(fd, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
           reinterpret_cast<const sockaddr*>(&address), length);
    close(fd);
}

}  // namespace kmes::kmesctl
