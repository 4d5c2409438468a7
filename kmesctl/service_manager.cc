// SPDX-License-Identifier: MIT
//
// See service_manager.h; the protocols are in sd_notify(3) and sd_listen_fds(3).
#include "kmesctl/service_manager.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "kmesctl/command.h"

namespace kmes::kmesctl {
namespace {

constexpr int kFirstPassed = 3;  // SD_LISTEN_FDS_START

bool is_option(int fd, int option, int wanted) {
    int value = 0;
    socklen_t bytes = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &bytes) == 0 && value == wanted;
}

}  // namespace

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
    // A full queue of a manager that hangs must not hang the service.
    sendto(fd, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
           reinterpret_cast<const sockaddr*>(&address), length);
    close(fd);
}

std::optional<int> passed_socket() {
    const char* pid = getenv("LISTEN_PID");
    const char* count = getenv("LISTEN_FDS");
    if (pid == nullptr || count == nullptr || std::to_string(getpid()) != pid) return std::nullopt;
    const std::string passed = count;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (passed == "0") return std::nullopt;
    if (passed != "1")
        throw Failure(kExitFailed,
                      "LISTEN_FDS is \"" + passed + "\"; exactly one passed socket is right");
    if (!is_option(kFirstPassed, SO_DOMAIN, AF_UNIX) ||
        !is_option(kFirstPassed, SO_TYPE, SOCK_SEQPACKET) ||
        !is_option(kFirstPassed, SO_ACCEPTCONN, 1))
        throw Failure(kExitFailed,
                      "descriptor 3 is no listening Unix socket of type SOCK_SEQPACKET; "
                      "ListenSequentialPacket= in the socket unit is right");
    fcntl(kFirstPassed, F_SETFD, FD_CLOEXEC);
    return kFirstPassed;
}

}  // namespace kmes::kmesctl
