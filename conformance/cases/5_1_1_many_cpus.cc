// SPDX-License-Identifier: MIT
//
// Many CPUs, and the last of them (5.1.1): the rules of sleep and of a new buffer hold for each.
#include <algorithm>
#include <utility>
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/cases/script.h"

namespace kmes::conformance {

namespace {

using enum Level;
using namespace script;

constexpr std::uint32_t kLastCpu = ~std::uint32_t{0};

// Acts before each access to the metadata page of this CPU in turn.
ScriptStep at_every_access(std::uint32_t cpu, void (*act)(Stage& stage, std::uint32_t cpu)) {
    return [=](Stage& stage) {
        const std::uint32_t acting = std::min(cpu, stage.cpus() - 1);
        act_at_every_access(stage, acting, [&stage, acting, act] { act(stage, acting); });
    };
}

void no_nudging(Stage& stage) {
    stage.set_nudging(false);
}

void emit_one(Stage& stage, std::uint32_t cpu) {
    emit_some(stage, cpu, 1, 70);
}

void swap_and_emit(Stage& stage, std::uint32_t cpu) {
    stage.rings().swap(cpu, SwapSpec{stage.capacity_bytes()});
    emit_one(stage, cpu);
}

void resize_and_emit(Stage& stage, std::uint32_t cpu) {
    stage.resize(stage.capacity_bytes());
    emit_one(stage, cpu);
}

// A single event on each of these CPUs, when the one before it is delivered.
ScriptStep emit_in_turn(std::vector<std::uint32_t> cpus) {
    return [cpus = std::move(cpus)](Stage& stage) {
        for (const std::uint32_t cpu : cpus) {
            emit_some(stage, cpu, 1, 100);
            stage.wait_delivered(cpu);
        }
    };
}

}  // namespace

const std::vector<Case> kManyCpuCases = {
    {"5.1.8.2-2/event-at-every-step-on-the-last-cpu", must, "5.1.8.2-2",
     "an event at every step on the last CPU",
     "Emit an event on the last CPU before each access to its metadata page in turn.", kDelivers,
     Script{{start, asleep, at_every_access(kLastCpu, emit_one)}}},
    {"E3/swap-at-every-step-on-the-last-cpu", erratum, "E3", "a swap at every step on the last CPU",
     "Replace the buffers before each access to the last CPU's metadata page in turn.", kFollows,
     Script{{start, no_nudging, asleep, at_every_access(kLastCpu, resize_and_emit)}}},
    // Beside tables of 8, 16 and 32, and words of 32 bits. In the end all of them at once.
    {"5.1.1/some-of-sixty-four", must, "5.1.1", "events on some of 64 sleeping CPUs",
     "Let 64 CPUs sleep. Emit single events on some of them, then one on each at the same time.",
     "The consumer delivers each event when it is published.",
     Script{{cpus(64), start, asleep, emit_in_turn({16, 32, 63}), asleep, freeze, emit_all(1, 100),
             thaw, asleep},
            true}},
    // What one thread for all CPUs looks at between two sleeps is long, and has a tail that is
    // easily cut off. More CPUs do not fit: a consumer with a limit of 96 files has two descriptors
    // for each of them.
    {"5.1.8.2-2/event-at-every-step-of-thirty-six", must, "5.1.8.2-2",
     "an event at every step on one of 36 CPUs",
     "Emit an event on CPU 33 before each access to its metadata page in turn.", kDelivers,
     Script{{cpus(36), start, no_nudging, asleep, at_every_access(33, emit_one)}}},
    {"E3/swap-at-every-step-of-thirty-six", erratum, "E3", "a swap at every step on one of 36 CPUs",
     "Replace the buffer of CPU 33 before each access to its metadata page in turn.", kFollows,
     Script{{cpus(36), start, no_nudging, asleep, at_every_access(33, swap_and_emit)}}},
    // Not more: a thread for each CPU, and an fd of each CPU for each thread, are 400 descriptors.
    {"5.1.8.3/change-of-twenty", must, "5.1.8.3", "new buffers on 20 sleeping CPUs",
     "Replace all buffers of 20 CPUs while all of them sleep. Then emit single events on some of "
     "them.",
     kFollows,
     Script{{cpus(20), start,
             times(2, {asleep, resize(), asleep, emit_in_turn({0, 8, 15, 16, 19})}), asleep},
            true}},
};

}  // namespace kmes::conformance
