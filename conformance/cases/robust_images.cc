// SPDX-License-Identifier: MIT
//
// Events and metadata pages that no producer writes (level robust; E7, E15, E26, 5.1.6.1). The
// consumer may refuse them, or continue with the whole events, but not crash, hang, or read outside
// of its mapping. Each image is on its own CPU, before the attach or while the consumer runs.
#include <fmt/format.h>

#include <chrono>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "conformance/cases/forge.h"
#include "conformance/cases/play.h"
#include "conformance/oracle/layout.h"
#include "conformance/play/moves.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;
using enum Moment;

constexpr std::uint64_t kTop = 0xffffffffffffffff;

// -- One event of CPU 0 ----------------------------------------------------------------------

// Two valid events on CPU 0, one with a forged header, and two more.
struct OneEvent {
    ForgedHeader forged;

    CaseOutcome operator()(Stage& stage) const {
        emit_some(stage, 0, 2, 100);
        const std::uint64_t position = write_pos(stage, 0);
        emit_some(stage, 0, 3, 100);
        forge_header(stage, 0, position, forged);
        tolerate(stage, 0, stage.the_case().title);
        stage.start();
        stage.waits().mapped();
        for (std::uint32_t cpu = 1; cpu < stage.cpus(); ++cpu) {
            emit_some(stage, cpu, 2, 100);
            stage.waits().delivered(cpu);
        }
        stage.waits().tolerated_at_rest();
        return stage.ending().finish_tolerant();
    }
};

// Positions of CPU 0 that contradict each other. The next emission corrects them.
struct OnePosition {
    std::uint64_t write_pos_ahead;
    std::uint64_t tail_pos_ahead;

    CaseOutcome operator()(Stage& stage) const {
        emit_everywhere(stage, 5, 100);
        const Buffer& buffer = current_buffer(stage, 0);
        forge_positions(stage, 0, buffer.write_pos + write_pos_ahead,
                        buffer.tail_pos + tail_pos_ahead);
        tolerate(stage, 0, "positions that contradict each other");
        stage.start();
        stage.waits().mapped();
        stage.waits().tolerated_at_rest();
        return stage.ending().finish_tolerant();
    }
};

// -- An event on each of many CPUs -----------------------------------------------------------

// Lengths of a forged event. The true event has 100 bytes and a type of one byte; its fields in
// form A are 100, 30, 1.
const ForgedHeader kLengths[] = {
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
constexpr std::uint32_t kForgedCpus = std::size(kLengths);

constexpr int kForgedEvents = 5;

void tolerate_lengths(Stage& stage, std::uint32_t cpu, const ForgedHeader& forged) {
    tolerate(stage, cpu,
             fmt::format("event_size {}, header_size {}, type_len {}", forged.event_size,
                         forged.header_size, forged.type_len));
}

// Five events. Event number `which` has forged lengths.
Forge nth_event(int which) {
    return [which](Stage& stage, std::uint32_t cpu) {
        tolerate_lengths(stage, cpu, kLengths[cpu]);
        for (int i = 0; i < kForgedEvents; ++i) {
            const Emitted emitted = stage.rings().emit(cpu, stage.rings().events().make(100));
            if (i == which) forge_header(stage, cpu, emitted.position, kLengths[cpu]);
        }
    };
}

// The event at which the consumer searches for its place: the second of those delivered from the
// old buffer.
void survivor(Stage& stage, std::uint32_t cpu) {
    const Rings& rings = stage.rings();
    const std::uint64_t first = rings.backend().state(rings.history().current_buffer(cpu)).tail;
    stage.rings().swap(cpu, SwapSpec{stage.capacity_bytes()});
    tolerate_lengths(stage, cpu, kLengths[cpu]);
    forge_header(stage, cpu, first + 100, kLengths[cpu]);
    emit_some(stage, cpu, 1, 100);
}

// An event in a buffer that is replaced before the consumer has drained it.
void event_of_the_old_buffer(Stage& stage, std::uint32_t cpu) {
    const BufferIndex old_buffer = stage.rings().history().current_buffer(cpu);
    tolerate_lengths(stage, cpu, kLengths[cpu]);
    emit_some(stage, cpu, 1, 100);
    const Emitted emitted = stage.rings().emit(cpu, stage.rings().events().make(100));
    emit_some(stage, cpu, 1, 100);
    stage.rings().swap(cpu, SwapSpec{stage.capacity_bytes()});
    forge_header_in(stage, old_buffer, emitted.position, kLengths[cpu]);
}

// An event whose header wraps at the end of the data region, with each field on one side.
void event_across_the_end(Stage& stage, std::uint32_t cpu) {
    static const std::uint64_t kBeforeTheEnd[] = {4, 8, 16, kTypeLengthAt - 1};
    tolerate_lengths(stage, cpu, kLengths[cpu]);
    fill_up_to(stage, cpu, kBeforeTheEnd[cpu % std::size(kBeforeTheEnd)]);
    const Emitted emitted = stage.rings().emit(cpu, stage.rings().events().make(100));
    forge_header(stage, cpu, emitted.position, kLengths[cpu]);
    emit_some(stage, cpu, 1, 100);
}

// As before, for events that exceed 16 bits, and the size that a consumer copies at once.
constexpr std::uint32_t kLarge = 300'000;
constexpr std::uint64_t kLargeCapacity = 1 << 20;
const ForgedHeader kLargeLengths[] = {
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

void large_event_to_forge(Stage& stage, std::uint32_t cpu) {
    tolerate_lengths(stage, cpu, kLargeLengths[cpu]);
    const Emitted emitted = stage.rings().emit(cpu, stage.rings().events().make(kLarge));
    forge_header(stage, cpu, emitted.position, kLargeLengths[cpu]);
    emit_some(stage, cpu, 1, 100);
}

// Each bound alone would refuse one of them. A write_pos far ahead makes a size plausible that
// leads out of the mapping.
struct SizeAndAhead {
    std::uint32_t event_size;
    std::uint64_t ahead;
};
constexpr SizeAndAhead kSizesAndAhead[] = {{0xffffffff, std::uint64_t{1} << 40},
                                           {0xffffffff, 0xffffffff},
                                           {0x7fffffff, std::uint64_t{1} << 31},
                                           {0x10000000, std::uint64_t{1} << 62},
                                           {0x00400000, std::uint64_t{1} << 23}};

void size_and_write_pos(Stage& stage, std::uint32_t cpu) {
    const SizeAndAhead& forged = kSizesAndAhead[cpu];
    tolerate(stage, cpu,
             fmt::format("event_size {}, write_pos {} ahead", forged.event_size, forged.ahead));
    const Emitted emitted = stage.rings().emit(cpu, stage.rings().events().make(100));
    forge_header(stage, cpu, emitted.position, {forged.event_size, kShortHeader, 1});
    const Buffer& buffer = current_buffer(stage, cpu);
    forge_positions(stage, cpu, buffer.write_pos + forged.ahead, buffer.tail_pos);
}

// The sequence number of the third of five events, one a CPU.
constexpr std::uint64_t kSequences[] = {0, 1, 4, 5, kTop, 0x8000000000000000, 1ull << 32};

void third_sequence(Stage& stage, std::uint32_t cpu) {
    tolerate(stage, cpu, fmt::format("sequence {} out of order", kSequences[cpu]));
    for (int i = 0; i < kForgedEvents; ++i) {
        const Emitted emitted = stage.rings().emit(cpu, stage.rings().events().make(100));
        if (i == 2) forge_sequence(stage, cpu, emitted.position, kSequences[cpu]);
    }
}

// The first event names another CPU than its buffer, and so does the metadata page.
constexpr std::uint16_t kCpuIds[] = {1, 77, 0xffff};

void cpu_id(Stage& stage, std::uint32_t cpu) {
    constexpr std::uint64_t kCpuIdInEvent = 24;
    constexpr std::uint64_t kCpuIdInPage = 12;
    tolerate(stage, cpu, fmt::format("cpu_id {}", kCpuIds[cpu]));
    const Emitted emitted = stage.rings().emit(cpu, stage.rings().events().make(100));
    stage.rings().forged().write_data(stage.rings().history().current_buffer(cpu),
                                      emitted.position + kCpuIdInEvent, bytes_of(kCpuIds[cpu]));
    forge_field(stage, cpu, kCpuIdInPage, bytes_of(kCpuIds[cpu]));
}

// -- Positions on each of many CPUs ----------------------------------------------------------

using Position = std::uint64_t (*)(const Buffer& buffer);

template <std::uint64_t ahead>
std::uint64_t write_pos_and(const Buffer& buffer) {
    return buffer.write_pos + ahead;
}
template <std::uint64_t ahead>
std::uint64_t tail_pos_and(const Buffer& buffer) {
    return buffer.tail_pos + ahead;
}
template <std::uint64_t position>
std::uint64_t at(const Buffer&) {
    return position;
}
std::uint64_t capacity_ahead(const Buffer& buffer) {
    return buffer.write_pos + buffer.capacity;
}

constexpr Position kWrite = write_pos_and<0>;
constexpr Position kTail = tail_pos_and<0>;
constexpr std::uint64_t kUpperHalf = 1ull << 32;

struct ForgedPositions {
    const char* what;
    Position write_pos;
    Position tail_pos;
};

constexpr ForgedPositions kPositions[] = {
    {"tail_pos one beyond write_pos", kWrite, write_pos_and<1>},
    {"tail_pos far beyond write_pos", kWrite, write_pos_and<100000>},
    {"tail_pos at the top", kWrite, at<kTop>},
    {"tail_pos inside an event", kWrite, tail_pos_and<1>},
    {"tail_pos lower than it was", kWrite, tail_pos_and<0ull - 200>},
    {"tail_pos 0", kWrite, at<0>},
    {"tail_pos with another upper half", kWrite, tail_pos_and<kUpperHalf>},
    {"write_pos one byte ahead", write_pos_and<1>, kTail},
    {"write_pos an event ahead", write_pos_and<200>, kTail},
    {"write_pos a capacity ahead", capacity_ahead, kTail},
    {"write_pos with a lower upper half", write_pos_and<0 - kUpperHalf>, kTail},
    {"write_pos inside the last event", write_pos_and<0ull - 1>, kTail},
    {"write_pos an event back", write_pos_and<0ull - 200>, kTail},
    {"write_pos at tail_pos", kTail, kTail},
    {"write_pos 0", at<0>, kTail},
    {"both at the top", at<kTop>, at<kTop>},
    {"both 0", at<0>, at<0>},
};

// A separate table: each event is within the bounds of E7, and the positions break E26.
constexpr ForgedPositions kFarAhead[] = {
    {"write_pos far ahead", write_pos_and<(1ull << 62)>, kTail},
    {"write_pos at the top", at<kTop>, kTail},
    {"write_pos with another upper half", write_pos_and<kUpperHalf>, kTail},
};

// The ring is full of whole events of 256 bytes, new and old, without a gap at the end of the ring.
// A consumer that believes a write_pos far ahead walks over them again and again.
Forge positions(std::span<const ForgedPositions> all) {
    return [all](Stage& stage, std::uint32_t cpu) {
        const ForgedPositions& forged = all[cpu];
        tolerate(stage, cpu, forged.what);
        emit_some(stage, cpu, 3 * capacity(stage, cpu) / 256, 256);
        const Buffer& buffer = current_buffer(stage, cpu);
        forge_positions(stage, cpu, forged.write_pos(buffer), forged.tail_pos(buffer));
    };
}

// A consumer without the bound of E26 repeatedly walks over the old events, which are whole. This
// much processor time, or this many records, proves it: it would walk 2^62 bytes.
struct FarAhead {
    Moment moment;

    CaseOutcome operator()(Stage& stage) const {
        static constexpr std::chrono::seconds kWalks{5};
        static constexpr std::size_t kRecords = 50'000;
        stage.hooks().set_on_iteration([&stage](bool) {
            const std::optional<Clock::duration> used = stage.testee().processor_time();
            if ((used && *used > kWalks) || stage.testee().records().records().size() > kRecords)
                stop_failed("E26",
                            "The consumer walks round the old events of a ring whose write_pos is "
                            "more than the capacity ahead; expected corrupt content: a refusal, or "
                            "a move to write_pos.");
            return false;
        });
        return Forged{std::size(kFarAhead), moment, positions(kFarAhead)}(stage);
    }
};

// -- Other fields of the page ----------------------------------------------------------------

ForgedField capacity_of(std::uint64_t value, std::string_view name) {
    return {BufferFault::capacity, 16, bytes_of(value), fmt::format("capacity {}", name)};
}
ForgedField data_offset_of(std::uint64_t value, std::string_view name) {
    return {BufferFault::data_offset, 24, bytes_of(value), fmt::format("data_offset {}", name)};
}

const std::vector<ForgedField> kAbsurdFields = {
    capacity_of(0, "0"),
    capacity_of(1, "1"),
    capacity_of(4096, "4096"),
    capacity_of(1ull << 20, "2^20"),
    capacity_of(1ull << 63, "2^63"),
    capacity_of(kTop, "2^64 - 1"),
    data_offset_of(0, "0"),
    data_offset_of(4095, "4095"),
    data_offset_of(1ull << 40, "2^40"),
    data_offset_of(kTop - 4095, "2^64 - 4096"),
};

// The consumer may read them once or each time, but the mapping does not change.
const std::vector<ForgedField> kChangedFields = [] {
    std::vector<ForgedField> fields = kAbsurdFields;
    fields.push_back({BufferFault::magic, 0, {'X'}, "another magic"});
    fields.push_back({BufferFault::version, 8, bytes_of<std::uint32_t>(2), "another version"});
    fields.push_back(
        {BufferFault::corrupt_content, 12, bytes_of<std::uint16_t>(9), "another cpu_id"});
    return fields;
}();

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
struct EachRefused {
    const std::vector<ForgedField>& fields;

    CaseOutcome operator()(Stage& stage) const {
        const auto forged_cpus = static_cast<std::uint32_t>(fields.size());
        set_up_cpus(stage, forged_cpus + 1);
        emit_everywhere(stage, 3, 100);
        for (std::uint32_t cpu = 0; cpu < forged_cpus; ++cpu) break_field(stage, cpu, fields[cpu]);
        stage.start();
        stage.waits().mapped();
        stage.waits().delivered(forged_cpus);
        for (std::uint32_t cpu = 0; cpu < forged_cpus; ++cpu)
            wait_refused(stage, cpu, fields[cpu].what);
        return stage.finish();
    }
};

// With events on both sides of the end of the ring.
void static_field(Stage& stage, std::uint32_t cpu) {
    tolerate(stage, cpu, kChangedFields[cpu].what);
    fill_up_to(stage, cpu, 300);
    forge_field(stage, cpu, kChangedFields[cpu].offset, kChangedFields[cpu].bytes);
    emit_some(stage, cpu, 5, 200);
}

// The generation was 1: lower, equal, higher. The following attach returns the same buffer.
constexpr std::uint64_t kGenerations[] = {0, 1, 2, 77, kTop};

void generation(Stage& stage, std::uint32_t cpu) {
    tolerate(stage, cpu, fmt::format("generation {}", kGenerations[cpu]));
    forge_field(stage, cpu, kGenerationOffset, bytes_of(kGenerations[cpu]));
    emit_some(stage, cpu, 2, 100);
}

bool is_reserved(const Field& field) {
    return field.name.starts_with("reserved") || field.name == "unused bytes";
}

// All reserved bytes, except those that a 32-bit store to need_wake clears.
void set_reserved_bytes(Stage& stage) {
    const BufferIndex buffer = stage.rings().history().current_buffer(0);
    const auto fill = [&](std::uint64_t offset, std::uint64_t count) {
        stage.rings().forged().write_metadata(buffer, offset,
                                              std::vector<std::uint8_t>(count, 0xff));
    };
    for (const Field& field : metadata_fields()) {
        if (!is_reserved(field)) continue;
        const std::uint64_t cleared = field.offset == kNeedWakeOffset + 1 ? 3 : 0;
        fill(field.offset + cleared, field.bytes - cleared);
    }
    stage.rings().history().set_fault(buffer, BufferFault::reserved_not_zero, "reserved bytes");
}

// -- The tables ------------------------------------------------------------------------------

constexpr std::string_view kNoHarm =
    "The consumer refuses the buffer, continues with the whole events, or rests. It neither "
    "crashes nor runs for ever, and drains the sound CPUs.";
constexpr std::string_view kRefusesEach =
    "The consumer refuses each of them with an R record and drains the sound CPU.";

constexpr Common kOneEvent{
    robust, "Forge the header of an event in the middle of CPU 0's ring.",
    "The consumer refuses the buffer, or continues with the whole events. It neither crashes nor "
    "hangs, and drains the other CPUs."};
constexpr Common kOnePosition{
    robust, "Forge write_pos and tail_pos of CPU 0 before the attach.",
    "The consumer refuses the buffer, or reads nothing. It neither crashes nor hangs, and drains "
    "the other CPUs."};
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

const Row kReservedBytes{
    {"5.1.6.1/reserved-bytes-that-change", robust, "reserved bytes that change after the attach",
     "Set all reserved bytes of CPU 0's page while the consumer sleeps. Then emit events and "
     "resize.",
     "The consumer ignores reserved bytes and drains the buffer."},
    {Asleep{}, set_reserved_bytes, EmitEverywhere{3}, Asleep{}, Resize{current(2)},
     EmitEverywhere{3}, Asleep{}}};

}  // namespace

const std::vector<Case> kOneImageCases = {
    kOneEvent("E7/event-size-zero", "event_size 0", OneEvent{{0, kShortHeader, 1}}),
    kOneEvent("E7/event-size-one", "event_size 1", OneEvent{{1, kShortHeader, 1}}),
    kOneEvent("E7/event-size-29", in_layout("event_size {}", kFixedHeader),
              OneEvent{{kFixedHeader, kShortHeader, 1}}),
    kOneEvent("E7/event-size-huge", "event_size 2^32 - 1", OneEvent{{0xffffffff, kShortHeader, 1}}),
    kOneEvent("E7/event-size-beyond-write-pos", "event_size beyond write_pos",
              OneEvent{{60000, kShortHeader, 1}}),
    kOneEvent("E7/header-size-beyond-event", "header_size > event_size", OneEvent{{100, 101, 1}}),
    kOneEvent("E7/header-size-huge", "header_size 2^32 - 1", OneEvent{{100, 0xffffffff, 1}}),
    kOneEvent("E7/type-beyond-header", in_layout("{} + type_len > header_size", kFixedHeader),
              OneEvent{{100, kShortHeader, 60}}),
    kOneEvent("E7/type-empty", "type_len 0", OneEvent{{100, kShortHeader, 0}}),
    kOnePosition("E7/tail-beyond-write-pos", "tail_pos > write_pos", OnePosition{0, 100000}),
    kOnePosition("E7/write-pos-far-ahead", "write_pos - tail_pos > capacity",
                 OnePosition{1 << 30, 0}),
};

const std::vector<Case> kEventImageCases = {
    kEvent("E7/first-event-forged", "forged lengths of the first event",
           Forged{kForgedCpus, before_the_attach, nth_event(0)}),
    kEvent("E7/middle-event-forged", "forged lengths of a middle event",
           Forged{kForgedCpus, before_the_attach, nth_event(2)}),
    kEvent("E7/last-event-forged", "forged lengths of the last event",
           Forged{kForgedCpus, before_the_attach, nth_event(kForgedEvents - 1)}),
    kEvent("E7/first-event-forged-while-it-runs",
           "forged lengths of the first event during a sleep",
           Forged{kForgedCpus, while_it_sleeps, nth_event(0)}),
    kEvent("E7/middle-event-forged-while-it-runs",
           "forged lengths of a middle event during a sleep",
           Forged{kForgedCpus, while_it_sleeps, nth_event(2)}),
    kEvent("E7/last-event-forged-while-it-runs", "forged lengths of the last event during a sleep",
           Forged{kForgedCpus, while_it_sleeps, nth_event(kForgedEvents - 1)}),
    kEvent("E7/event-forged-after-a-change", "forged lengths of an event in the next buffer",
           Forged{kForgedCpus, after_a_change, nth_event(2)}),
    {"E7/survivor-forged", robust, "forged lengths of a delivered event in the next buffer",
     "Resize. Forge the lengths of a delivered event in the new buffer, in eighteen ways on as "
     "many CPUs. Two CPUs are sound.",
     kNoHarm, Forged{kForgedCpus, while_it_sleeps, survivor}},
    {"E7/forged-in-a-replaced-buffer", robust, "forged lengths in a replaced buffer",
     "Emit events and resize. Forge the lengths of the second event in the old buffer, in eighteen "
     "ways on as many CPUs. Two CPUs are sound.",
     kNoHarm, Forged{kForgedCpus, while_it_sleeps, event_of_the_old_buffer}},
    {"E7/forged-across-the-end", robust, "forged lengths of a header that wraps",
     "Forge the lengths of an event whose header wraps at the end of the data region, in eighteen "
     "ways on as many CPUs. Two CPUs are sound.",
     kNoHarm, Forged{kForgedCpus, while_it_sleeps, event_across_the_end}},
    kLargeEvent(
        "E7/large-event-forged", "forged lengths of a large event",
        Forged{std::size(kLargeLengths), before_the_attach, large_event_to_forge, kLargeCapacity}),
    kLargeEvent(
        "E7/large-event-forged-while-it-runs", "forged lengths of a large event during a sleep",
        Forged{std::size(kLargeLengths), while_it_sleeps, large_event_to_forge, kLargeCapacity}),
    {"E7/size-and-write-pos-forged", robust, "forged event_size and write_pos",
     "Set an event's size to far more than the capacity, and write_pos beyond its end, on five "
     "CPUs. Two CPUs are sound.",
     kNoHarm, Forged{std::size(kSizesAndAhead), before_the_attach, size_and_write_pos}},
    kSequence("E7/sequence-goes-back", "sequence numbers that go back or repeat",
              Forged{std::size(kSequences), before_the_attach, third_sequence}),
    kSequence("E7/sequence-goes-back-while-it-runs",
              "sequence numbers that go back or repeat during a sleep",
              Forged{std::size(kSequences), while_it_sleeps, third_sequence}),
    {"E7/cpu-id-of-another", robust, "a cpu_id of another CPU or of none",
     "Set cpu_id in the metadata page and in an event to a value that is not the index of the fd.",
     kNoHarm, Forged{std::size(kCpuIds), before_the_attach, cpu_id}},
};

const std::vector<Case> kPageImageCases = {
    kBothPositions("E7/positions-forged", "positions that contradict each other",
                   Forged{std::size(kPositions), before_the_attach, positions(kPositions)}),
    kBothPositions("E7/positions-forged-while-it-runs", "positions that go back and forth",
                   Forged{std::size(kPositions), while_it_sleeps, positions(kPositions)}),
    kLapsAhead("E7/write-pos-laps-ahead", "a write_pos thousands of laps ahead",
               FarAhead{before_the_attach}),
    kLapsAhead("E7/write-pos-laps-ahead-while-it-runs",
               "a write_pos that moves thousands of laps ahead during a sleep",
               FarAhead{while_it_sleeps}),
    {"E15/generation-forged", robust, "a generation that goes back, or to any value",
     "Change generation several times without a new buffer.", kNoHarm,
     Forged{std::size(kGenerations), while_it_sleeps, generation}},
    {"5.1.6.1/absurd-static-fields", robust, "capacities and data offsets of any size",
     "Give ten CPUs an impossible capacity or data_offset, from 0 to 2^64 - 1.", kRefusesEach,
     EachRefused{kAbsurdFields}},
    {"5.1.6.1/each-byte-of-the-magic", robust, "magic with one wrong byte",
     "Increment one byte of the magic on eight CPUs, another one on each.", kRefusesEach,
     EachRefused{kMagics}},
    {"5.1.6.1/static-fields-that-change", robust, "static fields that change after the attach",
     "Change a static field of a buffer while the consumer sleeps, on thirteen CPUs. Emit events "
     "on both sides of the end of the ring.",
     kNoHarm, Forged{kChangedFields.size(), while_it_sleeps, static_field}},
    case_of(kReservedBytes),
};

}  // namespace kmes::conformance
