// SPDX-License-Identifier: MIT
//
// A BPF program that emits the same record kBpfRecords times, for the peers that are rings of the
// kernel. BPF_PROG_TEST_RUN executes it, because a process cannot write to these rings itself.
#ifndef KMES_BENCH_PEERS_BPF_PROGRAM_H
#define KMES_BENCH_PEERS_BPF_PROGRAM_H

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "bench/peers/peer.h"

namespace kmes::bench {

inline constexpr std::uint64_t kBpfRecords = 64;  // of one run of the program

// A descriptor, or the reason why there is none.
class BpfFd {
  public:
    BpfFd(int fd, const char* what) : fd_(fd) {
        if (fd_ >= 0) return;
        // Libbpf 1 sets errno, as the system calls do.
        const bool is_refused = errno == EPERM || errno == EACCES;

        throw std::runtime_error(std::string(is_refused ? "not permitted: " : "not supported: ") +
                                 what + ": " + std::strerror(errno));
    }
    ~BpfFd() { close(fd_); }
    BpfFd(const BpfFd&) = delete;
    BpfFd& operator=(const BpfFd&) = delete;

    int get() const { return fd_; }

  private:
    const int fd_;
};

// A mapping that the destructor unmaps.
class BpfMapping {
  public:
    BpfMapping(int fd, std::size_t bytes, int protection, off_t offset)
        : bytes_(bytes), base_(mmap(nullptr, bytes, protection, MAP_SHARED, fd, offset)) {
        if (base_ == MAP_FAILED)
            throw std::runtime_error(std::string("not permitted: mmap: ") + std::strerror(errno));
    }
    ~BpfMapping() { munmap(base_, bytes_); }
    BpfMapping(const BpfMapping&) = delete;
    BpfMapping& operator=(const BpfMapping&) = delete;

    void* at(std::size_t offset) const { return static_cast<std::byte*>(base_) + offset; }

  private:
    const std::size_t bytes_;
    void* const base_;
};

constexpr struct bpf_insn instruction(std::uint8_t code, std::uint8_t to, std::uint8_t from,
                                      std::int16_t offset, std::int32_t value) {
    struct bpf_insn made = {};

    made.code = code;
    made.dst_reg = to & 15;
    made.src_reg = from & 15;
    made.off = offset;
    made.imm = value;
    return made;
}

// Appends the instruction that loads a map, or the address of its first value, into a register.
inline void load_map(std::vector<struct bpf_insn>& code, std::uint8_t to, std::uint8_t kind,
                     int fd) {
    code.push_back(instruction(BPF_LD | BPF_DW | BPF_IMM, to, kind, 0, fd));
    code.push_back(instruction(0, 0, 0, 0, 0));
}

constexpr struct bpf_insn move(std::uint8_t to, std::uint8_t from) {
    return instruction(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

constexpr struct bpf_insn set(std::uint8_t to, std::int32_t value) {
    return instruction(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value);
}

// The record, in a map that the program reads.
class BpfRecord {
  public:
    explicit BpfRecord(std::uint64_t bytes)
        : map_(bpf_map_create(BPF_MAP_TYPE_ARRAY, "bench_record", 4, static_cast<__u32>(bytes), 1,
                              nullptr),
               "a map of the record") {}

    int fd() const { return map_.get(); }

  private:
    BpfFd map_;
};

// `call` puts the arguments into r1 to r5, from the context in r8, and calls the helper.
class BpfProgram {
  public:
    explicit BpfProgram(const std::vector<struct bpf_insn>& call)
        : program_(load(call), "the program") {}

    // Emits at least `records` records in one call. Returns their number.
    std::uint64_t run(std::uint64_t records) {
        const std::uint64_t repeats = (records + kBpfRecords - 1) / kBpfRecords;
        LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet_, .data_size_in = sizeof(packet_),
                    .repeat = static_cast<int>(repeats));

        must(bpf_prog_test_run_opts(program_.get(), &options) == 0 && options.retval == 0,
             "the BPF program emits no record");
        return repeats * kBpfRecords;
    }

  private:
    static int load(const std::vector<struct bpf_insn>& call) {
        std::vector<struct bpf_insn> code = {move(BPF_REG_8, BPF_REG_1), set(BPF_REG_6, 0),
                                             set(BPF_REG_7, 0)};
        const auto top = code.size();

        code.insert(code.end(), call.begin(), call.end());
        code.push_back(instruction(BPF_ALU64 | BPF_OR | BPF_X, BPF_REG_7, BPF_REG_0, 0, 0));
        code.push_back(instruction(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_6, 0, 0, 1));
        const auto back = static_cast<std::int16_t>(top) - static_cast<std::int16_t>(code.size());
        code.push_back(instruction(BPF_JMP | BPF_JLT | BPF_K, BPF_REG_6, 0,
                                   static_cast<std::int16_t>(back - 1), kBpfRecords));
        code.push_back(move(BPF_REG_0, BPF_REG_7));
        code.push_back(instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
        return bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "bench_emit", "Dual MIT/GPL", code.data(),
                             code.size(), nullptr);
    }

    BpfFd program_;
    char packet_[64] = {};
};

}  // namespace kmes::bench

#endif
