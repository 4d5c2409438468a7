// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The steps of the thread of a producer's socket (socket_server.h). It listens, polls its
// connections, passes work that a client can stall to the workers, and ends idle connections. This
// class has no thread, so a test can execute single steps in its own thread and by its own clock
// (fuzz/targets/socket_server.cc).
#ifndef KMES_USER_SOCKET_LOOP_H
#define KMES_USER_SOCKET_LOOP_H

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kmes/user/producer.h"
#include "kmes/user/socket_address.h"
#include "kmes/user/socket_connection.h"
#include "kmes/user/socket_workers.h"
#include "kmes/user/unread_shares.h"

namespace kmes {

class SocketLoop {
  public:
    // Throws std::system_error if there is no event descriptor.
    SocketLoop(Producer* producer, std::unique_ptr<ListeningAddress> address, Serves serves,
               const WorkersOptions& workers = {},
               const UnreadShares& shares = UnreadShares::of_this_process());
    SocketLoop(const SocketLoop&) = delete;
    SocketLoop& operator=(const SocketLoop&) = delete;

    // The body of the thread: steps inside the gate until stop(), then close_all().
    void run();
    // Another thread calls it. Returns when the threads have ended, as SocketServer says.
    void stop();

    // One step, inside the gate: waits until a descriptor is ready, at most `most_wait_ms`. Then it
    // serves each ready connection once, and accepts one.
    void poll_once(int most_wait_ms);
    // The last step, outside of the gate. The workers execute closes that can wait.
    void close_all();
    SocketWorkers* workers() { return workers_.get(); }

  private:
    void on_ready(size_t i, short events, uint64_t now_ms);
    void accept_one(uint64_t now_ms);
    void replace(size_t i, uint64_t now);
    void replace_longest_idle(uint64_t now);
    void add(ConnectionHandle connection, uint64_t now);
    void end(size_t i);
    void end_leases(SocketConnection* connection);
    void remove(size_t i);
    bool send_delayed(size_t i, UnreadShares::Count* count, uint64_t now_ms);
    void send_all_delayed(uint64_t now_ms);
    UnreadShares::Count count_unread() const;
    void close_received();
    void take_back(uint64_t now_ms);
    void close_idle(uint64_t now_ms);
    bool may_lease(const SocketConnection& connection) const;
    void allow_descriptors(bool is_allowed);
    void set_passes_descriptors(bool is_allowed);

    const std::shared_ptr<SocketWorkers> workers_;
    std::vector<std::byte> scratch_;
    const std::unique_ptr<ListeningAddress> address_;
    const Serves serves_;
    const UnreadShares shares_;
    std::vector<ConnectionHandle> connections_;
    // These have ended, but their descriptors are unread. They stay open, so that those are known.
    std::vector<ConnectionHandle> unread_;
    std::vector<struct pollfd> polled_;
    std::atomic<bool> stops_{false};
    const size_t max_leases_;
    bool clears_are_due_ = false;  // Producer::clear_due_flags()
    bool has_delayed_ = false;     // a reply waits for its share
    bool rests_ = false;           // no descriptor was available for a new connection
    bool allows_descriptors_ = false;
};

}  // namespace kmes

#endif
