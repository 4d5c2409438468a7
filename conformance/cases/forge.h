// SPDX-License-Identifier: MIT
//
// Bytes that no producer writes, put into buffers by the suite (level robust). Each forged CPU is
// tolerated: the consumer may refuse it or continue with the whole events.
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

// Of the CPU, as it is without what is forged.
const Buffer& present_buffer(Stage& stage, std::uint32_t cpu);

// At `position` of the present buffer of the CPU, or of any buffer.
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

// Bytes of a metadata page, and what a message calls them.
struct ForgedField {
    BufferFault fault;
    std::uint64_t offset;
    std::vector<std::uint8_t> bytes;
    std::string what;
};
// Forges the field, and the judge knows the fault of that buffer.
void break_field(Stage& stage, std::uint32_t cpu, const ForgedField& field);
inline void break_field(Stage& stage, std::uint32_t cpu, BufferFault fault, std::uint64_t offset,
                        const std::vector<std::uint8_t>& bytes, const std::string& what) {
    break_field(stage, cpu, ForgedField{fault, offset, bytes, what});
}
// Until the consumer has refused the CPU, because of `what`.
void wait_refused(Stage& stage, std::uint32_t cpu, const std::string& what);

// From now on nothing that this CPU delivers is judged, and a refusal is right.
void tolerate(Stage& stage, std::uint32_t cpu, std::string_view detail);

enum class Moment {
    before_the_attach,
    while_it_runs,   // it sleeps; what is forged is there when it moves again
    after_a_change,  // the same, on the buffer behind its first one
};

// Puts an image into the ring of one CPU, which it tolerates.
using Forge = std::function<void(Stage& stage, std::uint32_t cpu)>;

// A case of many CPUs: `forge` is called for each of the first `cpus`, two more are sound. The
// sound ones must be drained whatever becomes of the others; in the end the testee has refused each
// forged CPU, or rests with it.
struct Forged {
    std::size_t cpus;
    Moment moment;
    Forge forge;
    std::uint64_t capacity_bytes = 0;  // 0: as the command line says

    CaseOutcome operator()(Stage& stage) const;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_CASES_FORGE_H_
