// SPDX-License-Identifier: MIT
//
// The kernel's BPF ring buffer, without wake-ups. A BPF program emits, and this process removes the
// oldest records if the buffer is full.
#include "bench/peers/bpf_program.h"

namespace kmes::bench {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::uint64_t kHeaderBytes = 8;

class BpfRing : public Peer {
  public:
    explicit BpfRing(std::uint64_t payload_bytes)
        : slot_bytes_((record_bytes(payload_bytes) + kHeaderBytes + 7) / 8 * 8),
          record_(record_bytes(payload_bytes)),
          ring_(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "bench_ring", 0, 0, kCapacityBytes, nullptr),
                "a ring buffer"),
          consumer_(ring_.get(), kPageBytes, PROT_READ | PROT_WRITE, 0),
          producer_(ring_.get(), kPageBytes, PROT_READ, kPageBytes),
          program_(call(record_bytes(payload_bytes))) {}

    void emit(std::uint64_t records) override {
        const std::uint64_t most = kCapacityBytes / slot_bytes_ / kBpfRecords * kBpfRecords;

        for (std::uint64_t done = 0; done < records;) {
            const std::uint64_t before = position(producer_);
            const std::uint64_t emitted = program_.run(std::min(records - done, most));

            must(position(producer_) - before == emitted * slot_bytes_,
                 "the BPF ring buffer lost records");
            __atomic_store_n(static_cast<std::uint64_t*>(consumer_.at(0)), position(producer_),
                             __ATOMIC_RELEASE);
            done += emitted;
        }
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
        code.push_back(set(BPF_REG_4, BPF_RB_NO_WAKEUP));
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

std::unique_ptr<Peer> make(std::uint64_t payload_bytes) {
    return std::make_unique<BpfRing>(payload_bytes);
}

}  // namespace
}  // namespace kmes::bench

kmes::bench::PeerInfo kmes_bench_peer() {
    return {"BPF ring buffer",
            "emitted in the kernel, one consumer, no overwriting, no time, no wake",
            kmes::bench::make};
}
