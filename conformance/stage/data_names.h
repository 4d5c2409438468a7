// SPDX-License-Identifier: MIT
//
// What bytes of a mapping are: fields of the metadata page, and of the event that is there; and
// where an event would be with another capacity. Knows no process.
#ifndef KMES_CONFORMANCE_STAGE_DATA_NAMES_H_
#define KMES_CONFORMANCE_STAGE_DATA_NAMES_H_

#include <cstdint>
#include <span>
#include <string>

#include "conformance/model/timeline.h"
#include "conformance/oracle/history.h"
#include "conformance/oracle/layout.h"

namespace kmes::conformance {

// Begins the reason why a consumer reads at a wrong place, in a step of the timeline.
inline constexpr std::string_view kStaleCapacity = " is where it would be with the capacity of ";

// "write_pos, tail_pos": those of which some of these bytes are.
std::string field_names(std::span<const Field> fields, std::uint64_t offset, std::uint64_t bytes);

// "event_size of event 3", "byte 40 of event 3", "futex_counter". `offset` is in the mapping.
std::string name_of_bytes(const History& history, BufferIndex buffer, std::uint64_t offset,
                          std::uint64_t bytes);

// For a read at this offset of the data: "event 3 is at offset 8; 4 is where it would be with the
// capacity of buffer 1 (65536 bytes)". Empty: an event begins there, or no earlier capacity leads
// there.
std::string stale_capacity_text(const History& history, BufferIndex buffer, std::uint64_t offset);

// What the first such step of a timeline says; empty: there is none.
std::string stale_capacity_of(const Timeline& timeline);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_DATA_NAMES_H_
