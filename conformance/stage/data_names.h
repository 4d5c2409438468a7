// SPDX-License-Identifier: MIT
//
// Names the bytes of a mapping: the field of the metadata page, or the event and its field. Finds
// the events that would be at a place with another capacity. Knows no process.
#ifndef KMES_CONFORMANCE_STAGE_DATA_NAMES_H_
#define KMES_CONFORMANCE_STAGE_DATA_NAMES_H_

#include <cstdint>
#include <span>
#include <string>

#include "conformance/model/timeline.h"
#include "conformance/oracle/history.h"
#include "conformance/oracle/layout.h"

namespace kmes::conformance {

// Returns the names of the fields that contain some of these bytes: "write_pos, tail_pos".
std::string field_names(std::span<const Field> fields, std::uint64_t offset, std::uint64_t bytes);

// Returns "event_size of event 3", "byte 40 of event 3" or "futex_counter". `offset` is in the
// mapping.
std::string name_of_bytes(const History& history, BufferIndex buffer, std::uint64_t offset,
                          std::uint64_t bytes);

// Explains a read at this offset of the data. Example: "event 3 is at offset 8; 4 is where it would
// be with the capacity of buffer 1 (65536 bytes)". Returns an empty string if an event begins at
// the offset, or if no earlier capacity explains the offset.
std::string stale_capacity_text(const History& history, BufferIndex buffer, std::uint64_t offset);

// Returns the text of the first step of the timeline that contains kStaleCapacity; empty: there is
// none.
std::string stale_capacity_of(const Timeline& timeline);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_DATA_NAMES_H_
