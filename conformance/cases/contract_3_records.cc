// SPDX-License-Identifier: MIT
//
// Before a consumer sleeps or exits, all records are written, whole, and the consumer has checked
// again. That holds whichever thread does it, whatever the timeouts of the waits, and whatever ends
// them.
#include <cerrno>
#include <string_view>

#include "conformance/cases/play.h"
#include "conformance/play/change_record.h"
#include "conformance/play/row.h"
#include "conformance/play/sleep_watch.h"
#include "conformance/play/writer_hold.h"

namespace kmes::conformance {

namespace {

using enum Level;

constexpr std::uint32_t kThreeCpus = 3;

// More text at once, from several threads, than most buffers can store.
Steps half_full_of_types(std::uint64_t type_bytes) {
    constexpr std::uint64_t kHalf = 128 * kKibibyte;
    const std::uint64_t events = (kHalf + type_bytes + 199) / (type_bytes + 200);
    const EmitTyped event{kHeaderBytesBeforeType + type_bytes + 10, type_bytes};
    return {Asleep{}, AtOnce{{OnEachCpu{{Times{events, {event}}}}}}};
}

// Holds a thread that only writes, before its write number `number` of the burst.
Steps held_in_a_burst(std::uint64_t number, std::uint64_t at_most_ms) {
    const SleepBlame blame{"contract-3",
                           "CPU 0: the consumer sleeps before it has written all records; expected "
                           "the record of every event that it has read"};
    return {Asleep{}, EndIfRefused{}, EndIfBlamed{},
            ActAt{.place = "before write {} of a thread that does not read the ring",
                  .play_at = at_write_before_a_sleep(blame),
                  .wake = {Emit{40, 1500}},
                  .actions = {Hold{HeldUntil::finding, at_most_ms}},
                  .number = number}};
}

// Holds the writing thread before its first record while the others read on.
Steps piled_up(std::uint64_t events) {
    return {Asleep{}, EndIfRefused{},
            ActAt{.place = "before write {} of a thread that does not read the ring",
                  .play_at = at_write_of_a_writer(),
                  .wake = {Emit{}},
                  .actions = {AtOnce{{Emit{events, 40}}}, Hold{HeldUntil::cpu_sleeps, 600}}}};
}

// Holds the thread that is about to write the record of the end event of `cpu`. Meanwhile it emits
// the end events of the later CPUs. The program must not exit.
Steps held_at_the_end(std::uint32_t cpu) {
    Steps earlier;
    Steps later;
    for (std::uint32_t other = 0; other < cpu; ++other)
        earlier.append({Asleep{}, OnCpu{other, {EmitEnd{}, DeliveredHere{}}}});
    for (std::uint32_t other = cpu + 1; other < kThreeCpus; ++other)
        later.push_back(OnCpu{other, {EmitEnd{}}});
    return {InOrder{earlier}, Asleep{},
            ActAt{.place = "before write {} of the consumer",
                  .play_at = at_write(cpu),
                  .wake = {OnCpu{cpu, {EmitEnd{}}}},
                  .actions = {InOrder{later}, Hold{HeldUntil::finding, 300}}}};
}

const SleepBlame kNoSecondLoad{"E2",
                               "CPU 0: the consumer sleeps for more than 100 ms with a published "
                               "event unread; expected a delivery"};

// A wait with a timeout may end with ETIMEDOUT at any time: the consumer chooses the timeout, and
// may have been held since. Then it checks again and sets need_wake again. The same holds for a
// signal, which may end any wait.
const Steps kSpuriousWakes{
    Times{8,
          {Asleep{}, OnEachCpu{{FutexWake{}, [](Stage& stage) { stage.waits().let_run(1); }}},
           Asleep{}, EmitEverywhere{1, 80}}},
    Asleep{}};

constexpr std::string_view kWritesBeforeExit =
    "The consumer exits only after it has written the records of everything that it has read.";
constexpr std::string_view kChecksAgain =
    "The consumer checks for events and sets need_wake again.";

const Row kRecordRows[] = {
    {{"contract-3/whole-lines", must, "whole lines in each write",
      "Fill half of each CPU's buffer with events of types of 20 to 40,000 bytes. Check each write "
      "to the report.",
      "The consumer ends each write with a newline, if several of its threads write."},
     {each({20, 300, 3000, 40'000}, half_full_of_types), Asleep{}},
     {.capacity = 256 * kKibibyte, .stops_at_writes = true}},
    {{"contract-3/records-before-it-sleeps", must, "all records before a sleep",
      "Emit bursts of forty events. Hold a thread that writes records, and does not load write_pos "
      "itself, before one of its writes. Check the report when the thread that loaded write_pos "
      "enters a futex wait.",
      "The consumer has written the record of each of them by then."},
     // Records of another CPU do not count for this one. The first holds are for a consumer that
     // waits for its writers, but not forever. The last write is for a consumer whose threads can
     // be only few events apart. The first one is for a consumer that writes many records at once.
     {OnCpu{1, {Emit{400, 60}}}, InOrder{held_in_a_burst(1, 500)}, InOrder{held_in_a_burst(2, 500)},
      each({40, 39, 20, 5, 30, 3},
           [](std::uint64_t number) { return held_in_a_burst(number, 60); })},
     {.cpus = 2, .stops_at_writes = true}},
    {{"contract-3/records-pile-up", must, "many events that wait for their records",
      "Hold a thread that writes records, and does not read the ring itself, before one of its "
      "writes. Emit 256, 257, 300 and 5000 events meanwhile.",
      "The consumer delivers every event once, however many its threads hand over."},
     // More than a count of 8 bits, or of 12, can represent.
     {each({256, 257, 300, 5000}, piled_up)},
     {.cpus = 1, .capacity = kMebibyte, .stops_at_writes = true}},
    {{"contract-4/exits-with-all-records", must, "records of all threads at the end",
      "Emit the end event on CPU 0, and hold the thread that writes its record before it does. "
      "Emit the end event of the other CPUs meanwhile.",
      kWritesBeforeExit},
     held_at_the_end(0),
     {.cpus = kThreeCpus, .stops_at_writes = true}},
    {{"contract-4/exits-after-its-last-record", must, "the last record at the end",
      "Emit the end event on the last of three CPUs, and hold the thread that writes its record "
      "before it does.",
      kWritesBeforeExit},
     held_at_the_end(2),
     {.cpus = kThreeCpus, .stops_at_writes = true}},
    {{"contract-3/a-change-is-reported-before-it-sleeps", must, "G record before a sleep",
      "Replace the buffer and emit nothing. Check the report when the consumer sleeps in the next "
      "buffer and none of its threads runs.",
      "The consumer has written the G record by then."},
     {changes_without_events(4)},
     {.cpus = 2, .stops_at_writes = true}},
    {{"E2/no-limit-instead-of-a-second-load", erratum,
      "a long time limit in place of a second check",
      "Emit an event at each access to the metadata page in turn, as in E2/event-at-every-step. "
      "Check the time limit of the sleep that follows.",
      "The consumer never sleeps for more than 100 ms while an event is unread."},
     {ActAt{.place = "before access {} to the metadata page, after a wake",
            .play_at = at_access_before_a_sleep(kNoSecondLoad),
            .wake = {Emit{}},
            .actions = {Emit{1, 70}},
            .last = 40,
            .before = {Asleep{}, EndIfRefused{}, EndIfBlamed{}}}},
     {.cpus = 2}},
    {{"5.1.8.2-5/waits-that-time-out", must, "ETIMEDOUT from futex_wait",
      "Wake the consumer without an event, with ETIMEDOUT where the wait has a time limit.",
      kChecksAgain},
     kSpuriousWakes,
     {.wake_result = -ETIMEDOUT}},
    {{"5.1.8.2-5/interrupted-without-an-event", must, "EINTR from futex_wait, without an event",
      "Wake the consumer without an event, with EINTR.", kChecksAgain},
     kSpuriousWakes,
     {.wake_result = -EINTR}},
};

}  // namespace

const std::vector<Case> kRecordCases = cases_of(kRecordRows);

}  // namespace kmes::conformance
