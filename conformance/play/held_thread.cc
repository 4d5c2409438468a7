// SPDX-License-Identifier: MIT
//
// See held_thread.h.
#include "conformance/play/held_thread.h"

namespace kmes::conformance {

bool act_at_held_access(Stage& stage, const HeldAccess& access, const std::function<void()>& wake,
                        const std::function<void(pid_t thread)>& act) {
    bool has_acted = false;
    std::uint64_t left = access.number;
    const auto act_if_due = [&](pid_t thread) {
        if (has_acted || --left > 0) return false;
        has_acted = true;
        act(thread);
        return true;
    };
    const auto guard_before = [&] {
        stage.guards().guard(0, access.first_page, access.pages, [&](const GuardHit& hit) {
            return act_if_due(hit.tid) ? AtGuard::release : AtGuard::step;
        });
    };
    switch (access.place) {
        case AccessPlace::before:
            guard_before();
            break;
        case AccessPlace::after:
            stage.guards().guard(
                0, access.first_page, access.pages, [](const GuardHit&) { return AtGuard::step; },
                [&](const GuardHit& hit, const GuardStep&) { act_if_due(hit.tid); });
            break;
        case AccessPlace::in_next_buffer:
            stage.hooks().set_on_mapped([&](const Mapped& mapped) {
                if (!has_acted && is_present(stage, mapped, 0)) guard_before();
            });
            break;
    }
    wake();
    stage.wait_asleep();
    if (access.place == AccessPlace::in_next_buffer) stage.hooks().set_on_mapped(nullptr);
    stage.guards().release();
    return has_acted;
}

}  // namespace kmes::conformance
