// SPDX-License-Identifier: MIT
//
// A consumer that is overtaken: laps, torn reads, and the states in between (5.1.8.1 steps 2 to 5,
// 5.1.9, E6, E7, E20).
#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

// Texts of several cases.
constexpr std::string_view kSurvivors =
    "The consumer delivers every event that is not overwritten.";
constexpr std::string_view kDiscards = "The consumer discards the event.";

// Overwrites at least `events` events while the consumer is stopped.
CaseOutcome lapped(Stage& stage, std::uint64_t event_bytes, std::uint64_t turns) {
    emit_everywhere(stage, 5, 300);
    stage.start();
    stage.wait_asleep();
    for (std::uint64_t round = 0; round < 3; ++round) {
        stage.freeze();
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
            for (std::uint64_t turn = 0; turn < turns; ++turn)
                lap(stage, cpu, event_bytes + 13 * cpu + round);
        }
        stage.thaw();
        stage.wait_asleep();
        emit_everywhere(stage, 2, 100);
        stage.wait_asleep();
    }
    return stage.finish();
}

// Laps the consumer by exactly the oldest events, one at a time, so that tail_pos is just beyond
// its read position.
CaseOutcome lapped_by_one(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
        stage.freeze();
        const std::uint64_t eighth = capacity(stage, cpu) / 8;
        emit_some(stage, cpu, 9, eighth);
        stage.thaw();
        stage.wait_asleep();
    }
    return stage.finish();
}

constexpr std::uint64_t kOutrunCapacity = std::uint64_t{512} << 10;

// Overtaken by so much that 32 bits of the distance say nothing: as it sleeps, and between its
// first accesses to the metadata page.
CaseOutcome outrun(Stage& stage, std::uint64_t bytes) {
    constexpr std::uint64_t kAccesses = 10;
    const auto overtake = [&stage, bytes] { stage.outrun(0, bytes); };
    set_up_one_cpu(stage, kOutrunCapacity);
    stage.start();
    stage.wait_asleep();
    overtake();
    stage.wait_asleep();
    for (std::uint64_t k = 1; k <= kAccesses; ++k) {
        if (stage.has_ended(0) || !act_at_access(stage, 0, k, overtake)) break;
    }
    return stage.finish();
}

// Overtakes the consumer by more events than 31 bits can count, then by more than 32 can: in its
// sleep, between its first accesses, and with a swap before its first check.
CaseOutcome outrun_by_events(Stage& stage, bool swaps) {
    constexpr std::uint64_t kAccesses = 10;
    constexpr std::uint64_t kLeastBytes = 32;
    set_up_one_cpu(stage, kOutrunCapacity);
    stage.start();
    for (const int bits : {31, 32}) {
        const std::uint64_t events = (std::uint64_t{1} << bits) + 5;
        const std::uint64_t bytes = (kLeastBytes << bits) + 2 * kOutrunCapacity;
        const auto overtake = [&stage, bytes, events, swaps] {
            stage.freeze();
            stage.rings().outrun(0, bytes, events);
            if (swaps) stage.resize(stage.capacity_bytes());
            stage.thaw();
        };
        // A gap that any number can hold: whether it counts what it has lost.
        stage.wait_asleep();
        stage.freeze();
        emit_some(stage, 0, 9, kOutrunCapacity / 8);
        stage.thaw();
        stage.wait_asleep();
        overtake();
        stage.wait_asleep();
        for (std::uint64_t k = 1; k <= kAccesses; ++k) {
            if (stage.has_ended(0) || !act_at_access(stage, 0, k, overtake)) break;
        }
    }
    return stage.finish();
}

// The same while it reads an event; then once more, so that tail_pos, less the laps, is inside of
// the event.
CaseOutcome outrun_under_read(Stage& stage, std::uint64_t bytes) {
    constexpr std::uint64_t kPages = 16;
    constexpr std::uint64_t kEventBytes = kPages * kPageBytes - 64;
    constexpr std::uint64_t kInside = 1000;
    constexpr std::uint64_t kStoppedAt = 12;  // after the final tail_pos
    set_up_one_cpu(stage, kOutrunCapacity);
    stage.start();
    for (const std::uint64_t more : {std::uint64_t{0}, kOutrunCapacity - kEventBytes + kInside}) {
        stage.wait_asleep();
        fill_up_to(stage, 0, 0);
        stage.wait_asleep(0);
        if (stage.has_ended(0)) break;  // refused: the judge says whether rightly
        overwrite_under_read(
            stage, kStoppedAt, 1, [&stage] { emit_some(stage, 0, 1, kEventBytes); },
            [&stage, bytes, more] {
                stage.outrun(0, bytes);
                if (more > 0) stage.rings().emit_bytes(0, more);
            });
    }
    return stage.finish();
}

// Makes the payload of an event that will be at `position`, and overwrites another.
using Overwrite = std::function<void(std::string& payload, std::uint64_t position, int round)>;

// Puts an event of some pages at the start of the ring, guards its pages from `first_page` on, and
// laps at the first access: what the consumer has read by then is old, what it reads next is new.
CaseOutcome tear(Stage& stage, std::uint64_t first_page, int rounds, const Overwrite& overwrite) {
    stage.start();
    stage.wait_asleep();
    for (int round = 0; round < rounds; ++round) {
        fill_up_to(stage, 0, 0);
        stage.wait_asleep(0);
        if (stage.has_ended(0)) break;  // refused: the judge says whether rightly
        overwrite_under_read(
            stage, first_page, 4 - first_page,
            [&stage] { emit_some(stage, 0, 1, 4 * kPageBytes - 64); },
            [&stage, &overwrite, round] {
                overwrite_all(stage, [&](std::string& payload, std::uint64_t position) {
                    overwrite(payload, position + kHeaderBytesBeforeType + 1, round);
                });
            });
    }
    return stage.finish();
}

CaseOutcome tear(Stage& stage, std::uint64_t first_page, char filling) {
    return tear(stage, first_page, 3, [filling](std::string& payload, std::uint64_t, int) {
        std::fill(payload.begin(), payload.end(), filling);
    });
}

// Sizes of which some are plausible, at the start of the ring, where the header was.
CaseOutcome tear_to_mixed_sizes(Stage& stage) {
    struct Sizes {
        std::uint32_t event_size;
        std::uint32_t header_size;
        std::uint16_t type_len;
    };
    static constexpr Sizes kTorn[] = {
        {0xffffffff, 30, 1},         {100, 0xffffffff, 1}, {100, 101, 1},   {100, 30, 60000},
        {0xffffffff, 0xfffffff0, 1}, {0, 30, 1},           {131072, 30, 1}, {100, 30, 0xffff}};
    const std::uint64_t size = stage.default_setup().capacity_bytes;
    return tear(stage, 0, std::size(kTorn),
                [size](std::string& payload, std::uint64_t position, int round) {
                    const std::uint64_t start = (size - position) & (size - 1);
                    if (start + kHeaderBytesBeforeType > payload.size()) return;
                    const Sizes& torn = kTorn[round];
                    std::memcpy(payload.data() + start, &torn.event_size, 4);
                    std::memcpy(payload.data() + start + 4, &torn.header_size, 4);
                    std::memcpy(payload.data() + start + 27, &torn.type_len, 2);
                });
}

// Emits one event at the start of the ring. Calls `at` with the address of the instruction before
// each access to its page, until `at` returns true.
void watch_an_event(Stage& stage, std::uint32_t cpu, const std::string& type,
                    const std::function<bool(std::uint64_t instruction)>& at) {
    constexpr std::size_t kPayloadBytes = 50;
    fill_up_to(stage, cpu, 0);
    stage.wait_asleep(cpu);
    if (stage.has_ended(cpu)) return;
    stage.guard(cpu, 1, 1, [&](const GuardHit& hit) {
        return at(hit.code.instruction_pointer) ? Stage::AtGuard::release : Stage::AtGuard::step;
    });
    stage.rings().emit(
        cpu, stage.rings().make(kHeaderBytesBeforeType + type.size() + kPayloadBytes, type));
    stage.wait_asleep(cpu);
    stage.release_guards();
}

// The accesses, identified by their instructions, that are worth a lap: all of a few. If there are
// many, the first and the last of each instruction, and some between.
std::vector<std::size_t> choose_looks(const std::vector<std::uint64_t>& looks) {
    constexpr std::size_t kAllOf = 40;
    constexpr std::size_t kEvenly = 16;
    constexpr std::size_t kMost = 80;
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < looks.size(); ++i) {
        const auto here = looks.begin() + static_cast<std::ptrdiff_t>(i);
        const bool is_first = std::find(looks.begin(), here, *here) == here;
        const bool is_last = std::find(here + 1, looks.end(), *here) == looks.end();
        if (looks.size() <= kAllOf || i % (1 + looks.size() / kEvenly) == 0 || is_first || is_last)
            chosen.push_back(i);
    }
    // The last accesses are those after the last load of tail_pos, if there are any.
    if (chosen.size() > kMost) chosen.erase(chosen.begin(), chosen.end() - kMost);
    return chosen;
}

// Overwrites the event before each access to it in turn. A consumer that reads the event after its
// last load of tail_pos delivers the later bytes.
CaseOutcome lap_at_every_look(Stage& stage) {
    const std::string type(60, 'n');  // most of the event
    set_up_one_cpu(stage);
    stage.start();
    std::vector<std::uint64_t> looks;
    watch_an_event(stage, 0, type, [&looks](std::uint64_t instruction) {
        looks.push_back(instruction);
        return false;
    });
    for (const std::size_t chosen : choose_looks(looks)) {
        if (stage.has_ended(0)) break;
        std::size_t left = chosen;
        watch_an_event(stage, 0, type, [&](std::uint64_t) {
            if (left-- > 0) return false;
            lap(stage, 0, 3000);
            return true;
        });
    }
    return stage.finish();
}

// The same with end events, one for each CPU, at the last accesses. The consumer decides by its
// copy whether the event is the end: it ends the CPU, or has seen the overwrite.
CaseOutcome lap_the_end_at_every_look(Stage& stage) {
    constexpr std::uint32_t kCpus = 12;
    const std::string end_type(kEndEventType);
    set_up_cpus(stage, kCpus);
    stage.start();
    stage.wait_asleep();
    std::size_t looks = 0;
    watch_an_event(stage, 0, std::string(end_type.size(), 'n'), [&looks](std::uint64_t) {
        ++looks;
        return false;
    });
    for (std::uint32_t cpu = 1; cpu < kCpus && cpu <= looks; ++cpu) {
        std::size_t left = looks - cpu;
        watch_an_event(stage, cpu, end_type, [&](std::uint64_t) {
            if (left-- > 0) return false;
            lap(stage, cpu, 3000);
            return true;
        });
    }
    return stage.finish();
}

// The event before is overwritten while its reader is between two accesses to the metadata page.
CaseOutcome lap_at_every_access(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    act_at_every_access(stage, 0, [&stage] { lap(stage, 0, 8000); });
    return stage.finish();
}

CaseOutcome lap_in_part_at_every_access(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    act_at_every_access(stage, 0, [&stage] {
        // Leaves some of what was there: the tail stops in the middle of a run of events.
        const std::uint64_t eighth = capacity(stage, 0) / 8;
        emit_some(stage, 0, 10, eighth);
    });
    return stage.finish();
}

// A buffer that was shrunk, with one event in it that takes 5/8 of it: more than half.
constexpr std::uint64_t kSmall = 65536;

RingsSetup large_rings(Stage& stage) {
    RingsSetup setup = stage.default_setup();
    setup.capacity_bytes = 4 * kSmall;
    return setup;
}

void emit_large_survivors(Stage& stage) {
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) emit_some(stage, cpu, 1, kSmall / 8 * 5);
}

CaseOutcome larger_than_half(Stage& stage) {
    stage.set_up(large_rings(stage));
    emit_large_survivors(stage);
    stage.resize(kSmall);
    stage.start();
    stage.wait_delivered();
    emit_everywhere(stage, 2, 100);
    stage.wait_delivered();
    return stage.finish();
}

// By which instruction, and at which offset of the metadata page.
using Place = std::pair<std::uint64_t, std::uint64_t>;

// E20: the consumer has a large survivor before it when an event of half the capacity moves
// tail_pos up to write_pos to make room for itself, and is published a few accesses later. For each
// access to the metadata page of the new buffer in turn. Until then so much of it as `written` says
// is in the ring. Returns the place of the k-th access, if there was one.
std::optional<Place> tail_at_write_pos_at(Stage& stage, std::uint64_t k, Written written) {
    constexpr std::uint64_t kAccessesBetween = 5;
    constexpr std::uint64_t kAccessesAtMost = 100;
    std::uint64_t accesses = 0;
    std::optional<Place> place;
    const auto count = [&](const GuardHit& hit) {
        if (++accesses == k) {
            place = {hit.code.instruction_pointer, hit.place.offset_bytes};
            stage.rings().reserve(0, stage.rings().make(kSmall / 2), written);
        }
        if (accesses > k + kAccessesAtMost) return Stage::AtGuard::release;  // it spins
        if (accesses == k + kAccessesBetween && stage.rings().is_reserved(0))
            stage.rings().commit(0);
        return Stage::AtGuard::step;
    };
    emit_large_survivors(stage);
    stage.wait_asleep();
    stage.set_on_mapped([&](const Mapped& mapped) {
        if (stage.is_present(mapped, 0)) stage.guard(0, 0, 1, count);
    });
    stage.resize(kSmall);
    stage.wait_until([&] { return accesses > 0; }, "an access to the new buffer of CPU 0");
    stage.wait_asleep_or_stuck(0);
    // It may sleep before the fifth access, and make more of them when the event is there.
    for (stage.wait_mapped();; stage.rings().commit(0)) {
        if (!stage.rings().is_reserved(0)) stage.wait_asleep();
        if (!stage.rings().is_reserved(0)) break;
    }
    stage.release_guards();
    stage.set_on_mapped(nullptr);
    stage.resize(4 * kSmall);
    stage.wait_asleep();
    return place;
}

// Every access in one of the states first, and then in the next: a walk that is ended by its time
// has been everywhere. A spin repeats a few accesses: from the fourth time on, each comes once.
CaseOutcome tail_at_write_pos(Stage& stage) {
    constexpr std::uint64_t kAccessesAtMost = 64;
    constexpr int kTimesInEachState = 3;
    constexpr Written kStates[] = {Written::header, Written::nothing, Written::half,
                                   Written::whole};
    stage.set_up(large_rings(stage));
    stage.start();
    stage.wait_asleep();
    WalkLimit limit(stage);
    std::map<Place, int> times;
    std::vector<bool> is_repeated(kAccessesAtMost);
    std::uint64_t end = kAccessesAtMost;
    for (std::uint64_t i = 0; i < std::size(kStates); ++i) {
        for (std::uint64_t k = 1; k < end; ++k) {
            if (i > 0 && is_repeated[k]) continue;
            if (stage.has_ended(0) || limit.is_over()) return stage.finish();
            const Written written = kStates[(k - 1 + i) % std::size(kStates)];
            const std::optional<Place> place = tail_at_write_pos_at(stage, k, written);
            if (!place)
                end = k;
            else if (i == 0)
                is_repeated[k] = ++times[*place] > kTimesInEachState;
        }
    }
    return stage.finish();
}

// The large survivor is passed by events of half the capacity that are published at once.
CaseOutcome jump_to_write_pos(Stage& stage) {
    stage.set_up(large_rings(stage));
    emit_large_survivors(stage);
    stage.resize(kSmall);
    stage.start();
    stage.wait_asleep();
    act_at_every_access(stage, 0, [&stage] {
        const std::uint64_t half = capacity(stage, 0) / 2;
        emit_some(stage, 0, 2, half);
    });
    return stage.finish();
}

// Laps between two accesses to the metadata (E20), and events that a shrink leaves.
void add_step_cases(std::vector<Case>& cases) {
    cases.push_back({"E20/lapped-at-every-step", Level::erratum, "E20",
                     "a lap between any two accesses to the metadata",
                     "Lap the ring before each access to the metadata page in turn.",
                     "The consumer loads write_pos again after each change of its read position.",
                     lap_at_every_access});
    cases.push_back({"E20/lapped-in-part-at-every-step", Level::erratum, "E20",
                     "a partial lap between any two accesses to the metadata",
                     "Emit ten events of an eighth of the capacity before each access to the "
                     "metadata page in turn.",
                     kSurvivors, lap_in_part_at_every_access});
    cases.push_back(
        {"E20/tail-reaches-write-pos", Level::erratum, "E20",
         "tail_pos at write_pos during an unpublished event",
         "Shrink, so that one event of 5/8 of the capacity is left. Before each access in turn, "
         "reserve half the capacity, so that tail_pos is write_pos. Write nothing of the event, "
         "its header, half of it or all of it, and publish it five accesses later.",
         "The consumer takes the buffer for empty until write_pos moves. It delivers nothing "
         "early, in part, or twice.",
         tail_at_write_pos});
    cases.push_back({"E7/event-larger-than-half", Level::erratum, "E7",
                     "an event of more than half the capacity",
                     "Shrink, so that the only event takes 5/8 of the new capacity.",
                     "The consumer delivers the event, because the bound is what is published and "
                     "not half the capacity.",
                     larger_than_half});
    cases.push_back({"E20/large-survivor-passed-at-every-step", Level::erratum, "E20",
                     "a large survivor overwritten between any two accesses",
                     "Shrink. Emit two events of half the capacity before each access to the "
                     "metadata page in turn.",
                     kSurvivors, jump_to_write_pos});
}

// More than 32 bits of a number of events can tell.
void add_number_cases(std::vector<Case>& cases) {
    cases.push_back(
        {"5.1.9/gap-of-2-to-the-31-events", Level::must, "5.1.9",
         "a lap of more events than 31 and 32 bits can count",
         "Overtake the consumer by 2^31 + 5 events, later by 2^32 + 5. Do so in its sleep and "
         "before each of its first ten accesses to the metadata page.",
         "The consumer continues at tail_pos. Its L records count the lost events as the "
         "difference of two 64-bit numbers.",
         [](Stage& stage) { return outrun_by_events(stage, false); }});
    cases.push_back({"5.1.8.3-5/gap-of-2-to-the-31-events-over-a-swap", Level::must, "5.1.8.3-5",
                     "events in the new buffer more than 2^31 ahead",
                     "Play 5.1.9/gap-of-2-to-the-31-events, and replace the buffer before the "
                     "consumer checks it. Each surviving event is more than 2^31 sequence numbers "
                     "after the last delivered one.",
                     "The consumer compares sequence numbers as 64-bit numbers and delivers every "
                     "event that survives.",
                     [](Stage& stage) { return outrun_by_events(stage, true); }});
}

// More than 32 bits of a distance can tell, and of a number.
void add_distance_cases(std::vector<Case>& cases) {
    constexpr std::uint64_t k31 = std::uint64_t{1} << 31;
    constexpr std::uint64_t k32 = std::uint64_t{1} << 32;
    constexpr std::uint64_t kMore = std::uint64_t{2} << 20;
    const auto add = [&cases](std::string_view id, std::string_view clause, std::string_view title,
                              std::string_view description, CaseFunction run) {
        cases.push_back(
            {id, Level::must, clause, title, description,
             "The consumer compares positions as 64-bit numbers and continues at tail_pos.",
             std::move(run)});
    };
    add("5.1.6.2/overtaken-by-2-gibibytes", "5.1.6.2", "a lap of more than 2^31 bytes",
        "Overtake the consumer by 2 GiB and 2 MiB, in its sleep and before each of its first ten "
        "accesses to the metadata page.",
        [](Stage& stage) { return outrun(stage, k31 + kMore); });
    add("5.1.6.2/overtaken-by-4-gibibytes", "5.1.6.2", "a lap of 2^32 bytes",
        "Overtake the consumer by 4 GiB, in its sleep and before each of its first ten accesses to "
        "the metadata page.",
        [](Stage& stage) { return outrun(stage, k32); });
    add("5.1.8.1-5/torn-by-2-gibibytes", "5.1.8.1-5", "a lap of 2^31 bytes during the copy",
        "Stop the consumer in an event of 16 pages. Overtake it by 2 GiB and 2 MiB, and by a "
        "little more.",
        [](Stage& stage) { return outrun_under_read(stage, k31 + kMore); });
    add("5.1.8.1-5/torn-by-4-gibibytes", "5.1.8.1-5", "a lap of 2^32 bytes during the copy",
        "Stop the consumer in an event of 16 pages. Overtake it by 4 GiB, and by a little more.",
        [](Stage& stage) { return outrun_under_read(stage, k32); });
    add_number_cases(cases);
}

}  // namespace

void add_lap_cases(std::vector<Case>& cases) {
    cases.push_back({"5.1.8.1-2/lapped-moves-to-tail", Level::must, "5.1.8.1-2", "a lap",
                     "Overwrite the whole buffer while the consumer is stopped, three times.",
                     "The consumer continues at tail_pos and delivers everything from there. Its L "
                     "records count the lost events.",
                     [](Stage& stage) { return lapped(stage, 3000, 1); }});
    cases.push_back({"5.1.8.1-2/lapped-many-times", Level::must, "5.1.8.1-2",
                     "several laps at once",
                     "Overwrite the whole buffer five times while the consumer is stopped.",
                     kContinuesAtTail, [](Stage& stage) { return lapped(stage, 7000, 5); }});
    cases.push_back({"5.1.8.1-2/lapped-by-small-events", Level::must, "5.1.8.1-2",
                     "a lap by events of other sizes",
                     "Overwrite the buffer with events of about 500 bytes, so that the old read "
                     "position is in the middle of one.",
                     kContinuesAtTail, [](Stage& stage) { return lapped(stage, 500, 1); }});
    cases.push_back({"5.1.8.1-2/lapped-by-one-event", Level::must, "5.1.8.1-2",
                     "a lap by one event",
                     "Emit nine events of an eighth of the capacity while the consumer is stopped. "
                     "The last overwrites the first.",
                     "The consumer delivers eight events and loses one.", lapped_by_one});
    cases.push_back({"5.1.8.1-5/torn-in-the-middle", Level::must, "5.1.8.1-5",
                     "an overwrite in the middle of the copy",
                     "Stop the consumer at its first access to the second page of an event of four "
                     "pages. Lap the ring.",
                     "The consumer sees in its second load of tail_pos that the event was "
                     "overwritten, and discards it.",
                     [](Stage& stage) { return tear(stage, 1, '\x5a'); }});
    cases.push_back({"5.1.8.1-5/torn-at-the-end", Level::must, "5.1.8.1-5",
                     "an overwrite at the end of the copy",
                     "Stop the consumer at its first access to the last page of an event of four "
                     "pages. Lap the ring.",
                     kDiscards, [](Stage& stage) { return tear(stage, 3, '\xa5'); }});
    cases.push_back({"5.1.8.1-5/lapped-at-every-look", Level::must, "5.1.8.1-5",
                     "an overwrite before each access to an event",
                     "Lap the ring before each access to the data of a small event in turn.",
                     kReadsNothingLater, lap_at_every_look});
    cases.push_back({"5.1.8.1-5/end-lapped-at-every-look", Level::must, "5.1.8.1-5",
                     "an overwrite before each access to an end event",
                     "Emit an end event on each of several CPUs. Lap the ring before one of the "
                     "last eleven accesses to its data, another one on each CPU.",
                     "The consumer ends the CPU, or sees that the event was overwritten. It reads "
                     "nothing of an event after its last load of tail_pos.",
                     lap_the_end_at_every_look});
    cases.push_back({"E7/torn-header-of-large-sizes", Level::erratum, "E7",
                     "a header overwritten by huge sizes",
                     "Stop the consumer before it reads the header. Lap the ring, so that "
                     "event_size, header_size and type_len read as all ones.",
                     "The consumer checks the sizes before it uses them, and sees in tail_pos that "
                     "they were overwritten.",
                     [](Stage& stage) { return tear(stage, 0, '\xff'); }});
    cases.push_back({"E7/torn-header-of-zeros", Level::erratum, "E7",
                     "a header overwritten by zeros",
                     "Stop the consumer before it reads the header. Lap the ring, so that "
                     "event_size, header_size and type_len read as 0.",
                     "The consumer neither loops nor delivers an empty event.",
                     [](Stage& stage) { return tear(stage, 0, '\0'); }});
    cases.push_back({"E7/torn-header-of-mixed-sizes", Level::erratum, "E7",
                     "a header overwritten by sizes that contradict each other",
                     "Stop the consumer before it reads the header. Lap the ring by headers that "
                     "contradict themselves: a size of 4 GiB with a short header, a header longer "
                     "than the event, a type longer than both.",
                     "The consumer checks every size before it uses any of them.",
                     tear_to_mixed_sizes});
    add_step_cases(cases);
    add_distance_cases(cases);
}

}  // namespace kmes::conformance
