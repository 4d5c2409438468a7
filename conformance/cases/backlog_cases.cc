// SPDX-License-Identifier: MIT
//
// Much that is unread: more than anybody copies, counts or delivers at once. What such a consumer
// keeps from one part to the next (the begin of an event, a count, a position, that its buffer was
// replaced) must hold when the ring has moved on in between.
#include <memory>
#include <string>

#include "conformance/cases/play.h"
#include "conformance/oracle/layout.h"

namespace kmes::conformance {

namespace {

// Texts of several cases.
constexpr std::string_view kOldFirst =
    "The consumer delivers all of them, from the old buffer first, in however many parts.";

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t kCapacity = 2 * kMebibyte;
constexpr std::uint64_t kEvents = 1500;
constexpr std::uint64_t kEventBytes = 1000;

// All events at once, so that the consumer sees no part of them alone.
void emit_at_once(Stage& stage, std::uint64_t count, std::uint64_t event_bytes) {
    stage.freeze();
    emit_some(stage, 0, count, event_bytes);
    stage.thaw();
}

// `passed` bytes of the backlog are overwritten.
void overtake(Stage& stage, std::uint64_t passed) {
    stage.rings().emit_bytes(0, kCapacity - kEvents * kEventBytes + passed);
}

// Overtakes the consumer between two accesses to the metadata, for all parts in which it may read
// the backlog.
CaseOutcome overtaken_amid(Stage& stage) {
    constexpr std::uint64_t kLooks = 16;
    set_up_one_cpu(stage, kCapacity);
    stage.start();
    WalkLimit limit(stage);
    for (const std::uint64_t passed : {600'000u, 1'100'000u, 1'500'000u}) {
        for (std::uint64_t k = 1; k <= kLooks && !limit.is_over(); ++k) {
            const bool came = act_at_access_of(
                stage, 0, k, [&stage] { emit_at_once(stage, kEvents, kEventBytes); },
                [&stage, passed] { overtake(stage, passed); });
            if (!came) break;
        }
    }
    return stage.finish();
}

// While it reads: in the first part that it copies, or in a later one.
CaseOutcome torn_on_the_way(Stage& stage) {
    set_up_one_cpu(stage, kCapacity);
    stage.start();
    for (const std::uint64_t page : {20, 70, 100, 140, 200, 300}) {
        const std::uint64_t here = page * kPageBytes + 3 * kEventBytes / 2;
        for (const std::uint64_t passed : {here, kEvents * kEventBytes}) {
            stage.wait_asleep();
            if (stage.has_ended(0))
                return stage.finish();  // refused: the judge says whether rightly
            fill_up_to(stage, 0, 0);
            stage.wait_asleep();
            overwrite_under_read(
                stage, page, 1, [&stage] { emit_at_once(stage, kEvents, kEventBytes); },
                [&stage, passed] { overtake(stage, passed); });
        }
    }
    return stage.finish();
}

// So large that some have a way of their own for it.
CaseOutcome very_large_event_torn(Stage& stage) {
    constexpr std::uint64_t kRing = 8 * kMebibyte;
    set_up_one_cpu(stage, kRing);
    stage.start();
    stage.wait_asleep();
    if (stage.has_ended(0)) return stage.finish();  // refused: the judge says whether rightly
    overwrite_under_read(
        stage, kRing / 4 / kPageBytes, 1, [&] { emit_some(stage, 0, 1, kRing / 2); },
        [&] { emit_headers(stage, 0, kRing / kMebibyte, kMebibyte); });
    return stage.finish();
}

// The least size with such a type whose multiples end `left` bytes before `window`; 0: none.
std::uint64_t size_that_leaves(std::uint64_t window, std::uint64_t left, const std::string& type) {
    constexpr std::uint64_t kMost = 4000;
    for (std::uint64_t bytes = 30 + type.size(); bytes <= kMost; ++bytes) {
        if ((window - left) % bytes == 0) return bytes;
    }
    return 0;
}

// Copied in parts of any power of two, an event's header is cut at each field, and the part of it
// that is there is not yet a header.
CaseOutcome headers_cut(Stage& stage) {
    // So long that the first byte of type_len alone is 0.
    const std::string type(256, 'c');
    set_up_one_cpu(stage, kCapacity);
    stage.start();
    for (std::uint64_t window = 4096; window <= kMebibyte; window *= 2) {
        for (const std::uint64_t left :
             {kHeaderSizeAt, kTypeLengthAt, kTypeLengthAt + 1, kHeaderBytesBeforeType}) {
            const std::uint64_t bytes = size_that_leaves(window, left, type);
            if (bytes == 0) continue;
            stage.wait_asleep();
            stage.freeze();
            for (std::uint64_t i = 0; i < window / bytes + 3; ++i)
                stage.rings().emit(0, stage.rings().make(bytes, type));
            stage.thaw();
        }
    }
    stage.wait_asleep();
    return stage.finish();
}

// The first `left` bytes of an event_size are there, and are a size that none can have: what of it
// is not there must not be taken for zeros. The events before it are as large, but for the first.
void emit_cut_in_its_size(Stage& stage, std::uint64_t window, std::uint64_t left,
                          std::uint64_t bytes) {
    constexpr std::uint64_t kFirstAtLeast = 64;
    const std::uint64_t before = (window - left - kFirstAtLeast) / bytes;
    stage.wait_asleep();
    stage.freeze();
    emit_some(stage, 0, 1, window - left - before * bytes);
    emit_some(stage, 0, before + 3, bytes);
    stage.thaw();
}

CaseOutcome sizes_cut(Stage& stage) {
    set_up_one_cpu(stage, kCapacity);
    stage.start();
    for (std::uint64_t window = 4096; window <= kMebibyte; window *= 2) {
        // 0x101 to 0x11d and 0x1000a: a byte or two of them are less than any size.
        for (const std::uint64_t bytes : {0x101u, 0x11du})
            emit_cut_in_its_size(stage, window, 1, bytes);
        if (window >= 0x40000) emit_cut_in_its_size(stage, window, 2, 0x1000a);
    }
    stage.wait_asleep();
    return stage.finish();
}

constexpr std::uint64_t kMany = 20'000;
constexpr std::uint64_t kSmallBytes = 40;

// The next buffer holds few of them; the others are in the old one alone (E10).
CaseOutcome many_unread(Stage& stage) {
    constexpr std::uint64_t kSmallCapacity = kMebibyte / 16;
    set_up_one_cpu(stage, kMebibyte);
    stage.start();
    stage.set_nudging(false);  // it has seen the change
    for (const bool is_reading : {false, true}) {
        stage.wait_asleep();
        if (stage.has_ended(0)) break;
        emit_some(stage, 0, 1, kSmallBytes);
        fill_up_to(stage, 0, 0);
        stage.wait_asleep();
        stage.freeze();
        emit_some(stage, 0, kMany, kSmallBytes);
        if (!is_reading) stage.resize(kSmallCapacity);
        // Or when it comes to the middle of them.
        if (is_reading) {
            stage.guard(0, 1 + kMany * kSmallBytes / kPageBytes / 2, 1, [&stage](const GuardHit&) {
                stage.resize(kSmallCapacity);
                return Stage::AtGuard::release;
            });
        }
        stage.thaw();
        stage.wait_asleep();
        stage.release_guards();
        stage.resize(kMebibyte);
    }
    stage.wait_asleep();
    return stage.finish();
}

// Few, and large: more than most take at a time.
CaseOutcome megabytes_unread(Stage& stage) {
    constexpr std::uint64_t kUnread = 52;
    constexpr std::uint64_t kLargeBytes = 100'000;
    set_up_one_cpu(stage, 8 * kMebibyte);
    stage.start();
    stage.set_nudging(false);
    for (int round = 0; round < 2; ++round) {
        stage.wait_asleep();
        if (stage.has_ended(0)) break;
        stage.freeze();
        emit_some(stage, 0, kUnread, kLargeBytes);
        stage.resize(kMebibyte / 16);
        stage.thaw();
        stage.wait_asleep();
        stage.resize(8 * kMebibyte);
    }
    stage.wait_asleep();
    return stage.finish();
}

// Overwrites everything in the next buffer before the `look`-th access to its page. Returns how
// many accesses are left until then.
std::shared_ptr<const std::uint64_t> overtake_the_next(Stage& stage, std::uint64_t look) {
    const auto left = std::make_shared<std::uint64_t>(look);
    stage.set_on_mapped([&stage, left](const Mapped& mapped) {
        if (!stage.is_present(mapped, 0) || *left == 0) return;
        stage.guard(0, 0, 1, [&stage, left](const GuardHit&) {
            if (*left == 0 || --*left > 0) return Stage::AtGuard::step;
            lap(stage, 0);
            return Stage::AtGuard::release;
        });
    });
    return left;
}

// All that is unread survives in the next buffer; but that is overwritten before it is read there.
// What the old one holds is still whole.
CaseOutcome next_buffer_overtaken(Stage& stage) {
    constexpr std::uint64_t kLooks = 24;
    constexpr std::uint64_t kAccessesAtMost = 24;
    set_up_one_cpu(stage);
    stage.start();
    stage.set_nudging(false);
    WalkLimit limit(stage);
    // Every second access: a consumer loads fields several times in a row before it reads the data.
    bool has_come = true;
    for (std::uint64_t look = 1; look <= kLooks && has_come; look += 2) {
        has_come = false;
        for (std::uint64_t k = 1; k <= kAccessesAtMost && !limit.is_over(); ++k) {
            std::shared_ptr<const std::uint64_t> left;
            const bool came = act_at_access(stage, 0, k, [&stage, &left, look] {
                emit_some(stage, 0, 5, 200);
                left = overtake_the_next(stage, look);
                stage.resize(stage.capacity_bytes());
            });
            stage.set_on_mapped(nullptr);
            has_come |= left && *left == 0;
            if (!came) break;
        }
    }
    return stage.finish();
}

// They are all in the next buffer, too; half of them have been delivered.
CaseOutcome many_survivors(Stage& stage) {
    set_up_one_cpu(stage, kMebibyte);
    stage.start();
    stage.wait_asleep();
    emit_some(stage, 0, kMany / 2, kSmallBytes);
    stage.wait_asleep();
    stage.freeze();
    emit_some(stage, 0, kMany / 2, kSmallBytes);
    stage.resize(2 * kMebibyte);
    stage.thaw();
    stage.wait_asleep();
    stage.resize(kMebibyte);
    stage.wait_asleep();
    emit_some(stage, 0, 3, kSmallBytes);
    stage.wait_asleep();
    return stage.finish();
}

// The same of more events than 16 bits can tell, the smallest that there are, all delivered.
CaseOutcome more_survivors(Stage& stage) {
    constexpr std::uint64_t kEventsAtOnce = 7000;
    set_up_one_cpu(stage, 4 * kMebibyte);
    stage.start();
    for (int part = 0; part < 10; ++part) {
        stage.wait_asleep();
        emit_at_once(stage, kEventsAtOnce, kLeastEventBytes);
    }
    stage.wait_asleep();
    stage.resize(4 * kMebibyte);
    stage.wait_asleep();
    emit_some(stage, 0, 1, kSmallBytes);
    stage.wait_asleep();
    return stage.finish();
}

// As many events as a ring of the default capacity can have.
constexpr std::uint64_t kFull = 4 * kMebibyte / kLeastEventBytes;

CaseOutcome full_at_the_attach(Stage& stage) {
    set_up_one_cpu(stage, 4 * kMebibyte);
    emit_some(stage, 0, kFull, kLeastEventBytes);
    stage.start();
    stage.wait_asleep();
    return stage.finish();
}

// The next buffer holds 2184 of them.
CaseOutcome full_and_unread(Stage& stage) {
    set_up_one_cpu(stage, 4 * kMebibyte);
    stage.start();
    stage.wait_asleep();
    stage.freeze();
    emit_some(stage, 0, kFull, kLeastEventBytes);
    stage.resize(kMebibyte / 16);
    stage.thaw();
    stage.wait_asleep();
    // A consumer that has seen so many events still makes every check of generation. As in
    // E3/swap-at-every-step, no nudge is needed.
    stage.set_nudging(false);
    act_at_every_access(stage, 0, [&stage] {
        emit_some(stage, 0, 1, kSmallBytes);
        stage.resize(kMebibyte / 16, PositionRule::shift, 1000);
        lap(stage, 0, 9000);
    });
    return stage.finish();
}

// A full ring of events comes after the last load of write_pos. The load of generation that follows
// finds the buffer replaced.
CaseOutcome full_as_it_looks(Stage& stage) {
    constexpr int kLooks = 2;
    set_up_one_cpu(stage, 4 * kMebibyte);
    stage.start();
    stage.set_nudging(false);
    for (int look = 1; look <= kLooks; ++look) {
        stage.wait_asleep();
        if (stage.has_ended(0)) break;
        int left = look;
        stage.guard(0, 0, 1, [&](const GuardHit& hit) {
            if (!hit.touches(kGenerationOffset, 8) || --left > 0) return Stage::AtGuard::step;
            emit_some(stage, 0, kFull, kLeastEventBytes);
            stage.resize(kMebibyte / 16);
            return Stage::AtGuard::release;
        });
        emit_some(stage, 0, 1, kSmallBytes);
        stage.wait_asleep();
        stage.release_guards();
        if (left > 0) break;
        stage.resize(4 * kMebibyte);
    }
    stage.wait_asleep();
    return stage.finish();
}

// New events are in the buffer when the scan reaches them, after all known ones.
CaseOutcome full_of_survivors(Stage& stage) {
    set_up_one_cpu(stage, 4 * kMebibyte);
    emit_some(stage, 0, kFull, kLeastEventBytes);
    stage.start();
    stage.wait_asleep();
    stage.freeze();
    stage.resize(8 * kMebibyte);
    emit_some(stage, 0, 1, kSmallBytes);
    stage.thaw();
    stage.wait_asleep();
    return stage.finish();
}

// Overtaken, and what is left of the old buffer is more than the new one holds.
CaseOutcome overtaken_and_shrunk(Stage& stage) {
    const std::uint64_t small = stage.default_setup().capacity_bytes;
    constexpr std::uint64_t kAccessesAtMost = 40;
    set_up_one_cpu(stage, 4 * small);
    stage.start();
    stage.set_nudging(false);
    WalkLimit limit(stage);
    for (std::uint64_t k = 1; k <= kAccessesAtMost && !limit.is_over(); ++k) {
        stage.wait_asleep();
        if (stage.has_ended(0)) break;
        const bool came = act_at_access(stage, 0, k, [&stage, small] {
            lap(stage, 0, small / 8);
            stage.resize(small);
        });
        if (!came) break;
        stage.wait_asleep();
        stage.resize(4 * small);
    }
    return stage.finish();
}

void add_parts(const AddCase& add) {
    add("5.1.8.1-2/overtaken-amid-a-backlog", Level::must, "5.1.8.1-2",
        "a large backlog overwritten between two parts",
        "Emit 1500 events at once into a ring of 2 MiB. Before each access to the metadata page in "
        "turn, overwrite 600, 1100 or all of them.",
        "The consumer continues at tail_pos and discards an event of which it has only a part.",
        overtaken_amid);
    add("5.1.8.1-5/backlog-torn-on-the-way", Level::must, "5.1.8.1-5",
        "a large backlog overwritten at a later page",
        "Emit 1500 events at once into a ring of 2 MiB. When the consumer reaches the 20th page or "
        "a later one, overwrite all events before that page, or all events.",
        "The consumer loads tail_pos after each part that it copies, and continues there.",
        torn_on_the_way);
    add("5.1.8.1-5/very-large-event-torn", Level::must, "5.1.8.1-5",
        "an event of 4 MiB overwritten during the copy",
        "Stop the consumer in the middle of an event of 4 MiB. Lap the ring of 8 MiB.",
        "The consumer sees in its second load of tail_pos that the event was overwritten, and "
        "discards it.",
        very_large_event_torn);
    add("5.1.8.1-4/headers-cut-by-any-part", Level::must, "5.1.8.1-4",
        "headers across every power of two",
        "Emit backlogs with a header across 4 KiB, 8 KiB, and so on up to 1 MiB. Its 4th, 27th, "
        "28th or 29th byte is the last one before that border.",
        "The consumer parses a header only when it has copied all of it.", headers_cut);
    add("5.1.8.1-4/sizes-cut-by-any-part", Level::must, "5.1.8.1-4",
        "event sizes across every power of two",
        "Emit backlogs in which an event_size crosses a border at 4 KiB, 8 KiB, and so on up to 1 "
        "MiB. Its first byte (257, 285) or its first two (65,546) are before the border.",
        "The consumer uses a size only when it has copied all of it.", sizes_cut);
}

// The smallest events in the default capacity are the largest number that a consumer can get.
void add_full(const AddCase& add) {
    add("5.1.8.1-6/full-of-the-smallest-events", Level::must, "5.1.8.1-6",
        "a full ring of the smallest events before the attach",
        "Fill a ring of 4 MiB with 139,810 events of 30 bytes before the consumer attaches.",
        kEachOnce, full_at_the_attach);
    add("E10/full-of-the-smallest-unread", Level::erratum, "E10",
        "the largest possible number of unread events",
        "Emit 139,810 events of 30 bytes. While they are unread, replace the buffer of 4 MiB by "
        "one of 64 KiB. Then, before each access in turn, emit an event, resize with shifted "
        "positions, and lap the new buffer.",
        "The consumer delivers all events, from the old buffer first. It loads generation before "
        "each sleep, however much it has delivered.",
        full_and_unread);
    add("E24/full-of-the-smallest-as-it-looks", Level::erratum, "E24",
        "a full ring before the load of generation",
        "At the first load of generation in an iteration, and at the second in another, emit "
        "139,810 events of 30 bytes. Replace the buffer of 4 MiB by one of 64 KiB there.",
        "The consumer loads write_pos of the old buffer again and delivers all events from there, "
        "in however many parts.",
        full_as_it_looks);
    add("E21/full-of-the-smallest-survivors", Level::erratum, "E21",
        "a next buffer full of delivered events",
        "Wait until 139,810 events of 30 bytes are delivered. Replace the buffer of 4 MiB by one "
        "of 8 MiB and emit one event.",
        "The consumer skips all events that it has delivered, however many there are, and delivers "
        "the new one.",
        full_of_survivors);
}

}  // namespace

void add_backlog_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add_parts(add);
    add_full(add);
    add("E10/twenty-thousand-unread", Level::erratum, "E10",
        "twenty thousand unread events in the old buffer",
        "Emit 20,000 events. While all or half of them are unread, replace the buffer by one that "
        "holds few of them.",
        kOldFirst, many_unread);
    add("E10/five-mebibytes-unread", Level::erratum, "E10",
        "five mebibytes unread in the old buffer",
        "Emit 52 events of 100 KB. While they are unread, replace the buffer of 8 MiB by one of 64 "
        "KiB.",
        kOldFirst, megabytes_unread);
    add("E10/next-buffer-overtaken-at-every-step", Level::erratum, "E10",
        "the next buffer overwritten before the old one is drained",
        "Before each access to the metadata page in turn, emit five events and replace the buffer. "
        "Before every other access to the next buffer's page, overwrite all of the next buffer.",
        "The consumer delivers the events from the old buffer, because the next one may be "
        "overwritten.",
        next_buffer_overtaken);
    add("5.1.8.3-5/twenty-thousand-survivors", Level::must, "5.1.8.3-5",
        "twenty thousand events in both buffers",
        "Let 20,000 events survive two changes of the buffer, with half of them delivered before.",
        "The consumer delivers each event once, in however many parts it reads them.",
        many_survivors);
    add("5.1.8.3-5/seventy-thousand-survivors", Level::must, "5.1.8.3-5",
        "seventy thousand delivered events in the next buffer",
        "Wait until 70,000 events of 30 bytes are delivered. Replace the buffer so that all "
        "survive.",
        "The consumer delivers none of them again, however many there are.", more_survivors);
    add("E10/overtaken-and-shrunk-at-every-step", Level::erratum, "E10",
        "a lap, then a smaller buffer",
        "Before each access to the metadata page in turn, lap the buffer and replace it by one "
        "that holds a quarter of it.",
        "The consumer continues at tail_pos of the old buffer, and then in the new one.",
        overtaken_and_shrunk);
}

}  // namespace kmes::conformance
