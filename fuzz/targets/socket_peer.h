// SPDX-License-Identifier: MIT
//
// A peer of a producer's socket that sends anything, and knows the correct answer. It is a second
// implementation of docs/producer-socket.md and kmes/user/socket_protocol.h.
#ifndef KMES_FUZZ_TARGETS_SOCKET_PEER_H_
#define KMES_FUZZ_TARGETS_SOCKET_PEER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/targets/ring_events.h"
#include "kmes/user/producer.h"
#include "kmes/user/socket_protocol.h"

namespace kmes::fuzz {

// Events read from the rings, until a reply accounts for them.
class EventLog {
  public:
    void add(const RingEvent& event);
    // A reply says that this event was emitted.
    void claim(const RingEvent& event);
    // As claim(), for events of unknown bytes.
    void claim_unknown(std::uint64_t count) { unknown_ += count; }
    // The number of events that no reply accounts for.
    std::uint64_t unclaimed() const { return events_.size() + lost_; }
    std::uint64_t unknown() const { return unknown_; }
    std::uint64_t seen() const { return seen_; }
    std::uint64_t lost_events() const { return all_lost_; }

  private:
    std::deque<RingEvent> events_;
    std::uint64_t lost_ = 0;  // overwritten before they were read, and not claimed
    std::uint64_t all_lost_ = 0;
    std::uint64_t seen_ = 0;
    std::uint64_t unknown_ = 0;
};

// The facts about the server that its peers know.
struct ServerFacts {
    Producer* producer = nullptr;
    EventLog* log = nullptr;
    Serves serves = Serves::kAttachAndEmit;
    std::uint64_t max_event_bytes = 0;
    bool has_time_passed = false;  // more than the time limit
};

// One packet, and its request.
struct SentPacket {
    std::string bytes;
    std::vector<int> fds;
    bool is_memory_file = false;  // the first descriptor is one
    bool is_body_known = true;    // its bytes do not change

    bool has_whole_request() const { return bytes.size() >= sizeof(kmes_socket_request); }
    kmes_socket_request request() const;
    std::string_view body() const;
};

class SocketPeer {
  public:
    SocketPeer(const ServerFacts* facts, const std::string& address);
    ~SocketPeer();
    SocketPeer(const SocketPeer&) = delete;
    SocketPeer& operator=(const SocketPeer&) = delete;

    int fd() const { return fd_; }
    bool is_open() const { return fd_ >= 0; }
    void send(SentPacket packet);
    // Receives one packet of the server, if there is one, and checks it.
    void receive();
    // Shuts down half of the connection, or all of it (2).
    void shut_down(int how);
    void close_now();
    // The bytes of this file may have changed.
    void forget_body(int fd);
    // Whether the server owes an answer, without an excuse.
    bool is_owed() const;
    // Packets without a known result.
    const std::deque<SentPacket>& unanswered() const { return sent_; }
    // The answer to the last packet, for an honest peer; 1: none yet.
    int last_error() const { return last_error_; }
    // The descriptors of the last answer, until the next one.
    const std::vector<int>& received_fds() const { return received_; }
    std::uint64_t last_capacity() const { return last_capacity_; }

  private:
    void check(const SentPacket& packet, const kmes_socket_reply& reply);
    int expected_error(const SentPacket& packet) const;
    void check_attach(const SentPacket& packet, const kmes_socket_reply& reply);
    void check_identify(const SentPacket& packet, const kmes_socket_reply& reply) const;
    void check_emit(const SentPacket& packet, const kmes_socket_reply& reply);
    void check_batch(const SentPacket& packet, const kmes_socket_reply& reply);
    bool body_bytes(const SentPacket& packet, std::uint64_t offset, std::uint64_t bytes,
                    std::string* text) const;
    void take_descriptors(struct msghdr* message);
    void drop_descriptors();

    const ServerFacts* const facts_;
    int fd_ = -1;
    std::deque<SentPacket> sent_;  // not yet answered
    std::vector<int> received_;
    std::uint64_t last_capacity_ = 0;
    int last_error_ = 1;
    bool is_lease_ = false;
    bool is_over_ = false;  // the server has said that it ends
    bool may_end_ = false;  // the peer has given a reason to end without a reply
};

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_SOCKET_PEER_H_
