// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// A producer's socket: one thread that listens, polls its connections and ends those that are idle.
// It waits for nobody: a client that stalls holds up neither the others nor an emitter.
#ifndef KMES_USER_SOCKET_SERVER_H
#define KMES_USER_SOCKET_SERVER_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "kmes/user/socket_connection.h"

namespace kmes {

class Producer;

class SocketServer {
  public:
    // Listens at once, with the thread. `mode`: permissions of a path; an abstract name has none,
    // and is for processes of the same user (or root) alone. A socket that a dead producer left at
    // the path is replaced. std::system_error: EADDRINUSE where somebody listens there; EINVAL or
    // ENAMETOOLONG for an address that is none; or the error of the system call.
    SocketServer(Producer* producer, const std::string& address, unsigned mode);
    // Ends the thread and its connections; removes the path, if it is still this server's.
    ~SocketServer();
    SocketServer(const SocketServer&) = delete;
    SocketServer& operator=(const SocketServer&) = delete;

    static constexpr size_t kMaxConnections = 64;  // the one idle longest makes way for a new one
    static constexpr uint64_t kIdleMs = 10000;     // after which a connection is closed

  private:
    void listen_at(const std::string& address, unsigned mode);
    void bind_or_replace(const std::string& address);
    void remember_path(const std::string& address);
    void run();
    void poll_once(std::vector<std::byte>* scratch);
    void accept_one(uint64_t now_ms);
    void close_idle(uint64_t now_ms);
    void close_all();

    Producer* const producer_;
    int listen_fd_ = -1;
    int stop_fd_ = -1;
    std::string path_;  // empty for an abstract name
    uint64_t path_device_ = 0;
    uint64_t path_inode_ = 0;
    bool is_abstract_ = false;
    bool rests_ = false;  // no descriptor was to be had for a new connection
    std::vector<SocketConnection> connections_;
    std::thread thread_;
};

}  // namespace kmes

#endif
