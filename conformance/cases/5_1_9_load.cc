// SPDX-License-Identifier: MIT
//
// High load (5.1.3, 5.1.8.4, 5.1.9): the largest buffers, many laps, and events while the consumer
// runs, without stops. The oracle excuses events that were overwritten before they could be read.
#include <fmt/format.h>

#include "conformance/cases/play.h"
#include "conformance/monitors/resources.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;

constexpr std::uint64_t kLargest = 256ull << 20;

// The files are sparse: only written pages take memory. A consumer that copies a whole ring needs
// as much again.
void check_memory(Stage&) {
    constexpr std::uint64_t kNeeded = 2ull << 30;
    const std::uint64_t available = read_kib("/proc/meminfo", "MemAvailable:");
    if (available < kNeeded)
        stop_unsupported(fmt::format("{} MiB of memory are free; buffers of 256 MiB need {}",
                                     available >> 20, kNeeded >> 20));
}

void set_largest(RingsSetup& setup) {
    setup.cpus = 1;
    setup.capacity_bytes = kLargest;
    setup.start_positions = {3 * kLargest - 100'000};
}

// Ten laps while the consumer is stopped, anywhere in its drain.
Step ten_laps(std::uint64_t event_bytes) {
    return InOrder{{EmitEverywhere{20, event_bytes / 10},
                    AtOnce{{OnEachCpu{{Times{10, {Lap{event_bytes, 1}}}}}}}, Asleep{}}};
}

std::uint64_t any_size(Stage& stage) {
    Rings& rings = stage.rings();
    switch (rings.events().random() % 8) {
        case 0:
            return kLeastEventBytes;
        case 1:
            return kLeastEventBytes + rings.events().random() % 8000;
        default:
            return kLeastEventBytes + rings.events().random() % 400;
    }
}

struct Load {
    bool with_resizes;

    CaseOutcome operator()(Stage& stage) const;
};

CaseOutcome Load::operator()(Stage& stage) const {
    constexpr int kIterations = 400;
    stage.start();
    stage.waits().mapped();
    const std::uint64_t small = stage.capacity_bytes();
    for (int iteration = 0; iteration < kIterations; ++iteration) {
        const auto cpu = static_cast<std::uint32_t>(stage.rings().events().random() % stage.cpus());
        const std::uint64_t burst = 1 + stage.rings().events().random() % 12;
        for (std::uint64_t i = 0; i < burst; ++i) emit_some(stage, cpu, 1, any_size(stage));
        if (iteration % 50 == 49 && with_resizes)
            stage.resize(stage.capacity_bytes() == small ? 2 * small : small);
        if (iteration % 4 == 3) stage.waits().let_run(0);
        if (iteration % 100 == 99) stage.waits().delivered();
    }
    stage.wait_asleep();
    return stage.finish();
}

const Row kMuchRows[] = {
    {{"5.1.3/largest-capacity", must, "buffers of 256 MiB",
      "Use the largest capacity that can be configured, with events around the end of the ring. "
      "Then resize to the usual one.",
      "The consumer delivers every event."},
     {Delivered{}, Emit{1, kMebibyte}, Emit{9}, Asleep{}, Resize{usual()}, Emit{3}, Asleep{}},
     {.rings = set_largest, .before_start = {check_memory, Emit{9, 30'000}}}},
    {{"5.1.9/paused-for-ten-laps", must, "a pause of ten laps",
      "Stop the consumer in the middle of its drain. Overwrite the ring ten times.",
      kContinuesAtTail},
     {Asleep{}, ten_laps(700), ten_laps(3000), ten_laps(20000)}},
};

}  // namespace

const std::vector<Case> kMuchCases = cases_of(kMuchRows);

const std::vector<Case> kLoadCases = {
    {"5.1.9/under-load", must, "events under load",
     "Emit bursts of events of random sizes on random CPUs while the consumer runs.",
     "The consumer delivers what is not overwritten once, in order, with exact counts of the lost "
     "events.",
     Load{false}},
    {"5.1.8.4/resizes-under-load", must, "resizes under load",
     "Emit bursts of events of random sizes on random CPUs while the consumer runs. Resize every "
     "buffer now and then.",
     "The consumer neither loses an event in a change of buffers nor delivers one twice.",
     Load{true}},
};

}  // namespace kmes::conformance
