// SPDX-License-Identifier: MIT
//
// See overtaken_buffer.h.
#include "conformance/play/overtaken_buffer.h"

#include <cstdint>
#include <memory>

#include "conformance/play/play.h"

namespace kmes::conformance {

namespace {

// Overwrites everything in the next buffer before the `load`-th access to its page. Returns how
// many accesses are left before that.
std::shared_ptr<const std::uint64_t> overtake_the_next(Stage& stage, std::uint64_t load) {
    const auto left = std::make_shared<std::uint64_t>(load);
    stage.hooks().set_on_mapped([&stage, left](const Mapped& mapped) {
        if (!is_present(stage, mapped, 0) || *left == 0) return;
        stage.guards().guard(0, 0, 1, [&stage, left](const GuardHit&) {
            if (*left == 0 || --*left > 0) return AtGuard::step;
            lap(stage, 0);
            return AtGuard::release;
        });
    });
    return left;
}

}  // namespace

void OvertakeNextBuffer::operator()(Stage& stage) const {
    constexpr std::uint64_t kLoads = 24;
    constexpr std::uint64_t kAccessesAtMost = 24;
    WalkLimit limit(stage);
    // Every second access: a consumer loads fields several times in a row before it reads the data.
    bool has_come = true;
    for (std::uint64_t load = 1; load <= kLoads && has_come; load += 2) {
        has_come = false;
        for (std::uint64_t k = 1; k <= kAccessesAtMost && !limit.is_over(); ++k) {
            std::shared_ptr<const std::uint64_t> left;
            const bool came = act_at_access(stage, 0, k, [&stage, &left, load] {
                emit_some(stage, 0, 5, 200);
                left = overtake_the_next(stage, load);
                stage.resize(stage.capacity_bytes());
            });
            stage.hooks().set_on_mapped(nullptr);
            has_come |= left && *left == 0;
            if (!came) break;
        }
    }
}

}  // namespace kmes::conformance
