// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// A producer's socket: a thread that listens, polls its connections and ends those that are idle,
// and workers for what a client can stall (socket_workers.h). No client delays another one, an
// attach or an emitter, and the end of the server by kStopGraceMs at most for each of its two
// steps.
#ifndef KMES_USER_SOCKET_SERVER_H
#define KMES_USER_SOCKET_SERVER_H

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kmes/user/producer.h"

namespace kmes {

class ListeningAddress;
class SocketLoop;

class SocketServer {
  public:
    // Serves at the address at once. An abstract name has no permissions, and is for processes of
    // the same user (or root) alone. std::system_error: the error of a system call.
    SocketServer(Producer* producer, std::unique_ptr<ListeningAddress> address, Serves serves);
    // Ends the requests that are served now (a batch is cut off after kStopGraceMs), gives up the
    // address, and closes the connections. What a client stalls for longer than kStopGraceMs is
    // left to a thread that does not use the producer.
    ~SocketServer();
    SocketServer(const SocketServer&) = delete;
    SocketServer& operator=(const SocketServer&) = delete;

    Serves serves() const { return serves_; }

    static constexpr size_t kMaxConnections = 64;  // the one idle longest makes way for a new one
    static constexpr uint64_t kIdleMs = 10000;     // after which a connection is closed
    static constexpr uint64_t kStopGraceMs = 1000;
    // Connections that are leases are not counted above, and not idle. Where there are so many, or
    // a quarter of RLIMIT_NOFILE, an attach goes on without a lease; need_wake of
    // those buffers is not cleared then (E12). Another user than this process's or root has a
    // quarter of that.
    static constexpr size_t kMaxLeases = 1024;

  private:
    const Serves serves_;
    std::shared_ptr<SocketLoop> loop_;  // its thread has another handle
};

}  // namespace kmes

#endif
