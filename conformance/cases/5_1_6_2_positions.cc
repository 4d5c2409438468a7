// SPDX-License-Identifier: MIT
//
// Positions (5.1.6.2, E11): they pass a power of two at any access, and a position in the old
// buffer says nothing about the next one.
#include <functional>
#include <utility>

#include "conformance/cases/play.h"
#include "conformance/play/row.h"
#include "conformance/play/value_stream.h"

namespace kmes::conformance {

namespace {

using enum Level;

constexpr std::string_view kAsOneNumber =
    "The consumer loads each position as one 64-bit number and compares positions as such.";

constexpr std::uint64_t bit(int number) {
    return std::uint64_t{1} << number;
}

// All positions begin `before` bytes before the border, each further CPU's seven bytes earlier, and
// pass the border.
Setup begin_before(std::uint64_t border, std::uint64_t before, std::uint64_t capacities = 0) {
    const auto begin = [=](RingsSetup& rings) {
        for (std::uint32_t cpu = 0; cpu < rings.cpus; ++cpu)
            rings.start_positions.push_back(border - before - capacities * rings.capacity_bytes -
                                            7 * cpu);
    };
    return {.rings = begin, .before_start = {EmitEverywhere{2}}};
}
const Steps kPassBorder{Delivered{}, EmitEverywhere{40, 333}, Delivered{},
                        AtOnce{{OnEachCpu{{Lap{}}}}}, Delivered{}};

// write_pos passes the border before each access in turn; with laps, tail_pos does.
Row positions_pass(std::string_view id, std::string_view title, std::string_view description,
                   std::uint64_t border, bool in_laps) {
    // With laps the border is between tail_pos and write_pos.
    const std::uint64_t to = in_laps ? border + 3000 : border - 130;
    const Steps actions = in_laps ? Steps{Lap{}} : Steps{Emit{1, 70}};
    return {{id, must, title, description, kAsOneNumber},
            {Limited{{BeforeAccessTo{.wake = {Emit{}},
                                     .actions = actions,
                                     .before = {Asleep{}, EndIfRefused{}, MoveWritePos{to}}}}}},
            {.cpus = 1,
             .rings =
                 [border](RingsSetup& rings) {
                     rings.start_positions = {border - 8 * rings.capacity_bytes};
                 },
             .before_start = {Lap{}}}};
}

std::function<void(RingsSetup&)> begin_at(std::uint64_t position) {
    return [position](RingsSetup& rings) { rings.start_positions.assign(rings.cpus, position); };
}

// New buffers with positions that are higher by this, and three more events.
Step shift(std::int64_t by) {
    return InOrder{
        {Asleep{}, AtOnce{{Resize{current(), PositionRule::shift, static_cast<std::uint64_t>(by)},
                           EmitEverywhere{3, 300}}}}};
}

// In the new buffer the old read position is inside a payload that could be the image of the next
// event.
Steps shift_into_an_image(std::uint64_t back) {
    constexpr std::uint32_t kImageBytes = 120;
    const auto emit_image = [back](Stage& stage) {
        const std::uint64_t next = stage.rings().history().events_of(0).back().sequence + 1;
        EventSpec event = stage.rings().events().make(back + kImageBytes);
        event.payload.replace(event.payload.size() - kImageBytes, kImageBytes,
                              image_of_event(kImageBytes, next));
        stage.rings().emit(0, std::move(event));
    };
    return {Asleep{}, EndIfRefused{},
            AtOnce{{Resize{current(), PositionRule::shift, 0 - back}, emit_image, Emit{2, 300}}}};
}

// Facts about a position of the old buffer do not hold in the new one: another event begins there.
// Only one large event is copied to the new buffer, so nothing else is read before.
constexpr std::uint64_t kOldEvents = 5;
constexpr std::uint64_t kOldEventBytes = 100;

// The next event is at the position of the last of the old ones.
void shrink_onto_the_last(Stage& stage) {
    const std::uint64_t smaller = stage.capacity_bytes() / 2;
    stage.resize(smaller, PositionRule::shift, 0 - (smaller + kOldEventBytes));
}

const Row kPositionRows[] = {
    {{"5.1.6.2/positions-beyond-32-bits", must, "positions around 2^32",
      "Let write_pos and tail_pos pass 2^32.", kOwnBytes},
     kPassBorder,
     begin_before(bit(32), 300)},
    {{"5.1.6.2/positions-beyond-31-bits", must, "positions around 2^31",
      "Let write_pos and tail_pos pass 2^31.", kOwnBytes},
     kPassBorder,
     begin_before(bit(31), 300)},
    {{"5.1.6.2/positions-beyond-63-bits", must, "positions around 2^63",
      "Let write_pos and tail_pos pass 2^63.", kOwnBytes},
     kPassBorder,
     begin_before(bit(63), 300)},
    {{"5.1.6.2/positions-near-the-top", must, "positions just below 2^64",
      "Keep write_pos and tail_pos just below 2^64.", kOwnBytes},
     kPassBorder,
     begin_before(0, 0, 8)},
};

const Row kPositionStepRows[] = {
    positions_pass(
        "5.1.6.2/positions-pass-31-bits-at-every-step", "write_pos across 2^31 at every step",
        "Before each access to the metadata page in turn, move write_pos over 2^31 with an event.",
        bit(31), false),
    positions_pass(
        "5.1.6.2/positions-pass-32-bits-at-every-step", "write_pos across 2^32 at every step",
        "Before each access to the metadata page in turn, move write_pos over 2^32 with an event.",
        bit(32), false),
    positions_pass(
        "5.1.6.2/positions-pass-63-bits-at-every-step", "write_pos across 2^63 at every step",
        "Before each access to the metadata page in turn, move write_pos over 2^63 with an event.",
        bit(63), false),
    positions_pass(
        "5.1.6.2/laps-pass-32-bits-at-every-step", "tail_pos across 2^32 at every step",
        "Before each access to the metadata page in turn, move tail_pos over 2^32 with a lap.",
        bit(32), true),
};

const Row kOldPositionRows[] = {
    {{"E11/positions-fit-by-chance", erratum, "an old position that is valid in the new buffer",
      "Shift the positions by 50 to 900 bytes either way at a resize. The old read position is "
      "between the new tail_pos and write_pos.",
      kFindsPlace},
     {shift(50), shift(300), shift(900), shift(-300), shift(-600), shift(-900), shift(-50),
      Asleep{}},
     {.rings = begin_at(1'000'000), .before_start = {EmitEverywhere{10, 300}}}},
    {{"E11/image-at-the-old-position", erratum, "the image of an event at the old position",
      "Shift the positions at three resizes, so that the old read position is in the payload of "
      "the next event. Put the image of an event with the next sequence number there.",
      "The consumer begins at tail_pos and finds its place event by event."},
     {each({100, 400, 1000}, shift_into_an_image), Asleep{}},
     {.cpus = 1, .rings = begin_at(1'000'000), .before_start = {Emit{10, 300}}}},
    {{"E11/event-at-the-old-position", erratum, "another event at the position of an old one",
      "Emit five events and one of half the buffer. Copy only that one at a resize, and shift "
      "positions back, so that the next event begins where the fifth one began.",
      "The consumer reads each event, because a position in one buffer says nothing about another "
      "buffer."},
     {Asleep{}, Emit{1, current(1, 2)}, Asleep{}, shrink_onto_the_last,
      Times{kOldEvents, {Asleep{}, Emit{1, kOldEventBytes}}}, Asleep{}},
     {.cpus = 1,
      .capacity = usual(2),
      .rings = begin_at(1'000'000),
      .before_start = {Emit{kOldEvents, kOldEventBytes}}}},
};

// No surviving event can move the reader, whose old position is beyond everything in the new
// buffer.
const Row kZeroPositionRows[] = {
    {{"E11/empty-and-begins-at-zero", erratum,
      "an empty buffer replaced by a buffer that begins at 0",
      "Begin the old buffer at a large position, without events, and the new one at 0.",
      "The consumer begins at tail_pos of the new buffer."},
     {Asleep{}, Resize{current(), PositionRule::tail_at, 0}, Asleep{}, EmitEverywhere{3}, Asleep{}},
     {.rings = begin_at(1'000'000'000)}},
};

}  // namespace

const std::vector<Case> kPositionCases = cases_of(kPositionRows);
const std::vector<Case> kPositionStepCases = cases_of(kPositionStepRows);
const std::vector<Case> kOldPositionCases = cases_of(kOldPositionRows);
const std::vector<Case> kZeroPositionCases = cases_of(kZeroPositionRows);

}  // namespace kmes::conformance
