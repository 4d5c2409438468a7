// SPDX-License-Identifier: MIT
//
// An event that is overwritten during the copy, in all the ways that a shortcut in the second load
// of tail_pos misses (5.1.8.1 step 5). Examples are overwrites by an unpublished event, by bytes
// that look like a header, across a power of two, or in a large backlog.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/oracle/layout.h"
#include "conformance/play/moves.h"
#include "conformance/play/row.h"

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

constexpr std::uint64_t kFollowers = 7;
// The overwriting event begins this many bytes before the overwritten one, where its header is.
const std::uint64_t kBefore = (kLeastEventBytes + 63) / 64 * 64;
const Amount kFollowerBytes =
    current(1, kFollowers + 1) - (kVictimBytes + kBefore) / (kFollowers + 1);

// The bytes of the header in the ring at `position`.
std::string header_at(Stage& stage, std::uint64_t position) {
    const std::uint8_t* region =
        stage.rings().backend().base(stage.rings().history().current_buffer(0)) + kMetadataBytes;
    const std::uint64_t offset = position & (capacity(stage, 0) - 1);
    return {region + offset, region + offset + kHeaderBytesBeforeType + 1};
}

// The bytes that overwrite the header of the oldest event, in addition to its own bytes.
struct TornHeader {
    std::uint64_t more = 0;  // event_size claims this many bytes after the event
    std::optional<std::uint64_t> sequence = std::nullopt;
};

// The event at the beginning of the region: the oldest one apart from those in the last `kBefore`
// bytes.
const Placement& oldest(Stage& stage) {
    const History& history = stage.rings().history();
    return *placement_at(history.buffer(history.current_buffer(0)), 0, 0);
}

void forge_oldest(Stage& stage, const TornHeader& torn) {
    const std::uint64_t position = oldest(stage).position;
    const std::uint64_t left = position + capacity(stage, 0) - kBefore - write_pos(stage, 0);
    std::string header = header_at(stage, position);
    stage.rings().emit_bytes(0, left);
    const auto event_size = static_cast<std::uint32_t>(kVictimBytes + torn.more);
    std::memcpy(header.data() + kEventSizeAt, &event_size, sizeof event_size);
    if (torn.sequence)
        std::memcpy(header.data() + kSequenceAt, &*torn.sequence, sizeof *torn.sequence);
    EventSpec over = stage.rings().events().make(kBefore + kVictimBytes);
    over.payload.replace(kBefore - kHeaderBytesBeforeType - over.type.size(), header.size(),
                         header);
    stage.rings().emit(0, std::move(over));
}

// Makes event_size larger by times/parts of a follower, minus `less`.
Step forge_larger(std::uint64_t times, std::uint64_t parts, std::uint64_t less) {
    return Call{[=](Stage& stage) {
        const std::uint64_t follower =
            (capacity(stage, 0) - kVictimBytes - kBefore) / (kFollowers + 1);
        forge_oldest(stage, {.more = follower * times / parts - less});
    }};
}

// Plausible sizes with a sequence number that would be wrong in a whole event: 0, which is never
// assigned, the last delivered number, and earlier ones.
Step forge_number(std::uint64_t back) {
    return Call{[back](Stage& stage) {
        const std::uint64_t last = oldest(stage).sequence - 1;
        forge_oldest(stage, {.sequence = last - std::min(last, back)});
    }};
}

const Steps kVictimAndFollowers{Emit{1, kVictimBytes}, Emit{kFollowers, kFollowerBytes}};

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

// A consumer that copies and checks piece by piece must also check after the last piece. The first
// of two iterations counts the accesses to the last page of the event.
void tear_at_last(Stage& stage, std::uint64_t event_bytes) {
    const std::uint64_t last_page = 1 + (event_bytes - 1) / kPageBytes;
    std::uint64_t loads = 0;
    for (const bool is_torn : {false, true}) {
        if (!place_next_event(stage, 0, Filler::small)) return;
        std::uint64_t left = loads;
        stage.guards().guard(0, last_page, 1, [&](const GuardHit&) {
            if (!is_torn) ++loads;
            if (!is_torn || --left > 0) return AtGuard::step;
            emit_small(stage, 0, capacity(stage, 0) - event_bytes);
            emit_some(stage, 0, 1, event_bytes);
            return AtGuard::release;
        });
        emit_some(stage, 0, 1, event_bytes);
        stage.wait_asleep(0);
        stage.guards().release();
    }
}

Step at_last_access(std::uint64_t event_bytes) {
    return Call{[event_bytes](Stage& stage) { tear_at_last(stage, event_bytes); }};
}

// Torn at the first page, in the middle, and at the last page.
Steps torn_anywhere(std::uint64_t pages) {
    return {tear_large(pages, 0), tear_large(pages, pages / 2), tear_large(pages, pages - 1),
            tear_large(pages, 5, false), at_last_access(pages * kPageBytes - 64)};
}

// Overwrites after the k-th load of tail_pos, and before any other access. After its last load, the
// consumer has read all that it needs.
void overwrite_after_loads(Stage& stage, const EventSpec& spec,
                           const std::function<void()>& overwrite) {
    constexpr std::uint64_t kLoads = 24;
    WalkLimit limit(stage);
    for (std::uint64_t k = 1; k <= kLoads && !limit.is_over(); ++k) {
        if (!place_next_event(stage, 0, Filler::small)) break;
        std::uint64_t loads = 0;
        const auto is_load = [](const GuardHit& hit) {
            return hit.place.offset_bytes == kTailPosOffset;
        };
        stage.guards().guard(
            0, 0, 1, [&](const GuardHit&) { return loads > k ? AtGuard::release : AtGuard::step; },
            [&](const GuardHit& hit, const GuardStep&) {
                if (is_load(hit) && ++loads == k) overwrite();
            });
        stage.rings().emit(0, spec);
        stage.wait_asleep(0);
        stage.guards().release();
        if (loads < k) break;
    }
}

// Overwrites with bytes that belong to no event.
void lap_after_loads(Stage& stage, const EventSpec& spec) {
    overwrite_after_loads(stage, spec, [&stage] {
        overwrite_all(stage, [](std::string& payload, std::uint64_t) {
            payload.assign(payload.size(), '\xff');
        });
    });
}

// A type longer than a byte can count, of many pages, nearly as long as permitted.
void long_type_lapped_after_loads(Stage& stage) {
    for (const std::uint64_t type_bytes : {300, 5'000, 60'000})
        lap_after_loads(stage, stage.rings().events().make(kHeaderBytesBeforeType + type_bytes + 50,
                                                           std::string(type_bytes, 'l')));
}

// A consumer that reads the payload last may read something else if there is none. The second time,
// a similar event overwrites it, so that a plausible header is in the same place.
void without_payload_lapped_after_loads(Stage& stage) {
    const std::uint64_t kBytes = kHeaderBytesBeforeType + 1;
    lap_after_loads(stage, stage.rings().events().make(kBytes));
    overwrite_after_loads(stage, stage.rings().events().make(kBytes), [&stage, kBytes] {
        emit_small(stage, 0, capacity(stage, 0) - kBytes);
        emit_some(stage, 0, 1, kBytes);
    });
}

void large_event_lapped_after_loads(Stage& stage) {
    lap_after_loads(stage, stage.rings().events().make(300 * kPageBytes - 64));
}

// A producer that is always faster. It overwrites everything unread: a few times between the load
// of tail_pos and the read, then between the read and the next load of tail_pos.
class FasterProducer {
  public:
    FasterProducer(Stage& stage, int times)
        : stage_(stage),
          limit_(stage),
          left_(times),
          calls_(stage.testee().tracer().effects().redirected_calls) {
        stage.guards().guard(0, 0, 1 + 2 * capacity(stage, 0) / kPageBytes,
                             [this](const GuardHit& hit) { return at(hit.place.offset_bytes); });
    }
    bool has_come_to_read() const { return has_read_; }

  private:
    static constexpr std::uint64_t kEventBytes = 1000;
    // All tries of one kind come before those of the other, because the try after a discarded read
    // is of the same kind.
    static constexpr int kInARow = 3;

    AtGuard at(std::uint64_t offset) {
        const bool is_read = offset >= kMetadataBytes;
        if (!is_read && offset != kTailPosOffset) return AtGuard::step;
        // Reads by system calls only count, at the consumer's next load.
        const std::uint64_t calls = stage_.testee().tracer().effects().redirected_calls;
        const bool has_called = calls > std::exchange(calls_, calls);
        if (has_called) is_reading_ = has_read_ = true;
        if (is_read == is_reading_) return AtGuard::step;
        is_reading_ = is_read;
        has_read_ |= is_read;
        if (has_read_ && (has_called || is_read == (left_ / kInARow % 2 == 0))) {
            lap(stage_, 0, kEventBytes);
            if (--left_ == 0 || limit_.is_over()) return AtGuard::release;
        }
        // Other reads of the consumer before its next load do not stop it.
        if (is_read)
            stage_.guards().release_data();
        else
            stage_.guards().guard_data();
        return AtGuard::step;
    }

    Stage& stage_;
    WalkLimit limit_;
    int left_;
    std::uint64_t calls_;
    bool is_reading_ = false;
    bool has_read_ = false;
};

void overtaken_again(Stage& stage) {
    constexpr int kTimes = 1100;
    stage.wait_asleep();
    const std::uint64_t calls = stage.testee().tracer().effects().redirected_calls;
    const FasterProducer producer(stage, kTimes);
    lap(stage, 0);
    stage.wait_asleep(0);
    if (!producer.has_come_to_read()) stop_unseen(stage, calls);
    stage.guards().release();
}

constexpr std::uint64_t kRingPages = 64;

// Overwrites in the middle of an event, then in the middle of the next one that the consumer reads,
// and so on. Some pages are guarded, so a copy of many events at once has read those before.
void torn_again(Stage& stage) {
    constexpr std::uint64_t kEventBytes = 20'000;
    constexpr std::uint64_t kEvery = 4;
    stage.wait_asleep();
    const auto first_page = [&stage] {
        const History& history = stage.rings().history();
        return stage.rings().backend().state(history.current_buffer(0)).tail / kPageBytes %
               kRingPages;
    };
    int left = 12;
    bool is_torn = false;  // since the last load of metadata
    const auto at = [&](const GuardHit& hit) {
        const std::uint64_t page = hit.place.offset_bytes / kPageBytes;
        if (page < kMetadataPages) {
            is_torn = false;
        } else if (!is_torn && (page - kMetadataPages) % kRingPages != first_page()) {
            is_torn = true;
            lap(stage, 0, kEventBytes);
            if (--left == 0) return AtGuard::release;
        }
        return AtGuard::step;
    };
    stage.guards().guard(0, 0, 1, at);
    for (std::uint64_t page = 1; page <= 2 * kRingPages; page += kEvery)
        stage.guards().guard(0, page, 1, at);
    lap(stage, 0, kEventBytes);
    stage.wait_asleep(0);
    stage.guards().release();
}

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
     {tear_oldest(forge_larger(1, 1, 0)), tear_oldest(forge_larger(4, 3, 0)),
      tear_oldest(forge_larger(2, 1, 100)), tear_oldest(forge_larger(kFollowers, 1, 0))}},
    {{"E7/torn-to-an-old-number", Level::erratum,
      "a header overwritten by one with an old sequence number",
      "Leave the whole ring unread. When the consumer reads the first header, overwrite it by its "
      "own bytes with the sequence number of a delivered event, or 0.",
      "The consumer checks sequence numbers only after the second load of tail_pos, and continues "
      "at tail_pos."},
     {each({0, 1, 2, 1'000'000},
           [](std::uint64_t back) { return Steps{tear_oldest(forge_number(back))}; })}},
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
     {Call{large_event_lapped_after_loads}},
     {.cpus = 1, .capacity = 4 * kMebibyte}},
    {{"5.1.8.1-5/long-type-lapped-after-every-load", Level::must,
      "a lap after each load of tail_pos, with a long type",
      "Emit an event whose type has 300, 5,000 or 60,000 bytes. Lap the ring after the first load "
      "of tail_pos, after the second, and so on.",
      "The consumer reads nothing of an event after its last load of tail_pos, the type included."},
     {Call{long_type_lapped_after_loads}},
     {.cpus = 1, .capacity = kMebibyte}},
    {{"5.1.8.1-5/without-payload-lapped-after-every-load", Level::must,
      "a lap after each load of tail_pos, without a payload",
      "Emit an event without a payload. After each load of tail_pos in turn, lap the ring by "
      "large events, or so that a similar event is in the same place.",
      "The consumer reads nothing of an event after its last load of tail_pos, the header "
      "included."},
     {Call{without_payload_lapped_after_loads}},
     {.cpus = 1}},
    {{"5.1.8.1-5/overtaken-again-and-again", Level::must, "eleven hundred overwrites in a row",
      "Fill the ring with unread events. Overwrite all of them when the consumer has loaded "
      "tail_pos and is about to read, three times. Then do so when it has read and is about to "
      "load tail_pos. Repeat up to eleven hundred times.",
      "The consumer continues at tail_pos each time, however often that is, and delivers what is "
      "left."},
     {Call{overtaken_again}},
     {.cpus = 1}},
    {{"5.1.8.1-5/torn-again-and-again", Level::must, "twelve torn reads in a row",
      "Fill the ring with unread events of 20,000 bytes. Overwrite all of them when the consumer "
      "has read a part of one event, and again at the next event that it reads.",
      "The consumer discards each torn event, however often that is, and delivers what is left."},
     {Call{torn_again}},
     {.cpus = 1, .capacity = kRingPages * kPageBytes}},
};

// -- By written and unpublished bytes -------------------------------------------------------------
//
// The producer moves only tail_pos. write_pos stays the same during the copy. Neither it nor the
// distance to the read position shows that the ring has moved on (5.1.7 batch, E8, E16).

// Events of `bytes` bytes in total, none of them large for the ring.
std::vector<EventSpec> make_some(Stage& stage, std::uint64_t bytes) {
    const std::uint64_t most = capacity(stage, 0) / 16;
    std::vector<EventSpec> specs;
    for (; bytes > 2 * most; bytes -= most) specs.push_back(stage.rings().events().make(most));
    specs.push_back(stage.rings().events().make(bytes));
    return specs;
}

// Writes `bytes` unpublished bytes over the event and its successors. Up to half of the ring can be
// one event. More is a batch, whose last event takes the victim's place if it is not whole.
void begin_over(Stage& stage, std::uint64_t bytes, Written written) {
    Rings& rings = stage.rings();
    if (bytes <= kVictimBytes)
        return rings.emissions().reserve(0, rings.events().make(bytes), written);
    if (written == Written::whole)
        return rings.emissions().begin_batch(0, make_some(stage, bytes), {});
    std::vector<EventSpec> specs = make_some(stage, bytes - kVictimBytes);
    specs.push_back(rings.events().make(kVictimBytes));
    rings.emissions().begin_batch(0, specs,
                                  {written, static_cast<std::uint32_t>(specs.size() - 1)});
}

constexpr std::uint64_t kPendingRing = kMebibyte;

// The event at the beginning of the region and `unread` bytes after it are unread, and no consumer
// sees only a part of them. The event is overwritten at the first access to one of its pages.
Step tear_by_pending(std::uint64_t page, std::uint64_t unread, Written written) {
    return InOrder{{Place{}, UnderRead{.at = page * kPageBytes,
                                       .wake = {AtOnce{{Emit{1, kVictimBytes}, EmitBytes{unread}}}},
                                       .actions = {Call{[unread, written](Stage& stage) {
                                           begin_over(stage, capacity(stage, 0) - unread, written);
                                       }}}}}};
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
     {tear_delivered(forge_larger(1, 3, 0)), tear_delivered(forge_larger(1, 1, 0)),
      tear_delivered(forge_larger(2, 1, 100))},
     {.cpus = 1}},
};

}  // namespace

const std::vector<Case> kOvertakenCases = cases_of(kOvertakenRows);
const std::vector<Case> kOvertakenScanCases = cases_of(kOvertakenScanRows);
const std::vector<Case> kPendingCases = cases_of(kPendingRows);

}  // namespace kmes::conformance
