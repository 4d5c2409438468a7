// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// The thread behind a producer's socket. See socket_server.h.
#include "kmes/user/socket_server.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <system_error>

#include "kmes/user/futex.h"
#include "kmes/user/socket_protocol.h"

namespace kmes {
namespace {

constexpr int kBacklog = 64;
constexpr int kRestMs = 100;  // before accept is tried again when no descriptor was to be had

[[noreturn]] void fail(int error, const std::string& what) {
    throw std::system_error(error, std::generic_category(), "KMES socket: " + what);
}

uint64_t now_ms() {
    return kmes_clock_monotonic_ns() / 1000000;
}

struct Address {
    struct sockaddr_un socket;
    socklen_t length;

    explicit Address(const std::string& text) {
        int error = kmes_socket_address(text.c_str(), &socket, &length);

        if (error || text.find('\0') != std::string::npos)
            fail(error ? -error : EINVAL,
                 "\"" + text +
                     "\" is no address; a path of at most 107 bytes is, or '@' and a name");
    }

    const struct sockaddr* get() const { return reinterpret_cast<const struct sockaddr*>(&socket); }
};

// Somebody is there to answer. What is not a socket is never taken for one that was left behind.
bool is_left_behind(const std::string& path) {
    struct stat status = {};
    Address address(path);

    if (lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) return false;
    int result = connect(fd, address.get(), address.length);
    int error = errno;

    close(fd);
    return result != 0 && error == ECONNREFUSED;
}

// An abstract name has no permissions of its own.
bool is_same_user(int fd) {
    struct ucred peer = {};
    socklen_t length = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
    return peer.uid == geteuid() || peer.uid == 0;
}

}  // namespace

SocketServer::SocketServer(Producer* producer, const std::string& address, unsigned mode)
    : producer_(producer) {
    try {
        listen_at(address, mode);
        stop_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (stop_fd_ < 0) fail(errno, "cannot make an event descriptor");
        connections_.reserve(kMaxConnections);
    } catch (...) {
        close_all();
        throw;
    }
    sigset_t all, before;  // the program's handlers run on its own threads

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        thread_ = std::thread([this] { run(); });
    } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        close_all();
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

SocketServer::~SocketServer() {
    const uint64_t one = 1;

    // It cannot fail: the counter of a fresh eventfd has room.
    while (write(stop_fd_, &one, sizeof(one)) < 0 && errno == EINTR) continue;
    thread_.join();
    close_all();
}

void SocketServer::close_all() {
    struct stat status = {};

    connections_.clear();
    if (!path_.empty() && lstat(path_.c_str(), &status) == 0 && status.st_dev == path_device_ &&
        status.st_ino == path_inode_)
        unlink(path_.c_str());
    if (listen_fd_ >= 0) close(listen_fd_);
    if (stop_fd_ >= 0) close(stop_fd_);
}

void SocketServer::listen_at(const std::string& address, unsigned mode) {
    listen_fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listen_fd_ < 0) fail(errno, "cannot make one");
    is_abstract_ = !address.empty() && address[0] == '@';
    // The socket file gets the mode of the socket: there is no moment at which it has another.
    if (fchmod(listen_fd_, mode) != 0) fail(errno, "cannot set its permissions");
    bind_or_replace(address);
    if (!is_abstract_) remember_path(address);
    if (listen(listen_fd_, kBacklog) != 0) fail(errno, "cannot listen at " + address);
}

void SocketServer::bind_or_replace(const std::string& address) {
    Address at(address);

    if (bind(listen_fd_, at.get(), at.length) == 0) return;
    if (errno == EADDRINUSE && !is_abstract_ && is_left_behind(address)) {
        unlink(address.c_str());
        if (bind(listen_fd_, at.get(), at.length) == 0) return;
    }
    fail(errno, "cannot have the address " + address);
}

void SocketServer::remember_path(const std::string& address) {
    struct stat status = {};

    if (lstat(address.c_str(), &status) != 0) fail(errno, "cannot find " + address);
    path_ = address;
    path_device_ = status.st_dev;
    path_inode_ = status.st_ino;
}

void SocketServer::run() {
    std::vector<std::byte> scratch(SocketConnection::kScratchBytes);
    struct pollfd stop = {stop_fd_, POLLIN, 0};

    while (poll(&stop, 1, 0) <= 0) poll_once(&scratch);
}

void SocketServer::poll_once(std::vector<std::byte>* scratch) {
    std::array<struct pollfd, 2 + kMaxConnections> polled;
    size_t count = 2;

    polled[0] = {stop_fd_, POLLIN, 0};
    polled[1] = {rests_ ? -1 : listen_fd_, POLLIN, 0};
    for (const SocketConnection& connection : connections_)
        polled[count++] = {connection.fd(), connection.wanted_events(), 0};
    int ready = poll(polled.data(), count, rests_ ? kRestMs : static_cast<int>(kIdleMs / 4));
    uint64_t now = now_ms();

    rests_ = false;
    if (ready > 0) {
        // From the last, so that what is closed moves nothing that is still to come.
        for (size_t i = connections_.size(); i-- > 0;) {
            bool goes_on = true;

            if (!polled[i + 2].revents) continue;
            try {
                goes_on = connections_[i].on_ready(polled[i + 2].revents, scratch, now);
            } catch (const std::bad_alloc&) {
                goes_on = false;
            }
            if (!goes_on) connections_.erase(connections_.begin() + static_cast<ptrdiff_t>(i));
        }
        if (polled[1].revents) accept_one(now);
    }
    close_idle(now);
}

void SocketServer::accept_one(uint64_t now) {
    int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0) {
        rests_ = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
        return;
    }
    if (is_abstract_ && !is_same_user(fd)) {
        close(fd);
        return;
    }
    if (connections_.size() == kMaxConnections) {
        connections_.erase(
            std::min_element(connections_.begin(), connections_.end(),
                             [](const SocketConnection& a, const SocketConnection& b) {
                                 return a.last_active_ms() < b.last_active_ms();
                             }));
    }
    connections_.emplace_back(producer_, fd, now);
}

void SocketServer::close_idle(uint64_t now) {
    std::erase_if(connections_, [now](const SocketConnection& connection) {
        return now - connection.last_active_ms() > kIdleMs;
    });
}

}  // namespace kmes
