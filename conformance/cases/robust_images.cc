// SPDX-License-Identifier: MIT
//
// Events and metadata pages that no producer writes (level robust; E7, E15, E26, 5.1.6.1). The
// consumer may refuse them, or continue with the whole events, but not crash, hang, or read outside
// of its mapping. Each image is on its own CPU, before the attach or while the consumer runs.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/oracle/layout.h"
#include "conformance/play/forged_image.h"
#include "conformance/play/moves.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;
using enum Moment;

constexpr std::uint64_t kTop = 0xffffffffffffffff;

// -- One image on CPU 0 ----------------------------------------------------------------------

constexpr Common kOneEvent{
    robust, "Forge the header of an event in the middle of CPU 0's ring.",
    "The consumer refuses the buffer, or continues with the whole events. It neither crashes nor "
    "hangs, and drains the other CPUs."};
constexpr Common kOnePosition{
    robust, "Forge write_pos and tail_pos of CPU 0 before the attach.",
    "The consumer refuses the buffer, or reads nothing. It neither crashes nor hangs, and drains "
    "the other CPUs."};

// Five events on CPU 0. The third has forged lengths.
Row one_event(std::string_view id, std::string_view title, const EventLengths& forged) {
    return {
        kOneEvent(id, title),
        {AllMapped{}, OnEachCpu{{Emit{2}, DeliveredHere{}}, {0}}},
        {.before_start = {Emit{5}, ForgeEvent{lengths(forged), 2}, Tolerate{std::string(title)}},
         .end = RowEnd::tolerant}};
}

// Positions of CPU 0 that contradict each other. The next emission corrects them.
Row one_position(std::string_view id, std::string_view title, const ForgePositions& forged) {
    return {kOnePosition(id, title),
            {AllMapped{}},
            {.before_start = {EmitEverywhere{5}, forged,
                              Tolerate{"positions that contradict each other"}},
             .end = RowEnd::tolerant}};
}

const Row kOneImageRows[] = {
    one_event("E7/event-size-zero", "event_size 0", {0, kShortHeader, 1}),
    one_event("E7/event-size-one", "event_size 1", {1, kShortHeader, 1}),
    one_event("E7/event-size-29", in_layout("event_size {}", kFixedHeader),
              {kFixedHeader, kShortHeader, 1}),
    one_event("E7/event-size-huge", "event_size 2^32 - 1", {0xffffffff, kShortHeader, 1}),
    one_event("E7/event-size-beyond-write-pos", "event_size beyond write_pos",
              {60000, kShortHeader, 1}),
    one_event("E7/header-size-beyond-event", "header_size > event_size", {100, 101, 1}),
    one_event("E7/header-size-huge", "header_size 2^32 - 1", {100, 0xffffffff, 1}),
    one_event("E7/type-beyond-header", in_layout("{} + type_len > header_size", kFixedHeader),
              {100, kShortHeader, 60}),
    one_event("E7/type-empty", "type_len 0", {100, kShortHeader, 0}),
    one_position("E7/tail-beyond-write-pos", "tail_pos > write_pos",
                 {.tail_pos = tail_pos_and(100000)}),
    one_position("E7/write-pos-far-ahead", "write_pos - tail_pos > capacity",
                 {.write_pos = write_pos_and(1 << 30)}),
};

// -- An event on each of many CPUs -----------------------------------------------------------

constexpr std::string_view kNoHarm =
    "The consumer refuses the buffer, continues with the whole events, or rests. It neither "
    "crashes nor runs for ever, and drains the sound CPUs.";
constexpr Common kEvent{
    robust, "Forge the lengths of an event in eighteen ways on as many CPUs. Two CPUs are sound.",
    kNoHarm};
constexpr Common kLargeEvent{
    robust,
    "Forge the lengths of an event of 300,000 bytes in fourteen ways on as many CPUs. Two CPUs are "
    "sound.",
    kNoHarm};
constexpr Common kSequence{
    robust,
    "Give the third of five events a sequence number that goes back, repeats, is 0, or is far "
    "ahead of the later ones.",
    kNoHarm};

// Lengths of a forged event. The true event has 100 bytes and a type of one byte; its fields in
// form A are 100, 30, 1.
const std::vector<EventLengths> kLengths = {
    {0, kShortHeader, 1},
    {1, kShortHeader, 1},
    {kFixedHeader, kShortHeader, 1},
    {0xffffffff, kShortHeader, 1},
    {60000, kShortHeader, 1},  // beyond write_pos
    {100, 101, 1},
    {100, 0xffffffff, 1},
    {100, kFixedHeader, 1},
    {100, 0, 1},
    {100, kShortHeader, 2},  // header_size < the fixed bytes + type_len
    {100, kShortHeader, 60},
    {100, 100, static_cast<std::uint16_t>(101 - kFixedHeader)},  // a type beyond the header
    {100, kShortHeader, 0xffff},                                 // and beyond the event
    {100, kShortHeader, 0},
    {0, 0, 0},
    {0xffffffff, 0xffffffff, 0xffff},
    {kShortHeader, kShortHeader, 1},
    {130, kShortHeader, 1},  // possible, but the next event does not begin where they end
};

// Five events. The event `back` events before the newest one has forged lengths.
std::vector<Image> one_of_five(std::size_t back) {
    return images_of(kLengths, [back](const std::vector<BytesAt>& forged) {
        return Steps{Emit{5}, ForgeEvent{forged, back}};
    });
}
constexpr std::size_t kFirst = 4;
constexpr std::size_t kMiddle = 2;
constexpr std::size_t kLast = 0;

// The event at which the consumer searches for its place: the second of those delivered from the
// old buffer.
const std::vector<Image> kSurvivors = images_of(
    kLengths,
    [](const std::vector<BytesAt>& forged) { return Steps{ForgeEvent{forged, 1}, Emit{}}; },
    {Swap{}});

// An event in a buffer that is replaced before the consumer has drained it.
const std::vector<Image> kOldEvents = images_of(kLengths, [](const std::vector<BytesAt>& forged) {
    return Steps{Emit{3}, Swap{}, ForgeEvent{forged, 1, 1}};
});

// An event whose header wraps at the end of the data region, with each field on one side.
const std::vector<Image> kAcrossTheEnd =
    images_of(kLengths, [cpu = std::size_t{0}](const std::vector<BytesAt>& forged) mutable {
        const std::uint64_t before_the_end[] = {4, 8, 16, kTypeLengthAt - 1};
        return Steps{EmitTo{before_the_end[cpu++ % std::size(before_the_end)]}, Emit{},
                     ForgeEvent{forged}, Emit{}};
    });

// As before, for events that exceed 16 bits, and the size that a consumer copies at once.
constexpr std::uint32_t kLarge = 300'000;
constexpr std::uint64_t kLargeCapacity = 1 << 20;
const std::vector<EventLengths> kLargeLengths = {
    {kLarge, kLarge + 1, 1},
    {kLarge, 0xffffffff, 1},
    {kLarge, kFixedHeader, 1},
    {kLarge, 0, 1},
    {kLarge, kShortHeader, 0xffff},
    {kLarge, 65546, 65535},
    {kLarge, kShortHeader, 0},
    {kLarge + 1, kShortHeader, 1},
    {0xffffffff, kLarge, 1},
    {0xffffffff, kShortHeader, 1},
    {kLarge, kLarge, 1},
    {65536 + kShortHeader, kShortHeader, 1},
    {kLarge, kLarge, 0xffff},
    {65536, 65537, 1},
};

const std::vector<Image> kLargeEvents =
    images_of(kLargeLengths, [](const std::vector<BytesAt>& forged) {
        return Steps{Emit{1, kLarge}, ForgeEvent{forged}, Emit{}};
    });

// Each bound alone would refuse one of them. A write_pos far ahead makes a size plausible that
// leads out of the mapping.
Image size_and_write_pos(std::uint32_t event_size, std::uint64_t ahead) {
    return {fmt::format("event_size {}, write_pos {} ahead", event_size, ahead),
            {Emit{}, ForgeEvent{lengths({event_size, kShortHeader, 1})},
             ForgePositions{.write_pos = write_pos_and(ahead)}}};
}
const std::vector<Image> kSizesAndAhead = {
    size_and_write_pos(0xffffffff, std::uint64_t{1} << 40),
    size_and_write_pos(0xffffffff, 0xffffffff),
    size_and_write_pos(0x7fffffff, std::uint64_t{1} << 31),
    size_and_write_pos(0x10000000, std::uint64_t{1} << 62),
    size_and_write_pos(0x00400000, std::uint64_t{1} << 23),
};

// The sequence number of the third of five events.
Image third_sequence(std::uint64_t sequence) {
    return {fmt::format("sequence {} out of order", sequence),
            {Emit{5}, ForgeEvent{sequence_number(sequence), kMiddle}}};
}
const std::vector<Image> kSequences = {
    third_sequence(0),    third_sequence(1),          third_sequence(4),          third_sequence(5),
    third_sequence(kTop), third_sequence(1ull << 63), third_sequence(1ull << 32),
};

// An event names another CPU than its buffer, and so does the metadata page.
constexpr std::uint64_t kCpuIdInEvent = 24;
constexpr std::uint64_t kCpuIdInPage = 12;
Image cpu_id(std::uint16_t id) {
    return {fmt::format("cpu_id {}", id),
            {Emit{}, ForgeEvent{{{kCpuIdInEvent, bytes_of(id)}}},
             ForgePage{{{kCpuIdInPage, bytes_of(id)}}}}};
}

const Row kEventImageRows[] = {
    row_of(kEvent("E7/first-event-forged", "forged lengths of the first event"),
           {one_of_five(kFirst), before_the_attach}),
    row_of(kEvent("E7/middle-event-forged", "forged lengths of a middle event"),
           {one_of_five(kMiddle), before_the_attach}),
    row_of(kEvent("E7/last-event-forged", "forged lengths of the last event"),
           {one_of_five(kLast), before_the_attach}),
    row_of(kEvent("E7/first-event-forged-while-it-runs",
                  "forged lengths of the first event during a sleep"),
           {one_of_five(kFirst), while_it_sleeps}),
    row_of(kEvent("E7/middle-event-forged-while-it-runs",
                  "forged lengths of a middle event during a sleep"),
           {one_of_five(kMiddle), while_it_sleeps}),
    row_of(kEvent("E7/last-event-forged-while-it-runs",
                  "forged lengths of the last event during a sleep"),
           {one_of_five(kLast), while_it_sleeps}),
    row_of(
        kEvent("E7/event-forged-after-a-change", "forged lengths of an event in the next buffer"),
        {one_of_five(kMiddle), after_a_change}),
    row_of({"E7/survivor-forged", robust, "forged lengths of a delivered event in the next buffer",
            "Resize. Forge the lengths of a delivered event in the new buffer, in eighteen ways on "
            "as many CPUs. Two CPUs are sound.",
            kNoHarm},
           {kSurvivors, while_it_sleeps}),
    row_of({"E7/forged-in-a-replaced-buffer", robust, "forged lengths in a replaced buffer",
            "Emit events and resize. Forge the lengths of the second event in the old buffer, in "
            "eighteen ways on as many CPUs. Two CPUs are sound.",
            kNoHarm},
           {kOldEvents, while_it_sleeps}),
    row_of({"E7/forged-across-the-end", robust, "forged lengths of a header that wraps",
            "Forge the lengths of an event whose header wraps at the end of the data region, in "
            "eighteen ways on as many CPUs. Two CPUs are sound.",
            kNoHarm},
           {kAcrossTheEnd, while_it_sleeps}),
    row_of(kLargeEvent("E7/large-event-forged", "forged lengths of a large event"),
           {kLargeEvents, before_the_attach, kLargeCapacity}),
    row_of(kLargeEvent("E7/large-event-forged-while-it-runs",
                       "forged lengths of a large event during a sleep"),
           {kLargeEvents, while_it_sleeps, kLargeCapacity}),
    row_of({"E7/size-and-write-pos-forged", robust, "forged event_size and write_pos",
            "Set an event's size to far more than the capacity, and write_pos beyond its end, on "
            "five CPUs. Two CPUs are sound.",
            kNoHarm},
           {kSizesAndAhead, before_the_attach}),
    row_of(kSequence("E7/sequence-goes-back", "sequence numbers that go back or repeat"),
           {kSequences, before_the_attach}),
    row_of(kSequence("E7/sequence-goes-back-while-it-runs",
                     "sequence numbers that go back or repeat during a sleep"),
           {kSequences, while_it_sleeps}),
    row_of({"E7/cpu-id-of-another", robust, "a cpu_id of another CPU or of none",
            "Set cpu_id in the metadata page and in an event to a value that is not the index of "
            "the fd.",
            kNoHarm},
           {{cpu_id(1), cpu_id(77), cpu_id(0xffff)}, before_the_attach}),
};

// -- Positions on each of many CPUs ----------------------------------------------------------

constexpr Common kBothPositions{
    robust,
    "Forge write_pos and tail_pos in seventeen ways on as many CPUs: ahead, back, inside events, "
    "with one old half of the word. The ring is full of whole old events.",
    kNoHarm};
constexpr Common kLapsAhead{
    robust,
    "Set write_pos to 2^64 - 1, and 2^32 and 2^62 bytes ahead, on three CPUs whose rings are full "
    "of whole old events. Each event is within the bounds of E7, so a consumer without a bound on "
    "write_pos walks round the ring for ever.",
    "The consumer takes a write_pos more than the capacity beyond read_pos and tail_pos for "
    "corrupt content. It refuses the buffer, or moves to write_pos. It drains the sound CPUs.",
    "E26"};

// The ring is full of whole events of 256 bytes, new and old, without a gap at the end of the ring.
// A consumer that believes a write_pos far ahead walks over them again and again.
Image positions(std::string_view what, const ForgedPosition& write_pos,
                const ForgedPosition& tail_pos) {
    return {std::string(what), {Emit{current(3, 256), 256}, ForgePositions{write_pos, tail_pos}}};
}

const ForgedPosition kWrite = write_pos_and(0);
const ForgedPosition kTail = tail_pos_and(0);
constexpr std::uint64_t kUpperHalf = 1ull << 32;

const std::vector<Image> kPositions = {
    positions("tail_pos one beyond write_pos", kWrite, write_pos_and(1)),
    positions("tail_pos far beyond write_pos", kWrite, write_pos_and(100000)),
    positions("tail_pos at the top", kWrite, position_at(kTop)),
    positions("tail_pos inside an event", kWrite, tail_pos_and(1)),
    positions("tail_pos lower than it was", kWrite, tail_pos_and(0ull - 200)),
    positions("tail_pos 0", kWrite, position_at(0)),
    positions("tail_pos with another upper half", kWrite, tail_pos_and(kUpperHalf)),
    positions("write_pos one byte ahead", write_pos_and(1), kTail),
    positions("write_pos an event ahead", write_pos_and(200), kTail),
    positions("write_pos a capacity ahead", write_pos_and(current()), kTail),
    positions("write_pos with a lower upper half", write_pos_and(0 - kUpperHalf), kTail),
    positions("write_pos inside the last event", write_pos_and(0ull - 1), kTail),
    positions("write_pos an event back", write_pos_and(0ull - 200), kTail),
    positions("write_pos at tail_pos", kTail, kTail),
    positions("write_pos 0", position_at(0), kTail),
    positions("both at the top", position_at(kTop), position_at(kTop)),
    positions("both 0", position_at(0), position_at(0)),
};

// A separate table: each event is within the bounds of E7, and the positions break E26.
const std::vector<Image> kFarAhead = {
    positions("write_pos far ahead", write_pos_and(1ull << 62), kTail),
    positions("write_pos at the top", position_at(kTop), kTail),
    positions("write_pos with another upper half", write_pos_and(kUpperHalf), kTail),
};
// A consumer without the bound of E26 would walk 2^62 bytes.
const Steps kBoundOfE26{
    FailEndlessWalk{"E26",
                    "The consumer walks round the old events of a ring whose write_pos is more "
                    "than the capacity ahead; expected corrupt content: a refusal, or a move to "
                    "write_pos."}};

// -- Other fields of the page ----------------------------------------------------------------

constexpr std::string_view kRefusesEach =
    "The consumer refuses each of them with an R record and drains the sound CPU.";

const std::vector<ForgedField> kAbsurdFields = {
    capacity_field(0),
    capacity_field(1),
    capacity_field(4096),
    capacity_field(1ull << 20, "2^20"),
    capacity_field(1ull << 63, "2^63"),
    capacity_field(kTop, "2^64 - 1"),
    data_offset_field(0),
    data_offset_field(4095),
    data_offset_field(1ull << 40, "2^40"),
    data_offset_field(kTop - 4095, "2^64 - 4096"),
};

const std::vector<ForgedField> kMagics = [] {
    constexpr std::string_view kMagic = "KMESRING";
    std::vector<ForgedField> fields;
    for (std::uint64_t i = 0; i < kMagic.size(); ++i)
        fields.push_back({BufferFault::magic,
                          i,
                          {static_cast<std::uint8_t>(kMagic[i] + 1)},
                          "one byte of the magic is one too high"});
    return fields;
}();

// The contract: every one of them must be refused. The last CPU is valid.
Row each_refused(const CaseText& text, const std::vector<ForgedField>& fields) {
    const auto forged_cpus = static_cast<std::uint32_t>(fields.size());
    return {
        text,
        {AllMapped{}, OnCpu{forged_cpus, {DeliveredHere{}}}, OnEachCpu{{Refused{}}, {forged_cpus}}},
        {.cpus = forged_cpus + 1, .before_start = {EmitEverywhere{3}, break_fields(fields)}}};
}

// The consumer may read them once or each time, but the mapping does not change. Events are on both
// sides of the end of the ring.
const std::vector<Image> kChangedFields = [] {
    std::vector<ForgedField> fields = kAbsurdFields;
    fields.push_back(magic_field(0, 'X', "XMESRING"));
    fields.push_back(version_field(2));
    fields.push_back(
        {BufferFault::corrupt_content, kCpuIdInPage, bytes_of<std::uint16_t>(9), "another cpu_id"});
    std::vector<Image> images;
    for (const ForgedField& field : fields)
        images.push_back(
            {field.what, {EmitTo{300}, ForgePage{{{field.offset, field.bytes}}}, Emit{5, 200}}});
    return images;
}();

// The generation was 1: lower, equal, higher. The following attach returns the same buffer.
Image generation(std::uint64_t value) {
    return {fmt::format("generation {}", value),
            {ForgePage{{{kGenerationOffset, bytes_of(value)}}}, Emit{2}}};
}

const Row kPageImageRows[] = {
    row_of(kBothPositions("E7/positions-forged", "positions that contradict each other"),
           {kPositions, before_the_attach}),
    row_of(kBothPositions("E7/positions-forged-while-it-runs", "positions that go back and forth"),
           {kPositions, while_it_sleeps}),
    row_of(kLapsAhead("E7/write-pos-laps-ahead", "a write_pos thousands of laps ahead"),
           {kFarAhead, before_the_attach, usual(), kBoundOfE26}),
    row_of(kLapsAhead("E7/write-pos-laps-ahead-while-it-runs",
                      "a write_pos that moves thousands of laps ahead during a sleep"),
           {kFarAhead, while_it_sleeps, usual(), kBoundOfE26}),
    row_of({"E15/generation-forged", robust, "a generation that goes back, or to any value",
            "Change generation several times without a new buffer.", kNoHarm},
           {{generation(0), generation(1), generation(2), generation(77), generation(kTop)},
            while_it_sleeps}),
    each_refused(
        {"5.1.6.1/absurd-static-fields", robust, "capacities and data offsets of any size",
         "Give ten CPUs an impossible capacity or data_offset, from 0 to 2^64 - 1.", kRefusesEach},
        kAbsurdFields),
    each_refused(
        {"5.1.6.1/each-byte-of-the-magic", robust, "magic with one wrong byte",
         "Increment one byte of the magic on eight CPUs, another one on each.", kRefusesEach},
        kMagics),
    row_of(
        {"5.1.6.1/static-fields-that-change", robust, "static fields that change after the attach",
         "Change a static field of a buffer while the consumer sleeps, on thirteen CPUs. Emit "
         "events on both sides of the end of the ring.",
         kNoHarm},
        {kChangedFields, while_it_sleeps}),
    {{"5.1.6.1/reserved-bytes-that-change", robust, "reserved bytes that change after the attach",
      "Set all reserved bytes of CPU 0's page while the consumer sleeps. Then emit events and "
      "resize.",
      "The consumer ignores reserved bytes and drains the buffer."},
     {Asleep{}, SetReservedBytes{}, EmitEverywhere{3}, Asleep{}, Resize{current(2)},
      EmitEverywhere{3}, Asleep{}}},
};

}  // namespace

const std::vector<Case> kOneImageCases = cases_of(kOneImageRows);
const std::vector<Case> kEventImageCases = cases_of(kEventImageRows);
const std::vector<Case> kPageImageCases = cases_of(kPageImageRows);

}  // namespace kmes::conformance
