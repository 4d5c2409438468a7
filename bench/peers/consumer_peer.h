// SPDX-License-Identifier: MIT
//
// A peer of kmes-consumers: a ring of the kernel with its own reader. Each peer is a shared object,
// as those of peer.h.
#ifndef KMES_BENCH_PEERS_CONSUMER_PEER_H
#define KMES_BENCH_PEERS_CONSUMER_PEER_H

#include <cstdint>
#include <memory>

namespace kmes::bench {

// Exists before the fork of the emitter and of the consumer, which inherit it.
class ConsumerPeer {
  public:
    virtual ~ConsumerPeer() = default;

    // Emits without an end, and waits while the ring is full.
    virtual void emit() = 0;
    // Reads this number of records.
    virtual void consume(std::uint64_t records) = 0;
};

struct ConsumerPeerInfo {
    const char* name;
    // Throws std::runtime_error with the reason if this machine does not permit it.
    std::unique_ptr<ConsumerPeer> (*make)(std::uint64_t record_bytes);
};

}  // namespace kmes::bench

// The only symbol of the object.
extern "C" __attribute__((visibility("default"))) kmes::bench::ConsumerPeerInfo
kmes_bench_consumer_peer();

#endif
