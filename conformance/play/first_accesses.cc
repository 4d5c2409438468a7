// SPDX-License-Identifier: MIT
//
// See first_accesses.h.
#include "conformance/play/first_accesses.h"

#include <cstdint>
#include <map>
#include <memory>

#include "conformance/play/play.h"

namespace kmes::conformance {

void EmitAtFirstAccesses::operator()(Stage& stage) const {
    const auto left = std::make_shared<std::map<MappingId, std::uint32_t>>();
    stage.hooks().set_on_mapped([&stage, left](const Mapped& mapped) {
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
            if (!is_present(stage, mapped, cpu)) continue;
            left->emplace(mapped.mapping.id, cpu + 1);
            stage.guards().guard(cpu, 0, 1, [&stage, left](const GuardHit& hit) {
                const auto its = left->find(hit.place.mapping);
                if (its == left->end() || its->second == 0 || --its->second > 0)
                    return AtGuard::step;
                const auto buffer = stage.buffers().buffer_at(hit.place);
                if (buffer) emit_some(stage, stage.rings().history().buffer(*buffer).cpu, 1, 70);
                return AtGuard::step;
            });
        }
    });
}

void LeaveFirstAccesses::operator()(Stage& stage) const {
    stage.hooks().set_on_mapped(nullptr);
    stage.guards().release();
}

}  // namespace kmes::conformance
