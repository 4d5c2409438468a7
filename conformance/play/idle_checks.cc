// SPDX-License-Identifier: MIT
//
// See idle_checks.h.
#include "conformance/play/idle_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "conformance/monitors/idle_samples.h"
#include "conformance/play/play.h"

namespace kmes::conformance {

namespace {

constexpr std::uint64_t kLongestWaitMs = 100;

double seconds_since(TimePoint begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Returns the time from an event to its record in waits of 100 ms: the best of several samples,
// and the slowest such wait. Samples end when one is fast enough.
double waits_to_deliver(Stage& stage, std::uint32_t cpu, const CheckDelay& check) {
    double best = 1e9;
    double wait = 0;
    for (int i = 0; i < check.samples && (i == 0 || best / wait > check.most_waits); ++i) {
        const TimePoint wait_begun = Clock::now();
        stage.waits().let_run(kLongestWaitMs);
        wait = std::max(wait, seconds_since(wait_begun));
        // One thread for all may sleep on the first CPU only.
        stage.waits().asleep_or_stuck(0);
        const TimePoint emitted = Clock::now();
        emit_some(stage, cpu, 1, 100);
        stage.waits().delivered(cpu);
        best = std::min(best, seconds_since(emitted));
    }
    return best / wait;
}

}  // namespace

void CheckIdleTime::operator()(Stage& stage) const {
    const std::string fault = find_idle_fault(stage);
    if (!fault.empty()) stage.findings().blame("5.1.8.2", fault);
}

void CheckDelay::operator()(Stage& stage) const {
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
        const double waits = waits_to_deliver(stage, cpu, *this);
        if (waits <= most_waits) continue;
        stage.findings().blame(
            "5.1.8.2-6",
            fmt::format("CPU {}: the shortest of {} times from an event to its record is {:.1f} "
                        "waits of {} ms; expected at most {} such waits with {} CPU{}",
                        cpu, samples, waits, kLongestWaitMs, most_waits, stage.cpus(),
                        stage.cpus() == 1 ? "" : "s"));
        return;
    }
}

void CountEventLate::operator()(Stage& stage) const {
    constexpr int kWakes = 20;
    stage.holding().freeze();
    const bool is_late =
        stage.rings().emissions().emit_and_count_late(0, stage.rings().events().make(100));
    stage.holding().thaw();
    // The consumer goes back to sleep with the old value before the kernel has loaded the word.
    bool is_counted = !is_late;
    stage.hooks().set_on_wait([&](const FutexWait&, std::uint32_t) {
        stage.testee().read_report();
        if (is_counted || !is_delivered(stage, 0)) return;
        is_counted = true;
        stage.rings().emissions().count_late(0);
    });
    // The consumer finds the event after a spurious wake.
    for (int i = 0; i < kWakes && !is_counted && stage.rings().spurious_wake(0) == 0; ++i)
        stage.waits().let_run(1);
    give_time(stage, [&is_counted] { return is_counted; });
    stage.hooks().set_on_wait(nullptr);
    if (!is_counted) stage.rings().emissions().count_late(0);
    stage.waits().delivered();
}

}  // namespace kmes::conformance
