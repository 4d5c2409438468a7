// SPDX-License-Identifier: MIT
//
// An event that is overwritten during the copy, in all the ways that a shortcut in the second load
// of tail_pos misses (5.1.8.1 step 5). Examples are overwrites by an unpublished event, by bytes
// that look like a header, across a power of two, or in a large backlog.
#include "conformance/cases/play.h"
#include "conformance/play/faster_producer.h"
#include "conformance/play/row.h"
#include "conformance/play/tail_loads.h"
#include "conformance/play/torn_header.h"

namespace kmes::conformance {

namespace {

// -- One unread event in a ring of old ones ---------------------------------------------------

// Overwrites the event by one that is published later. Until then only the part `written` of that
// event is in the ring.
Steps half_written_at(std::uint64_t page, std::uint64_t type_bytes, Written written) {
    return {Place{}, UnderRead{.at = page * kPageBytes,
                               .wake = {EmitTyped{kVictimBytes, type_bytes}},
                               .actions = {EmitSmall{current() - kVictimBytes},
                                           Reserve{kVictimBytes, written}}}};
}

Step half_written(std::uint64_t type_bytes) {
    return InOrder{{each_below(kVictimPages,
                               [&](std::uint64_t page) {
                                   return half_written_at(page, type_bytes, Written::whole);
                               }),
                    each(kPartsOver, [&](const PartOver& part) {
                        return half_written_at(part.page, type_bytes, part.written);
                    })}};
}

// A consumer might assume that an event is safe because it ends with the region, wraps, or has no
// payload. The event begins `before_the_end` bytes before the end of the region.
Step torn_at(std::uint64_t before_the_end, std::uint64_t page, std::uint64_t type_bytes) {
    return InOrder{
        {Place{before_the_end}, UnderRead{.at = current() - before_the_end + page * kPageBytes,
                                          .wake = {EmitTyped{kVictimBytes, type_bytes}},
                                          .actions = {overwrite_newest(kVictimBytes)}}}};
}

// The end of the region is at the border, and the event crosses it. So the new tail_pos is beyond
// the border, and the old one is not.
Step torn_across(int bits) {
    return InOrder{{Asleep{}, EndIfRefused{},
                    MoveWritePos{(std::uint64_t{1} << bits) - 2 * kPageBytes},
                    UnderRead{.at = current() - 2 * kPageBytes,
                              .wake = {Emit{1, kVictimBytes}},
                              .actions = {overwrite_newest(kVictimBytes)}}}};
}

// -- The oldest of a ring of unread events ----------------------------------------------------

const Steps kVictimAndFollowers = victim_and_followers();

// The whole ring is unread when the first header is read.
Step tear_oldest(const Step& forge) {
    return InOrder{{Place{}, UnderRead{.wake = {AtOnce{kVictimAndFollowers}}, .actions = {forge}}}};
}

// The whole ring is delivered, and the next buffer contains it as well. A consumer that skips those
// events by their sizes continues where a torn size leads.
Step tear_delivered(const Step& forge) {
    return InOrder{{Place{.filler = Filler::small}, InOrder{kVictimAndFollowers}, Asleep{},
                    InNextBuffer{.actions = {forge}, .pages = NextPages::data}}};
}

// A backlog far larger than a consumer copies at once. `passed` bytes of it are overwritten at the
// first access to one of its pages.
Step torn_backlog(std::uint64_t page, std::uint64_t passed) {
    constexpr std::uint64_t kEvents = 1500;
    constexpr std::uint64_t kEventBytes = 1000;
    return InOrder{
        {Place{}, UnderRead{.at = page * kPageBytes,
                            .wake = {AtOnce{{Emit{kEvents, kEventBytes}}}},
                            .actions = {EmitBytes{current() - kEvents * kEventBytes + passed}}}}};
}

// -- By size, and by number -------------------------------------------------------------------

// An event without a payload is all header: a long type, and fields that a later version may add.
EmitTyped large_event(std::uint64_t event_bytes, bool has_payload) {
    constexpr std::uint64_t kTypeBytes = 60'000;
    if (has_payload) return {event_bytes};
    return {event_bytes, kTypeBytes, event_bytes - kHeaderBytesBeforeType - kTypeBytes};
}

// An event so large that a consumer may copy it differently.
Step tear_large(std::uint64_t pages, std::uint64_t stopped_at, bool has_payload = true) {
    const std::uint64_t event_bytes = pages * kPageBytes - 64;
    return InOrder{
        {Place{.filler = Filler::small}, UnderRead{.at = stopped_at * kPageBytes,
                                                   .wake = {large_event(event_bytes, has_payload)},
                                                   .actions = {overwrite_newest(event_bytes)}}}};
}

// A consumer that copies and checks piece by piece must also check after the last piece.
Step at_last_access(std::uint64_t event_bytes) {
    return InOrder{{Place{.filler = Filler::small},
                    ActAt{.place = "before the last access to the last page of the event",
                          .play_at = at_last_access_to(1 + (event_bytes - 1) / kPageBytes),
                          .wake = {Emit{1, event_bytes}},
                          .actions = {overwrite_newest(event_bytes)}}}};
}

// Torn at the first page, in the middle, and at the last page.
Steps torn_anywhere(std::uint64_t pages) {
    return {tear_large(pages, 0), tear_large(pages, pages / 2), tear_large(pages, pages - 1),
            tear_large(pages, 5, false), at_last_access(pages * kPageBytes - 64)};
}

// After its last load of tail_pos, the consumer has read all that it needs.
Step after_each_load(const Step& emit, const Step& overwrite) {
    return Limited{{ActAt{.place = "after load {} of tail_pos",
                          .play_at = after_load_of_tail_pos(),
                          .wake = {emit},
                          .actions = {overwrite},
                          .last = 24,
                          .before = {Place{.filler = Filler::small}}}}};
}

// Bytes that belong to no event.
const Step kLapByNoEvent = OverwriteAll{'\xff'};

// A type longer than a byte can count, of many pages, nearly as long as permitted.
Steps long_type_lapped(std::uint64_t type_bytes) {
    return {after_each_load(EmitTyped{kHeaderBytesBeforeType + type_bytes + 50, type_bytes},
                            kLapByNoEvent)};
}

// A consumer that reads the payload last may read something else if there is none.
const std::uint64_t kWithoutPayload = kHeaderBytesBeforeType + 1;

constexpr std::uint64_t kTornRing = 64 * kPageBytes;

const Row kOvertakenRows[] = {
    {{"5.1.8.1-5/torn-by-an-unpublished-event", Level::must, "an overwrite by an unpublished event",
      "Stop the consumer at its first access to each page of an event of four pages in turn, with "
      "a payload and without one. Fill the rest of the ring, then write another event over that "
      "one. Publish it only when the consumer sleeps.",
      "The consumer sees in tail_pos, not in write_pos, that the event was overwritten, and "
      "discards it."},
     {half_written(1), half_written(kVictimBytes - kHeaderBytesBeforeType)}},
    {{"5.1.8.1-5/torn-at-the-end-of-the-region", Level::must,
      "an overwrite at the end of the region, and without a payload",
      "Overwrite an event during the copy: an event that ends with the data region, an event that "
      "wraps, and an event without a payload.",
      "The consumer loads tail_pos after the copy of every event and discards it."},
     {torn_at(kVictimBytes, 1, 1), torn_at(kVictimBytes, 3, 1), torn_at(2 * kPageBytes, 0, 1),
      torn_at(kVictimPages* kPageBytes, 1, kVictimBytes - kHeaderBytesBeforeType),
      torn_at(kVictimPages* kPageBytes, 3, kVictimBytes - kHeaderBytesBeforeType)}},
    {{"5.1.8.1-5/torn-where-positions-pass-a-border", Level::must,
      "an overwrite across 2^31, 2^32 and 2^63",
      "Overwrite an event that contains such a position during the copy, so that tail_pos moves "
      "from below it to above it.",
      "The consumer compares its position with tail_pos as 64-bit numbers and discards the event."},
     {torn_across(31), torn_across(32), torn_across(63)}},
    {{"E7/torn-to-a-plausible-header", Level::erratum, "a header overwritten by a plausible one",
      "Leave the whole ring unread. When the consumer reads the first header, overwrite it by "
      "itself with a larger event_size, which includes some or all of the later events.",
      "The consumer uses nothing of a torn header to find out whether it was torn, or where to "
      "continue. It continues at tail_pos."},
     {tear_oldest(ForgeLarger{1, 1, 0}), tear_oldest(ForgeLarger{4, 3, 0}),
      tear_oldest(ForgeLarger{2, 1, 100}), tear_oldest(ForgeLarger{kFollowersOfVictim, 1, 0})}},
    {{"E7/torn-to-an-old-number", Level::erratum,
      "a header overwritten by one with an old sequence number",
      "Leave the whole ring unread. When the consumer reads the first header, overwrite it by its "
      "own bytes with the sequence number of a delivered event, or 0.",
      "The consumer checks sequence numbers only after the second load of tail_pos, and continues "
      "at tail_pos."},
     {each({0, 1, 2, 1'000'000},
           [](std::uint64_t back) { return Steps{tear_oldest(ForgeNumber{back})}; })}},
    {{"5.1.8.1-5/backlog-torn-in-part", Level::must, "a part of a large backlog overwritten",
      "Emit 1500 events into a ring of 2 MiB. When the consumer reads the first of them, or the "
      "first of a later page, overwrite the first 5 to 700.",
      "The consumer continues at tail_pos and delivers the others."},
     {torn_backlog(0, 5'000), torn_backlog(0, 70'000), torn_backlog(0, 200'000),
      torn_backlog(0, 700'000), torn_backlog(1, 6'500), torn_backlog(5, 23'500),
      torn_backlog(20, 90'000)},
     {.cpus = 1, .capacity = 2 * kMebibyte}},
    {{"5.1.8.1-5/large-event-torn", Level::must,
      "an event of up to two MiB overwritten during the copy",
      "Emit events of 80 KiB to 2 MiB into a ring of 4 MiB. Overwrite one with another of the "
      "same size at the first access to its first, middle or last page, or at the last access to "
      "the last.",
      "The consumer loads tail_pos after the whole copy, however large the event is, and discards "
      "it."},
     {tear_large(40, 39), tear_large(90, 70), tear_large(190, 180), tear_large(400, 250),
      each({20, 80, 300, 500}, torn_anywhere)},
     {.cpus = 1, .capacity = 4 * kMebibyte}},
    {{"5.1.8.1-5/torn-at-the-last-access", Level::must,
      "an event of a power of two overwritten before the last access",
      "Emit events of 64 bytes to 64 KiB, each a power of two. At the last access to the last "
      "page of one, overwrite it with another of the same size.",
      "The consumer loads tail_pos after the whole copy and discards the event."},
     {at_last_access(64), at_last_access(128), at_last_access(512), at_last_access(4096),
      at_last_access(8192), at_last_access(65536)},
     {.cpus = 1}},
    {{"5.1.8.1-5/large-event-lapped-after-every-load", Level::must,
      "a lap after each load of tail_pos, with a large event",
      "Emit events of 1.2 MiB. Lap the ring after the first load of tail_pos, after the second, "
      "and so on.",
      kReadsNothingLater},
     {after_each_load(Emit{1, 300 * kPageBytes - 64}, kLapByNoEvent)},
     {.cpus = 1, .capacity = 4 * kMebibyte}},
    {{"5.1.8.1-5/long-type-lapped-after-every-load", Level::must,
      "a lap after each load of tail_pos, with a long type",
      "Emit an event whose type has 300, 5,000 or 60,000 bytes. Lap the ring after the first load "
      "of tail_pos, after the second, and so on.",
      "The consumer reads nothing of an event after its last load of tail_pos, the type included."},
     {each({300, 5'000, 60'000}, long_type_lapped)},
     {.cpus = 1, .capacity = kMebibyte}},
    {{"5.1.8.1-5/without-payload-lapped-after-every-load", Level::must,
      "a lap after each load of tail_pos, without a payload",
      "Emit an event without a payload. After each load of tail_pos in turn, lap the ring by "
      "large events, or so that a similar event is in the same place.",
      "The consumer reads nothing of an event after its last load of tail_pos, the header "
      "included."},
     {after_each_load(Emit{1, kWithoutPayload}, kLapByNoEvent),
      after_each_load(Emit{1, kWithoutPayload}, overwrite_newest(kWithoutPayload))},
     {.cpus = 1}},
    {{"5.1.8.1-5/overtaken-again-and-again", Level::must, "eleven hundred overwrites in a row",
      "Fill the ring with unread events. Overwrite all of them when the consumer has loaded "
      "tail_pos and is about to read, three times. Then do so when it has read and is about to "
      "load tail_pos. Repeat up to eleven hundred times.",
      "The consumer continues at tail_pos each time, however often that is, and delivers what is "
      "left."},
     {OvertakeAgain{.times = 1100}},
     {.cpus = 1}},
    {{"5.1.8.1-5/torn-again-and-again", Level::must, "twelve torn reads in a row",
      "Fill the ring with unread events of 20,000 bytes. Overwrite all of them when the consumer "
      "has read a part of one event, and again at the next event that it reads.",
      "The consumer discards each torn event, however often that is, and delivers what is left."},
     {TearAgain{.times = 12, .event_bytes = 20'000}},
     {.cpus = 1, .capacity = kTornRing}},
};

// -- By written and unpublished bytes -------------------------------------------------------------
//
// The producer moves only tail_pos. write_pos stays the same during the copy. Neither it nor the
// distance to the read position shows that the ring has moved on (5.1.7 batch, E8, E16).

constexpr std::uint64_t kPendingRing = kMebibyte;

// The event at the beginning of the region and `unread` bytes after it are unread, and no consumer
// sees only a part of them. The event is overwritten at the first access to one of its pages.
Step tear_by_pending(std::uint64_t page, std::uint64_t unread, Written written) {
    return InOrder{{Place{}, UnderRead{.at = page * kPageBytes,
                                       .wake = {AtOnce{{Emit{1, kVictimBytes}, EmitBytes{unread}}}},
                                       .actions = {BeginOver{unread, written}}}}};
}

// The unread part of the ring: all of it, a half, a sixteenth, or little more than the event
// itself. With the last, the consumer has hardly any backlog.
Steps torn_by_pending(std::uint64_t page) {
    return {tear_by_pending(page, kPendingRing - kVictimBytes, Written::whole),
            tear_by_pending(page, kPendingRing / 2 - kVictimBytes, Written::whole),
            tear_by_pending(page, kPendingRing / 16 - kVictimBytes, Written::whole),
            tear_by_pending(page, 1000, Written::whole)};
}

// The consumer is stopped before bytes of the event that have changed.
Steps torn_by_part_pending(const PartOver& part) {
    return {tear_by_pending(part.page, kPendingRing - kVictimBytes, part.written),
            tear_by_pending(part.page, kPendingRing / 16 - kVictimBytes, part.written)};
}

const Row kPendingRows[] = {
    {{"5.1.8.1-5/torn-by-a-pending-batch", Level::must, "an overwrite before write_pos moves",
      "Stop the consumer in its copy of an event of four pages. Write an event, or a batch of "
      "nearly the rest of the ring, over it, and move tail_pos over it. Leave the new event "
      "whole, half or only its header written, and publish it when the consumer sleeps.",
      "The consumer loads tail_pos after its copy and discards the event, even if write_pos is "
      "unchanged and however little is unread."},
     {each({std::uint64_t{0}, kVictimPages / 2, kVictimPages - 1}, torn_by_pending),
      each(kPartsOver, torn_by_part_pending)},
     {.cpus = 1, .capacity = kPendingRing}},
};

// After the plain scans of a new buffer.
const Row kOvertakenScanRows[] = {
    {{"E21/torn-to-a-plausible-header-while-it-scans", Level::erratum,
      "a header overwritten during the scan of the next buffer",
      "Replace the buffer so that all its events, which are delivered, survive. When the consumer "
      "reads the first one there, overwrite it by its own header with an event_size that includes "
      "some of the later events.",
      "The consumer loads tail_pos after every event, delivered ones included, before it advances "
      "by the event's size."},
     {tear_delivered(ForgeLarger{1, 3, 0}), tear_delivered(ForgeLarger{1, 1, 0}),
      tear_delivered(ForgeLarger{2, 1, 100})},
     {.cpus = 1}},
};

}  // namespace

const std::vector<Case> kOvertakenCases = cases_of(kOvertakenRows);
const std::vector<Case> kOvertakenScanCases = cases_of(kOvertakenScanRows);
const std::vector<Case> kPendingCases = cases_of(kPendingRows);

}  // namespace kmes::conformance
