// SPDX-License-Identifier: MIT
//
// See nudges.h.
#include "conformance/stage/nudges.h"

#include <optional>

namespace kmes::conformance {

bool Nudges::nudge_retired(Rings& rings, const ServedBuffers& buffers,
                           const std::vector<Mapping>& mappings) {
    constexpr unsigned kNudgesOfOneBuffer = 10;
    bool nudged = false;
    for (const Mapping& mapping : mappings) {
        const std::optional<BufferIndex> index = buffers.index_of(mapping.buffer);
        if (!index || !rings.history().buffer(*index).retired) continue;
        // During an emission its producer does nothing else (E16).
        const std::uint32_t cpu = rings.history().buffer(*index).cpu;
        if (rings.emissions().is_reserved(cpu) || rings.emissions().is_batch_pending(cpu)) continue;
        if (nudged_[*index]++ >= kNudgesOfOneBuffer) continue;
        rings.nudge(*index);
        ++count_;
        nudged = true;
    }
    return nudged;
}

}  // namespace kmes::conformance
