// SPDX-License-Identifier: MIT
//
// The words in which operations are told to the History and kept in its log: how a run begins, what
// an emission or a swap may ask for, what can be wrong with a buffer. Plain data.
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

// How the run begins. Capacities: powers of two (any from 64 bytes on; the rule of 64 KiB is of the
// configuration).
struct HistorySettings {
    std::uint32_t cpus = 1;
    std::uint64_t capacity_bytes = 65536;
    std::vector<std::uint64_t> start_positions;  // one a CPU; what is missing is 0
    std::uint64_t first_sequence = 1;            // E25: a producer that restarted goes on
    std::uint64_t first_generation = 1;          // 5.1.6.1
    std::uint32_t first_futex_counter = 0;
    std::uint64_t maximum_call_event_bytes =
        kNever;  // MaxEventSize; refuses call-style emissions only
    // With a value the run begins in the boot phase (5.1.2) and each CPU has a boot buffer of this
    // capacity that nobody can attach; hand_over() makes the first ring, of `capacity_bytes`.
    std::optional<std::uint64_t> boot_capacity_bytes;
};

enum class EmitStyle : std::uint8_t {
    kernel,  // over 50 % of the capacity: dropped, its sequence number is used (5.1.7 step 5)
    call,    // over 50 % or over MaxEventSize: refused, no sequence number is used (event model)
};

// How much of an event in flight is in the ring: of a reservation, or of one event of a pending
// batch. What is not written shows the bytes that were there before.
enum class Written : std::uint8_t {
    whole,
    half,     // the header, and the first half of the payload
    header,   // up to the begin of the payload
    nothing,  // room is made, and that is all
};

// What is in flight of a pending batch: the events before `event` (counted from 0) are whole, that
// one is `written`, and nothing of the later ones is, unless it is whole: then all are.
struct BatchWritten {
    Written written = Written::whole;
    std::uint32_t event = 0;
};

// Their names in a file; in the order of Written.
inline constexpr std::string_view kWrittenNames[] = {"whole", "half", "header", "nothing"};

// So many bytes of an event are in the ring.
std::uint64_t written_bytes(Written written, std::uint64_t header_bytes,
                            std::uint64_t payload_bytes);

// Where the positions of a new buffer begin (E11).
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

// What is wrong with a buffer's static fields or content, set by the driver on purpose.
enum class BufferFault : std::uint8_t {
    none,
    magic,
    version,
    capacity,           // no power of two, or does not fit the mapping
    data_offset,        // other than 4096
    corrupt_content,    // sizes or positions that no producer writes: may be refused (level robust)
    reserved_not_zero,  // no reason to refuse
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_OPERATIONS_H_
