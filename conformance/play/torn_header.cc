// SPDX-License-Identifier: MIT
//
// See torn_header.h.
#include "conformance/play/torn_header.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "conformance/oracle/layout.h"
#include "conformance/play/moves.h"
#include "conformance/play/play.h"

namespace kmes::conformance {

namespace {

// The overwriting event begins this many bytes before the overwritten one, where its header is.
std::uint64_t bytes_before() {
    return (kLeastEventBytes + 63) / 64 * 64;
}

// The bytes of the header in the ring at `position`.
std::string header_at(Stage& stage, std::uint64_t position) {
    const std::uint8_t* region =
        stage.rings().backend().base(stage.rings().history().current_buffer(0)) + kMetadataBytes;
    const std::uint64_t offset = position & (capacity(stage, 0) - 1);
    return {region + offset, region + offset + kHeaderBytesBeforeType + 1};
}

// The bytes that overwrite the header of the oldest event, in addition to its own bytes.
struct TornHeader {
    std::uint64_t more = 0;  // event_size claims this many bytes after the event
    std::optional<std::uint64_t> sequence = std::nullopt;
};

// The event at the beginning of the region: the oldest one apart from those in the last few
// bytes.
const Placement& oldest(Stage& stage) {
    const History& history = stage.rings().history();
    return *placement_at(history.buffer(history.current_buffer(0)), 0, 0);
}

void forge_oldest(Stage& stage, const TornHeader& torn) {
    const std::uint64_t before = bytes_before();
    const std::uint64_t position = oldest(stage).position;
    const std::uint64_t left = position + capacity(stage, 0) - before - write_pos(stage, 0);
    std::string header = header_at(stage, position);
    stage.rings().emit_bytes(0, left);
    const auto event_size = static_cast<std::uint32_t>(kVictimBytes + torn.more);
    std::memcpy(header.data() + kEventSizeAt, &event_size, sizeof event_size);
    if (torn.sequence)
        std::memcpy(header.data() + kSequenceAt, &*torn.sequence, sizeof *torn.sequence);
    EventSpec over = stage.rings().events().make(before + kVictimBytes);
    over.payload.replace(before - kHeaderBytesBeforeType - over.type.size(), header.size(), header);
    stage.rings().emit(0, std::move(over));
}

}  // namespace

Steps victim_and_followers() {
    const std::uint64_t taken = (kVictimBytes + bytes_before()) / (kFollowersOfVictim + 1);
    return {Emit{1, kVictimBytes},
            Emit{kFollowersOfVictim, current(1, kFollowersOfVictim + 1) - taken}};
}

void ForgeLarger::operator()(Stage& stage) const {
    const std::uint64_t follower =
        (capacity(stage, 0) - kVictimBytes - bytes_before()) / (kFollowersOfVictim + 1);
    forge_oldest(stage, {.more = follower * times / parts - less});
}

void ForgeNumber::operator()(Stage& stage) const {
    const std::uint64_t last = oldest(stage).sequence - 1;
    forge_oldest(stage, {.sequence = last - std::min(last, back)});
}

}  // namespace kmes::conformance
