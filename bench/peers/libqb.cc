// SPDX-License-Identifier: MIT
//
// libqb's ring buffer in overwrite mode, without its semaphore.
#include <qb/qbrb.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "bench/peers/peer.h"

namespace kmes::bench {
namespace {

class Qb : public Peer {
  public:
    explicit Qb(std::uint64_t payload_bytes) : record_(record_bytes(payload_bytes)) {
        const std::string name =
            "kmes-bench-" + std::to_string(getpid()) + "-" + std::to_string(payload_bytes);

        ring_ = qb_rb_open(name.c_str(), kCapacityBytes,
                           QB_RB_FLAG_CREATE | QB_RB_FLAG_OVERWRITE | QB_RB_FLAG_NO_SEMAPHORE, 0);
        if (!ring_) throw std::runtime_error("qb_rb_open failed");
    }
    ~Qb() override { qb_rb_close(ring_); }
    Qb(const Qb&) = delete;
    Qb& operator=(const Qb&) = delete;

    void emit(std::uint64_t records) override {
        for (std::uint64_t i = 0; i < records; i++)
            must(qb_rb_chunk_write(ring_, record_.data(), record_.size()) >= 0, "libqb");
    }

  private:
    std::vector<std::byte> record_;
    qb_ringbuffer_t* ring_;
};

std::unique_ptr<Peer> make(std::uint64_t payload_bytes) {
    return std::make_unique<Qb>(payload_bytes);
}

}  // namespace
}  // namespace kmes::bench

kmes::bench::PeerInfo kmes_bench_peer() {
    return {"libqb, overwriting", "no loss counts, no time, no wake", kmes::bench::make};
}
