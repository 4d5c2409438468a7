// SPDX-License-Identifier: MIT
//
// The CPUs are independent of each other (5.1.8.4, contract 2): one CPU is busy, is refused or
// ends. A consumer of several CPUs owes each of them as much as a consumer of one.
#include "conformance/cases/play.h"
#include "conformance/play/busy_cpu.h"
#include "conformance/play/forged_image.h"
#include "conformance/play/long_waits.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

// Texts of several cases.
constexpr std::string_view kWhileBusy =
    "The consumer delivers CPU 1's event while CPU 0 is busy, not when CPU 0 rests.";

// CPU 1 gets its event with an event of CPU 0 unread, so the consumer is not about to wait.
ActAt after_five_events(const PlayAt& busy, const Steps& actions) {
    return {.place = "after event {} of CPU 0, which is busy",
            .play_at = busy,
            .wake = {Emit{1, 40}},
            .actions = {OnCpu{1, actions}},
            .number = 5};
}

// -- Next to a CPU that has ended ---------------------------------------------------------------

constexpr std::uint32_t kOver = 1;       // with CPUs before and after it in each iteration
constexpr std::uint64_t kUnread = 3000;  // more than one delivery batch, less than the ring

// Replaces all buffers at once, between `before` and `afterwards` on CPU 1, and waits for its end.
// The other two CPUs sleep on their new buffers, and are woken there. A consumer that sleeps on an
// old one gets no nudge, because all threads slept on their own buffers at the change.
Steps replaced_together(const Steps& before, const Steps& afterwards, const Step& end) {
    const Steps woken{AsleepHere{}, Emit{}, DeliveredHere{}};
    return {Asleep{},
            EmitEverywhere{},
            Asleep{},
            AtOnce{{OnCpu{kOver, before}, Resize{}, OnCpu{kOver, afterwards}}},
            OnCpu{kOver, {end}},
            OnCpu{0, woken},
            OnCpu{2, woken}};
}
const Setup kThreeWideCpus{.cpus = 3, .capacity = 1 << 18, .nudging = false};

const Row kIndependentCpuRows[] = {
    {{"contract-2/event-beside-a-busy-cpu", Level::should, "an event while another CPU is busy",
      "Emit an event on CPU 0 whenever its consumer is about to wait for one. Then emit one on "
      "CPU 1.",
      kWhileBusy},
     {Asleep{},
      after_five_events(beside_a_busy_cpu(SentAtVisits::no, "contract-2", "an event"), {Emit{}})},
     {.cpus = 2}},
    {{"5.1.8.3/swap-beside-a-busy-cpu", Level::should, "a new buffer while another CPU is busy",
      "Emit an event on CPU 0 whenever its consumer is about to wait for one, and one for each "
      "check of CPU 1. Then replace CPU 1's buffer and emit an event in the new one.",
      kWhileBusy},
     {Asleep{}, after_five_events(
                    beside_a_busy_cpu(SentAtVisits::yes, "5.1.8.3", "an event in its new buffer"),
                    {Swap{}, Emit{}})},
     {.cpus = 2}},
    {{"contract-2/waits-when-idle-for-long", Level::must,
      "waits for one CPU when nothing happens for long",
      "Emit nothing on three CPUs for two seconds. For a consumer with one thread, check every "
      "wait that omits a CPU.",
      "The consumer's waits that omit a CPU take at most 100 ms."},
     {Times{2, {Asleep{}, EmitEverywhere{}}}, Asleep{}, idle_for(2000), EmitEverywhere{}, Asleep{}},
     {.cpus = 3}},
    {{"E3/all-swapped-and-one-refused", Level::erratum,
      "new buffers everywhere, one of them malformed",
      "Replace the buffers of three sleeping CPUs together, CPU 1's by one of version 2. Then "
      "emit an event in each of the other new buffers.",
      "The consumer refuses CPU 1 and sleeps on the new buffers of the others."},
     replaced_together({}, {BreakField{version_field(2)}}, AllRefused{}),
     kThreeWideCpus},
    {{"E3/all-swapped-and-one-ends", Level::erratum,
      "new buffers everywhere, one CPU with an unread end event",
      "Emit 3000 events and the end event on CPU 1. While they are unread, replace the buffers "
      "of three sleeping CPUs together, and emit an event in the other new buffers.",
      "The consumer sleeps on the new buffers of the others."},
     replaced_together({Emit{kUnread, 70}, EmitEnd{}}, {}, DeliveredHere{}),
     kThreeWideCpus},
};

}  // namespace

const std::vector<Case> kIndependentCpuCases = cases_of(kIndependentCpuRows);

}  // namespace kmes::conformance
