// SPDX-License-Identifier: MIT
//
// The ring of perf, which overwrites if it is written backwards and mapped without write
// permission. A BPF program emits; each CPU has a ring, and each record its time.
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "bench/peers/bpf_program.h"

namespace kmes::bench {
namespace {

constexpr std::size_t kPageBytes = 4096;

class PerfRing {
  public:
    explicit PerfRing(int cpu)
        : event_(open(cpu), "perf_event_open"),
          mapping_(event_.get(), kPageBytes + kCapacityBytes, PROT_READ, 0) {}

    int fd() const { return event_.get(); }

    // A ring that is written backwards counts down.
    std::uint64_t written_bytes() const {
        const auto* page = static_cast<const struct perf_event_mmap_page*>(mapping_.at(0));

        return 0 - static_cast<std::uint64_t>(__atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE));
    }

  private:
    static int open(int cpu) {
        struct perf_event_attr attributes = {};

        attributes.type = PERF_TYPE_SOFTWARE;
        attributes.size = sizeof(attributes);
        attributes.config = PERF_COUNT_SW_BPF_OUTPUT;
        attributes.sample_period = 1;
        attributes.sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_TIME;
        attributes.write_backward = 1;
        attributes.watermark = 1;  // no wake for each record
        attributes.wakeup_watermark = kCapacityBytes;
        return static_cast<int>(
            syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC));
    }

    BpfFd event_;
    BpfMapping mapping_;
};

class Perf : public Peer {
  public:
    explicit Perf(std::uint64_t payload_bytes)
        : bytes_(record_bytes(payload_bytes)),
          record_(bytes_),
          cpus_(static_cast<unsigned>(sysconf(_SC_NPROCESSORS_CONF))),
          events_(bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "bench_perf", 4, 4, cpus_, nullptr),
                  "a map of events"),
          program_(call()) {
        for (unsigned cpu = 0; cpu < cpus_; cpu++) {
            rings_.push_back(std::make_unique<PerfRing>(static_cast<int>(cpu)));
            const int fd = rings_.back()->fd();

            must(bpf_map_update_elem(events_.get(), &cpu, &fd, BPF_ANY) == 0, "perf");
        }
    }

    void emit(std::uint64_t records) override {
        const std::uint64_t before = written_bytes();
        const std::uint64_t emitted = program_.run(records);

        must(written_bytes() - before >= emitted * bytes_, "perf lost records");
    }

  private:
    std::uint64_t written_bytes() const {
        std::uint64_t sum = 0;

        for (const auto& ring : rings_) sum += ring->written_bytes();
        return sum;
    }

    std::vector<struct bpf_insn> call() const {
        std::vector<struct bpf_insn> code = {move(BPF_REG_1, BPF_REG_8)};

        load_map(code, BPF_REG_2, BPF_PSEUDO_MAP_FD, events_.get());
        load_map(code, BPF_REG_4, BPF_PSEUDO_MAP_VALUE, record_.fd());
        // BPF_F_CURRENT_CPU, as an unsigned number.
        code.push_back(instruction(BPF_ALU | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, -1));
        code.push_back(set(BPF_REG_5, static_cast<std::int32_t>(bytes_)));
        code.push_back(instruction(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_perf_event_output));
        return code;
    }

    const std::uint64_t bytes_;
    BpfRecord record_;
    const unsigned cpus_;
    BpfFd events_;
    BpfProgram program_;
    std::vector<std::unique_ptr<PerfRing>> rings_;
};

std::unique_ptr<Peer> make(std::uint64_t payload_bytes) {
    return std::make_unique<Perf>(payload_bytes);
}

}  // namespace
}  // namespace kmes::bench

kmes::bench::PeerInfo kmes_bench_peer() {
    return {"perf, overwriting",
            "emitted in the kernel, loss counts only without overwriting, no wake",
            kmes::bench::make};
}
