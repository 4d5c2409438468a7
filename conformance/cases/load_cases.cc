// SPDX-License-Identifier: MIT
//
// Producer and consumer at the same time, without any staging: what a test machine would see. The
// oracle excuses what was overwritten before it could have been read.
#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

constexpr int kRounds = 400;

std::uint64_t any_size(Stage& stage) {
    Rings& rings = stage.rings();
    switch (rings.random() % 8) {
        case 0:
            return 30;
        case 1:
            return 30 + rings.random() % 8000;
        default:
            return 30 + rings.random() % 400;
    }
}

CaseOutcome load(Stage& stage, bool with_resizes) {
    stage.start();
    stage.wait_mapped();
    const std::uint64_t small = stage.capacity_bytes();
    for (int round = 0; round < kRounds; ++round) {
        const auto cpu = static_cast<std::uint32_t>(stage.rings().random() % stage.cpus());
        const std::uint64_t burst = 1 + stage.rings().random() % 12;
        for (std::uint64_t i = 0; i < burst; ++i) emit_some(stage, cpu, 1, any_size(stage));
        if (round % 50 == 49 && with_resizes)
            stage.resize(stage.capacity_bytes() == small ? 2 * small : small);
        if (round % 4 == 3) stage.let_run(0);
        if (round % 100 == 99) stage.wait_delivered();
    }
    stage.wait_asleep();
    return stage.finish();
}

}  // namespace

void add_load_cases(std::vector<Case>& cases) {
    cases.push_back(
        {"5.1.9/under-load", Level::must, "5.1.9", "events under load",
         "Emit bursts of events of random sizes on random CPUs while the consumer runs.",
         "The consumer delivers what is not overwritten once, in order, with exact counts of the "
         "lost events.",
         [](Stage& stage) { return load(stage, false); }});
    cases.push_back(
        {"5.1.8.4/resizes-under-load", Level::must, "5.1.8.4", "resizes under load",
         "Emit bursts of events of random sizes on random CPUs while the consumer runs. Resize "
         "every buffer now and then.",
         "The consumer neither loses an event in a change of buffers nor delivers one twice.",
         [](Stage& stage) { return load(stage, true); }});
}

}  // namespace kmes::conformance
