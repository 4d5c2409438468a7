// SPDX-License-Identifier: GPL-2.0-only OR MIT
// A producer's socket. A thread listens, polls its connections and ends those that are idle.
// Workers do the work that a client can stall (socket_workers.h). No client delays another one, an
// attach or an emitter. A client delays each of the two steps of the server's end by at most
// kStopGraceMs.
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
    // Serves at the address at once. An abstract name has no permissions, and is only for processes
    // of the same user (or root). Throws std::system_error with the error of a system call.
    SocketServer(Producer* producer, std::unique_ptr<ListeningAddress> address, Serves serves);
    // Ends the requests in progress (a batch is cut off after kStopGraceMs), gives up the address,
    // and closes the connections. Work that a client stalls for longer than kStopGraceMs remains
    // with a thread that does not use the producer.
    ~SocketServer();
    SocketServer(const SocketServer&) = delete;
    SocketServer& operator=(const SocketServer&) = delete;

    Serves serves() const { return serves_; }

    static constexpr size_t kMaxConnections = 64;  // a new connection replaces the longest idle one
    static constexpr uint64_t kIdleMs = 10000;     // an idle connection is closed after this time
    static constexpr uint64_t kStopGraceMs = 1000;
    // Leases are not counted above, and are never idle. With this many leases, or a quarter of
    // RLIMIT_NOFILE, an attach gets no lease. need_wake of its buffers is not cleared then (E12).
    // For a user other than this process's user and root the limit is a quarter of that.
    static constexpr size_t kMaxLeases = 1024;
    // A reply to attach waits for this time while too many replies are unread (unread_shares.h).
    // Then it is EMFILE.
    static constexpr uint64_t kMaxUnreadWaitMs = 5000;

  private:
    const Serves serves_;
    std::shared_ptr<SocketLoop> loop_;  // its thread holds another handle
};

}  // namespace kmes

#endif
