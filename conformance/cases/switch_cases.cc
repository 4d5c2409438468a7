// SPDX-License-Identifier: MIT
//
// State that a consumer carries over from one buffer to the next (E15, E19). Also the events that
// it must deliver from a buffer whose successor it refuses (E10; contract, record R).
#include <iterator>

#include "conformance/cases/play.h"
#include "conformance/play/forged_image.h"
#include "conformance/play/row.h"
#include "conformance/play/verified_buffer.h"

namespace kmes::conformance {

namespace {

// -- Generations that differ between two buffers ---------------------------------------------

Steps swapped_and_nudged(std::uint64_t nudges) {
    return {Resize{}, NudgeRetired{nudges}, Emit{}};
}

// Nudges take the retired buffer's generation past that of its successor. The successor is replaced
// at each of the consumer's accesses to it up to its sleep, and nudged one time less. Its
// generation is then the number that the consumer may have loaded from the old buffer. The old
// buffer is nudged before that load, or as the consumer attaches.
Steps generation_of_the_old(bool nudges_at_the_attach) {
    const auto replaced_twice = [=](std::uint64_t access, std::uint64_t nudges) {
        Steps wake = swapped_and_nudged(nudges_at_the_attach ? 0 : nudges);
        if (nudges_at_the_attach) wake.push_back(AtNextAttach{{NudgeRetired{nudges}}});
        return ActAt{.place = "before access {} to a buffer that the consumer has verified",
                     .play_at = at_access_to_a_verified_buffer(),
                     .wake = {AtOnce{wake}},
                     .actions = swapped_and_nudged(nudges - 1),
                     .number = access,
                     .before = {Asleep{}}};
    };
    const auto each_number = [=](std::uint64_t access) {
        return Steps{replaced_twice(access, 1), replaced_twice(access, 2),
                     replaced_twice(access, 3)};
    };
    return {Limited{{each({1, 2, 3, 4, 5}, each_number)}}, Asleep{}};
}
const Setup kWithoutNudging{.cpus = 1, .nudging = false};

// -- A next buffer that is refused -----------------------------------------------------------

void replace_by_malformed(Stage& stage, std::uint32_t cpu) {
    const std::uint64_t usual = stage.default_setup().capacity_bytes;
    const ForgedField kinds[] = {
        magic_field(7, 'H', "KMESRINH"),
        version_field(2),
        capacity_field(2 * usual, "twice the buffer's"),
        capacity_field(usual / 2, "half of the buffer's"),
    };
    stage.rings().swap(cpu, SwapSpec{usual, PositionRule::keep, 0});
    break_field(stage, cpu, kinds[cpu % std::size(kinds)]);
}

// Four CPUs, each with another fault, and a valid one. The old buffers of all have `events` unread
// events; a quarter of them fits into the next buffers. CPU k has had k of `changes` valid changes
// before.
constexpr std::uint32_t kSound = 4;
const Setup kFourFaults{.cpus = kSound + 1, .capacity = usual(4)};

Steps unread_before_a_refusal(std::uint64_t events, std::uint64_t changes) {
    const auto change = [](std::uint64_t first) {
        Steps all;
        for (auto cpu = static_cast<std::uint32_t>(first); cpu <= kSound; ++cpu)
            all.push_back(OnCpu{cpu, {Swap{}, Emit{}}});
        all.push_back(Asleep{});
        return all;
    };
    // After the next event the consumer is proven to read these buffers, and not only to have them.
    return {Asleep{},
            each_below(changes, change),
            EmitEverywhere{},
            Asleep{},
            AtOnce{{EmitEverywhere{events, usual(1, 8)},
                    each_below(kSound,
                               [](std::uint64_t cpu) {
                                   return Steps{OnCpu{static_cast<std::uint32_t>(cpu),
                                                      {replace_by_malformed}}};
                               }),
                    OnCpu{kSound, {Swap{usual()}}}}},
            AllRefused{},
            OnCpu{kSound, {DeliveredHere{}, Emit{2}, DeliveredHere{}}}};
}

// One CPU for each access: before the k-th access come three events, and a malformed next buffer.
constexpr std::uint32_t kSteps = 20;
Steps refused_at_step(std::uint64_t number) {
    const auto cpu = static_cast<std::uint32_t>(number);
    return {BeforeAccessTo{.wake = {OnCpu{cpu, {Emit{}}}},
                           .actions = {OnCpu{cpu, {Emit{3, 1000}, replace_by_malformed}}},
                           .cpus = {cpu},
                           .accesses = {number + 1}},
            AllRefused{}};
}

constexpr std::string_view kOwnNumbers =
    "The consumer compares a buffer's generation only with its value in that buffer, and moves "
    "on each time.";
constexpr std::string_view kOwedFirst =
    "The consumer delivers everything in the old buffer up to its frozen write_pos. Then it "
    "refuses the next one with an R record. It drains the sound CPUs.";

const Row kSwitchRows[] = {
    {{"E15/generation-of-the-old-buffer", Level::erratum,
      "a generation equal to that of the old buffer",
      "Replace the buffer, and nudge the old one up to three times, while the consumer sleeps. "
      "Before each access to the next one, after the check of E19, replace it as well. Nudge it "
      "to a value that the old one had.",
      kOwnNumbers},
     generation_of_the_old(false),
     kWithoutNudging},
    {{"E15/nudged-between-two-loads", Level::erratum, "nudges between two checks of the old buffer",
      "Play E15/generation-of-the-old-buffer, with the nudges after the consumer has seen the "
      "change, as it attaches.",
      kOwnNumbers},
     generation_of_the_old(true),
     kWithoutNudging},
    {{"5.1.6.1/unread-before-a-refused-buffer", Level::must,
      "unread events before a malformed next buffer",
      "Emit 24 events on four CPUs. While they are unread, replace the buffers by some with a "
      "wrong magic, version 2, twice the capacity, and half of it.",
      kOwedFirst},
     unread_before_a_refusal(24, 0),
     kFourFaults},
    {{"5.1.6.1/one-unread-before-a-refused-buffer", Level::must,
      "one unread event before a malformed next buffer",
      "Play 5.1.6.1/unread-before-a-refused-buffer with one unread event in each old buffer, "
      "which the next one holds, too.",
      kOwedFirst},
     unread_before_a_refusal(1, 0),
     kFourFaults},
    {{"5.1.6.1/unread-before-a-later-refused-buffer", Level::must,
      "unread events before a malformed buffer after several changes",
      "Play 5.1.6.1/unread-before-a-refused-buffer after one to four changes to sound buffers.",
      kOwedFirst},
     unread_before_a_refusal(24, 4),
     kFourFaults},
    {{"E24/refused-at-every-step", Level::erratum,
      "events and a malformed next buffer at every step",
      "Before the k-th access of CPU k's consumer to its metadata page, emit three events and "
      "replace the buffer by a malformed one.",
      kOwedFirst},
     {Asleep{}, EmitEverywhere{}, Limited{{each_below(kSteps, refused_at_step)}}},
     {.cpus = kSteps}},
};

}  // namespace

const std::vector<Case> kSwitchCases = cases_of(kSwitchRows);

}  // namespace kmes::conformance
