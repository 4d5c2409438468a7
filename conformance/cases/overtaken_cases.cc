// SPDX-License-Identifier: MIT
//
// An event that is overwritten during the copy, in all the ways that a shortcut in the second load
// of tail_pos misses (5.1.8.1 step 5). Examples: an overwrite by an unpublished event, by bytes
// that look like a header, across a power of two, and of a small part of a large backlog.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "conformance/cases/play.h"
#include "conformance/oracle/layout.h"

namespace kmes::conformance {

namespace {

// -- One unread event in a ring of old ones ---------------------------------------------------

// Small events, of so many bytes together: what grows for a large event must not have grown before.
void emit_small(Stage& stage, std::uint64_t bytes) {
    constexpr std::uint64_t kSmall = 8 * kPageBytes;
    for (; bytes > 2 * kSmall; bytes -= kSmall) emit_some(stage, 0, 1, kSmall);
    stage.rings().emit_bytes(0, bytes);
}

// The next event will be at the begin of the region, and the consumer sleeps. False: the consumer
// has refused the buffer, and the judge says whether it is right.
bool go_to_the_begin(Stage& stage) {
    stage.wait_asleep();
    if (stage.has_ended(0)) return false;
    const std::uint64_t size = capacity(stage, 0);
    std::uint64_t left = (0 - write_pos(stage, 0)) & (size - 1);
    if (left < kLeastEventBytes) left += size;
    emit_small(stage, left);
    stage.wait_asleep(0);
    return true;
}

// Overwrites exactly one event, by another of the same size.
void overwrite_newest(Stage& stage, std::uint64_t event_bytes) {
    emit_small(stage, capacity(stage, 0) - event_bytes);
    stage.rings().emit(0, stage.rings().make(event_bytes));
}

// By one that is published later, and of which so much is in the ring until then.
void begin_over_newest(Stage& stage, std::uint64_t page, std::size_t type_bytes, Written written) {
    if (!place_next_event(stage, 0)) return;
    overwrite_under_read(
        stage, page, 1,
        [&stage, type_bytes] {
            stage.rings().emit(0, stage.rings().make(kVictimBytes, std::string(type_bytes, 'h')));
        },
        [&stage, written] {
            emit_small(stage, capacity(stage, 0) - kVictimBytes);
            stage.rings().reserve(0, stage.rings().make(kVictimBytes), written);
        });
}

CaseOutcome half_written(Stage& stage) {
    stage.start();
    for (const std::size_t type_bytes : {std::size_t{1}, kVictimBytes - kHeaderBytesBeforeType}) {
        for (std::uint64_t page = 0; page < kVictimPages; ++page)
            begin_over_newest(stage, page, type_bytes, Written::whole);
        for (const PartOver& part : kPartsOver)
            begin_over_newest(stage, part.page, type_bytes, part.written);
    }
    return stage.finish();
}

// What a consumer might take for safe: it ends with the region, it wraps, it has no payload.
CaseOutcome wherever_it_lies(Stage& stage) {
    struct Victim {
        std::uint64_t before_the_end;  // of the region: where it begins
        std::uint64_t stopped_at;      // the page of the event, from 0
        bool has_payload;
    };
    constexpr Victim kVictims[] = {{kVictimBytes, 1, true},
                                   {kVictimBytes, 3, true},
                                   {2 * kPageBytes, 0, true},
                                   {kVictimPages * kPageBytes, 1, false},
                                   {kVictimPages * kPageBytes, 3, false}};
    stage.start();
    for (const Victim& victim : kVictims) {
        if (!place_next_event(stage, victim.before_the_end)) break;
        const std::uint64_t from = (capacity(stage, 0) - victim.before_the_end) / kPageBytes;
        const std::size_t type_bytes =
            victim.has_payload ? 1 : kVictimBytes - kHeaderBytesBeforeType;
        overwrite_under_read(
            stage, from + victim.stopped_at, 1,
            [&stage, type_bytes] {
                stage.rings().emit(0,
                                   stage.rings().make(kVictimBytes, std::string(type_bytes, 'n')));
            },
            [&stage] { overwrite_newest(stage, kVictimBytes); });
    }
    return stage.finish();
}

// The end of the region is at the border, and the event crosses it: the new tail_pos is beyond the
// border, and the previous one was not.
CaseOutcome across_borders(Stage& stage) {
    stage.start();
    for (const int bits : {31, 32, 63}) {
        stage.wait_asleep();
        if (stage.has_ended(0)) break;  // refused: the judge says whether rightly
        const std::uint64_t border = std::uint64_t{1} << bits;
        move_positions(stage, write_pos(stage, 0), border - 2 * kPageBytes);
        overwrite_under_read(
            stage, capacity(stage, 0) / kPageBytes - 2, 1,
            [&stage] { emit_some(stage, 0, 1, kVictimBytes); },
            [&stage] { overwrite_newest(stage, kVictimBytes); });
    }
    return stage.finish();
}

// -- The oldest of a ring of unread events ----------------------------------------------------

constexpr std::uint64_t kFollowers = 7;
// The overwriting event begins this far before the overwritten one, where its header is.
constexpr std::uint64_t kBefore = 64;

std::uint64_t follower_bytes(Stage& stage) {
    return (capacity(stage, 0) - kVictimBytes - kBefore) / (kFollowers + 1);
}

// The bytes of the header in the ring at `position`.
std::string header_at(Stage& stage, std::uint64_t position) {
    const std::uint8_t* region =
        stage.rings().backend().base(stage.rings().history().present_buffer(0)) + kMetadataBytes;
    const std::uint64_t offset = position & (capacity(stage, 0) - 1);
    return {region + offset, region + offset + kHeaderBytesBeforeType + 1};
}

// What the header of the oldest event is overwritten with, beside its own bytes.
struct TornHeader {
    std::uint64_t more = 0;  // so many bytes behind it belong to it, says event_size
    std::optional<std::uint64_t> sequence = std::nullopt;
};

void forge_oldest(Stage& stage, std::uint64_t position, const TornHeader& torn) {
    const std::uint64_t left = position + capacity(stage, 0) - kBefore - write_pos(stage, 0);
    std::string header = header_at(stage, position);
    stage.rings().emit_bytes(0, left);
    const auto event_size = static_cast<std::uint32_t>(kVictimBytes + torn.more);
    std::memcpy(header.data() + kEventSizeAt, &event_size, sizeof event_size);
    if (torn.sequence)
        std::memcpy(header.data() + kSequenceAt, &*torn.sequence, sizeof *torn.sequence);
    EventSpec over = stage.rings().make(kBefore + kVictimBytes);
    over.payload.replace(kBefore - kHeaderBytesBeforeType - over.type.size(), header.size(),
                         header);
    stage.rings().emit(0, std::move(over));
}

// All of the ring is unread when the first header is read.
void tear_oldest(Stage& stage, const TornHeader& torn) {
    const std::uint64_t position = write_pos(stage, 0);
    const std::uint64_t follower = follower_bytes(stage);
    overwrite_under_read(
        stage, 0, 1,
        [&stage, follower] {
            stage.freeze();
            emit_some(stage, 0, 1, kVictimBytes);
            emit_some(stage, 0, kFollowers, follower);
            stage.thaw();
        },
        [&stage, position, torn] { forge_oldest(stage, position, torn); });
}

CaseOutcome plausible_header(Stage& stage) {
    stage.start();
    const std::uint64_t follower = follower_bytes(stage);
    for (const std::uint64_t more :
         {follower, follower + follower / 3, 2 * follower - 100, kFollowers * follower}) {
        stage.wait_asleep();
        fill_up_to(stage, 0, 0);
        stage.wait_asleep(0);
        if (stage.has_ended(0)) break;  // refused: the judge says whether rightly
        tear_oldest(stage, {more});
    }
    return stage.finish();
}

// Sizes that fit, and a number that would be wrong in an event which is whole: not assigned (0),
// the one that was delivered last, and those before it.
CaseOutcome old_number(Stage& stage) {
    stage.start();
    for (const std::uint64_t back : {0, 1, 2, 1'000'000}) {
        stage.wait_asleep();
        fill_up_to(stage, 0, 0);
        stage.wait_asleep(0);
        if (stage.has_ended(0)) break;
        const std::uint64_t last = stage.rings().history().events_of(0).back().sequence;
        tear_oldest(stage, {0, last - std::min(last, back)});
    }
    return stage.finish();
}

// The same of events that were delivered from the buffer before: one that goes over them by their
// sizes goes on where a torn one leads it.
CaseOutcome plausible_header_in_a_scan(Stage& stage) {
    set_up_one_cpu(stage);
    stage.start();
    const std::uint64_t follower = follower_bytes(stage);
    for (const std::uint64_t more : {follower / 3, follower, 2 * follower - 100}) {
        if (!go_to_the_begin(stage)) break;
        const std::uint64_t position = write_pos(stage, 0);
        emit_some(stage, 0, 1, kVictimBytes);
        emit_some(stage, 0, kFollowers, follower);
        stage.wait_asleep();
        bool is_done = false;
        stage.set_on_mapped([&](const Mapped& mapped) {
            if (is_done || !stage.is_present(mapped, 0)) return;
            stage.guard(0, 1, 1, [&](const GuardHit&) {
                is_done = true;
                forge_oldest(stage, position, {more});
                return Stage::AtGuard::release;
            });
        });
        stage.resize(stage.capacity_bytes());
        stage.wait_asleep();
        stage.set_on_mapped(nullptr);
        stage.release_guards();
    }
    return stage.finish();
}

// Far more is unread than anybody copies at once; a part of it is overwritten while the first of it
// is read.
CaseOutcome backlog_torn(Stage& stage) {
    constexpr std::uint64_t kCapacity = 2 << 20;
    constexpr std::uint64_t kEvents = 1500;
    constexpr std::uint64_t kEventBytes = 1000;
    set_up_one_cpu(stage, kCapacity);
    stage.start();
    struct Tear {
        std::uint64_t page;    // at whose first access
        std::uint64_t passed;  // bytes of the backlog
    };
    for (const auto& [page, passed] :
         {Tear{0, 5'000}, Tear{0, 70'000}, Tear{0, 200'000}, Tear{0, 700'000}, Tear{1, 6'500},
          Tear{5, 23'500}, Tear{20, 90'000}}) {
        stage.wait_asleep();
        if (stage.has_ended(0)) break;  // refused: the judge says whether rightly
        fill_up_to(stage, 0, 0);
        stage.wait_asleep();
        overwrite_under_read(
            stage, page, 1,
            [&stage] {
                stage.freeze();
                emit_some(stage, 0, kEvents, kEventBytes);
                stage.thaw();
            },
            [&stage, passed = passed] {
                stage.rings().emit_bytes(0, kCapacity - kEvents * kEventBytes + passed);
            });
    }
    return stage.finish();
}

// -- By size, and by number -------------------------------------------------------------------

// An event without a payload is all header: a long type, and fields that a later version may add.
EventSpec large_event(Stage& stage, std::uint64_t event_bytes, bool has_payload) {
    constexpr std::uint64_t kTypeBytes = 60'000;
    if (has_payload) return stage.rings().make(event_bytes, "l");
    return stage.rings().make(event_bytes, std::string(kTypeBytes, 'l'),
                              event_bytes - kHeaderBytesBeforeType - kTypeBytes);
}

// An event that many would not copy as they copy others.
void tear_large(Stage& stage, std::uint64_t pages, std::uint64_t stopped_at, bool has_payload) {
    const std::uint64_t event_bytes = pages * kPageBytes - 64;
    if (!go_to_the_begin(stage)) return;
    bool is_done = false;
    stage.guard(0, 1 + stopped_at, 1, [&](const GuardHit&) {
        overwrite_newest(stage, event_bytes);
        is_done = true;
        return Stage::AtGuard::release;
    });
    const std::uint64_t calls = stage.tracer().redirected_calls();
    stage.rings().emit(0, large_event(stage, event_bytes, has_payload));
    stage.wait_until_or_asleep([&is_done] { return is_done; }, 0);
    if (!is_done) stop_unseen(stage, calls);
    stage.wait_asleep(0);
    stage.release_guards();
}

// At its last access to the last page: for one that goes over an event more than once.
void tear_at_last(Stage& stage, std::uint64_t event_bytes) {
    const std::uint64_t last_page = 1 + (event_bytes - 1) / kPageBytes;
    std::uint64_t looks = 0;
    for (const bool is_torn : {false, true}) {
        if (!go_to_the_begin(stage)) return;
        std::uint64_t left = looks;
        stage.guard(0, last_page, 1, [&](const GuardHit&) {
            if (!is_torn) ++looks;
            if (!is_torn || --left > 0) return Stage::AtGuard::step;
            overwrite_newest(stage, event_bytes);
            return Stage::AtGuard::release;
        });
        emit_some(stage, 0, 1, event_bytes);
        stage.wait_asleep(0);
        stage.release_guards();
    }
}

CaseOutcome large_event_torn(Stage& stage) {
    constexpr std::uint64_t kCapacity = 4 << 20;
    set_up_one_cpu(stage, kCapacity);
    stage.start();
    // Each is the largest that it has seen: for one whose copy grows on the way.
    struct Growing {
        std::uint64_t pages, stopped_at;
    };
    for (const auto& [pages, stopped_at] :
         {Growing{40, 39}, Growing{90, 70}, Growing{190, 180}, Growing{400, 250}})
        tear_large(stage, pages, stopped_at, true);
    // At its first page, in its middle, at its last.
    for (const std::uint64_t pages : {20, 80, 300, 500}) {
        for (const std::uint64_t stopped_at : {std::uint64_t{0}, pages / 2, pages - 1})
            tear_large(stage, pages, stopped_at, true);
        tear_large(stage, pages, 5, false);
        tear_at_last(stage, pages * kPageBytes - 64);
    }
    return stage.finish();
}

// A consumer that copies piece by piece, and checks after each, has to check after the last piece,
// too, although no part of a piece is left.
CaseOutcome torn_at_last_access(Stage& stage) {
    set_up_one_cpu(stage);
    stage.start();
    for (const std::uint64_t event_bytes : {64, 128, 512, 4096, 8192, 65536})
        tear_at_last(stage, event_bytes);
    return stage.finish();
}

// After the k-th load of tail_pos, and before any other access. After its last load, the consumer
// has read all that it needs.
void overwrite_behind_looks(Stage& stage, const EventSpec& spec,
                            const std::function<void()>& overwrite) {
    constexpr std::uint64_t kLooks = 24;
    WalkLimit limit(stage);
    for (std::uint64_t k = 1; k <= kLooks && !limit.is_over(); ++k) {
        if (!go_to_the_begin(stage)) break;
        std::uint64_t looks = 0;
        const auto is_look = [](const GuardHit& hit) {
            return hit.place.offset_bytes == kTailPosOffset;
        };
        stage.guard(
            0, 0, 1,
            [&](const GuardHit&) {
                return looks > k ? Stage::AtGuard::release : Stage::AtGuard::step;
            },
            [&](const GuardHit& hit, const GuardStep&) {
                if (is_look(hit) && ++looks == k) overwrite();
            });
        stage.rings().emit(0, spec);
        stage.wait_asleep(0);
        stage.release_guards();
        if (looks < k) break;
    }
}

// By bytes that are no event's.
void lap_behind_looks(Stage& stage, const EventSpec& spec) {
    overwrite_behind_looks(stage, spec, [&stage] {
        overwrite_all(stage, [](std::string& payload, std::uint64_t) {
            payload.assign(payload.size(), '\xff');
        });
    });
}

// More than a byte can count, many pages, and nearly as much as a type may have.
CaseOutcome long_type_lapped_behind_looks(Stage& stage) {
    set_up_one_cpu(stage, 1 << 20);
    stage.start();
    for (const std::uint64_t type_bytes : {300, 5'000, 60'000})
        lap_behind_looks(stage, stage.rings().make(kHeaderBytesBeforeType + type_bytes + 50,
                                                   std::string(type_bytes, 'l')));
    return stage.finish();
}

// A consumer that reads the payload last may read something else if there is none. The second time,
// a similar event overwrites it, so that a header that fits is in the same place.
CaseOutcome without_payload_lapped_behind_looks(Stage& stage) {
    constexpr std::uint64_t kBytes = kHeaderBytesBeforeType + 1;
    set_up_one_cpu(stage);
    stage.start();
    lap_behind_looks(stage, stage.rings().make(kBytes));
    overwrite_behind_looks(stage, stage.rings().make(kBytes),
                           [&stage] { overwrite_newest(stage, kBytes); });
    return stage.finish();
}

CaseOutcome large_event_lapped_behind_looks(Stage& stage) {
    constexpr std::uint64_t kVictimPagesOfIt = 300;
    set_up_one_cpu(stage, 4 << 20);
    stage.start();
    lap_behind_looks(stage, large_event(stage, kVictimPagesOfIt * kPageBytes - 64, true));
    return stage.finish();
}

// A producer that is always faster. It overwrites everything unread, a few times after a load of
// tail_pos and before the read, then after the read and before the load of tail_pos.
class FasterProducer {
  public:
    FasterProducer(Stage& stage, int times)
        : stage_(stage), limit_(stage), left_(times), calls_(stage.tracer().redirected_calls()) {
        stage.guard(0, 0, 1 + 2 * capacity(stage, 0) / kPageBytes,
                    [this](const GuardHit& hit) { return at(hit.place.offset_bytes); });
    }
    bool has_come_to_read() const { return has_read_; }

  private:
    static constexpr std::uint64_t kEventBytes = 1000;
    // All tries of one kind come before those of the other, because the try after a discarded read
    // is of the same kind.
    static constexpr int kInARow = 3;

    Stage::AtGuard at(std::uint64_t offset) {
        const bool is_read = offset >= kMetadataBytes;
        if (!is_read && offset != kTailPosOffset) return Stage::AtGuard::step;
        // System calls that read for the consumer are only counted, at its next load.
        const std::uint64_t calls = stage_.tracer().redirected_calls();
        const bool has_called = calls > std::exchange(calls_, calls);
        if (has_called) is_reading_ = has_read_ = true;
        if (is_read == is_reading_) return Stage::AtGuard::step;
        is_reading_ = is_read;
        has_read_ |= is_read;
        if (has_read_ && (has_called || is_read == (left_ / kInARow % 2 == 0))) {
            lap(stage_, 0, kEventBytes);
            if (--left_ == 0 || limit_.is_over()) return Stage::AtGuard::release;
        }
        // Other reads of the consumer before its next load are no reason to stop.
        if (is_read)
            stage_.release_data_guards();
        else
            stage_.guard_data();
        return Stage::AtGuard::step;
    }

    Stage& stage_;
    WalkLimit limit_;
    int left_;
    std::uint64_t calls_;
    bool is_reading_ = false;
    bool has_read_ = false;
};

CaseOutcome overtaken_again(Stage& stage) {
    constexpr int kTimes = 1100;
    set_up_one_cpu(stage);
    stage.start();
    stage.wait_asleep();
    const std::uint64_t calls = stage.tracer().redirected_calls();
    const FasterProducer producer(stage, kTimes);
    lap(stage, 0);
    stage.wait_asleep(0);
    if (!producer.has_come_to_read()) stop_unseen(stage, calls);
    stage.release_guards();
    return stage.finish();
}

// Overwritten in the middle of an event, and the event that it goes on with too, and so on. Some
// pages are guarded, so that a copy of many at once has done those before.
CaseOutcome torn_again(Stage& stage) {
    constexpr std::uint64_t kEventBytes = 20'000;
    constexpr std::uint64_t kEvery = 4;
    constexpr std::uint64_t kRingPages = 64;
    set_up_one_cpu(stage, kRingPages * kPageBytes);
    stage.start();
    stage.wait_asleep();
    const auto first_page = [&stage] {
        const History& history = stage.rings().history();
        return stage.rings().tail(history.present_buffer(0)) / kPageBytes % kRingPages;
    };
    int left = 12;
    bool is_torn = false;  // since it has looked at the metadata
    const auto at = [&](const GuardHit& hit) {
        const std::uint64_t page = hit.place.offset_bytes / kPageBytes;
        if (page == 0) {
            is_torn = false;
        } else if (!is_torn && (page - 1) % kRingPages != first_page()) {
            is_torn = true;
            lap(stage, 0, kEventBytes);
            if (--left == 0) return Stage::AtGuard::release;
        }
        return Stage::AtGuard::step;
    };
    stage.guard(0, 0, 1, at);
    for (std::uint64_t page = 1; page <= 2 * kRingPages; page += kEvery)
        stage.guard(0, page, 1, at);
    lap(stage, 0, kEventBytes);
    stage.wait_asleep(0);
    stage.release_guards();
    return stage.finish();
}

void add_by_size_and_number(const AddCase& add) {
    add("5.1.8.1-5/large-event-torn", Level::must, "5.1.8.1-5",
        "an event of up to two MiB overwritten during the copy",
        "Emit events of 80 KiB to 2 MiB into a ring of 4 MiB. Overwrite one with another of the "
        "same size at the first access to its first, middle or last page, or at the last access to "
        "the last.",
        "The consumer loads tail_pos after the whole copy, however large the event is, and "
        "discards it.",
        large_event_torn);
    add("5.1.8.1-5/torn-at-the-last-access", Level::must, "5.1.8.1-5",
        "an event of a power of two overwritten before the last access",
        "Emit events of 64 bytes to 64 KiB, each a power of two. At the last access to the last "
        "page of one, overwrite it with another of the same size.",
        "The consumer loads tail_pos after the whole copy and discards the event.",
        torn_at_last_access);
    add("5.1.8.1-5/large-event-lapped-behind-every-look", Level::must, "5.1.8.1-5",
        "a lap after each load of tail_pos, with a large event",
        "Emit events of 1.2 MiB. Lap the ring after the first load of tail_pos, after the second, "
        "and so on.",
        kReadsNothingLater, large_event_lapped_behind_looks);
    add("5.1.8.1-5/long-type-lapped-behind-every-look", Level::must, "5.1.8.1-5",
        "a lap after each load of tail_pos, with a long type",
        "Emit an event whose type has 300, 5,000 or 60,000 bytes. Lap the ring after the first "
        "load of tail_pos, after the second, and so on.",
        "The consumer reads nothing of an event after its last load of tail_pos, the type "
        "included.",
        long_type_lapped_behind_looks);
    add("5.1.8.1-5/without-payload-lapped-behind-every-look", Level::must, "5.1.8.1-5",
        "a lap after each load of tail_pos, without a payload",
        "Emit an event without a payload. After each load of tail_pos in turn, lap the ring by "
        "large events, or so that a similar event is in the same place.",
        "The consumer reads nothing of an event after its last load of tail_pos, the header "
        "included.",
        without_payload_lapped_behind_looks);
    add("5.1.8.1-5/overtaken-again-and-again", Level::must, "5.1.8.1-5",
        "eleven hundred overwrites in a row",
        "Fill the ring with unread events. Overwrite all of them when the consumer has loaded "
        "tail_pos and is about to read, three times. Then do so when it has read and is about to "
        "load tail_pos. Repeat up to eleven hundred times.",
        "The consumer continues at tail_pos each time, however often that is, and delivers what is "
        "left.",
        overtaken_again);
    add("5.1.8.1-5/torn-again-and-again", Level::must, "5.1.8.1-5", "twelve torn reads in a row",
        "Fill the ring with unread events of 20,000 bytes. Overwrite all of them when the consumer "
        "has read a part of one, and again at the next one that it reads.",
        "The consumer discards each torn event, however often that is, and delivers what is left.",
        torn_again);
}

}  // namespace

void add_overtaken_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("5.1.8.1-5/torn-by-what-is-not-published", Level::must, "5.1.8.1-5",
        "an overwrite by an unpublished event",
        "Stop the consumer at its first access to each page of an event of four pages in turn, "
        "with a payload and without one. Fill the rest of the ring, then write another event over "
        "that one. Publish it only when the consumer sleeps.",
        "The consumer sees in tail_pos, not in write_pos, that the event was overwritten, and "
        "discards it.",
        half_written);
    add("5.1.8.1-5/torn-wherever-it-lies", Level::must, "5.1.8.1-5",
        "an overwrite at the end of the region, and without a payload",
        "Overwrite an event that ends with the data region, one that wraps, and one without a "
        "payload during the copy.",
        "The consumer loads tail_pos after the copy of every event and discards it.",
        wherever_it_lies);
    add("5.1.8.1-5/torn-where-positions-pass-a-border", Level::must, "5.1.8.1-5",
        "an overwrite across 2^31, 2^32 and 2^63",
        "Overwrite an event that contains such a position during the copy, so that tail_pos moves "
        "from below it to above it.",
        "The consumer compares its position with tail_pos as 64-bit numbers and discards the "
        "event.",
        across_borders);
    add("E7/torn-to-a-plausible-header", Level::erratum, "E7",
        "a header overwritten by a plausible one",
        "Leave the whole ring unread. When the consumer reads the first header, overwrite it by "
        "itself with a larger event_size, which includes some or all of the later events.",
        "The consumer uses nothing of a torn header to find out whether it was torn, or where to "
        "continue. It continues at tail_pos.",
        plausible_header);
    add("E7/torn-to-an-old-number", Level::erratum, "E7",
        "a header overwritten by one with an old sequence number",
        "Leave the whole ring unread. When the consumer reads the first header, overwrite it by "
        "its own bytes with the sequence number of a delivered event, or 0.",
        "The consumer checks sequence numbers only after the second load of tail_pos, and "
        "continues at tail_pos.",
        old_number);
    add("E21/torn-to-a-plausible-header-while-it-scans", Level::erratum, "E21",
        "a header overwritten during the scan of the next buffer",
        "Replace the buffer so that all its events, which are delivered, survive. When the "
        "consumer reads the first one there, overwrite it by its own header with an event_size "
        "that includes some of the later events.",
        "The consumer loads tail_pos after every event, delivered ones included, before it "
        "advances by the event's size.",
        plausible_header_in_a_scan);
    add("5.1.8.1-5/backlog-torn-in-part", Level::must, "5.1.8.1-5",
        "a part of a large backlog overwritten",
        "Emit 1500 events into a ring of 2 MiB. When the consumer reads the first of them, or the "
        "first of a later page, overwrite the first 5 to 700.",
        "The consumer continues at tail_pos and delivers the others.", backlog_torn);
    add_by_size_and_number(add);
}

}  // namespace kmes::conformance
