// SPDX-License-Identifier: MIT
//
// boost::lockfree::spsc_queue of slots.
#include <boost/lockfree/spsc_queue.hpp>

#include "bench/peers/peer.h"

namespace kmes::bench {
namespace {

template <std::uint64_t kPayload>
class BoostQueue : public Peer {
  public:
    void emit(std::uint64_t records) override {
        for (std::uint64_t i = 0; i < records; i++) {
            while (!queue_.push(record_)) queue_.pop();
        }
    }

  private:
    Slot<kPayload> record_ = {};
    boost::lockfree::spsc_queue<Slot<kPayload>> queue_{slots<kPayload>()};
};

}  // namespace
}  // namespace kmes::bench

kmes::bench::PeerInfo kmes_bench_peer() {
    return {"boost spsc_queue",
            "fixed slots, one consumer, no overwriting, no time, no full fence, no wake",
            kmes::bench::make_by_size<kmes::bench::BoostQueue>};
}
