// SPDX-License-Identifier: MIT
//
// Idle consumers (level should): a consumer with nothing to do uses no processor, and a consumer
// that is woken delivers.
#include "conformance/cases/play.h"
#include "conformance/play/forged_image.h"
#include "conformance/play/idle_checks.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

// Texts of several cases.
constexpr std::string_view kCompareIdle =
    "Compare the processor time of the idle consumer with that of a thread that never rests, and "
    "with its own sleep, several times.";
constexpr std::string_view kSleepsWhenIdle =
    "The consumer sleeps. In two samples, or in all together, it uses far less processor time.";

// The counters have the highest bit set: some calls take a signed number.
Setup idle_on(std::uint32_t cpus, const Steps& fault = {}) {
    Setup setup{.cpus = cpus,
                .rings = [](RingsSetup& rings) { rings.first_futex_counter = 0x8000'0100; },
                .before_start = {EmitEverywhere{3}}};
    setup.before_start.append(fault);
    return setup;
}

// The last of three CPUs is left, after the others have ended and it has had events since. Data
// that the consumer keeps by an index in a list has moved.
const Step kLeaveLastCpu = each({0u, 1u}, [](std::uint32_t ended) {
    return Steps{OnCpu{ended, {EndCpu{}}}, OnCpu{2, {Emit{2}}}, Delivered{}, Asleep{}};
});

// No work for a change of the buffer may continue forever.
const Step kChangeTwice = each({2, 1}, [](std::uint64_t factor) {
    return Steps{Asleep{}, Resize{current(factor)}, Emit{2}, Delivered{}};
});

const Row kIdleRows[] = {
    {{"5.1.8.2/idle-burns-no-cpu", Level::should, "processor time while idle", kCompareIdle,
      kSleepsWhenIdle},
     {Delivered{}, CheckIdleTime{}},
     idle_on(1)},
    {{"5.1.8.2/idle-beside-an-ended-cpu", Level::should,
      "processor time while idle, with ended CPUs",
      "Emit the end event on the two other CPUs. Then compare the processor time of the idle "
      "consumer with that of a thread that never rests, and with its own sleep, several times.",
      kSleepsWhenIdle},
     {Delivered{}, kLeaveLastCpu, CheckIdleTime{}},
     idle_on(3)},
    {{"5.1.8.2/idle-beside-a-refused-cpu", Level::should,
      "processor time while idle, with a refused CPU",
      "Give the other CPU a bad magic, and events. Then compare the processor time of the idle "
      "consumer with that of a thread that never rests, and with its own sleep, several times.",
      kSleepsWhenIdle},
     {Refused{}, Delivered{}, CheckIdleTime{}},
     idle_on(2, {BreakField{magic_field(0, 'X', "XMESRING")}})},
    {{"5.1.8.2/idle-after-changes", Level::should,
      "processor time while idle, after changes of the buffer",
      "Replace the buffer twice. Then compare the processor time of the idle consumer with that "
      "of a thread that never rests, and with its own sleep, several times.",
      kSleepsWhenIdle},
     {Delivered{}, kChangeTwice, Asleep{}, CheckIdleTime{}},
     idle_on(1)},
    {{"5.1.8.2/idle-after-a-late-count", Level::should, "processor time while idle, after EAGAIN",
      "Increment futex_counter for an event only after its delivery, so that the "
      "next wait returns EAGAIN. Then compare the consumer's processor time with "
      "that of a thread that never rests, and with its own sleep.",
      "The consumer reads futex_counter again and sleeps. In two samples, or in all "
      "together, it uses far less processor time."},
     {Delivered{}, Asleep{}, CountEventLate{}, CheckIdleTime{}},
     idle_on(1)},
    {{"5.1.8.2/delivers-when-woken", Level::should, "delay from an event to its record",
      "Compare the time from an event to its record with a wait of 100 ms, several times.",
      "The consumer needs at most four such waits in at least one sample.", "5.1.8.2-6"},
     {Asleep{}, CheckDelay{7, 4}},
     kOneCpu},
    {{"5.1.8.2/delivers-on-any-cpu", Level::should, "delay from an event to its record on any CPU",
      "Compare the time from an event to its record with a wait of 100 ms, on each of three "
      "CPUs. The consumer may check them one after the other.",
      "The consumer needs at most twelve such waits in one of three samples for each CPU.",
      "5.1.8.2-6"},
     {CheckDelay{3, 12}},
     {.cpus = 3}},
};

}  // namespace

const std::vector<Case> kIdleCases = cases_of(kIdleRows);

}  // namespace kmes::conformance
