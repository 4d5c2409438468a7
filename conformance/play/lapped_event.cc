// SPDX-License-Identifier: MIT
//
// See lapped_event.h.
#include "conformance/play/lapped_event.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/oracle/layout.h"
#include "conformance/play/play.h"

namespace kmes::conformance {

namespace {

// Emits one event at the start of the ring. Calls `at` with the address of the instruction before
// each access to its page, until `at` returns true.
void watch_an_event(Stage& stage, std::uint32_t cpu, const std::string& type,
                    const std::function<bool(std::uint64_t instruction)>& at) {
    constexpr std::size_t kPayloadBytes = 50;
    fill_up_to(stage, cpu, 0);
    stage.wait_asleep(cpu);
    if (stage.testee().has_ended(cpu)) return;
    stage.guards().guard(cpu, 1, 1, [&](const GuardHit& hit) {
        return at(hit.code.instruction_pointer) ? AtGuard::release : AtGuard::step;
    });
    stage.rings().emit(cpu, stage.rings().events().make(
                                kHeaderBytesBeforeType + type.size() + kPayloadBytes, type));
    stage.wait_asleep(cpu);
    stage.guards().release();
}

// Chooses the accesses, identified by their instructions, before which a lap may matter. A few
// accesses are all chosen. Of many, it chooses the first and the last of each instruction, and some
// in between.
std::vector<std::size_t> choose_accesses(const std::vector<std::uint64_t>& accesses) {
    constexpr std::size_t kAllOf = 40;
    constexpr std::size_t kEvenly = 16;
    constexpr std::size_t kMost = 80;
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < accesses.size(); ++i) {
        const auto here = accesses.begin() + static_cast<std::ptrdiff_t>(i);
        const bool is_first = std::find(accesses.begin(), here, *here) == here;
        const bool is_last = std::find(here + 1, accesses.end(), *here) == accesses.end();
        if (accesses.size() <= kAllOf || i % (1 + accesses.size() / kEvenly) == 0 || is_first ||
            is_last)
            chosen.push_back(i);
    }
    // The last accesses are those after the last load of tail_pos, if there are any.
    if (chosen.size() > kMost) chosen.erase(chosen.begin(), chosen.end() - kMost);
    return chosen;
}

}  // namespace

void LapAtEachAccess::operator()(Stage& stage) const {
    const std::string type(60, 'n');  // most of the event
    std::vector<std::uint64_t> accesses;
    watch_an_event(stage, 0, type, [&accesses](std::uint64_t instruction) {
        accesses.push_back(instruction);
        return false;
    });
    for (const std::size_t chosen : choose_accesses(accesses)) {
        if (stage.testee().has_ended(0)) break;
        std::size_t left = chosen;
        watch_an_event(stage, 0, type, [&](std::uint64_t) {
            if (left-- > 0) return false;
            lap(stage, 0, 3000);
            return true;
        });
    }
}

void LapEndAtLastAccesses::operator()(Stage& stage) const {
    const std::string end_type(kEndEventType);
    std::size_t accesses = 0;
    watch_an_event(stage, 0, std::string(end_type.size(), 'n'), [&accesses](std::uint64_t) {
        ++accesses;
        return false;
    });
    for (std::uint32_t cpu = 1; cpu < stage.cpus() && cpu <= accesses; ++cpu) {
        std::size_t left = accesses - cpu;
        watch_an_event(stage, cpu, end_type, [&](std::uint64_t) {
            if (left-- > 0) return false;
            lap(stage, cpu, 3000);
            return true;
        });
    }
}

}  // namespace kmes::conformance
