// SPDX-License-Identifier: MIT
//
// Bytes that no producer writes, put into buffers by the suite (level robust). The judge tolerates
// each forged CPU: the consumer may refuse it or continue with the whole events.
#ifndef KMES_CONFORMANCE_CASES_FORGE_H_
#define KMES_CONFORMANCE_CASES_FORGE_H_

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/stage/stage.h"

namespace kmes::conformance {

template <typename Word>
std::vector<std::uint8_t> bytes_of(Word word) {
    std::vector<std::uint8_t> bytes(sizeof(word));
    std::memcpy(bytes.data(), &word, sizeof(word));
    return bytes;
}

// The lengths in an event's header.
struct ForgedHeader {
    std::uint32_t event_size;
    std::uint32_t header_size;
    std::uint16_t type_len;
};

// The current buffer of the CPU, as it would be without the forged bytes.
const Buffer& current_buffer(Stage& stage, std::uint32_t cpu);

// Each function writes to the current buffer of the CPU, or to the given buffer.
void forge_header(Stage& stage, std::uint32_t cpu, std::uint64_t position,
                  const ForgedHeader& forged);
void forge_header_in(Stage& stage, BufferIndex buffer, std::uint64_t position,
                     const ForgedHeader& forged);
void forge_sequence(Stage& stage, std::uint32_t cpu, std::uint64_t position,
                    std::uint64_t sequence);
void forge_positions(Stage& stage, std::uint32_t cpu, std::uint64_t write_pos,
                     std::uint64_t tail_pos);
void forge_field(Stage& stage, std::uint32_t cpu, std::uint64_t offset,
                 const std::vector<std::uint8_t>& bytes);

// Bytes of a metadata page, and their name in messages.
struct ForgedField {
    BufferFault fault;
    std::uint64_t offset;
    std::vector<std::uint8_t> bytes;
    std::string what;
};
// Forges the field, and records the buffer's fault for the judge.
void break_field(Stage& stage, std::uint32_t cpu, const ForgedField& field);
inline void break_field(Stage& stage, std::uint32_t cpu, BufferFault fault, std::uint64_t offset,
                        const std::vector<std::uint8_t>& bytes, const std::string& what) {
    break_field(stage, cpu, ForgedField{fault, offset, bytes, what});
}
// Waits until the consumer has refused the CPU because of `what`.
void wait_refused(Stage& stage, std::uint32_t cpu, const std::string& what);

// From now on the judge ignores deliveries of this CPU, and accepts a refusal.
void tolerate(Stage& stage, std::uint32_t cpu, std::string_view detail);

enum class Moment {
    before_the_attach,
    while_it_sleeps,  // it finds the forged bytes at its next iteration
    after_a_change,   // as while_it_sleeps, on the second buffer of the CPU
};

// Puts an image into the ring of one CPU, and makes the judge tolerate that CPU.
using Forge = std::function<void(Stage& stage, std::uint32_t cpu)>;

// A case with many CPUs. It calls `forge` for each of the first `cpus` CPUs, and leaves the buffers
// of two more CPUs valid. The testee must drain these two, whatever happens to the others. In the
// end it has refused each forged CPU, or sleeps with it.
struct Forged {
    std::size_t cpus;
    Moment moment;
    Forge forge;
    std::uint64_t capacity_bytes = 0;  // 0: that of the command line

    CaseOutcome operator()(Stage& stage) const;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_CASES_FORGE_H_
