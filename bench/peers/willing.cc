// SPDX-License-Identifier: MIT
//
// A peer that runs on each machine. The test checks that it has a row beside the refused one.
#include "bench/peers/peer.h"

namespace {

class Counter : public kmes::bench::Peer {
  public:
    void emit(std::uint64_t records) override {
        for (std::uint64_t i = 0; i < records; i++) emitted_ = emitted_ + 1;
    }

  private:
    volatile std::uint64_t emitted_ = 0;
};

std::unique_ptr<kmes::bench::Peer> make(std::uint64_t) {
    return std::make_unique<Counter>();
}

}  // namespace

kmes::bench::PeerInfo kmes_bench_peer() {
    return {"the willing", "no bytes", make};
}
