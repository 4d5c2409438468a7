// SPDX-License-Identifier: MIT
//
// Where what stands in a metadata page (5.1.6.1 to 5.1.6.3), and in the header of an event (event
// model). For those who look at accesses or write such bytes themselves; the core is not asked.
#ifndef KMES_CONFORMANCE_ORACLE_LAYOUT_H_
#define KMES_CONFORMANCE_ORACLE_LAYOUT_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace kmes::conformance {

inline constexpr std::uint64_t kGenerationOffset = 32;
inline constexpr std::uint64_t kWritePosOffset = 64;
inline constexpr std::uint64_t kTailPosOffset = 72;
inline constexpr std::uint64_t kFutexCounterOffset = 128;
inline constexpr std::uint64_t kNeedWakeOffset = 132;

inline constexpr std::uint64_t kEventSizeAt = 0;
inline constexpr std::uint64_t kHeaderSizeAt = 4;
inline constexpr std::uint64_t kSequenceAt = 16;
inline constexpr std::uint64_t kTypeLengthAt = 27;

struct Field {
    std::uint64_t offset;
    std::uint64_t bytes;
    std::string_view name;

    constexpr bool holds(std::uint64_t byte) const { return overlaps(byte, 1); }
    // Some of `size` bytes from `begin` on are of this field.
    constexpr bool overlaps(std::uint64_t begin, std::uint64_t size) const {
        return begin < offset + bytes && offset < begin + size;
    }
};

inline constexpr std::array kMetadataFields{
    Field{0, 8, "magic"},
    Field{8, 4, "version"},
    Field{12, 2, "cpu_id"},
    Field{14, 2, "reserved0"},
    Field{16, 8, "capacity"},
    Field{24, 8, "data_offset"},
    Field{kGenerationOffset, 8, "generation"},
    Field{40, 24, "reserved1"},
    Field{kWritePosOffset, 8, "write_pos"},
    Field{kTailPosOffset, 8, "tail_pos"},
    Field{80, 48, "reserved2"},
    Field{kFutexCounterOffset, 4, "futex_counter"},
    Field{kNeedWakeOffset, 1, "need_wake"},
    Field{133, 59, "reserved3"},
    Field{192, 3904, "unused bytes"},
};

// The field of the metadata page that begins there.
constexpr const Field& field_at(std::uint64_t offset) {
    return *std::ranges::find(kMetadataFields, offset, &Field::offset);
}

inline constexpr std::array kHeaderFields{
    Field{kEventSizeAt, 4, "event_size"},
    Field{kHeaderSizeAt, 4, "header_size"},
    Field{8, 8, "timestamp"},
    Field{kSequenceAt, 8, "sequence"},
    Field{24, 2, "cpu_id"},
    Field{26, 1, "origin_class"},
    Field{kTypeLengthAt, 2, "type_len"},
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_ORACLE_LAYOUT_H_
