// SPDX-License-Identifier: MIT
//
// See layout.h. The numbers that event.h declares are here too: one place has all of a form.
#include "conformance/oracle/layout.h"

#include <algorithm>

#include "conformance/oracle/event.h"

namespace kmes::conformance {
namespace {

struct Numbers {
    std::uint64_t metadata_bytes;
    std::uint64_t need_wake_offset;
    std::uint64_t header_bytes;
    std::uint64_t least_event_bytes;
    std::uint64_t type_length_at;
};
constinit Numbers numbers{};

// In forms A to D. 101: before every other initialisation.
[[gnu::constructor(101)]] void set_numbers() {
    numbers.metadata_bytes = of_layout({4096, 8192, 8192, 8192});
    numbers.need_wake_offset = of_layout({132, 4096, 4096, 4096});
    numbers.header_bytes = of_layout({29, 29, 77, 77});
    numbers.least_event_bytes = numbers.header_bytes + 1;
    numbers.type_length_at = of_layout({27, 27, 75, 75});
}

std::vector<Field> make_metadata_fields() {
    std::vector<Field> fields{
        {0, 8, "magic"},
        {8, 4, "version"},
        {12, 2, "cpu_id"},
        {14, 2, "reserved0"},
        {16, 8, "capacity"},
        {24, 8, "data_offset"},
        {kGenerationOffset, 8, "generation"},
        {40, 24, "reserved1"},
        {kWritePosOffset, 8, "write_pos"},
        {kTailPosOffset, 8, "tail_pos"},
        {80, 48, "reserved2"},
        {kFutexCounterOffset, 4, "futex_counter"},
    };
    if (kNeedWakeOffset == 132) {
        fields.insert(fields.end(), {{kNeedWakeOffset, 1, "need_wake"},
                                     {133, 59, "reserved3"},
                                     {192, 3904, "unused bytes"}});
    } else {
        fields.insert(fields.end(), {{132, 60, "reserved3"},
                                     {192, 3904, "unused bytes"},
                                     {kNeedWakeOffset, 1, "need_wake"},
                                     {4097, 4095, "reserved4"}});
    }
    return fields;
}

std::vector<Field> make_header_fields() {
    std::vector<Field> fields{
        {kEventSizeAt, 4, "event_size"},
        {kHeaderSizeAt, 4, "header_size"},
        {8, 8, "timestamp"},
        {kSequenceAt, 8, "sequence"},
        {24, 2, "cpu_id"},
        {26, 1, "origin_class"},
    };
    if (kTypeLengthAt != 27) {
        fields.insert(fields.end(), {{27, 16, "effective_token_guid"},
                                     {43, 16, "true_token_guid"},
                                     {59, 16, "process_guid"}});
    }
    fields.push_back({kTypeLengthAt, 2, "type_len"});
    return fields;
}

}  // namespace

constinit const std::uint64_t& kMetadataBytes = numbers.metadata_bytes;
constinit const std::uint64_t& kNeedWakeOffset = numbers.need_wake_offset;
constinit const std::uint64_t& kHeaderBytesBeforeType = numbers.header_bytes;
constinit const std::uint64_t& kLeastEventBytes = numbers.least_event_bytes;
constinit const std::uint64_t& kTypeLengthAt = numbers.type_length_at;

const std::vector<Field>& metadata_fields() {
    static const std::vector<Field> kFields = make_metadata_fields();
    return kFields;
}

const Field& field_at(std::uint64_t offset) {
    return *std::ranges::find(metadata_fields(), offset, &Field::offset);
}

const std::vector<Field>& header_fields() {
    static const std::vector<Field> kFields = make_header_fields();
    return kFields;
}

}  // namespace kmes::conformance
