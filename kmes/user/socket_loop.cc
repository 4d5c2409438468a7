// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// The steps of a producer's socket. See socket_loop.h.
#include "kmes/user/socket_loop.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "kmes/user/socket_server.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83  // Linux 6.16; older C libraries do not name it
#endif

namespace kmes {
namespace {

constexpr int kRestMs = 100;    // until accept is tried again without a free descriptor
constexpr int kDelayedMs = 10;  // until a reply that waits for its share is tried again
constexpr size_t kFixedPolls = 2;
constexpr int kMostWaitMs = static_cast<int>(SocketServer::kIdleMs / 4);

size_t lease_limit() {
    struct rlimit limit = {};

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    return std::min<size_t>(SocketServer::kMaxLeases, limit.rlim_cur / 4);
}

// The result has an owner at once: its connection may find no memory. Without a client it is -1,
// with errno.
KeptFd accept_client(const ListeningAddress& address) {
    return KeptFd(accept4(address.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

}  // namespace

SocketLoop::SocketLoop(Producer* producer, std::unique_ptr<ListeningAddress> address, Serves serves,
                       const WorkersOptions& workers, const UnreadShares& shares)
    : workers_(std::make_shared<SocketWorkers>(producer, workers)),
      scratch_(SocketConnection::kScratchBytes),
      address_(std::move(address)),
      serves_(serves),
      shares_(shares),
      max_leases_(lease_limit()) {
    connections_.reserve(SocketServer::kMaxConnections + 1);
    // A passed socket has the setting of the last producer.
    set_passes_descriptors(serves_ != Serves::kAttach);
}

void SocketLoop::stop() {
    stops_.store(true);
    if (!workers_->wake()) address_->wake_poll();
    workers_->gate()->close(SocketServer::kStopGraceMs);
    address_->release();
    workers_->end(SocketServer::kStopGraceMs);
}

void SocketLoop::run() {
    if (workers_->gate()->enter()) {
        while (!stops_.load()) poll_once(kMostWaitMs);
        // The connection is the lease. A consumer asks the next server for another one.
        for (const ConnectionHandle& connection : connections_) connection->end_leases();
        workers_->gate()->leave();
    }
    close_all();
}

void SocketLoop::poll_once(int most_wait_ms) {
    size_t held = workers_->held();
    bool accepts = !rests_ && held < SocketWorkers::kMaxHeld;
    const int wake_fd = workers_->wake_fd();
    bool is_soon = rests_ || held || clears_are_due_ || wake_fd < 0;
    int wait_ms = is_soon ? std::min(kRestMs, most_wait_ms) : most_wait_ms;

    if (has_delayed_) wait_ms = std::min(kDelayedMs, wait_ms);

    if (held >= SocketWorkers::kManyHeld) allow_descriptors(false);
    if (held < SocketWorkers::kManyHeld / 2) allow_descriptors(true);
    rests_ = false;
    try {
        polled_.resize(kFixedPolls);
        polled_[0] = {wake_fd, POLLIN, 0};
        polled_[1] = {accepts ? address_->fd() : -1, POLLIN, 0};
        for (const ConnectionHandle& connection : connections_)
            polled_.push_back({connection->fd(), connection->wanted_events(), 0});
        int ready = poll(polled_.data(), polled_.size(), wait_ms);
        uint64_t now = workers_->now_ms();

        // poll fails if there are more connections than RLIMIT_NOFILE permits now, or no memory.
        if (ready < 0 && errno != EINTR) poll(nullptr, 0, kRestMs);
        if (ready > 0) {
            // From the last, so that a removal moves no connection that is still to be served.
            for (size_t i = connections_.size(); i-- > 0;) {
                if (polled_[i + kFixedPolls].revents)
                    on_ready(i, polled_[i + kFixedPolls].revents, now);
            }
            if (polled_[1].revents) accept_one(now);
        }
        take_back(now);
        send_all_delayed(now);
        close_idle(now);
        close_received();
        if (clears_are_due_) clears_are_due_ = workers_->gate()->producer()->clear_due_flags();
    } catch (const std::bad_alloc&) {
        rests_ = true;
    }
}

void SocketLoop::on_ready(size_t i, short events, uint64_t now) {
    auto step = SocketConnection::Step::kOver;

    try {
        connections_[i]->allow_lease(may_lease(*connections_[i]));
        step = connections_[i]->on_ready(events, &scratch_, now);
    } catch (const std::bad_alloc&) {
        // `step` stays kOver.
    }
    has_delayed_ |= connections_[i]->delayed_descriptors() > 0;
    if (step == SocketConnection::Step::kGoesOn) return;
    if (step == SocketConnection::Step::kOver) return end(i);
    ConnectionHandle connection = std::move(connections_[i]);

    connections_.erase(connections_.begin() + static_cast<ptrdiff_t>(i));
    workers_->serve(std::move(connection), now);
}

// A client that still has its end may be asleep, so its lease stays. A client that was killed after
// the last poll is no longer asleep.
void SocketLoop::end(size_t i) {
    if (connections_[i]->has_gone()) end_leases(connections_[i].get());
    remove(i);
}

void SocketLoop::end_leases(SocketConnection* connection) {
    clears_are_due_ |= connection->is_lease();
    connection->end_leases();
}

void SocketLoop::remove(size_t i) {
    ConnectionHandle connection = std::move(connections_[i]);

    connections_.erase(connections_.begin() + static_cast<ptrdiff_t>(i));
    if (connection->unread_descriptors() == 0) return workers_->close(std::move(connection));
    connection->abandon();
    unread_.push_back(std::move(connection));
}

// Sends a reply with descriptors if that is within the shares, or refuses it after a time. True: it
// still waits.
bool SocketLoop::send_delayed(size_t i, UnreadShares::Count* count, uint64_t now) {
    SocketConnection* connection = connections_[i].get();
    const size_t descriptors = connection->delayed_descriptors();

    if (descriptors == 0) return false;
    if (count->permits(connection->user(), descriptors)) {
        count->add(connection->user(), descriptors);
        if (!connection->send_delayed(now)) end(i);
    } else if (now > connection->last_active_ms() + SocketServer::kMaxUnreadWaitMs) {
        end_leases(connection);  // the client has not got the buffers
        connection->refuse_delayed(-EMFILE);
        remove(i);
    } else {
        return true;
    }
    return false;
}

void SocketLoop::send_all_delayed(uint64_t now) {
    if (!has_delayed_) return;
    UnreadShares::Count count = count_unread();
    bool is_any_left = false;

    for (size_t i = 0; i < connections_.size();) {
        const size_t before = connections_.size();

        is_any_left |= send_delayed(i, &count, now);
        if (connections_.size() == before) i++;
    }
    has_delayed_ = is_any_left;
}

UnreadShares::Count SocketLoop::count_unread() const {
    UnreadShares::Count count = shares_.begin_count();

    for (const auto* list : {&connections_, &unread_}) {
        for (const ConnectionHandle& each : *list)
            count.add(each->user(), each->unread_descriptors());
    }
    return count;
}

void SocketLoop::close_received() {
    std::erase_if(unread_, [this](ConnectionHandle& connection) {
        if (connection->unread_descriptors() > 0) return false;
        workers_->close(std::move(connection));
        return true;
    });
}

void SocketLoop::accept_one(uint64_t now) {
    KeptFd fd = accept_client(*address_);

    if (fd.number() < 0) {
        const bool is_descriptor_missing = errno == EMFILE || errno == ENFILE;

        rests_ = is_descriptor_missing || errno == ENOMEM || errno == ENOBUFS;
        if (is_descriptor_missing) replace_longest_idle(now);
        return;
    }
    auto connection =
        std::make_unique<SocketConnection>(workers_->gate(), std::move(fd), serves_, now);

    // An abstract name has no permissions of its own.
    if (address_->is_abstract() && !is_trusted_user(connection->user()))
        return workers_->close(std::move(connection));
    add(std::move(connection), now);
}

// A request that the client has already sent is served first. A later one fails at its client
// (EPIPE), so the client knows that nothing was served, and connects again.
void SocketLoop::replace(size_t i, uint64_t now) {
    const SocketConnection* const replaced = connections_[i].get();

    replaced->refuse_requests();
    on_ready(i, POLLIN, now);
    const auto left = std::ranges::find(connections_, replaced, &ConnectionHandle::get);

    if (left != connections_.end()) remove(static_cast<size_t>(left - connections_.begin()));
}

// Makes room for a new connection. A lease stays: its client may be asleep.
void SocketLoop::replace_longest_idle(uint64_t now) {
    auto oldest = std::min_element(connections_.begin(), connections_.end(),
                                   [](const ConnectionHandle& a, const ConnectionHandle& b) {
                                       if (a->is_lease() != b->is_lease()) return b->is_lease();
                                       return a->last_active_ms() < b->last_active_ms();
                                   });

    if (oldest == connections_.end() || (*oldest)->is_lease()) return;
    replace(static_cast<size_t>(oldest - connections_.begin()), now);
}

void SocketLoop::add(ConnectionHandle connection, uint64_t now) {
    auto is_lease = [](const ConnectionHandle& some) { return some->is_lease(); };
    const auto leases = std::count_if(connections_.begin(), connections_.end(), is_lease);

    if (connections_.size() - static_cast<size_t>(leases) >= SocketServer::kMaxConnections)
        replace_longest_idle(now);
    has_delayed_ |= connection->delayed_descriptors() > 0;
    connections_.push_back(std::move(connection));
}

// Takes back the connections that the workers have served, and those that they have not reached.
void SocketLoop::take_back(uint64_t now) {
    if (polled_[0].revents) workers_->clear_wake();
    for (ConnectionHandle& connection : workers_->take_served()) add(std::move(connection), now);
    for (ConnectionHandle& connection : workers_->take_waiting(now)) {
        connection->refuse_unread(-EBUSY);
        workers_->close(std::move(connection));
    }
}

void SocketLoop::close_idle(uint64_t now) {
    for (size_t i = connections_.size(); i-- > 0;) {
        if (connections_[i]->is_lease()) continue;
        // A worker may have been active after `now`.
        if (now > connections_[i]->last_active_ms() + SocketServer::kIdleMs) remove(i);
    }
}

// Limits leases: one user must not take all descriptors of this process, nor all leases.
bool SocketLoop::may_lease(const SocketConnection& connection) const {
    const uid_t user = connection.user();
    size_t all = 0, of_user = 0;

    for (const ConnectionHandle& other : connections_) {
        if (!other->is_lease()) continue;
        all++;
        of_user += other->user() == user;
    }
    return all < max_leases_ && (is_trusted_user(user) || of_user < max_leases_ / 4);
}

// Outside of the gate. Connections that were not accepted may have descriptors, like others. If
// they cannot be accepted, the last close can block this thread.
void SocketLoop::close_all() {
    for (ConnectionHandle& connection : workers_->take_served(true))
        workers_->close(std::move(connection));
    while (!connections_.empty()) remove(connections_.size() - 1);
    for (ConnectionHandle& connection : unread_) workers_->close(std::move(connection));
    unread_.clear();
    if (address_->is_passed()) return address_->close_socket();
    shutdown(address_->fd(), SHUT_RDWR);
    for (;;) {
        KeptFd fd = accept_client(*address_);

        if (fd.number() < 0) break;
        workers_->close(
            std::make_unique<SocketConnection>(workers_->gate(), std::move(fd), serves_, 0));
    }
    address_->close_socket();
}

// For connections that are made from now on. No client needs to send descriptors to attach.
void SocketLoop::allow_descriptors(bool is_allowed) {
    const bool value = is_allowed && serves_ != Serves::kAttach;

    if (allows_descriptors_ != value) set_passes_descriptors(value);
}

void SocketLoop::set_passes_descriptors(bool is_allowed) {
    const int value = is_allowed;

    allows_descriptors_ = is_allowed;
    setsockopt(address_->fd(), SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof(value));
}

}  // namespace kmes
