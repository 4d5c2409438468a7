// SPDX-License-Identifier: MIT
//
// See play.h.
#include "conformance/cases/play.h"

#include <algorithm>

namespace kmes::conformance {

namespace {

// A wake with one event takes a consumer some ten accesses to the metadata page; one that looks far
// more often spins.
constexpr std::uint64_t kAccessesAtMost = 64;
constexpr std::uint64_t kLeastEventBytes = 30;

}  // namespace

void emit_some(Stage& stage, std::uint32_t cpu, std::uint64_t count, std::uint64_t event_bytes) {
    for (std::uint64_t i = 0; i < count; ++i)
        stage.rings().emit(cpu, stage.rings().make(event_bytes));
}

void emit_everywhere(Stage& stage, std::uint64_t count, std::uint64_t event_bytes) {
    for (std::uint64_t i = 0; i < count; ++i) {
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
            emit_some(stage, cpu, 1, event_bytes);
    }
}

void lap(Stage& stage, std::uint32_t cpu, std::uint64_t event_bytes) {
    const std::uint64_t bytes = std::min(event_bytes, capacity(stage, cpu) / 2);
    emit_some(stage, cpu, capacity(stage, cpu) / bytes + 2, bytes);
}

std::uint64_t write_pos(Stage& stage, std::uint32_t cpu) {
    const History& history = stage.rings().history();
    return history.buffer(history.present_buffer(cpu)).write_pos;
}

std::uint64_t capacity(Stage& stage, std::uint32_t cpu) {
    const History& history = stage.rings().history();
    return history.buffer(history.present_buffer(cpu)).capacity;
}

void fill_up_to(Stage& stage, std::uint32_t cpu, std::uint64_t offset) {
    const std::uint64_t size = capacity(stage, cpu);
    const std::uint64_t largest = size / 4;
    std::uint64_t left = (size - offset - write_pos(stage, cpu)) & (size - 1);
    if (left < kLeastEventBytes) left += size;
    while (left > 0) {
        std::uint64_t bytes = std::min(left, largest);
        if (left - bytes > 0 && left - bytes < kLeastEventBytes) bytes = left - kLeastEventBytes;
        emit_some(stage, cpu, 1, bytes);
        left -= bytes;
    }
}

bool act_at_access(Stage& stage, std::uint32_t cpu, std::uint64_t k,
                   const std::function<void()>& act) {
    stage.wait_asleep();
    if (stage.has_ended(cpu)) return false;  // refused: the judge says whether rightly
    stage.wait_until([&stage, cpu] { return stage.has_mapped_present(cpu); },
                     "the present buffer to be mapped");
    std::uint64_t accesses = 0;
    stage.guard(cpu, 0, 1, [&](const GuardHit&) {
        if (++accesses == k) {
            act();
        } else if (accesses > kAccessesAtMost) {
            return Stage::AtGuard::release;
        }
        return Stage::AtGuard::step;
    });
    emit_some(stage, cpu, 1, 100);
    stage.wait_asleep();
    stage.release_guards();
    return accesses >= k;
}

void act_at_every_access(Stage& stage, std::uint32_t cpu, const std::function<void()>& act) {
    for (std::uint64_t k = 1; k < kAccessesAtMost; ++k) {
        if (!act_at_access(stage, cpu, k, act)) break;
    }
}

}  // namespace kmes::conformance
