// SPDX-License-Identifier: MIT
//
// The offsets of the fields of the metadata page (5.1.6.1 to 5.1.6.3) and of an event's header
// (event model). For code that checks accesses, or that writes such bytes itself. Does not use the
// core.
#ifndef KMES_CONFORMANCE_ORACLE_LAYOUT_H_
#define KMES_CONFORMANCE_ORACLE_LAYOUT_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "conformance/model/layout.h"

namespace kmes::conformance {

inline constexpr std::uint64_t kGenerationOffset = 32;
inline constexpr std::uint64_t kWritePosOffset = 64;
inline constexpr std::uint64_t kTailPosOffset = 72;
inline constexpr std::uint64_t kFutexCounterOffset = 128;
// The offset in this process's form of the layout (docs/layouts.md). (These are references to
// values that a constructor function sets before any other initialisation. clang gives no order to
// the initialisation of inline variables, and tables of cases use these numbers.)
extern const std::uint64_t& kNeedWakeOffset;

inline constexpr std::uint64_t kEventSizeAt = 0;
inline constexpr std::uint64_t kHeaderSizeAt = 4;
inline constexpr std::uint64_t kSequenceAt = 16;
extern const std::uint64_t& kTypeLengthAt;

struct Field {
    std::uint64_t offset;
    std::uint64_t bytes;
    std::string_view name;

    constexpr bool holds(std::uint64_t byte) const { return overlaps(byte, 1); }
    // Whether some of the `size` bytes from `begin` on belong to this field.
    constexpr bool overlaps(std::uint64_t begin, std::uint64_t size) const {
        return begin < offset + bytes && offset < begin + size;
    }
};

// All fields of the metadata, in their order.
const std::vector<Field>& metadata_fields();

// The field of the metadata that begins there.
const Field& field_at(std::uint64_t offset);

// The fields of an event's header before the type, in their order.
const std::vector<Field>& header_fields();

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_ORACLE_LAYOUT_H_
