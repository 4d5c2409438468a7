// SPDX-License-Identifier: MIT
//
// See tail_at_write_pos.h.
#include "conformance/play/tail_at_write_pos.h"

#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "conformance/play/play.h"

namespace kmes::conformance {

namespace {

// The instruction, and the offset in the metadata page.
using Positions = std::pair<std::uint64_t, std::uint64_t>;

// E20: a consumer has a large survivor before it. An event of half the capacity moves tail_pos up
// to write_pos to make room for itself, and is published a few accesses later. Played for each
// access to the metadata page of the new buffer. Until the publication the part `written` of the
// event is in the ring. Returns the place of the k-th access, if there was one.
std::optional<Positions> tail_at_write_pos_at(Stage& stage, std::uint64_t capacity_bytes,
                                              std::uint64_t k, Written written) {
    constexpr std::uint64_t kAccessesBetween = 5;
    constexpr std::uint64_t kAccessesAtMost = 100;
    std::uint64_t accesses = 0;
    std::optional<Positions> place;
    const auto count = [&](const GuardHit& hit) {
        if (++accesses == k) {
            place = {hit.code.instruction_pointer, hit.place.offset_bytes};
            stage.rings().emissions().reserve(0, stage.rings().events().make(capacity_bytes / 2),
                                              written);
        }
        if (accesses > k + kAccessesAtMost) return AtGuard::release;  // it spins
        if (accesses == k + kAccessesBetween && stage.rings().emissions().is_reserved(0))
            stage.rings().emissions().commit(0);
        return AtGuard::step;
    };
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
        emit_some(stage, cpu, 1, capacity_bytes / 8 * 5);
    stage.wait_asleep();
    stage.hooks().set_on_mapped([&](const Mapped& mapped) {
        if (is_present(stage, mapped, 0)) stage.guards().guard(0, 0, 1, count);
    });
    stage.resize(capacity_bytes);
    stage.waits().until([&] { return accesses > 0; }, "an access to the new buffer of CPU 0");
    stage.waits().asleep_or_stuck(0);
    // The consumer may sleep before the fifth access, and make more accesses when the event is
    // there.
    for (stage.waits().mapped();; stage.rings().emissions().commit(0)) {
        if (!stage.rings().emissions().is_reserved(0)) stage.wait_asleep();
        if (!stage.rings().emissions().is_reserved(0)) break;
    }
    stage.guards().release();
    stage.hooks().set_on_mapped(nullptr);
    stage.resize(4 * capacity_bytes);
    stage.wait_asleep();
    return place;
}

}  // namespace

// Plays every access with one state first, and then with the next: a walk that its time limit ends
// has covered all accesses. A spin repeats a few accesses: from the fourth time on, each is played
// once.
void ReachWritePos::operator()(Stage& stage) const {
    constexpr std::uint64_t kAccessesAtMost = 64;
    constexpr int kTimesInEachState = 3;
    constexpr Written kStates[] = {Written::header, Written::nothing, Written::half,
                                   Written::whole};
    WalkLimit limit(stage);
    std::map<Positions, int> times;
    std::vector<bool> is_repeated(kAccessesAtMost);
    std::uint64_t end = kAccessesAtMost;
    for (std::uint64_t i = 0; i < std::size(kStates); ++i) {
        for (std::uint64_t k = 1; k < end; ++k) {
            if (i > 0 && is_repeated[k]) continue;
            if (stage.testee().has_ended(0) || limit.is_over()) return;
            const Written written = kStates[(k - 1 + i) % std::size(kStates)];
            const std::optional<Positions> place =
                tail_at_write_pos_at(stage, capacity_bytes, k, written);
            if (!place)
                end = k;
            else if (i == 0)
                is_repeated[k] = ++times[*place] > kTimesInEachState;
        }
    }
}

}  // namespace kmes::conformance
