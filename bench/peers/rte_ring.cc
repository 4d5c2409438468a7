// SPDX-License-Identifier: MIT
//
// DPDK's rte_ring of pointers to slots, without DPDK's environment.
#include <rte_ring.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/peers/peer.h"

namespace kmes::bench {
namespace {

constexpr unsigned power_of_two_below(std::uint64_t value) {
    unsigned power = 1;

    while (2ull * power <= value) power *= 2;
    return power;
}

template <std::uint64_t kPayload>
class RteRing : public Peer {
  public:
    RteRing() : pool_(kSlots), ring_(make_ring()) {}
    ~RteRing() override { std::free(ring_); }
    RteRing(const RteRing&) = delete;
    RteRing& operator=(const RteRing&) = delete;

    void emit(std::uint64_t records) override {
        for (std::uint64_t i = 0; i < records; i++) {
            Slot<kPayload>* slot = &pool_[next_++ % kSlots];
            void* oldest;

            std::memcpy(slot, &record_, sizeof(record_));
            while (rte_ring_sp_enqueue(ring_, slot) != 0) rte_ring_sc_dequeue(ring_, &oldest);
        }
    }

  private:
    static constexpr unsigned kSlots = power_of_two_below(slots<kPayload>());

    static rte_ring* make_ring() {
        const ssize_t bytes = rte_ring_get_memsize(kSlots);
        auto* ring = static_cast<rte_ring*>(
            std::aligned_alloc(64, (static_cast<std::size_t>(bytes) + 63) / 64 * 64));

        if (!ring || rte_ring_init(ring, "kmes-bench", kSlots, RING_F_SP_ENQ | RING_F_SC_DEQ) != 0)
            throw std::runtime_error("rte_ring_init failed");
        return ring;
    }

    Slot<kPayload> record_ = {};
    std::vector<Slot<kPayload>> pool_;
    rte_ring* ring_;
    std::uint64_t next_ = 0;
};

}  // namespace
}  // namespace kmes::bench

kmes::bench::PeerInfo kmes_bench_peer() {
    return {"DPDK rte_ring",
            "fixed slots in a pool, no overwriting, no time, no full fence, no wake",
            kmes::bench::make_by_size<kmes::bench::RteRing>};
}
