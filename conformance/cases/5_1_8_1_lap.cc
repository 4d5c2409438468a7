// SPDX-License-Identifier: MIT
//
// A consumer that is overtaken: laps, torn reads, and the states in between (5.1.8.1 steps 2 to 5,
// 5.1.9, E6, E7, E20).
#include <string>

#include "conformance/cases/play.h"
#include "conformance/play/lapped_event.h"
#include "conformance/play/moves.h"
#include "conformance/play/row.h"
#include "conformance/play/tail_at_write_pos.h"

namespace kmes::conformance {

namespace {

// Texts of several cases.
constexpr std::string_view kSurvivors =
    "The consumer delivers every event that is not overwritten.";
constexpr std::string_view kDiscards = "The consumer discards the event.";

constexpr std::string_view kSixtyFourBits =
    "The consumer compares positions as 64-bit numbers and continues at tail_pos.";

Steps lapped(std::uint64_t event_bytes, std::uint64_t laps) {
    return {Asleep{}, each_below(3, [&](std::uint64_t i) {
                return Steps{AtOnce{{OnEachCpu{{Times{laps, {Lap{event_bytes + i, 13}}}}}}},
                             Asleep{}, EmitEverywhere{2, 100}, Asleep{}};
            })};
}

// -- Distances and numbers of events that exceed 32 bits --

constexpr std::uint64_t kOutrunCapacity = 512 * kKibibyte;
constexpr std::uint64_t k31 = std::uint64_t{1} << 31;
constexpr std::uint64_t k32 = std::uint64_t{1} << 32;
const Setup kOutrunRing{.cpus = 1, .capacity = kOutrunCapacity};

// Plays the actions while the consumer sleeps, and before each of its first accesses to the
// metadata page.
Step asleep_and_before_accesses(const Steps& actions) {
    return InOrder{{Asleep{}, AtOnce{actions}, Asleep{},
                    BeforeEachAccess{.actions = {AtOnce{actions}}, .last = 10}}};
}

Steps outrun(std::uint64_t bytes) {
    return {asleep_and_before_accesses({Outrun{bytes}})};
}

// First the consumer meets a gap that fits any number, to see whether it counts what it has lost.
Step outrun_by_events(int bits, const Steps& afterwards) {
    const std::uint64_t kLeastBytes = kLeastEventBytes + 2;
    Steps actions{
        Outrun{(kLeastBytes << bits) + 2 * kOutrunCapacity, (std::uint64_t{1} << bits) + 5}};
    actions.append(afterwards);
    return InOrder{
        {Asleep{}, AtOnce{{Emit{9, kOutrunCapacity / 8}}}, asleep_and_before_accesses(actions)}};
}

// Outruns the consumer while it reads an event. Then once more, so that tail_pos minus the laps is
// inside of the event.
Steps outrun_under_read(std::uint64_t bytes) {
    constexpr std::uint64_t kEventBytes = 16 * kPageBytes - 64;
    constexpr std::uint64_t kStoppedAt = 12 * kPageBytes;  // after the final load of tail_pos
    const auto torn_by = [bytes](std::uint64_t more) {
        return Steps{Place{}, UnderRead{.at = kStoppedAt,
                                        .wake = {Emit{1, kEventBytes}},
                                        .actions = {AtOnce{{Outrun{bytes}}}, EmitBytes{more}}}};
    };
    return {each({std::uint64_t{0}, kOutrunCapacity - kEventBytes + 1000}, torn_by)};
}

// -- Torn reads --

// An event of some pages is at the beginning of the ring. `overwrite` comes before the first access
// to one of its pages from `first_page` on. The consumer has read old bytes before that, and reads
// new ones next.
Steps torn_once(std::uint64_t first_page, const Steps& overwrite) {
    return {Place{}, UnderRead{.at = first_page * kPageBytes,
                               .wake = {Emit{1, kVictimBytes}},
                               .actions = overwrite,
                               .pages = kVictimPages - first_page}};
}

Steps torn(std::uint64_t first_page, const Steps& overwrite) {
    return {Times{3, torn_once(first_page, overwrite)}};
}

// Sizes, some of them plausible, at the beginning of the ring, where the header was.
const TornSizes kMixedSizes[] = {
    {0xffffffff, kShortHeader, 1}, {100, 0xffffffff, 1},        {100, 101, 1},
    {100, kShortHeader, 60000},    {0xffffffff, 0xfffffff0, 1}, {0, kShortHeader, 1},
    {131072, kShortHeader, 1},     {100, kShortHeader, 0xffff}};

Steps torn_to_sizes(const TornSizes& torn) {
    return torn_once(0, {Call{[torn](Stage& stage) {
                         overwrite_all(stage, [&](std::string& payload, std::uint64_t position) {
                             const std::uint64_t begin = position + kHeaderBytesBeforeType + 1;
                             put_sizes(payload, (0 - begin) & (capacity(stage, 0) - 1), torn);
                         });
                     }}});
}

// -- A buffer that was shrunk, with one event in it that takes 5/8 of it: more than half --

constexpr std::uint64_t kSmall = 64 * kKibibyte;
const Steps kShrinkToLargeSurvivor{OnEachCpu{{Emit{1, kSmall / 8 * 5}}}, Resize{kSmall}};

const Row kLapRows[] = {
    {{"5.1.8.1-2/lapped-moves-to-tail", Level::must, "a lap",
      "Overwrite the whole buffer while the consumer is stopped, three times.",
      "The consumer continues at tail_pos and delivers everything from there. Its L records count "
      "the lost events."},
     lapped(3000, 1),
     {.before_start = {EmitEverywhere{5, 300}}}},
    {{"5.1.8.1-2/lapped-many-times", Level::must, "several laps at once",
      "Overwrite the whole buffer five times while the consumer is stopped.", kContinuesAtTail},
     lapped(7000, 5),
     {.before_start = {EmitEverywhere{5, 300}}}},
    {{"5.1.8.1-2/lapped-by-small-events", Level::must, "a lap by events of other sizes",
      "Overwrite the buffer with events of about 500 bytes, so that the old read position is in "
      "the middle of one.",
      kContinuesAtTail},
     lapped(500, 1),
     {.before_start = {EmitEverywhere{5, 300}}}},
    {{"5.1.8.1-2/lapped-by-one-event", Level::must, "a lap by one event",
      "Emit nine events of an eighth of the capacity while the consumer is stopped. The last "
      "overwrites the first.",
      "The consumer delivers eight events and loses one."},
     {Asleep{}, OnEachCpu{{AtOnce{{Emit{9, current(1, 8)}}}, Asleep{}}}}},
    {{"5.1.8.1-5/torn-in-the-middle", Level::must, "an overwrite in the middle of the copy",
      "Stop the consumer at its first access to the second page of an event of four pages. Lap "
      "the ring.",
      "The consumer sees in its second load of tail_pos that the event was overwritten, and "
      "discards it."},
     torn(1, {OverwriteAll{'\x5a'}})},
    {{"5.1.8.1-5/torn-at-the-end", Level::must, "an overwrite at the end of the copy",
      "Stop the consumer at its first access to the last page of an event of four pages. Lap the "
      "ring.",
      kDiscards},
     torn(3, {OverwriteAll{'\xa5'}})},
    {{"5.1.8.1-5/lapped-at-every-load", Level::must, "an overwrite before each access to an event",
      "Lap the ring before each access to the data of a small event in turn.", kReadsNothingLater},
     {LapAtEachAccess{}},
     kOneCpu},
    {{"5.1.8.1-5/end-lapped-at-every-load", Level::must,
      "an overwrite before each access to an end event",
      "Emit an end event on each of several CPUs. Lap the ring before one of the last eleven "
      "accesses to its data, another one on each CPU.",
      "The consumer ends the CPU, or sees that the event was overwritten. It reads nothing of an "
      "event after its last load of tail_pos."},
     {Asleep{}, LapEndAtLastAccesses{}},
     {.cpus = 12}},
    {{"E7/torn-header-of-large-sizes", Level::erratum, "a header overwritten by huge sizes",
      "Stop the consumer before it reads the header. Lap the ring, so that event_size, "
      "header_size and type_len read as all ones.",
      "The consumer checks the sizes before it uses them, and sees in tail_pos that they were "
      "overwritten."},
     torn(0, {OverwriteAll{'\xff'}})},
    {{"E7/torn-header-of-zeros", Level::erratum, "a header overwritten by zeros",
      "Stop the consumer before it reads the header. Lap the ring, so that event_size, "
      "header_size and type_len read as 0.",
      "The consumer neither loops nor delivers an empty event."},
     torn(0, {OverwriteAll{'\0'}})},
    {{"E7/torn-header-of-mixed-sizes", Level::erratum,
      "a header overwritten by sizes that contradict each other",
      "Stop the consumer before it reads the header. Lap the ring by headers that contradict "
      "themselves: a size of 4 GiB with a short header, a header longer than the event, a type "
      "longer than both.",
      "The consumer checks every size before it uses any of them."},
     {each(kMixedSizes, torn_to_sizes)}},
    {{"E20/lapped-at-every-step", Level::erratum, "a lap between any two accesses to the metadata",
      "Lap the ring before each access to the metadata page in turn.",
      "The consumer loads write_pos again after each change of its read position."},
     {Asleep{}, BeforeEachAccess{{Lap{8000}}}}},
    {{"E20/lapped-in-part-at-every-step", Level::erratum,
      "a partial lap between any two accesses to the metadata",
      "Emit ten events of an eighth of the capacity before each access to the metadata page in "
      "turn.",
      kSurvivors},
     {Asleep{}, BeforeEachAccess{{Emit{10, current(1, 8)}}}}},
    {{"E20/tail-reaches-write-pos", Level::erratum,
      "tail_pos at write_pos during an unpublished event",
      "Shrink, so that one event of 5/8 of the capacity is left. Before each access in turn, "
      "reserve half the capacity, so that tail_pos is write_pos. Write nothing of the event, its "
      "header, half of it or all of it, and publish it five accesses later.",
      "The consumer takes the buffer for empty until write_pos moves. It delivers nothing early, "
      "in part, or twice."},
     {Asleep{}, ReachWritePos{kSmall}},
     {.capacity = 4 * kSmall}},
    {{"E7/event-larger-than-half", Level::erratum, "an event of more than half the capacity",
      "Shrink, so that the only event takes 5/8 of the new capacity.",
      "The consumer delivers the event, because the bound is what is published and not half the "
      "capacity."},
     {Delivered{}, EmitEverywhere{2, 100}, Delivered{}},
     {.capacity = 4 * kSmall, .before_start = kShrinkToLargeSurvivor}},
    {{"E20/large-survivor-passed-at-every-step", Level::erratum,
      "a large survivor overwritten between any two accesses",
      "Shrink. Emit two events of half the capacity before each access to the metadata page in "
      "turn.",
      kSurvivors},
     {Asleep{}, BeforeEachAccess{{Emit{2, current(1, 2)}}}},
     {.capacity = 4 * kSmall, .before_start = kShrinkToLargeSurvivor}},
    {{"5.1.6.2/overtaken-by-2-gibibytes", Level::must, "a lap of more than 2^31 bytes",
      "Overtake the consumer by 2 GiB and 2 MiB, in its sleep and before each of its first ten "
      "accesses to the metadata page.",
      kSixtyFourBits},
     outrun(k31 + 2 * kMebibyte),
     kOutrunRing},
    {{"5.1.6.2/overtaken-by-4-gibibytes", Level::must, "a lap of 2^32 bytes",
      "Overtake the consumer by 4 GiB, in its sleep and before each of its first ten accesses to "
      "the metadata page.",
      kSixtyFourBits},
     outrun(k32),
     kOutrunRing},
    {{"5.1.8.1-5/torn-by-2-gibibytes", Level::must, "a lap of 2^31 bytes during the copy",
      "Stop the consumer in an event of 16 pages. Overtake it by 2 GiB and 2 MiB, and by a little "
      "more.",
      kSixtyFourBits},
     outrun_under_read(k31 + 2 * kMebibyte),
     kOutrunRing},
    {{"5.1.8.1-5/torn-by-4-gibibytes", Level::must, "a lap of 2^32 bytes during the copy",
      "Stop the consumer in an event of 16 pages. Overtake it by 4 GiB, and by a little more.",
      kSixtyFourBits},
     outrun_under_read(k32),
     kOutrunRing},
    {{"5.1.9/gap-of-2-to-the-31-events", Level::must,
      "a lap of more events than 31 and 32 bits can count",
      "Overtake the consumer by 2^31 + 5 events, later by 2^32 + 5. Do so in its sleep and before "
      "each of its first ten accesses to the metadata page.",
      "The consumer continues at tail_pos. Its L records count the lost events as the difference "
      "of two 64-bit numbers."},
     {outrun_by_events(31, {}), outrun_by_events(32, {})},
     kOutrunRing},
    {{"5.1.8.3-5/gap-of-2-to-the-31-events-over-a-swap", Level::must,
      "events in the new buffer more than 2^31 ahead",
      "Play 5.1.9/gap-of-2-to-the-31-events, and replace the buffer before the consumer checks "
      "it. Each surviving event is more than 2^31 sequence numbers after the last delivered one.",
      "The consumer compares sequence numbers as 64-bit numbers and delivers every event that "
      "survives."},
     {outrun_by_events(31, {Resize{}}), outrun_by_events(32, {Resize{}})},
     kOutrunRing},
};

}  // namespace

const std::vector<Case> kLapCases = cases_of(kLapRows);

}  // namespace kmes::conformance
