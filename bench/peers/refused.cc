// SPDX-License-Identifier: MIT
//
// A peer that fails on each machine. The test checks that kmes-bench leaves it out.
#include "bench/peers/peer.h"

namespace {

std::unique_ptr<kmes::bench::Peer> make(std::uint64_t) {
    throw std::runtime_error("not permitted: a ring buffer: Operation not permitted");
}

}  // namespace

kmes::bench::PeerInfo kmes_bench_peer() {
    return {"the refused", "anything", make};
}
