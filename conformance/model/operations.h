// SPDX-License-Identifier: MIT
//
// The arguments of the operations of a History and of its log: the beginning of a run, options of
// emissions and swaps, possible faults of a buffer. Plain data.
#ifndef KMES_CONFORMANCE_MODEL_OPERATIONS_H_
#define KMES_CONFORMANCE_MODEL_OPERATIONS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace kmes::conformance {

inline constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

using BufferIndex = std::size_t;

// The beginning of a run. Capacities are powers of two from 64 bytes on. (The minimum of 64 KiB is
// a rule for the configuration.)
struct HistorySettings {
    std::uint32_t cpus = 1;
    std::uint64_t capacity_bytes = 65536;
    std::vector<std::uint64_t> start_positions;  // one a CPU; a missing one is 0
    std::uint64_t first_sequence = 1;            // E25: a restarted producer continues its numbers
    std::uint64_t first_generation = 1;          // 5.1.6.1
    std::uint32_t first_futex_counter = 0;
    // MaxEventSize; refuses call-style emissions only.
    std::uint64_t maximum_call_event_bytes = kNever;
    // If set, the run begins in the boot phase (5.1.2). Each CPU then has a boot buffer of this
    // capacity, which no consumer can attach. hand_over() makes the first ring, of
    // `capacity_bytes`.
    std::optional<std::uint64_t> boot_capacity_bytes;
};

enum class EmitStyle : std::uint8_t {
    kernel,  // over 50 % of the capacity: dropped, its sequence number is used (5.1.7 step 5)
    call,    // over 50 % or over MaxEventSize: refused, no sequence number is used (event model)
};

// The part of an unpublished event that is in the ring: of a reservation, or of one event of a
// pending batch. The other bytes are still the old ones.
enum class Written : std::uint8_t {
    whole,
    half,     // the header, and the first half of the payload
    header,   // up to the beginning of the payload
    nothing,  // the room is made, but no byte is written
};

// The part of a pending batch that is in the ring. The events before `event` (counted from 0) are
// whole, and that one is as `written` says. Nothing of the later events is written, unless
// `written` is whole: then all are.
struct BatchWritten {
    Written written = Written::whole;
    std::uint32_t event = 0;
};

// The names of the values in a file, in the order of Written.
inline constexpr std::string_view kWrittenNames[] = {"whole", "half", "header", "nothing"};

// Returns how many bytes of the event are in the ring.
std::uint64_t written_bytes(Written written, std::uint64_t header_bytes,
                            std::uint64_t payload_bytes);

// The rule for the positions of a swap's new buffer (E11).
enum class PositionRule : std::uint8_t {
    keep,     // an event has the same position in both buffers
    tail_at,  // tail_pos of the new buffer is `position`
    shift,    // every position moves up by `position` (modulo 2^64)
};

struct SwapSpec {
    std::uint64_t capacity_bytes = 65536;
    PositionRule rule = PositionRule::keep;
    std::uint64_t position = 0;
};

// A fault that the driver puts into a buffer's static fields or content.
enum class BufferFault : std::uint8_t {
    none,
    magic,
    version,
    capacity,           // not a power of two, or does not fit the mapping
    data_offset,        // other than 4096
    corrupt_content,    // sizes or positions that no producer writes: may be refused (level robust)
    reserved_not_zero,  // no reason to refuse the buffer
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_OPERATIONS_H_
