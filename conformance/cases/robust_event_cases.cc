// SPDX-License-Identifier: MIT
//
// Events that no producer writes (level robust, E7): sizes and sequence numbers that cannot be,
// each on a CPU of its own, on the first, a middle and the last event, before the attach and while
// the testee runs.
#include <fmt/format.h>

#include <iterator>
#include <string>

#include "conformance/cases/forge.h"
#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

// Lengths of a forged event. The true event has 100 bytes and a type of one byte: 100, 30, 1.
constexpr ForgedHeader kForged[] = {
    {0, 30, 1},
    {1, 30, 1},
    {29, 30, 1},
    {0xffffffff, 30, 1},
    {60000, 30, 1},  // beyond write_pos
    {100, 101, 1},
    {100, 0xffffffff, 1},
    {100, 29, 1},
    {100, 0, 1},
    {100, 30, 2},  // header_size < 29 + type_len
    {100, 30, 60},
    {100, 100, 72},     // a type beyond the header
    {100, 30, 0xffff},  // and beyond the event
    {100, 30, 0},
    {0, 0, 0},
    {0xffffffff, 0xffffffff, 0xffff},
    {30, 30, 1},
    {130, 30, 1},  // possible, but the next event is not where they end
};

constexpr int kEvents = 5;

std::string text_of(const ForgedHeader& forged) {
    return fmt::format("event_size {}, header_size {}, type_len {}", forged.event_size,
                       forged.header_size, forged.type_len);
}

// Five events, of which number `which` is forged.
CaseOutcome forged_sizes(Stage& stage, int which, Moment moment) {
    const auto forge = [&stage, which](std::uint32_t cpu) {
        const ForgedHeader& forged = kForged[cpu];
        tolerate(stage, cpu, text_of(forged));
        for (int i = 0; i < kEvents; ++i) {
            const Emitted emitted = stage.rings().emit(cpu, stage.rings().make(100));
            if (i == which) forge_header(stage, cpu, emitted.position, forged);
        }
    };
    return play_forged(stage, std::size(kForged), moment, forge);
}

// The event at which the consumer looks for its place: the second of some that were delivered from
// the old buffer.
CaseOutcome forged_survivor(Stage& stage) {
    return play_forged(stage, std::size(kForged), Moment::while_it_runs, [&](std::uint32_t cpu) {
        const std::uint64_t first = stage.rings().tail(stage.rings().history().present_buffer(cpu));
        stage.rings().swap(cpu, SwapSpec{stage.capacity_bytes()});
        tolerate(stage, cpu, text_of(kForged[cpu]));
        forge_header(stage, cpu, first + 100, kForged[cpu]);
        emit_some(stage, cpu, 1, 100);
    });
}

// In a buffer that is replaced, before it has drained that.
CaseOutcome forged_in_the_rest(Stage& stage) {
    return play_forged(stage, std::size(kForged), Moment::while_it_runs, [&](std::uint32_t cpu) {
        const BufferIndex old_buffer = stage.rings().history().present_buffer(cpu);
        tolerate(stage, cpu, text_of(kForged[cpu]));
        emit_some(stage, cpu, 1, 100);
        const Emitted emitted = stage.rings().emit(cpu, stage.rings().make(100));
        emit_some(stage, cpu, 1, 100);
        stage.rings().swap(cpu, SwapSpec{stage.capacity_bytes()});
        forge_header_in(stage, old_buffer, emitted.position, kForged[cpu]);
    });
}

// An event whose header wraps at the end of the data region, with each field on one side.
CaseOutcome forged_across_the_end(Stage& stage) {
    static constexpr std::uint64_t kBeforeTheEnd[] = {4, 8, 16, 26};
    return play_forged(stage, std::size(kForged), Moment::while_it_runs, [&](std::uint32_t cpu) {
        tolerate(stage, cpu, text_of(kForged[cpu]));
        fill_up_to(stage, cpu, kBeforeTheEnd[cpu % std::size(kBeforeTheEnd)]);
        const Emitted emitted = stage.rings().emit(cpu, stage.rings().make(100));
        forge_header(stage, cpu, emitted.position, kForged[cpu]);
        emit_some(stage, cpu, 1, 100);
    });
}

// Each alone would be refused by its own bound; a write_pos far ahead makes room for a size that
// leads out of the mapping.
CaseOutcome forged_size_and_position(Stage& stage) {
    struct Forged {
        std::uint32_t event_size;
        std::uint64_t ahead;
    };
    static constexpr Forged kBoth[] = {{0xffffffff, std::uint64_t{1} << 40},
                                       {0xffffffff, 0xffffffff},
                                       {0x7fffffff, std::uint64_t{1} << 31},
                                       {0x10000000, std::uint64_t{1} << 62},
                                       {0x00400000, std::uint64_t{1} << 23}};
    return play_forged(stage, std::size(kBoth), Moment::before_the_attach, [&](std::uint32_t cpu) {
        const Forged& forged = kBoth[cpu];
        tolerate(stage, cpu,
                 fmt::format("event_size {}, write_pos {} ahead", forged.event_size, forged.ahead));
        const Emitted emitted = stage.rings().emit(cpu, stage.rings().make(100));
        forge_header(stage, cpu, emitted.position, {forged.event_size, 30, 1});
        const History& history = stage.rings().history();
        const Buffer& buffer = history.buffer(history.present_buffer(cpu));
        forge_positions(stage, cpu, buffer.write_pos + forged.ahead, buffer.tail_pos);
    });
}

// The same of events that are larger than 16 bits, and what is copied at once, can tell.
constexpr std::uint32_t kLarge = 300'000;
constexpr ForgedHeader kForgedLarge[] = {
    {kLarge, kLarge + 1, 1},  {kLarge, 0xffffffff, 1}, {kLarge, 29, 1},     {kLarge, 0, 1},
    {kLarge, 30, 0xffff},     {kLarge, 65546, 65535},  {kLarge, 30, 0},     {kLarge + 1, 30, 1},
    {0xffffffff, kLarge, 1},  {0xffffffff, 30, 1},     {kLarge, kLarge, 1}, {65536 + 30, 30, 1},
    {kLarge, kLarge, 0xffff}, {65536, 65537, 1},
};

CaseOutcome forged_large(Stage& stage, Moment moment) {
    const std::uint64_t capacity = std::uint64_t{1} << 20;
    return play_forged(
        stage, std::size(kForgedLarge), moment,
        [&stage](std::uint32_t cpu) {
            const ForgedHeader& forged = kForgedLarge[cpu];
            tolerate(stage, cpu, text_of(forged));
            const Emitted emitted = stage.rings().emit(cpu, stage.rings().make(kLarge));
            forge_header(stage, cpu, emitted.position, forged);
            emit_some(stage, cpu, 1, 100);
        },
        capacity);
}

// What the third of five events has for a sequence number, one after another.
constexpr std::uint64_t kSequences[] = {0,         1, 4, 5, 0xffffffffffffffff, 0x8000000000000000,
                                        1ull << 32};

CaseOutcome forged_sequences(Stage& stage, Moment moment) {
    return play_forged(stage, std::size(kSequences), moment, [&stage](std::uint32_t cpu) {
        tolerate(stage, cpu, fmt::format("sequence {} out of order", kSequences[cpu]));
        for (int i = 0; i < kEvents; ++i) {
            const Emitted emitted = stage.rings().emit(cpu, stage.rings().make(100));
            if (i == 2) forge_sequence(stage, cpu, emitted.position, kSequences[cpu]);
        }
    });
}

// The first event says another CPU than the buffer it is in, and so does the metadata page.
CaseOutcome wrong_cpu_id(Stage& stage) {
    constexpr std::uint64_t kCpuIdInEvent = 24;
    constexpr std::uint64_t kCpuIdInPage = 12;
    static constexpr std::uint16_t kIds[] = {1, 77, 0xffff};
    return play_forged(stage, std::size(kIds), Moment::before_the_attach, [&](std::uint32_t cpu) {
        tolerate(stage, cpu, fmt::format("cpu_id {}", kIds[cpu]));
        const Emitted emitted = stage.rings().emit(cpu, stage.rings().make(100));
        stage.rings().write_data(stage.rings().history().present_buffer(cpu),
                                 emitted.position + kCpuIdInEvent, bytes_of(kIds[cpu]));
        forge_field(stage, cpu, kCpuIdInPage, bytes_of(kIds[cpu]));
    });
}

}  // namespace

void add_robust_event_cases(std::vector<Case>& cases) {
    const auto add = [&cases](std::string_view id, std::string_view clause, std::string_view title,
                              std::string_view description, CaseFunction run) {
        cases.push_back({id, Level::robust, clause, title, description,
                         "The consumer refuses the buffer, continues with the whole events, or "
                         "rests. It neither crashes nor runs for ever, and drains the sound CPUs.",
                         std::move(run)});
    };
    constexpr std::string_view kSizes =
        "Forge the lengths of an event in eighteen ways on as many CPUs. Two CPUs are sound.";
    add("E7/first-event-forged", "E7", "forged lengths of the first event", kSizes,
        [](Stage& stage) { return forged_sizes(stage, 0, Moment::before_the_attach); });
    add("E7/middle-event-forged", "E7", "forged lengths of a middle event", kSizes,
        [](Stage& stage) { return forged_sizes(stage, 2, Moment::before_the_attach); });
    add("E7/last-event-forged", "E7", "forged lengths of the last event", kSizes,
        [](Stage& stage) { return forged_sizes(stage, kEvents - 1, Moment::before_the_attach); });
    add("E7/first-event-forged-while-it-runs", "E7",
        "forged lengths of the first event during a sleep", kSizes,
        [](Stage& stage) { return forged_sizes(stage, 0, Moment::while_it_runs); });
    add("E7/middle-event-forged-while-it-runs", "E7",
        "forged lengths of a middle event during a sleep", kSizes,
        [](Stage& stage) { return forged_sizes(stage, 2, Moment::while_it_runs); });
    add("E7/last-event-forged-while-it-runs", "E7",
        "forged lengths of the last event during a sleep", kSizes,
        [](Stage& stage) { return forged_sizes(stage, kEvents - 1, Moment::while_it_runs); });
    add("E7/event-forged-after-a-change", "E7", "forged lengths of an event in the next buffer",
        kSizes, [](Stage& stage) { return forged_sizes(stage, 2, Moment::after_a_change); });
    add("E7/survivor-forged", "E7", "forged lengths of a delivered event in the next buffer",
        "Resize. Forge the lengths of a delivered event in the new buffer, in eighteen ways on as "
        "many CPUs. Two CPUs are sound.",
        forged_survivor);
    add("E7/forged-in-what-is-left-to-drain", "E7", "forged lengths in a replaced buffer",
        "Emit events and resize. Forge the lengths of the second event in the old buffer, in "
        "eighteen ways on as many CPUs. Two CPUs are sound.",
        forged_in_the_rest);
    add("E7/forged-across-the-end", "E7", "forged lengths of a header that wraps",
        "Forge the lengths of an event whose header wraps at the end of the data region, in "
        "eighteen ways on as many CPUs. Two CPUs are sound.",
        forged_across_the_end);
    constexpr std::string_view kLargeSizes =
        "Forge the lengths of an event of 300,000 bytes in fourteen ways on as many CPUs. Two CPUs "
        "are sound.";
    add("E7/large-event-forged", "E7", "forged lengths of a large event", kLargeSizes,
        [](Stage& stage) { return forged_large(stage, Moment::before_the_attach); });
    add("E7/large-event-forged-while-it-runs", "E7",
        "forged lengths of a large event during a sleep", kLargeSizes,
        [](Stage& stage) { return forged_large(stage, Moment::while_it_runs); });
    add("E7/size-and-write-pos-forged", "E7", "forged event_size and write_pos",
        "Set an event's size to far more than the capacity, and write_pos beyond its end, on five "
        "CPUs. Two CPUs are sound.",
        forged_size_and_position);
    constexpr std::string_view kOrder =
        "Give the third of five events a sequence number that goes back, repeats, is 0, or is far "
        "ahead of the later ones.";
    add("E7/sequence-goes-back", "E7", "sequence numbers that go back or repeat", kOrder,
        [](Stage& stage) { return forged_sequences(stage, Moment::before_the_attach); });
    add("E7/sequence-goes-back-while-it-runs", "E7",
        "sequence numbers that go back or repeat during a sleep", kOrder,
        [](Stage& stage) { return forged_sequences(stage, Moment::while_it_runs); });
    add("E7/cpu-id-of-another", "E7", "a cpu_id of another CPU or of none",
        "Set cpu_id in the metadata page and in an event to a value that is not the index of the "
        "fd.",
        wrong_cpu_id);
}

}  // namespace kmes::conformance
