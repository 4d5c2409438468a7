// SPDX-License-Identifier: MIT
//
// A peer of kmes-bench: another ring or queue, in a shared object that is built only if its package
// is installed. A record has as many bytes as our event. There is no reader; a peer that does not
// overwrite removes its oldest record if it is full.
#ifndef KMES_BENCH_PEERS_PEER_H
#define KMES_BENCH_PEERS_PEER_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "bench/rows.h"

namespace kmes::bench {

class Peer {
  public:
    virtual ~Peer() = default;
    virtual void emit(std::uint64_t records) = 0;
};

struct PeerInfo {
    const char* name;
    const char* leaves_out;  // the work of a KMES event that the peer does not do
    // Throws std::runtime_error with the reason if this machine cannot run the peer.
    std::unique_ptr<Peer> (*make)(std::uint64_t payload_bytes);
};

// A slot of a size known to the compiler, for peers with slots of one size.
template <std::uint64_t kPayload>
struct Slot {
    std::array<std::byte, record_bytes(kPayload)> bytes;
};

template <std::uint64_t kPayload>
constexpr std::uint64_t slots() {
    return kCapacityBytes / sizeof(Slot<kPayload>);
}

// PeerOf<payload> for one of the sizes of kPayloadBytes.
template <template <std::uint64_t> typename PeerOf>
std::unique_ptr<Peer> make_by_size(std::uint64_t payload_bytes) {
    switch (payload_bytes) {
        case 16:
            return std::make_unique<PeerOf<16>>();
        case 64:
            return std::make_unique<PeerOf<64>>();
        case 256:
            return std::make_unique<PeerOf<256>>();
        case 1024:
            return std::make_unique<PeerOf<1024>>();
        case 4096:
            return std::make_unique<PeerOf<4096>>();
        default:
            throw std::runtime_error("no slots for this payload size");
    }
}

}  // namespace kmes::bench

// The one function of a peer's shared object.
extern "C" [[gnu::visibility("default")]] kmes::bench::PeerInfo kmes_bench_peer();

#endif
