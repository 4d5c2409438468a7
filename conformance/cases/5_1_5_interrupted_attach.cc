// SPDX-License-Identifier: MIT
//
// A resize or the boot hand-over in the middle of an attach (5.1.2, E14, E19).
#include "conformance/cases/play.h"
#include "conformance/play/interrupted_attach.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;

// The consumer may exit at the first failure, which is correct.
void wait_for_three_attaches(Stage& stage) {
    constexpr int kTriesAtMost = 400;
    for (int i = 0; i < kTriesAtMost && stage.testee().attaches().size() < 3; ++i)
        stage.waits().let_run(5);
}

void hand_over(Stage& stage, std::uint32_t cpu) {
    stage.rings().hand_over(cpu, SwapSpec{stage.capacity_bytes(), PositionRule::keep, 0});
}

void let_run(Stage& stage) {
    stage.waits().let_run(2);
}

const Row kInterruptedAttachRows[] = {
    {{"5.1.2/attach-in-the-boot-phase", must, "an attach before the hand-over",
      in_layout(
          "Start the consumer in the boot phase. Answer kmes_attach with {} until the last CPU "
          "is handed over. Emit events before, between and after.",
          name_of_error_before_rings()),
      "The consumer tries again until it succeeds and delivers what survives, or exits with a "
      "non-zero status."},
     {wait_for_three_attaches, EmitEverywhere{5, 300}, OnEachCpu{{hand_over, Emit{2}, let_run}},
      AllMappedOrExit{}, Delivered{}, EmitEverywhere{3}, Asleep{}},
     {.rings = [](RingsSetup& rings) { rings.boot_capacity_bytes = 65536; },
      .before_start = {EmitEverywhere{5, 300}}}},
    {{"E19/resize-at-every-step-of-an-attach", erratum, "a resize at every step of an attach",
      "While the consumer moves to a new buffer, replace that one, too: after each attach, after "
      "the mmap, before each access to the page in turn. Nudge retired buffers.",
      "The consumer ends up in the current buffer, loses nothing and delivers nothing twice."},
     {Asleep{}, ResizeInAttach{}},
     {.cpus = 1, .before_start = {EmitEverywhere{3}}}},
    {{"E14/attaches-of-two-capacities", erratum, "two threads that attach at the same time",
      "While two CPUs move to new buffers, hold one thread after each attach and mmap in turn, and "
      "before each system call in between. Replace both buffers by larger or smaller ones, and let "
      "another thread move on to those.",
      "The consumer uses each buffer with the capacity of its own attach, and refuses and loses "
      "nothing."},
     HoldInAttach{}},
};

}  // namespace

const std::vector<Case> kInterruptedAttachCases = cases_of(kInterruptedAttachRows);

}  // namespace kmes::conformance
