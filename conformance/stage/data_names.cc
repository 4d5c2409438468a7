// SPDX-License-Identifier: MIT
//
// See data_names.h.
#include "conformance/stage/data_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "conformance/model/step_texts.h"

namespace kmes::conformance {

std::string field_names(std::span<const Field> fields, std::uint64_t offset, std::uint64_t bytes) {
    std::string names;
    for (const Field& field : fields) {
        if (field.overlaps(offset, bytes))
            names += (names.empty() ? "" : ", ") + std::string(field.name);
    }
    return names;
}

std::string name_of_bytes(const History& history, BufferIndex index, std::uint64_t offset,
                          std::uint64_t bytes) {
    if (offset < kMetadataBytes) return field_names(metadata_fields(), offset, bytes);
    const Buffer& buffer = history.buffer(index);
    const std::uint64_t mask = buffer.capacity - 1;
    const std::uint64_t place = (offset - kMetadataBytes) & mask;
    // The newest event with a byte at this place.
    const auto found = std::find_if(
        buffer.placements.rbegin(), buffer.placements.rend(),
        [&](const Placement& event) { return ((place - event.position) & mask) < event.bytes; });
    if (found == buffer.placements.rend()) return "data without an event";
    const std::uint64_t byte = (place - found->position) & mask;
    const std::string names = field_names(header_fields(), byte, bytes);
    if (!names.empty()) return fmt::format("{} of event {}", names, found->sequence);
    return fmt::format("byte {} of event {}", byte, found->sequence);
}

std::string stale_capacity_text(const History& history, BufferIndex index, std::uint64_t offset) {
    const Buffer& buffer = history.buffer(index);
    const auto place_in = [](const Buffer& other, const Placement& event) {
        return event.position & (other.capacity - 1);
    };
    const auto begin = buffer.placements.begin() + static_cast<std::ptrdiff_t>(buffer.tail_index);
    const auto end = buffer.placements.end();
    if (std::any_of(begin, end,
                    [&](const Placement& event) { return place_in(buffer, event) == offset; }))
        return "";
    for (const BufferIndex other : history.buffers_of(buffer.cpu)) {
        const Buffer& earlier = history.buffer(other);
        if (other >= index || earlier.capacity == buffer.capacity) continue;
        const auto event = std::find_if(
            begin, end, [&](const Placement& each) { return place_in(earlier, each) == offset; });
        if (event == end) continue;
        return fmt::format("event {} is at offset {}; {}{}buffer {} ({} bytes)", event->sequence,
                           place_in(buffer, *event), offset, kStaleCapacity, other,
                           earlier.capacity);
    }
    return "";
}

std::string stale_capacity_of(const Timeline& timeline) {
    for (const TimelineStep& step : timeline.steps()) {
        if (step.text.find(kStaleCapacity) != std::string::npos) return step.text;
    }
    return "";
}

}  // namespace kmes::conformance
