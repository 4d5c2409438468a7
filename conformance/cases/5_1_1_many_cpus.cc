// SPDX-License-Identifier: MIT
//
// Many CPUs, and the last of them (5.1.1): the rules for sleep and for a new buffer hold for each.
#include "conformance/cases/play.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;

const Steps kResizeThenEmit{Resize{}, Emit{1, 70}};

// Plays `actions` before each access to the metadata page of this CPU in turn.
Steps at_every_access(std::uint32_t cpu, const Steps& actions) {
    return {Asleep{}, OnCpu{cpu, {BeforeEachAccess{actions}}}};
}

// Emits a single event on each of these CPUs, after the previous one is delivered.
Step emit_in_turn(std::initializer_list<std::uint32_t> cpus) {
    return each(cpus,
                [](std::uint32_t cpu) { return Steps{OnCpu{cpu, {Emit{}, DeliveredHere{}}}}; });
}

const Row kManyCpuRows[] = {
    {{"5.1.8.2-2/event-at-every-step-on-the-last-cpu", must,
      "an event at every step on the last CPU",
      "Emit an event on the last CPU before each access to its metadata page in turn.", kDelivers},
     at_every_access(kLastCpu, {Emit{1, 70}})},
    {{"E3/swap-at-every-step-on-the-last-cpu", erratum, "a swap at every step on the last CPU",
      "Replace the buffers before each access to the last CPU's metadata page in turn.", kFollows},
     at_every_access(kLastCpu, kResizeThenEmit),
     {.nudging = false}},
    // CPU numbers around tables of 8, 16 and 32 entries, and words of 32 bits. In the end, all CPUs
    // at once.
    {{"5.1.1/some-of-sixty-four", must, "events on some of 64 sleeping CPUs",
      "Let 64 CPUs sleep. Emit single events on some of them, then one on each at the same time.",
      "The consumer delivers each event when it is published."},
     {Asleep{}, emit_in_turn({16, 32, 63}), Asleep{}, AtOnce{{EmitEverywhere{}}}, Asleep{}},
     {.cpus = 64, .shortened_waits = true}},
    // One thread for all CPUs makes many checks between two sleeps, and may omit the last of them.
    // More CPUs are impossible: a consumer with a limit of 96 files has two descriptors for each
    // CPU.
    {{"5.1.8.2-2/event-at-every-step-of-thirty-six", must,
      "an event at every step on one of 36 CPUs",
      "Emit an event on CPU 33 before each access to its metadata page in turn.", kDelivers},
     at_every_access(33, {Emit{1, 70}}),
     {.cpus = 36, .nudging = false}},
    {{"E3/swap-at-every-step-of-thirty-six", erratum, "a swap at every step on one of 36 CPUs",
      "Replace the buffer of CPU 33 before each access to its metadata page in turn.", kFollows},
     at_every_access(33, {Swap{}, Emit{1, 70}}),
     {.cpus = 36, .nudging = false}},
    // Not more: with a thread for each CPU, and an fd of each CPU in each thread, there are 400
    // descriptors.
    {{"5.1.8.3/change-of-twenty", must, "new buffers on 20 sleeping CPUs",
      "Replace all buffers of 20 CPUs while all of them sleep. Then emit single events on some of "
      "them.",
      kFollows},
     {Times{2, {Asleep{}, Resize{}, Asleep{}, emit_in_turn({0, 8, 15, 16, 19})}}, Asleep{}},
     {.cpus = 20, .shortened_waits = true}},
};

}  // namespace

const std::vector<Case> kManyCpuCases = cases_of(kManyCpuRows);

}  // namespace kmes::conformance
