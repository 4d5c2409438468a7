// SPDX-License-Identifier: MIT
//
// A peer that no machine permits, for the test that kmes-bench leaves such a peer out.
#include "bench/peers/peer.h"

namespace {

std::unique_ptr<kmes::bench::Peer> make(std::uint64_t) {
    throw std::runtime_error("not permitted: a ring buffer: Operation not permitted");
}

}  // namespace

kmes::bench::PeerInfo kmes_bench_peer() {
    return {"the refused", "anything", make};
}
