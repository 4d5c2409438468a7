// SPDX-License-Identifier: MIT
//
// See tail_loads.h.
#include "conformance/play/tail_loads.h"

#include <functional>
#include <vector>

#include "conformance/oracle/layout.h"
#include "conformance/play/play.h"

namespace kmes::conformance {

namespace {

// Events of `bytes` bytes in total, none of them large for the ring.
std::vector<EventSpec> make_some(Stage& stage, std::uint64_t bytes) {
    const std::uint64_t most = capacity(stage, 0) / 16;
    std::vector<EventSpec> specs;
    for (; bytes > 2 * most; bytes -= most) specs.push_back(stage.rings().events().make(most));
    specs.push_back(stage.rings().events().make(bytes));
    return specs;
}

}  // namespace

PlayAt after_load_of_tail_pos() {
    return [](Stage& stage, std::uint64_t number, const std::function<void()>& wake,
              const std::function<void(pid_t)>& act) {
        std::uint64_t loads = 0;
        stage.guards().guard(
            0, 0, 1,
            [&](const GuardHit&) { return loads > number ? AtGuard::release : AtGuard::step; },
            [&](const GuardHit& hit, const GuardStep&) {
                if (hit.place.offset_bytes == kTailPosOffset && ++loads == number) act(hit.tid);
            });
        wake();
        stage.wait_asleep(0);
        stage.guards().release();
        return loads >= number;
    };
}

PlayAt before_load_of_generation() {
    return [](Stage& stage, std::uint64_t number, const std::function<void()>& wake,
              const std::function<void(pid_t)>& act) {
        std::uint64_t left = number;
        stage.guards().guard(0, 0, 1, [&](const GuardHit& hit) {
            if (!hit.touches(kGenerationOffset, 8) || --left > 0) return AtGuard::step;
            act(hit.tid);
            return AtGuard::release;
        });
        wake();
        stage.wait_asleep();
        stage.guards().release();
        return left == 0;
    };
}

PlayAt at_last_access_to(std::uint64_t page) {
    return [page](Stage& stage, std::uint64_t, const std::function<void()>& wake,
                  const std::function<void(pid_t)>& act) {
        std::uint64_t accesses = 0;
        stage.guards().guard(0, page, 1, [&](const GuardHit&) {
            ++accesses;
            return AtGuard::step;
        });
        wake();
        stage.wait_asleep(0);
        stage.guards().release();
        if (accesses == 0 || !place_next_event(stage, 0, Filler::small)) return false;
        std::uint64_t left = accesses;
        stage.guards().guard(0, page, 1, [&](const GuardHit& hit) {
            if (--left > 0) return AtGuard::step;
            act(hit.tid);
            return AtGuard::release;
        });
        wake();
        stage.wait_asleep(0);
        stage.guards().release();
        return left == 0;
    };
}

void BeginOver::operator()(Stage& stage) const {
    Rings& rings = stage.rings();
    const std::uint64_t bytes = capacity(stage, 0) - unread;
    if (bytes <= kVictimBytes)
        return rings.emissions().reserve(0, rings.events().make(bytes), written);
    if (written == Written::whole)
        return rings.emissions().begin_batch(0, make_some(stage, bytes), {});
    std::vector<EventSpec> specs = make_some(stage, bytes - kVictimBytes);
    specs.push_back(rings.events().make(kVictimBytes));
    rings.emissions().begin_batch(0, specs,
                                  {written, static_cast<std::uint32_t>(specs.size() - 1)});
}

}  // namespace kmes::conformance
