// SPDX-License-Identifier: MIT
//
// Bytes that no producer writes, put into buffers by the suite: malformed pages and forged events,
// as steps of a row (row.h). Steps act on the current buffer of the current CPU.
#ifndef KMES_CONFORMANCE_PLAY_FORGED_IMAGE_H_
#define KMES_CONFORMANCE_PLAY_FORGED_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/play/row.h"
#include "conformance/play/steps.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {

template <typename Word>
std::vector<std::uint8_t> bytes_of(Word word) {
    std::vector<std::uint8_t> bytes(sizeof(word));
    std::memcpy(bytes.data(), &word, sizeof(word));
    return bytes;
}

// -- Pages that the consumer must refuse -----------------------------------------------------

// Bytes of a metadata page, and their name in messages.
struct ForgedField {
    BufferFault fault;
    std::uint64_t offset;
    std::vector<std::uint8_t> bytes;
    std::string what;
};
ForgedField magic_field(std::uint64_t at, std::uint8_t byte, std::string_view whole);
ForgedField version_field(std::uint32_t version);
// `name`: the number in messages; empty: its digits.
ForgedField capacity_field(std::uint64_t bytes, std::string_view name = {});
ForgedField data_offset_field(std::uint64_t bytes, std::string_view name = {});

// Forges the field, and records the buffer's fault for the judge.
void break_field(Stage& stage, std::uint32_t cpu, const ForgedField& field);

// The same as a step.
struct BreakField {
    ForgedField field;

    void operator()(Stage& stage, std::uint32_t cpu) const { break_field(stage, cpu, field); }
};
// The same for a capacity that may depend on the buffer's own.
struct BreakCapacity {
    Amount says;

    void operator()(Stage& stage, std::uint32_t cpu) const;
};
// Gives every page this capacity, and lets kmes_attach return it.
struct SayCapacityEverywhere {
    Amount says;

    void operator()(Stage& stage) const;
};
// Breaks one of the fields on each CPU from CPU 0 on.
Step break_fields(const std::vector<ForgedField>& fields);

// Waits until the consumer has refused the CPU.
struct Refused {
    void operator()(Stage& stage, std::uint32_t cpu) const;
};

// -- Bytes that the consumer may refuse or ignore --------------------------------------------

// From now on the judge ignores deliveries of this CPU, and accepts a refusal. `what`: the forged
// bytes, for messages.
struct Tolerate {
    std::string what;

    void operator()(Stage& stage, std::uint32_t cpu) const;
};

// Bytes at an offset of an event or of a metadata page.
struct BytesAt {
    std::uint64_t offset;
    std::vector<std::uint8_t> bytes;
};

// Overwrites bytes of the metadata page. Records no fault.
struct ForgePage {
    std::vector<BytesAt> bytes;

    void operator()(Stage& stage, std::uint32_t cpu) const;
};

// Sets all reserved bytes of the page, except those that a 32-bit store to need_wake clears. The
// consumer must ignore them.
struct SetReservedBytes {
    void operator()(Stage& stage, std::uint32_t cpu) const;
};

// A position of the buffer, plus a number of bytes.
struct ForgedPosition {
    enum class Of { nothing, write_pos, tail_pos };

    Of of = Of::nothing;
    Amount ahead = 0;
};
inline ForgedPosition write_pos_and(Amount ahead) {
    return {ForgedPosition::Of::write_pos, ahead};
}
inline ForgedPosition tail_pos_and(Amount ahead) {
    return {ForgedPosition::Of::tail_pos, ahead};
}
inline ForgedPosition position_at(std::uint64_t position) {
    return {ForgedPosition::Of::nothing, position};
}
struct ForgePositions {
    ForgedPosition write_pos = write_pos_and(0);
    ForgedPosition tail_pos = tail_pos_and(0);

    void operator()(Stage& stage, std::uint32_t cpu) const;
};

// Overwrites bytes of an event.
struct ForgeEvent {
    std::vector<BytesAt> bytes;
    std::size_t back = 0;       // 0: the newest event of the buffer; 1: the one before it
    std::size_t swaps_ago = 0;  // 0: the current buffer; 1: the one before it

    void operator()(Stage& stage, std::uint32_t cpu) const;
};
// The lengths in an event's header.
struct EventLengths {
    std::uint32_t event_size;
    std::uint32_t header_size;
    std::uint16_t type_len;
};
std::vector<BytesAt> lengths(const EventLengths& forged);
std::vector<BytesAt> sequence_number(std::uint64_t forged);

// -- Rows of images --------------------------------------------------------------------------

// The content of one CPU's ring, and its name in messages.
struct Image {
    std::string what;
    Steps forge;
    Steps before = {};  // before the judge tolerates the CPU
};
// An image for each of the lengths. `forge` makes its steps from the forged bytes.
std::vector<Image> images_of(const std::vector<EventLengths>& forged,
                             const std::function<Steps(const std::vector<BytesAt>&)>& forge,
                             const Steps& before = {});

enum class Moment {
    before_the_attach,
    while_it_sleeps,  // the consumer finds the forged bytes at its next iteration
    after_a_change,   // as while_it_sleeps, on the second buffer of the CPU
};

// A row that puts each image into the ring of its own CPU, and leaves the buffers of two more CPUs
// valid. The testee must drain these two, whatever happens to the others. In the end it has refused
// each forged CPU, or sleeps with it.
struct Images {
    std::vector<Image> images;
    Moment moment;
    Amount capacity = usual();
    Steps before_start = {};
};
Row row_of(const CaseText& text, const Images& images);

// Fails a consumer that walks round the old events of a ring for ever: it uses far more processor
// time than the case needs, or delivers far more events than there are.
struct FailEndlessWalk {
    std::string_view clause;
    std::string_view message;

    void operator()(Stage& stage) const;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_FORGED_IMAGE_H_
