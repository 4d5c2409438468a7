// SPDX-License-Identifier: MIT
//
// The reader of libbpf for the kernel's BPF ring buffer, with the default wakes of the kernel. A
// BPF program emits while there is room.
#include <bpf/libbpf.h>

#include "bench/peers/bpf_program.h"
#include "bench/peers/consumer_peer.h"

namespace kmes::bench {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::uint64_t kHeaderBytes = 8;
constexpr std::uint64_t kRingBytes = 64 << 20;
constexpr int kPollMs = 100;

class LibbpfReader : public ConsumerPeer {
  public:
    explicit LibbpfReader(std::uint64_t bytes)
        : slot_bytes_((bytes + kHeaderBytes + 7) / 8 * 8),
          record_(bytes),
          ring_(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "bench_ring", 0, 0, kRingBytes, nullptr),
                "a ring buffer"),
          consumer_(ring_.get(), kPageBytes, PROT_READ | PROT_WRITE, 0),
          producer_(ring_.get(), kPageBytes, PROT_READ, kPageBytes),
          program_(call(bytes)) {}

    void emit() override {
        for (;;) {
            const std::uint64_t used = position(producer_) - position(consumer_);
            const std::uint64_t runs = (kRingBytes - used) / slot_bytes_ / kBpfRecords;

            if (runs > 0) program_.run(std::min<std::uint64_t>(runs, 64) * kBpfRecords);
        }
    }

    void consume(std::uint64_t records) override {
        const auto count = [](void* context, void*, std::size_t) {
            return --*static_cast<std::uint64_t*>(context) == 0 ? -ECANCELED : 0;
        };
        struct ring_buffer* reader = ring_buffer__new(ring_.get(), count, &records, nullptr);

        must(reader != nullptr, "ring_buffer__new");
        while (records > 0) {
            const int read = ring_buffer__poll(reader, kPollMs);

            must(read >= 0 || read == -ECANCELED || read == -EINTR, "ring_buffer__poll");
        }
        ring_buffer__free(reader);
    }

  private:
    static std::uint64_t position(const BpfMapping& page) {
        return __atomic_load_n(static_cast<std::uint64_t*>(page.at(0)), __ATOMIC_ACQUIRE);
    }

    std::vector<struct bpf_insn> call(std::uint64_t bytes) const {
        std::vector<struct bpf_insn> code;

        load_map(code, BPF_REG_1, BPF_PSEUDO_MAP_FD, ring_.get());
        load_map(code, BPF_REG_2, BPF_PSEUDO_MAP_VALUE, record_.fd());
        code.push_back(set(BPF_REG_3, static_cast<std::int32_t>(bytes)));
        code.push_back(set(BPF_REG_4, 0));
        code.push_back(instruction(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ringbuf_output));
        return code;
    }

    const std::uint64_t slot_bytes_;
    BpfRecord record_;
    BpfFd ring_;
    BpfMapping consumer_;
    BpfMapping producer_;
    BpfProgram program_;
};

std::unique_ptr<ConsumerPeer> make(std::uint64_t record_bytes) {
    return std::make_unique<LibbpfReader>(record_bytes);
}

}  // namespace
}  // namespace kmes::bench

kmes::bench::ConsumerPeerInfo kmes_bench_consumer_peer() {
    return {"libbpf, BPF ring buffer", kmes::bench::make};
}
