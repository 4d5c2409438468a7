// SPDX-License-Identifier: MIT
//
// See moves.h. Also defines describe() of player.h.
#include "conformance/play/moves.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/oracle/layout.h"
#include "conformance/play/player.h"

namespace kmes::conformance {

namespace {

struct HeaderSizes {
    std::uint32_t fixed;
    std::uint32_t shortest;
};
constinit HeaderSizes header_sizes{};

// Runs after the constructor of the oracle's numbers (101), and before every other initialisation.
[[gnu::constructor(102)]] void set_header_sizes() {
    header_sizes.fixed = static_cast<std::uint32_t>(kHeaderBytesBeforeType);
    header_sizes.shortest = static_cast<std::uint32_t>(kLeastEventBytes);
}

}  // namespace

constinit const std::uint32_t& kFixedHeader = header_sizes.fixed;
constinit const std::uint32_t& kShortHeader = header_sizes.shortest;

namespace {

constexpr std::uint32_t kAllOnes = std::numeric_limits<std::uint32_t>::max();

}  // namespace

bool swaps_buffers(Action action) {
    return action == Action::grow || action == Action::shrink || action == Action::swap ||
           action == Action::swap_twice;
}

void emit_batch(Rings& rings, std::uint32_t cpu) {
    const std::vector<EventSpec> specs{rings.events().make(70), rings.events().make(45),
                                       rings.events().make(130)};
    rings.batch(cpu, specs);
}

TornSizes torn_sizes(std::uint64_t kind, std::uint64_t capacity_bytes) {
    const auto capacity = static_cast<std::uint32_t>(capacity_bytes);
    const std::array<TornSizes, kTornKinds> kinds{{
        {0, 0, 0},  // leave the random bytes
        {0, 0, 1},
        {0, kShortHeader, 1},
        {1, kShortHeader, 1},
        {kFixedHeader, kFixedHeader, 0},
        {kShortHeader, kShortHeader, 0},
        {kShortHeader, kShortHeader, 1},  // a whole event, but of another size than the original
        {kShortHeader + 1, kShortHeader, 1},
        {100, kShortHeader, 60000},
        {100, 101, 1},
        {100, kAllOnes, 1},
        {100, kFixedHeader, 1},
        {8192, kShortHeader, 1},
        {capacity / 2, kShortHeader, 1},
        {capacity, kShortHeader, 1},
        {capacity + 1, kShortHeader, 1},
        {2 * capacity, kShortHeader, 1},  // the size of both copies of the data
        {0x80000000U, kShortHeader, 1},
        {kAllOnes, kShortHeader, 1},
        {kAllOnes, kAllOnes, 0xffff},
        {kAllOnes, 0xfffffff0U, 1},
    }};
    return kinds.at(kind % kTornKinds);
}

void put_sizes(std::string& payload, std::uint64_t at, const TornSizes& sizes) {
    const bool is_nothing = sizes.event_size == 0 && sizes.header_size == 0 && sizes.type_len == 0;
    if (is_nothing || at + kHeaderBytesBeforeType > payload.size()) return;
    std::memcpy(payload.data() + at + kEventSizeAt, &sizes.event_size, sizeof sizes.event_size);
    std::memcpy(payload.data() + at + kHeaderSizeAt, &sizes.header_size, sizeof sizes.header_size);
    std::memcpy(payload.data() + at + kTypeLengthAt, &sizes.type_len, sizeof sizes.type_len);
}

std::uint64_t over_header_bytes(const EventSpec& spec) {
    return kHeaderBytesBeforeType + spec.type.size() + spec.extra_header.size();
}

std::uint64_t start_of_event_at(const Buffer& buffer, std::uint64_t region_offset) {
    const Placement* placement = placement_at(buffer, region_offset, 0);
    return placement ? placement->position & (buffer.capacity - 1) : region_offset;
}

const Placement* placement_at(const Buffer& buffer, std::uint64_t region_offset,
                              std::uint64_t further) {
    const std::uint64_t mask = buffer.capacity - 1;
    for (std::size_t i = buffer.tail_index; i < buffer.placements.size(); ++i) {
        const Placement& placement = buffer.placements[i];
        if (((region_offset - placement.position) & mask) >= placement.bytes) continue;
        // `further` may come from a file.
        return further < buffer.placements.size() - i ? &buffer.placements[i + further] : nullptr;
    }
    return nullptr;
}

std::uint64_t bytes_that_give_up(const Buffer& buffer, const Placement& event) {
    return event.position + event.bytes + buffer.capacity - buffer.write_pos;
}

std::string describe(Action action) {
    using Pair = std::pair<Action, std::string_view>;
    static constexpr Pair kTexts[] = {
        {Action::nothing, "no action"},
        {Action::emit, "one event is emitted"},
        {Action::burst, "a burst of small events fills half of the buffer"},
        {Action::batch, "a batch of three events is published"},
        {Action::drop, "an event is dropped: its sequence number is used"},
        {Action::lap_part, "the older events are overwritten"},
        {Action::lap, "the whole buffer is overwritten"},
        {Action::laps, "the whole buffer is overwritten several times"},
        {Action::grow, "the buffers are resized to twice the capacity, and an event is emitted"},
        {Action::shrink, "the buffers are resized to half the capacity, and an event is emitted"},
        {Action::swap, "the buffers are swapped, without an event"},
        {Action::swap_twice, "the buffers are swapped twice, without an event"},
        {Action::nudge, "the retired buffers are nudged (E19)"},
        {Action::wake, "the consumer is woken without an event"},
        {Action::reserve, "tail_pos makes room for an event, which is published later"},
        {Action::tear, "the buffer is overwritten during the copy"},
        {Action::hold, "this thread is held while events are emitted and others continue"},
        {Action::overtake, "tail_pos moves to the end of the event that is read"},
        {Action::write_over,
         "the event that is read is overwritten by one that is published later"},
        {Action::yield, "this thread is held while others continue"},
    };
    for (const auto& [known, text] : kTexts) {
        if (known == action) return std::string(text);
    }
    return "?";
}

namespace {

std::string place_text(const AccessPoint& point) {
    if (point.offset_bytes >= kMetadataBytes)
        return fmt::format("the data at offset {}", point.offset_bytes - kMetadataBytes);
    for (const Field& field : metadata_fields()) {
        if (field.holds(point.offset_bytes)) return std::string(field.name);
    }
    return fmt::format("the metadata page at offset {}", point.offset_bytes);
}

std::string_view ending(std::uint64_t number) {
    if (number % 100 >= 11 && number % 100 <= 13) return "th";
    switch (number % 10) {
        case 1:
            return "st";
        case 2:
            return "nd";
        case 3:
            return "rd";
        default:
            return "th";
    }
}

}  // namespace

std::string describe(const AccessPoint& point) {
    const std::string when = fmt::format("(CPU {}, phase {})", point.cpu, point.phase);
    if (point.kind == PointKind::sleep) return "during the sleep " + when;
    if (point.kind == PointKind::wait)
        return fmt::format("before the {}{} wait on futex_counter {}", point.occurrence,
                           ending(point.occurrence), when);
    const std::string which =
        fmt::format("the {}{} {} of {}", point.occurrence, ending(point.occurrence),
                    point.is_write ? "write" : "read", place_text(point));
    if (point.split_bytes == 0) return fmt::format("before {} {}", which, when);
    return fmt::format("in the middle of {}, after {} of {} bytes, {}", which, point.split_bytes,
                       point.size_bytes, when);
}

namespace {

std::string_view in_the_ring(Written written) {
    if (written == Written::half) return "the header and half of the payload are in the ring";
    return written == Written::header ? "the header is in the ring and the payload is not"
                                      : "nothing of the event is in the ring";
}

}  // namespace

std::string describe(const Move& move) {
    std::string text = describe(move.point) + " " + describe(move.action);
    if (move.further > 0) text += fmt::format(" (on the CPU {} further)", move.further);
    if (move.action == Action::emit && move.parameter > 0)
        text += move.parameter == kLargestEvent ? " (the largest possible)"
                                                : fmt::format(" ({} bytes)", move.parameter);
    if (swaps_buffers(move.action) && move.parameter > 0)
        text += move.parameter == kPositionsHigher ? " (the positions are higher by 1000)"
                                                   : " (the positions begin at 0)";
    if (move.action == Action::reserve || move.action == Action::write_over ||
        move.action == Action::yield)
        text += fmt::format(" ({} accesses)", move.parameter);
    if (move.written != Written::whole)
        text += fmt::format(" (until then {})", in_the_ring(move.written));
    if (move.action == Action::overtake && move.parameter > 0)
        text += fmt::format(", or of the {}{} after it", move.parameter, ending(move.parameter));
    return text;
}

}  // namespace kmes::conformance
