// SPDX-License-Identifier: MIT
//
// An event that is overwritten by written and unpublished bytes. The producer shows only tail_pos.
// Neither write_pos, which stays the same during the copy, nor the distance to the read position
// shows that the ring has moved on (5.1.8.1 step 5, 5.1.7 batch, E8, E16).
#include <algorithm>
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/oracle/layout.h"

namespace kmes::conformance {

namespace {

// Events of `bytes` bytes together, none of which is large for the ring.
std::vector<EventSpec> make_some(Stage& stage, std::uint64_t bytes) {
    const std::uint64_t most = capacity(stage, 0) / 16;
    std::vector<EventSpec> specs;
    for (; bytes > 2 * most; bytes -= most) specs.push_back(stage.rings().make(most));
    specs.push_back(stage.rings().make(bytes));
    return specs;
}

// So much as is written over the event and its successors, unpublished. What takes no more than
// half of the ring may be one event; more is a batch, of which the last event takes the victim's
// place where it is not whole.
void begin_over(Stage& stage, std::uint64_t bytes, Written written) {
    Rings& rings = stage.rings();
    if (bytes <= kVictimBytes) return rings.reserve(0, rings.make(bytes), written);
    if (written == Written::whole) return rings.begin_batch(0, make_some(stage, bytes), {});
    std::vector<EventSpec> specs = make_some(stage, bytes - kVictimBytes);
    specs.push_back(rings.make(kVictimBytes));
    rings.begin_batch(0, specs, {written, static_cast<std::uint32_t>(specs.size() - 1)});
}

// The event at the begin of the region and `behind` bytes are unread, and nobody sees them come
// apart. When the first of the event's pages from `page` on is read, it is overwritten.
void tear(Stage& stage, std::uint64_t page, std::uint64_t behind, Written written) {
    if (!place_next_event(stage, 0)) return;
    overwrite_under_read(
        stage, page, 1,
        [&stage, behind] {
            stage.freeze();
            emit_some(stage, 0, 1, kVictimBytes);
            stage.rings().emit_bytes(0, behind);
            stage.thaw();
        },
        [&stage, behind, written] { begin_over(stage, capacity(stage, 0) - behind, written); });
}

CaseOutcome torn_by_what_is_pending(Stage& stage) {
    constexpr std::uint64_t kCapacity = 1 << 20;
    constexpr std::uint64_t kSomeBytes = 1000;
    set_up_one_cpu(stage, kCapacity);
    stage.start();
    for (const std::uint64_t page : {std::uint64_t{0}, kVictimPages / 2, kVictimPages - 1}) {
        // The ring is full of unread events, or a half, a sixteenth or a sixty-fourth (hardly more
        // than the event itself) is unread, so that the consumer is not far back.
        tear(stage, page, kCapacity - kVictimBytes, Written::whole);
        tear(stage, page, kCapacity / 2 - kVictimBytes, Written::whole);
        tear(stage, page, kCapacity / 16 - kVictimBytes, Written::whole);
        tear(stage, page, kSomeBytes, Written::whole);
    }
    // In part: where it is stopped before bytes of the event that have changed.
    for (const PartOver& part : kPartsOver) {
        tear(stage, part.page, kCapacity - kVictimBytes, part.written);
        tear(stage, part.page, kCapacity / 16 - kVictimBytes, part.written);
    }
    return stage.finish();
}

}  // namespace

void add_pending_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("5.1.8.1-5/torn-by-a-pending-batch", Level::must, "5.1.8.1-5",
        "an overwrite before write_pos moves",
        "Stop the consumer in its copy of an event of four pages. Write an event, or a batch of "
        "nearly the rest of the ring, over it, and move tail_pos over it. Leave the new event "
        "whole, half or only its header written, and publish it when the consumer sleeps.",
        "The consumer loads tail_pos after its copy and discards the event, even if write_pos is "
        "unchanged and however little is unread.",
        torn_by_what_is_pending);
}

}  // namespace kmes::conformance
