// SPDX-License-Identifier: MIT
//
// Cases that consumers of other designs made necessary (testees/broken/foreign.bzl): spans of
// events copied at once, events read ahead, one thread for all CPUs, positions in pieces, positions
// that fit a new buffer by chance.

#include <array>
#include <cstring>
#include <string>

#include "conformance/cases/play.h"
#include "conformance/oracle/layout.h"

namespace kmes::conformance {

namespace {

constexpr std::uint64_t kAccessesAtMost = 160;
constexpr std::uint64_t kBurst = 8;
constexpr std::uint64_t kBurstEventBytes = 700;

// A thread that was stopped to set guards goes back to its wait by itself. Woken before it is
// there, it would get EAGAIN, and not be told which word woke it.
void let_it_block(Stage& stage) {
    constexpr int kLooksAtMost = 20;
    for (int look = 0; look < kLooksAtMost; ++look) {
        stage.let_run(1);
        if (stage.tracer().inspect().all_blocked) return;
    }
}

// Wakes the sleeping consumer with what `wake` emits, and calls `act` before its k-th access to the
// pages of `cpus` from `first_page` on. Afterwards everything is delivered and it sleeps again.
// False: it came to no k-th access.
struct Step {
    std::vector<std::uint32_t> cpus;
    std::uint64_t first_page = 0;
    std::uint64_t pages = 1;
    std::function<void()> wake;
    std::function<void(const GuardHit&)> act;
};

bool act_at(Stage& stage, const Step& step, std::uint64_t k) {
    stage.wait_asleep();
    std::uint64_t accesses = 0;
    std::uint64_t left = kAccessesAtMost;
    for (const std::uint32_t cpu : step.cpus) {
        if (stage.has_ended(cpu)) return false;  // refused: the judge says whether rightly
        stage.wait_until([&stage, cpu] { return stage.has_mapped_present(cpu); },
                         "the present buffer to be mapped");
        stage.guard(cpu, step.first_page, step.pages, [&](const GuardHit& hit) {
            if (left-- == 0) return Stage::AtGuard::release;  // it spins
            if (++accesses == k) {
                step.act(hit);
                left = kAccessesAtMost;
            }
            return Stage::AtGuard::step;
        });
    }
    let_it_block(stage);
    step.wake();
    stage.wait_asleep();
    stage.release_guards();
    return accesses >= k;
}

void act_at_every(Stage& stage, const Step& step) {
    WalkLimit limit(stage);
    for (std::uint64_t k = 1; k < kAccessesAtMost && act_at(stage, step, k); ++k) {
        if (limit.is_over()) return;
    }
}

// -- Several events at once --

// A ring that is full but for a burst, which comes while the testee stands before its first look.
// `passed` bytes more than the room there is are written in `act`: so far does tail_pos move into
// the burst.
Step burst(Stage& stage, std::uint64_t passed) {
    Step step;
    step.cpus = {0};
    step.wake = [&stage] { emit_some(stage, 0, kBurst, kBurstEventBytes); };
    step.act = [&stage, passed](const GuardHit&) {
        stage.rings().emit_bytes(0, capacity(stage, 0) - kBurst * kBurstEventBytes + passed);
    };
    return step;
}

CaseOutcome lapped_between_looks(Stage& stage) {
    stage.start();
    act_at_every(stage, burst(stage, kBurst * kBurstEventBytes));
    return stage.finish();
}

CaseOutcome lapped_in_part_between_looks(Stage& stage) {
    stage.start();
    act_at_every(stage, burst(stage, 3 * kBurstEventBytes));
    return stage.finish();
}

// The burst begins with a page, and is overwritten in part at an access to its data.
CaseOutcome burst_torn_in_part(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    for (const std::uint64_t k : {1, 2, 9, 40, 120}) {
        fill_up_to(stage, 0, 0);
        stage.wait_asleep();
        Step step = burst(stage, 3 * kBurstEventBytes);
        step.first_page = 1;
        step.pages = 2;
        act_at(stage, step, k);
    }
    return stage.finish();
}

// One event of four pages, and no more than that event is overwritten: tail_pos moves to its end.
CaseOutcome torn_by_one(Stage& stage) {
    constexpr std::uint64_t kEventBytes = 4 * kPageBytes - 64;
    stage.start();
    stage.wait_asleep();
    for (const std::uint64_t first_page : {1, 2, 4}) {
        fill_up_to(stage, 0, 0);
        stage.wait_asleep();
        Step step;
        step.cpus = {0};
        step.first_page = first_page;
        step.wake = [&stage] { emit_some(stage, 0, 1, kEventBytes); };
        step.act = [&stage](const GuardHit&) { stage.rings().emit_bytes(0, capacity(stage, 0)); };
        act_at(stage, step, 1);
    }
    return stage.finish();
}

// Far more events are lost at once than 16 bits can count.
CaseOutcome gap_of_many(Stage& stage) {
    set_up_one_cpu(stage);
    emit_some(stage, 0, 3, 100);
    stage.start();
    for (const std::uint64_t lost : {300, 36'000, 66'000}) {
        stage.wait_asleep();
        stage.freeze();
        emit_some(stage, 0, lost + capacity(stage, 0) / kLeastEventBytes, kLeastEventBytes);
        stage.thaw();
    }
    // In the middle of a burst: the numbers on both sides of the gap go through it together.
    Step step = burst(stage, 0);
    step.act = [&stage](const GuardHit&) {
        emit_some(stage, 0, 66'000 + capacity(stage, 0) / kLeastEventBytes, kLeastEventBytes);
    };
    for (const std::uint64_t k : {3, 5, 9, 14}) act_at(stage, step, k);
    stage.wait_asleep();
    return stage.finish();
}

// More events on one CPU than 16 bits can count, nearly all of them there at once.
CaseOutcome seventy_thousand(Stage& stage) {
    constexpr std::uint64_t kCapacity = std::uint64_t{4} << 20;
    constexpr std::uint64_t kAtOnce = 66'000;
    constexpr std::uint64_t kBytes = 48;
    set_up_one_cpu(stage, kCapacity);
    emit_some(stage, 0, kAtOnce, kBytes);
    stage.start();
    // The powers of two: what counts in 8, 12 or 16 bits comes back to 0.
    for (const std::uint64_t events : {1, 255, 256, 1024, 4096, 65'536}) {
        stage.wait_asleep();
        stage.freeze();
        emit_some(stage, 0, events, kBytes);
        stage.thaw();
    }
    stage.wait_asleep();
    return stage.finish();
}

// -- What happens to one CPU while the consumer looks at another --

CaseOutcome at_every_step_elsewhere(Stage& stage,
                                    const std::function<void(std::uint32_t other)>& act) {
    set_up_cpus(stage, 3);
    stage.start();
    stage.set_nudging(false);  // as in E3/swap-at-every-step
    const std::array<std::pair<std::uint32_t, std::uint32_t>, 3> pairs{{{0, 2}, {2, 0}, {1, 2}}};
    for (const auto& [woken, other] : pairs) {
        Step step;
        step.cpus = {0, 1, 2};
        step.wake = [&stage, cpu = woken] { emit_some(stage, cpu, 1, 100); };
        step.act = [&act, cpu = other](const GuardHit&) { act(cpu); };
        act_at_every(stage, step);
    }
    return stage.finish();
}

CaseOutcome event_elsewhere(Stage& stage) {
    return at_every_step_elsewhere(
        stage, [&stage](std::uint32_t other) { emit_some(stage, other, 1, 70); });
}

CaseOutcome swap_elsewhere(Stage& stage) {
    return at_every_step_elsewhere(stage, [&stage](std::uint32_t other) {
        stage.rings().swap(other, SwapSpec{stage.capacity_bytes()});
        emit_some(stage, other, 1, 70);
    });
}

// All positions are the same, and stay so.
CaseOutcome events_everywhere(Stage& stage) {
    RingsSetup setup = stage.default_setup();
    setup.start_positions.assign(setup.cpus, 0);
    stage.set_up(setup);
    stage.start();
    Step step;
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) step.cpus.push_back(cpu);
    step.wake = [&stage] { emit_everywhere(stage, 1, 70); };
    step.act = [&stage](const GuardHit&) { emit_everywhere(stage, 1, 70); };
    act_at_every(stage, step);
    return stage.finish();
}

// -- Positions --

// write_pos passes `border` between two accesses; so do both positions, in laps.
CaseOutcome positions_pass(Stage& stage, std::uint64_t border, bool in_laps) {
    RingsSetup setup = stage.default_setup();
    setup.cpus = 1;
    setup.start_positions = {border - 8 * setup.capacity_bytes};
    stage.set_up(setup);
    lap(stage, 0);
    stage.start();
    Step step;
    step.cpus = {0};
    step.wake = [&stage] { emit_some(stage, 0, 1, 100); };
    step.act = [&stage, in_laps](const GuardHit&) {
        if (in_laps)
            lap(stage, 0);
        else
            emit_some(stage, 0, 1, 70);
    };
    bool more = true;
    WalkLimit limit(stage);
    for (std::uint64_t k = 1; more && k < kAccessesAtMost && !limit.is_over(); ++k) {
        stage.wait_asleep();
        if (stage.has_ended(0)) break;
        // In laps the border lies between tail_pos and write_pos.
        move_positions(stage, write_pos(stage, 0), in_laps ? border + 3000 : border - 130);
        more = act_at(stage, step, k);
    }
    return stage.finish();
}

// E11: the old read position is a position of the new buffer, too; of something else.
CaseOutcome positions_fit(Stage& stage) {
    RingsSetup setup = stage.default_setup();
    for (std::uint32_t cpu = 0; cpu < setup.cpus; ++cpu) setup.start_positions.push_back(1'000'000);
    stage.set_up(setup);
    emit_everywhere(stage, 10, 300);
    stage.start();
    for (const std::int64_t by : {50, 300, 900, -300, -600, -900, -50}) {
        stage.wait_asleep();
        stage.freeze();
        stage.resize(stage.capacity_bytes(), PositionRule::shift, static_cast<std::uint64_t>(by));
        emit_everywhere(stage, 3, 300);
        stage.thaw();
    }
    stage.wait_asleep();
    return stage.finish();
}

// The bytes of an event of `bytes` bytes with this sequence number, as a log of logs holds them.
std::string image_of_event(std::uint32_t bytes, std::uint64_t sequence) {
    std::string image(bytes, 'i');
    const auto put = [&image](std::uint64_t at, auto word) {
        std::memcpy(image.data() + at, &word, sizeof word);
    };
    put(kEventSizeAt, bytes);
    put(kHeaderSizeAt, std::uint32_t{32});
    put(kSequenceAt, sequence);
    put(kTypeLengthAt, std::uint16_t{1});
    return image;
}

// In the new buffer the old read position is one inside of a payload, and what stands there could
// be the next event.
CaseOutcome image_at_the_old_position(Stage& stage) {
    constexpr std::uint32_t kImageBytes = 120;
    RingsSetup setup = stage.default_setup();
    setup.cpus = 1;
    setup.start_positions = {1'000'000};
    stage.set_up(setup);
    emit_some(stage, 0, 10, 300);
    stage.start();
    for (const std::uint64_t back : {100u, 400u, 1000u}) {
        stage.wait_asleep();
        if (stage.has_ended(0)) break;
        const std::uint64_t next = stage.rings().history().events_of(0).back().sequence + 1;
        stage.freeze();
        stage.resize(stage.capacity_bytes(), PositionRule::shift, 0 - back);
        EventSpec event = stage.rings().make(back + kImageBytes);
        event.payload.replace(event.payload.size() - kImageBytes, kImageBytes,
                              image_of_event(kImageBytes, next));
        stage.rings().emit(0, std::move(event));
        emit_some(stage, 0, 2, 300);
        stage.thaw();
    }
    stage.wait_asleep();
    return stage.finish();
}

// What is known of the old buffer by a position is wrong in the new one: another event begins
// there. One large event alone is copied into the new buffer, so that nothing else is read before.
CaseOutcome event_at_the_old_position(Stage& stage) {
    constexpr std::uint64_t kBytes = 100;
    constexpr std::uint64_t kEvents = 5;
    RingsSetup setup = stage.default_setup();
    const std::uint64_t smaller = setup.capacity_bytes;
    setup.cpus = 1;
    setup.capacity_bytes = 2 * smaller;
    setup.start_positions = {1'000'000};
    stage.set_up(setup);
    emit_some(stage, 0, kEvents, kBytes);
    stage.start();
    stage.wait_asleep();
    emit_some(stage, 0, 1, smaller);
    stage.wait_asleep();
    // The next event is at the position of the last of the five.
    stage.resize(smaller, PositionRule::shift, 0 - (smaller + kBytes));
    for (std::uint64_t i = 0; i < kEvents; ++i) {
        stage.wait_asleep();
        emit_some(stage, 0, 1, kBytes);
    }
    stage.wait_asleep();
    return stage.finish();
}

// The number that follows the last one of the old buffer was used by an event that was dropped.
CaseOutcome gap_over_a_swap(Stage& stage) {
    emit_everywhere(stage, 3, 200);
    stage.start();
    for (int round = 0; round < 3; ++round) {
        stage.wait_asleep();
        stage.freeze();
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
            for (int dropped = 0; dropped <= round; ++dropped) stage.rings().drop(cpu);
        }
        stage.resize(stage.capacity_bytes());
        emit_everywhere(stage, 2, 200);
        stage.thaw();
    }
    stage.wait_asleep();
    return stage.finish();
}

// Headers that need more than 12, 15 and 16 bits for their size: by the type, and by what a later
// version adds.
CaseOutcome large_headers(Stage& stage) {
    RingsSetup setup = stage.default_setup();
    setup.capacity_bytes = 4 << 20;
    stage.set_up(setup);
    stage.start();
    struct Header {
        std::uint64_t type_bytes;
        std::uint64_t extra_bytes;
    };
    for (const Header& header :
         {Header{4100, 0}, Header{1, 5000}, Header{32768, 0}, Header{40000, 9}, Header{1, 66000},
          Header{65535, 0}, Header{65507, 3}, Header{65535, 40000}, Header{1, 1'200'000}}) {
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
            const std::uint64_t bytes =
                kHeaderBytesBeforeType + header.type_bytes + header.extra_bytes + 100;
            stage.rings().emit(cpu, stage.rings().make(bytes, std::string(header.type_bytes, 'x'),
                                                       header.extra_bytes));
        }
        stage.wait_delivered();
    }
    return stage.finish();
}

void add_burst_cases(std::vector<Case>& cases) {
    cases.push_back(
        {"5.1.8.1-2/lapped-between-two-looks", Level::must, "5.1.8.1-2",
         "lapped while it reads several events",
         "Eight events come at once; the testee is stopped before each of its accesses to the "
         "metadata page in turn, and the ring is lapped there, all eight included.",
         "It goes on at tail_pos, with nothing of what it has read ahead or carried over.",
         lapped_between_looks});
    cases.push_back(
        {"5.1.8.1-2/lapped-in-part-between-two-looks", Level::must, "5.1.8.1-2",
         "some of several events are overwritten",
         "Eight events come at once; the testee is stopped before each of its accesses to the "
         "metadata page in turn, and the first three of them are overwritten there.",
         "It goes on at tail_pos: the other five are delivered.", lapped_in_part_between_looks});
    cases.push_back(
        {"5.1.8.1-5/burst-torn-in-part", Level::must, "5.1.8.1-5",
         "some of several events are torn",
         "Eight events come at once; the testee is stopped at an access to their data, and the "
         "first three are overwritten.",
         "It sees in its look at tail_pos behind the copy that its first event was overwritten, "
         "however much it copies at once.",
         burst_torn_in_part});
    cases.push_back({"5.1.8.1-5/torn-by-one-event", Level::must, "5.1.8.1-5",
                     "no more than the event that it reads is overwritten",
                     "The testee is stopped in the middle of an event of four pages, and exactly "
                     "that event is overwritten: tail_pos is its end.",
                     "It discards the event: read_pos < tail_pos.", torn_by_one});
    cases.push_back({"5.1.9/gap-of-many-events", Level::must, "5.1.9",
                     "a lap of very many small events",
                     "300, 36,000 and 66,000 events of 30 bytes are overwritten at once, the last "
                     "also while it reads a burst.",
                     "It goes on at tail_pos; an L record counts what was lost.", gap_of_many});
    cases.push_back({"5.1.8.1-6/seventy-thousand-events", Level::must, "5.1.8.1-6",
                     "more events of one CPU than 16 bits can count",
                     "66,000 small events are there when the testee attaches; 1, 255, 256, 1024, "
                     "4096 and 65,536 come later, each number at once.",
                     "Every event is delivered once, in order.", seventy_thousand});
}

void add_position_cases(std::vector<Case>& cases) {
    constexpr std::uint64_t k31 = std::uint64_t{1} << 31;
    constexpr std::uint64_t k32 = std::uint64_t{1} << 32;
    constexpr std::uint64_t k63 = std::uint64_t{1} << 63;
    const auto add = [&cases](std::string_view id, std::string_view title,
                              std::string_view description, std::uint64_t border, bool in_laps) {
        cases.push_back({id, Level::must, "5.1.6.2", title, description,
                         "It loads each position as one number of 64 bits, and compares them so.",
                         [=](Stage& stage) { return positions_pass(stage, border, in_laps); }});
    };
    add("5.1.6.2/positions-pass-31-bits-at-every-step", "write_pos passes 2^31 at every step",
        "The testee is stopped before each of its accesses to the metadata page in turn, and an "
        "event takes write_pos over 2^31 there.",
        k31, false);
    add("5.1.6.2/positions-pass-32-bits-at-every-step", "write_pos passes 2^32 at every step",
        "The testee is stopped before each of its accesses to the metadata page in turn, and an "
        "event takes write_pos over 2^32 there.",
        k32, false);
    add("5.1.6.2/positions-pass-63-bits-at-every-step", "write_pos passes 2^63 at every step",
        "The testee is stopped before each of its accesses to the metadata page in turn, and an "
        "event takes write_pos over 2^63 there.",
        k63, false);
    add("5.1.6.2/laps-pass-32-bits-at-every-step", "tail_pos passes 2^32 at every step",
        "The testee is stopped before each of its accesses to the metadata page in turn, and a lap "
        "takes tail_pos over 2^32 there.",
        k32, true);
}

}  // namespace

void add_found_cases(std::vector<Case>& cases) {
    add_burst_cases(cases);
    add_position_cases(cases);
    cases.push_back({"5.1.1/event-elsewhere-at-every-step", Level::erratum, "5.1.1",
                     "an event on another CPU at every step",
                     "An event of one CPU wakes the consumer; before each access to the metadata "
                     "of any CPU in turn, an event of another CPU comes.",
                     "Before it sleeps it looks again at every CPU that it sleeps for (E2).",
                     event_elsewhere});
    cases.push_back({"5.1.1/events-everywhere-at-every-step", Level::erratum, "5.1.1",
                     "the same event on all CPUs at every step",
                     "All CPUs have the same positions. An event on each wakes the consumer; "
                     "before each access to the metadata of any CPU in turn, another one comes on "
                     "each, all of the same size.",
                     "Before it sleeps it compares the positions of each CPU with its own (E2).",
                     events_everywhere});
    cases.push_back(
        {"E3/swap-elsewhere-at-every-step", Level::erratum, "E3",
         "a resize of another CPU at every step",
         "An event of one CPU wakes the consumer; before each access to the metadata of any CPU in "
         "turn, the buffer of another CPU is replaced, and an event comes in the new one.",
         "Before it sleeps it looks again at the generation of every CPU that it "
         "sleeps for.",
         swap_elsewhere});
    cases.push_back({"E11/positions-fit-by-chance", Level::erratum, "E11",
                     "the old position exists in the new buffer",
                     "Resizes that shift the positions by 50 to 900 bytes, to either side: the "
                     "old read position lies between the new tail_pos and write_pos.",
                     "It begins at tail_pos and finds its place by sequence number.",
                     positions_fit});
    cases.push_back({"E11/image-at-the-old-position", Level::erratum, "E11",
                     "what could be the next event stands at the old position",
                     "Positions are shifted at three resizes, so that the old read position lies "
                     "in the payload of the next event; what stands there has the form of an event "
                     "with the next sequence number.",
                     "It begins at tail_pos and finds its place event by event.",
                     image_at_the_old_position});
    cases.push_back(
        {"E11/event-at-the-old-position", Level::erratum, "E11",
         "another event begins at the position of an old one",
         "Five events, and one that is half of the buffer; at a resize that one alone is "
         "copied, and positions are shifted back, so that the next event begins where "
         "the fifth one did.",
         "It reads each of them: a position says nothing of another buffer's event.",
         event_at_the_old_position});
    cases.push_back({"event-model/large-headers", Level::must, "event-model",
                     "headers of up to 100 KiB",
                     "Types of 4 to 64 KiB, and headers that are longer than their type by up to "
                     "66,000 bytes.",
                     "type_len has 16 bits, header_size 32; both have no other limit than the "
                     "event's size.",
                     large_headers});
    cases.push_back({"5.1.8.3-5/gap-over-a-swap", Level::must, "5.1.8.3-5",
                     "the next number was used by a dropped event",
                     "Events are dropped just before a resize: the sequence has a gap there.",
                     "It goes on with the first number that is greater, not with the next one.",
                     gap_over_a_swap});
}

}  // namespace kmes::conformance
