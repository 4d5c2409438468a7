// SPDX-License-Identifier: MIT
//
// See random_load.h.
#include "conformance/play/random_load.h"

#include <cstdint>

#include "conformance/play/play.h"

namespace kmes::conformance {

namespace {

std::uint64_t any_size(EventMaker& events) {
    switch (events.random() % 8) {
        case 0:
            return kLeastEventBytes;
        case 1:
            return kLeastEventBytes + events.random() % 8000;
        default:
            return kLeastEventBytes + events.random() % 400;
    }
}

}  // namespace

void RandomLoad::operator()(Stage& stage) const {
    constexpr int kPauseEvery = 4;
    constexpr int kDeliveredEvery = 100;
    const std::uint64_t small = stage.capacity_bytes();
    EventMaker& events = stage.rings().events();
    for (int done = 1; done <= bursts; ++done) {
        const auto cpu = static_cast<std::uint32_t>(events.random() % stage.cpus());
        const std::uint64_t burst = 1 + events.random() % 12;
        for (std::uint64_t i = 0; i < burst; ++i) emit_some(stage, cpu, 1, any_size(events));
        if (resize_every != 0 && done % resize_every == 0)
            stage.resize(stage.capacity_bytes() == small ? 2 * small : small);
        if (done % kPauseEvery == 0) stage.waits().let_run(0);
        if (done % kDeliveredEvery == 0) stage.waits().delivered();
    }
}

}  // namespace kmes::conformance
