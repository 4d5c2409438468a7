// SPDX-License-Identifier: MIT
//
// High load (5.1.3, 5.1.8.4, 5.1.9): the largest buffers, many laps, and events while the consumer
// runs, without stops. The oracle excuses events that were overwritten before they could be read.
#include "conformance/cases/play.h"
#include "conformance/play/large_events.h"
#include "conformance/play/random_load.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;

constexpr std::uint64_t kLargest = 256 * kMebibyte;

// A consumer that copies a whole ring needs as much memory again.
const RequireMemory kMemoryForLargest{2 * 1024 * kMebibyte, kLargest / kMebibyte};

// Ten laps while the consumer is stopped, anywhere in its drain.
Step ten_laps(std::uint64_t event_bytes) {
    return InOrder{{EmitEverywhere{20, event_bytes / 10},
                    AtOnce{{OnEachCpu{{Times{10, {Lap{event_bytes, 1}}}}}}}, Asleep{}}};
}

const Row kMuchRows[] = {
    {{"5.1.3/largest-capacity", must, "buffers of 256 MiB",
      "Use the largest capacity that can be configured, with events around the end of the ring. "
      "Then resize to the usual one.",
      "The consumer delivers every event."},
     {Delivered{}, Emit{1, kMebibyte}, Emit{9}, Asleep{}, Resize{usual()}, Emit{3}, Asleep{}},
     {.cpus = 1,
      .capacity = kLargest,
      .position = 3 * kLargest - 100'000,
      .before_start = {kMemoryForLargest, Emit{9, 30'000}}}},
    {{"5.1.9/paused-for-ten-laps", must, "a pause of ten laps",
      "Stop the consumer in the middle of its drain. Overwrite the ring ten times.",
      kContinuesAtTail},
     {Asleep{}, ten_laps(700), ten_laps(3000), ten_laps(20000)}},
};

const Row kLoadRows[] = {
    {{"5.1.9/under-load", must, "events under load",
      "Emit bursts of events of random sizes on random CPUs while the consumer runs.",
      "The consumer delivers what is not overwritten once, in order, with exact counts of the lost "
      "events."},
     {AllMapped{}, RandomLoad{}, Asleep{}}},
    {{"5.1.8.4/resizes-under-load", must, "resizes under load",
      "Emit bursts of events of random sizes on random CPUs while the consumer runs. Resize every "
      "buffer now and then.",
      "The consumer neither loses an event in a change of buffers nor delivers one twice."},
     {AllMapped{}, RandomLoad{.resize_every = 50}, Asleep{}}},
};

}  // namespace

const std::vector<Case> kMuchCases = cases_of(kMuchRows);
const std::vector<Case> kLoadCases = cases_of(kLoadRows);

}  // namespace kmes::conformance
