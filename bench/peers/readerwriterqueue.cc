// SPDX-License-Identifier: MIT
//
// moodycamel::ReaderWriterQueue of slots.
#include <readerwriterqueue/readerwriterqueue.h>

#include "bench/peers/peer.h"

namespace kmes::bench {
namespace {

template <std::uint64_t kPayload>
class ReaderWriter : public Peer {
  public:
    void emit(std::uint64_t records) override {
        for (std::uint64_t i = 0; i < records; i++) {
            while (!queue_.try_enqueue(record_)) queue_.pop();
        }
    }

  private:
    Slot<kPayload> record_ = {};
    moodycamel::ReaderWriterQueue<Slot<kPayload>> queue_{slots<kPayload>()};
};

}  // namespace
}  // namespace kmes::bench

kmes::bench::PeerInfo kmes_bench_peer() {
    return {"readerwriterqueue",
            "fixed slots, one consumer, no overwriting, no time, no full fence, no wake",
            kmes::bench::make_by_size<kmes::bench::ReaderWriter>};
}
