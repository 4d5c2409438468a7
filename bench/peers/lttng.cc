// SPDX-License-Identifier: MIT
//
// LTTng-UST: a tracepoint, recorded by a session in snapshot mode, which overwrites.
// tools/lib/bench_peers.sh makes the session.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench/peers/lttng_tracepoint.h"

#include <unistd.h>

#include <vector>

#include "bench/peers/peer.h"

namespace kmes::bench {
namespace {

// A separate thread of the library contacts the session daemon, and the kernel may start it late.
constexpr unsigned kMaxWaits = 500;
constexpr useconds_t kWaitUs = 10000;

class Lttng : public Peer {
  public:
    explicit Lttng(std::uint64_t payload_bytes) : record_(record_bytes(payload_bytes)) {
        for (unsigned waits = 0; !lttng_ust_tracepoint_enabled(kmes_bench, record); waits++) {
            if (waits == kMaxWaits)
                throw std::runtime_error("no session: none of LTTng records kmes_bench:*");
            usleep(kWaitUs);
        }
    }

    void emit(std::uint64_t records) override {
        for (std::uint64_t i = 0; i < records; i++)
            lttng_ust_tracepoint(kmes_bench, record, record_.data(),
                                 static_cast<std::uint16_t>(record_.size()));
    }

  private:
    std::vector<std::uint8_t> record_;
};

std::unique_ptr<Peer> make(std::uint64_t payload_bytes) {
    return std::make_unique<Lttng>(payload_bytes);
}

}  // namespace
}  // namespace kmes::bench

kmes::bench::PeerInfo kmes_bench_peer() {
    return {"LTTng-UST, snapshot", "loss counts only without overwriting, no wake of a reader",
            kmes::bench::make};
}
