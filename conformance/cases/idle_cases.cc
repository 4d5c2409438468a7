// SPDX-License-Identifier: MIT
//
// Idle consumers (level should): a consumer with nothing to do uses no processor, and a consumer
// that is woken delivers. The delay of a delivery is compared with a wait that is measured in the
// same run, and several samples count.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "conformance/cases/play.h"
#include "conformance/monitors/idle_samples.h"
#include "conformance/play/forged_image.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

// Texts of several cases.
constexpr std::string_view kCompareIdle =
    "Compare the processor time of the idle consumer with that of a thread that never rests, and "
    "with its own sleep, several times.";
constexpr std::string_view kSleepsWhenIdle =
    "The consumer sleeps. In two samples, or in all together, it uses far less processor time.";

constexpr int kSamples = 7;
constexpr std::uint64_t kLongestWaitMs = 100;

double seconds_of(Clock::duration time) {
    return std::chrono::duration<double>(time).count();
}

// The history of the testee before it becomes idle.
enum class Before { events, ends, changes, refusal, late_count };

// The counters have the highest bit set: some calls take a signed number.
void set_up_idle(Stage& stage, std::uint32_t cpus) {
    constexpr std::uint32_t kCounter = 0x8000'0100;
    RingsSetup setup = stage.default_setup();
    setup.cpus = cpus;
    setup.first_futex_counter = kCounter;
    stage.set_up(setup);
}

// Leaves the last of three CPUs, after the others have ended and it has had events since. Data that
// the consumer keeps by an index in a list has moved.
void leave_the_last_cpu(Stage& stage) {
    for (const std::uint32_t ended : {0u, 1u}) {
        end_cpu(stage, ended);
        emit_some(stage, 2, 2, 100);
        stage.waits().delivered();
        stage.wait_asleep();
    }
}

// Changes the buffer twice: no work for a change may continue forever.
void change_twice(Stage& stage) {
    for (const std::uint64_t factor : {2u, 1u}) {
        stage.wait_asleep();
        stage.resize(factor * stage.capacity_bytes());
        emit_some(stage, 0, 2, 100);
        stage.waits().delivered();
    }
    stage.wait_asleep();
}

// The consumer's wait is refused with nothing new. The producer had published an event, and not yet
// counted it, when the consumer loaded futex_counter for the last time. The consumer has delivered
// that event.
void count_one_late(Stage& stage) {
    constexpr int kWakes = 20;
    stage.wait_asleep();
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

// The first of two CPUs has a bad magic, and events that the consumer must not read.
void start_refused(Stage& stage) {
    break_field(stage, 0, magic_field(0, 'X', "XMESRING"));
    stage.start();
    stage.waits().until([&stage] { return stage.testee().has_refused(0); }, "a refusal of CPU 0");
}

CaseOutcome idle_burns_no_cpu(Stage& stage, Before before) {
    set_up_idle(stage, before == Before::ends ? 3 : before == Before::refusal ? 2 : 1);
    emit_everywhere(stage, 3, 100);
    if (before == Before::refusal)
        start_refused(stage);
    else
        stage.start();
    stage.waits().delivered();
    if (before == Before::ends) leave_the_last_cpu(stage);
    if (before == Before::changes) change_twice(stage);
    if (before == Before::late_count) count_one_late(stage);
    const std::string fault = find_idle_fault(stage);
    if (!fault.empty()) stage.findings().blame("5.1.8.2", fault);
    return stage.finish();
}

// In seconds: the best of several deliveries, and the slowest wait of a consumer that checks every
// 100 ms (contract, waiting).
struct Delivery {
    double best = 1e9;
    double wait = 0;

    double ratio() const { return best / wait; }
    bool is_slow(double most) const { return ratio() > most; }
};

Delivery time_deliveries(Stage& stage, std::uint32_t cpu, int tries, double most) {
    Delivery delivery;
    for (int i = 0; i < tries && (i == 0 || delivery.is_slow(most)); ++i) {
        const TimePoint wait_begun = Clock::now();
        stage.waits().let_run(kLongestWaitMs);
        delivery.wait = std::max(delivery.wait, seconds_of(Clock::now() - wait_begun));
        // One thread for all may sleep on the first CPU only.
        stage.waits().asleep_or_stuck(0);
        const TimePoint emitted = Clock::now();
        emit_some(stage, cpu, 1, 100);
        stage.waits().delivered(cpu);
        delivery.best = std::min(delivery.best, seconds_of(Clock::now() - emitted));
    }
    return delivery;
}

// Compares the time from the event to the record with the slowest correct one.
CaseOutcome delivers_when_woken(Stage& stage) {
    constexpr double kMost = 4;
    set_up_one_cpu(stage);
    stage.start();
    stage.wait_asleep();
    const Delivery delivery = time_deliveries(stage, 0, kSamples, kMost);
    if (delivery.is_slow(kMost)) {
        stage.findings().blame(
            "5.1.8.2-6",
            fmt::format("CPU 0: the shortest of {} times from an event to its record is "
                        "{:.1f} waits of {} ms; expected at most {} such waits",
                        kSamples, delivery.ratio(), kLongestWaitMs, kMost));
    }
    return stage.finish();
}

// As delivers_when_woken, for each of several CPUs. One thread that waits on one CPU at a time must
// also check the others in time.
CaseOutcome delivers_on_any_cpu(Stage& stage) {
    constexpr std::uint32_t kCpus = 3;
    constexpr double kMost = 4.0 * kCpus;
    constexpr int kTries = 3;
    set_up_cpus(stage, kCpus);
    stage.start();
    for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu) {
        const Delivery delivery = time_deliveries(stage, cpu, kTries, kMost);
        if (!delivery.is_slow(kMost)) continue;
        stage.findings().blame(
            "5.1.8.2-6",
            fmt::format("CPU {}: the shortest of {} times from an event to its record is {:.1f} "
                        "waits of {} ms; expected at most {} such waits with {} CPUs",
                        cpu, kTries, delivery.ratio(), kLongestWaitMs, kMost, kCpus));
        break;
    }
    return stage.finish();
}

const Row kIdleRows[] = {
    {{"5.1.8.2/idle-burns-no-cpu", Level::should, "processor time while idle", kCompareIdle,
      kSleepsWhenIdle},
     [](Stage& stage) { return idle_burns_no_cpu(stage, Before::events); }},
    {{"5.1.8.2/idle-beside-an-ended-cpu", Level::should,
      "processor time while idle, with ended CPUs",
      "Emit the end event on the two other CPUs. Then compare the processor time of the idle "
      "consumer with that of a thread that never rests, and with its own sleep, several times.",
      kSleepsWhenIdle},
     [](Stage& stage) { return idle_burns_no_cpu(stage, Before::ends); }},
    {{"5.1.8.2/idle-beside-a-refused-cpu", Level::should,
      "processor time while idle, with a refused CPU",
      "Give the other CPU a bad magic, and events. Then compare the processor time of the idle "
      "consumer with that of a thread that never rests, and with its own sleep, several times.",
      kSleepsWhenIdle},
     [](Stage& stage) { return idle_burns_no_cpu(stage, Before::refusal); }},
    {{"5.1.8.2/idle-after-changes", Level::should,
      "processor time while idle, after changes of the buffer",
      "Replace the buffer twice. Then compare the processor time of the idle consumer with that "
      "of a thread that never rests, and with its own sleep, several times.",
      kSleepsWhenIdle},
     [](Stage& stage) { return idle_burns_no_cpu(stage, Before::changes); }},
    {{"5.1.8.2/idle-after-a-late-count", Level::should, "processor time while idle, after EAGAIN",
      "Increment futex_counter for an event only after its delivery, so that the "
      "next wait returns EAGAIN. Then compare the consumer's processor time with "
      "that of a thread that never rests, and with its own sleep.",
      "The consumer reads futex_counter again and sleeps. In two samples, or in all "
      "together, it uses far less processor time."},
     [](Stage& stage) { return idle_burns_no_cpu(stage, Before::late_count); }},
    {{"5.1.8.2/delivers-when-woken", Level::should, "delay from an event to its record",
      "Compare the time from an event to its record with a wait of 100 ms, several times.",
      "The consumer needs at most four such waits in at least one sample.", "5.1.8.2-6"},
     delivers_when_woken},
    {{"5.1.8.2/delivers-on-any-cpu", Level::should, "delay from an event to its record on any CPU",
      "Compare the time from an event to its record with a wait of 100 ms, on each of three "
      "CPUs. The consumer may check them one after the other.",
      "The consumer needs at most twelve such waits in one of three samples for each CPU.",
      "5.1.8.2-6"},
     delivers_on_any_cpu},
};

}  // namespace

const std::vector<Case> kIdleCases = cases_of(kIdleRows);

}  // namespace kmes::conformance
