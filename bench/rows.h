// SPDX-License-Identifier: MIT
//
// The groups of figures. Each group makes tables for one value of its column: a payload size, a
// number of rings, a capacity. The figures of a table are divided by that of its first variant.
#ifndef KMES_BENCH_ROWS_H
#define KMES_BENCH_ROWS_H

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/sampling.h"
#include "kmes/abi.h"
#include "kmes/user/platform.h"

namespace kmes::bench {

inline constexpr std::uint64_t kCapacityBytes = 4 << 20;
inline constexpr std::uint64_t kBatchEvents = 64;
inline constexpr std::uint64_t kPayloadBytes[] = {16, 64, 256, 1024, 4096};
inline constexpr std::string_view kType = "bench.record";

constexpr std::uint64_t record_bytes(std::uint64_t payload_bytes) {
    return KMES_EVENT_FIXED_BYTES + kType.size() + payload_bytes;
}

// Ends the program if a precondition of a measurement fails.
inline void must(bool is_so, const char* what) {
    if (!is_so) throw std::runtime_error(what);
}

struct Table {
    std::string name;
    std::vector<Variant> variants;
    std::string unit = "ns each";
};

// The amount of work for one sample.
struct Effort {
    std::uint64_t warm_up_laps = 4;
    std::uint64_t sample_events = 16384;
    Sampling sampling;
    Clock clock;                          // of the producers; none: theirs
    std::vector<std::string> peers = {};  // shared objects (peers/peer.h)
};

std::vector<Table> producer_tables(std::uint64_t payload_bytes, const Effort& effort);
std::vector<Table> reader_tables(std::uint64_t payload_bytes, const Effort& effort);
std::vector<Table> pair_tables(std::uint64_t payload_bytes, const Effort& effort);
std::vector<Table> wake_tables(std::uint64_t payload_bytes, const Effort& effort);
std::vector<Table> mixed_tables(std::uint64_t mean_payload_bytes, const Effort& effort);
std::vector<Table> rings_tables(std::uint64_t rings, const Effort& effort);
std::vector<Table> capacity_tables(std::uint64_t capacity_bytes, const Effort& effort);
std::vector<Table> resize_tables(std::uint64_t capacity_bytes, const Effort& effort);
std::vector<Table> peers_tables(std::uint64_t payload_bytes, const Effort& effort);

// Returns one line: the peer's name, and what it leaves out.
std::string peer_note(const std::string& path);

// Returns one line: the peer's name, and why this machine cannot run it. Empty if it can.
std::string peer_fault(const std::string& path);

}  // namespace kmes::bench

#endif
