// SPDX-License-Identifier: MIT
//
// Positions (5.1.6.2, E11): they pass a power of two at any access, and a position of the old
// buffer says nothing about the next one.
#include <cstring>
#include <string>

#include "conformance/cases/play.h"
#include "conformance/oracle/layout.h"
#include "conformance/play/access_step.h"

namespace kmes::conformance {

namespace {

// write_pos passes `border` between two accesses; so do both positions, in laps.
CaseOutcome positions_pass(Stage& stage, std::uint64_t border, bool in_laps) {
    RingsSetup setup = stage.default_setup();
    setup.cpus = 1;
    setup.start_positions = {border - 8 * setup.capacity_bytes};
    stage.set_up(setup);
    lap(stage, 0);
    stage.start();
    AccessStep step;
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
    for (std::uint64_t k = 1; more && k < kStepAccessesAtMost && !limit.is_over(); ++k) {
        stage.wait_asleep();
        if (stage.has_ended(0)) break;
        // In laps the border is between tail_pos and write_pos.
        move_positions(stage, write_pos(stage, 0), in_laps ? border + 3000 : border - 130);
        more = act_at_step(stage, step, k);
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

// In the new buffer the old read position is inside a payload, which could be the image of the next
// event.
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

// Nothing survives that could move a reader, whose old position is beyond all of the new buffer.
CaseOutcome empty_and_at_zero(Stage& stage) {
    RingsSetup setup = stage.default_setup();
    setup.start_positions.assign(setup.cpus, 1'000'000'000);
    stage.set_up(setup);
    stage.start();
    stage.wait_asleep();
    stage.resize(stage.capacity_bytes(), PositionRule::tail_at, 0);
    stage.wait_asleep();
    emit_everywhere(stage, 3, 100);
    stage.wait_asleep();
    return stage.finish();
}

}  // namespace

void add_position_cases(std::vector<Case>& cases) {
    constexpr std::uint64_t k31 = std::uint64_t{1} << 31;
    constexpr std::uint64_t k32 = std::uint64_t{1} << 32;
    constexpr std::uint64_t k63 = std::uint64_t{1} << 63;
    const auto add = [&cases](std::string_view id, std::string_view title,
                              std::string_view description, std::uint64_t border, bool in_laps) {
        cases.push_back({id, Level::must, "5.1.6.2", title, description,
                         "The consumer loads each position as one 64-bit number and compares "
                         "positions as such.",
                         [=](Stage& stage) { return positions_pass(stage, border, in_laps); }});
    };
    add("5.1.6.2/positions-pass-31-bits-at-every-step", "write_pos across 2^31 at every step",
        "Before each access to the metadata page in turn, move write_pos over 2^31 with an event.",
        k31, false);
    add("5.1.6.2/positions-pass-32-bits-at-every-step", "write_pos across 2^32 at every step",
        "Before each access to the metadata page in turn, move write_pos over 2^32 with an event.",
        k32, false);
    add("5.1.6.2/positions-pass-63-bits-at-every-step", "write_pos across 2^63 at every step",
        "Before each access to the metadata page in turn, move write_pos over 2^63 with an event.",
        k63, false);
    add("5.1.6.2/laps-pass-32-bits-at-every-step", "tail_pos across 2^32 at every step",
        "Before each access to the metadata page in turn, move tail_pos over 2^32 with a lap.", k32,
        true);
}

void add_old_position_cases(std::vector<Case>& cases) {
    cases.push_back({"E11/positions-fit-by-chance", Level::erratum, "E11",
                     "an old position that is valid in the new buffer",
                     "Shift the positions by 50 to 900 bytes either way at a resize. The old read "
                     "position is between the new tail_pos and write_pos.",
                     kFindsPlace, positions_fit});
    cases.push_back(
        {"E11/image-at-the-old-position", Level::erratum, "E11",
         "the image of an event at the old position",
         "Shift the positions at three resizes, so that the old read position is in the payload of "
         "the next event. Put the image of an event with the next sequence number there.",
         "The consumer begins at tail_pos and finds its place event by event.",
         image_at_the_old_position});
    cases.push_back(
        {"E11/event-at-the-old-position", Level::erratum, "E11",
         "another event at the position of an old one",
         "Emit five events and one of half the buffer. Copy only that one at a resize, and shift "
         "positions back, so that the next event begins where the fifth one began.",
         "The consumer reads each event, because a position in one buffer says nothing about "
         "another buffer.",
         event_at_the_old_position});
}

void add_zero_position_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("E11/empty-and-begins-at-zero", Level::erratum, "E11",
        "an empty buffer replaced by one that begins at 0",
        "Begin the old buffer at a large position, without events, and the new one at 0.",
        "The consumer begins at tail_pos of the new buffer.", empty_and_at_zero);
}

}  // namespace kmes::conformance
