// SPDX-License-Identifier: MIT
//
// Metadata pages that no producer writes (level robust): positions that contradict each other or go
// back, a generation that does, static fields that change or never made sense. Each on a CPU of its
// own, before the attach and while the testee runs.
#include <fmt/format.h>

#include <chrono>
#include <iterator>
#include <optional>
#include <span>

#include "conformance/cases/forge.h"
#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

constexpr std::uint64_t kTop = 0xffffffffffffffff;
constexpr std::uint64_t kHalf = 1ull << 32;
constexpr std::uint64_t kFar = 1ull << 62;

struct ForgedPositions {
    const char* what;
    // From what stands there.
    std::uint64_t (*write_pos)(const Buffer& buffer);
    std::uint64_t (*tail_pos)(const Buffer& buffer);
};

std::uint64_t same_write(const Buffer& buffer) {
    return buffer.write_pos;
}
std::uint64_t same_tail(const Buffer& buffer) {
    return buffer.tail_pos;
}

constexpr ForgedPositions kPositions[] = {
    {"tail_pos one beyond write_pos", same_write, [](const Buffer& b) { return b.write_pos + 1; }},
    {"tail_pos far beyond write_pos", same_write,
     [](const Buffer& b) { return b.write_pos + 100000; }},
    {"tail_pos at the top", same_write, [](const Buffer&) { return kTop; }},
    {"tail_pos inside an event", same_write, [](const Buffer& b) { return b.tail_pos + 1; }},
    {"tail_pos lower than it was", same_write, [](const Buffer& b) { return b.tail_pos - 200; }},
    {"tail_pos 0", same_write, [](const Buffer&) { return std::uint64_t{0}; }},
    {"tail_pos with another upper half", same_write,
     [](const Buffer& b) { return b.tail_pos + kHalf; }},
    {"write_pos one byte ahead", [](const Buffer& b) { return b.write_pos + 1; }, same_tail},
    {"write_pos an event ahead", [](const Buffer& b) { return b.write_pos + 200; }, same_tail},
    {"write_pos a capacity ahead", [](const Buffer& b) { return b.write_pos + b.capacity; },
     same_tail},
    {"write_pos with a lower upper half", [](const Buffer& b) { return b.write_pos - kHalf; },
     same_tail},
    {"write_pos inside the last event", [](const Buffer& b) { return b.write_pos - 1; }, same_tail},
    {"write_pos an event back", [](const Buffer& b) { return b.write_pos - 200; }, same_tail},
    {"write_pos at tail_pos", [](const Buffer& b) { return b.tail_pos; }, same_tail},
    {"write_pos 0", [](const Buffer&) { return std::uint64_t{0}; }, same_tail},
    {"both at the top", [](const Buffer&) { return kTop; }, [](const Buffer&) { return kTop; }},
    {"both 0", [](const Buffer&) { return std::uint64_t{0}; },
     [](const Buffer&) { return std::uint64_t{0}; }},
};

// Apart from the others: each event is within the bounds of E7, and the positions break E26.
constexpr ForgedPositions kFarAhead[] = {
    {"write_pos far ahead", [](const Buffer& b) { return b.write_pos + kFar; }, same_tail},
    {"write_pos at the top", [](const Buffer&) { return kTop; }, same_tail},
    {"write_pos with another upper half", [](const Buffer& b) { return b.write_pos + kHalf; },
     same_tail},
};

// The ring is full of whole events of 256 bytes, new and old. A consumer that believes a write_pos
// far ahead walks over them again and again.
CaseOutcome forged_positions(Stage& stage, std::span<const ForgedPositions> positions,
                             Moment moment) {
    return play_forged(stage, static_cast<std::uint32_t>(positions.size()), moment,
                       [&stage, positions](std::uint32_t cpu) {
                           const ForgedPositions& forged = positions[cpu];
                           tolerate(stage, cpu, forged.what);
                           // Without a gap between an old event and the next, over the end of the
                           // ring.
                           const std::uint64_t size = capacity(stage, cpu);
                           emit_some(stage, cpu, 3 * size / 256, 256);
                           const History& history = stage.rings().history();
                           const Buffer& buffer = history.buffer(history.present_buffer(cpu));
                           forge_positions(stage, cpu, forged.write_pos(buffer),
                                           forged.tail_pos(buffer));
                       });
}

// A consumer without the bound of E26 walks round the old events, which are whole. This much
// processor time, or this many records, shows it: without a limit it would walk 2^62 bytes.
CaseOutcome far_ahead(Stage& stage, Moment moment) {
    static constexpr std::chrono::seconds kWalks{5};
    static constexpr std::size_t kRecords = 50'000;
    stage.set_on_round([&stage](bool) {
        const std::optional<Clock::duration> used = stage.processor_time();
        if ((used && *used > kWalks) || stage.records().records().size() > kRecords)
            stop_failed("E26",
                        "The consumer walks round the old events of a ring whose write_pos is more "
                        "than the capacity ahead; expected corrupt content: a refusal, or a move "
                        "to write_pos.");
        return false;
    });
    return forged_positions(stage, kFarAhead, moment);
}

struct ForgedField {
    const char* what;
    std::uint64_t offset;
    std::vector<std::uint8_t> bytes;
};

const std::vector<ForgedField>& static_fields() {
    static const std::vector<ForgedField> fields = {
        {"capacity 0", 16, bytes_of<std::uint64_t>(0)},
        {"capacity 1", 16, bytes_of<std::uint64_t>(1)},
        {"capacity 4096", 16, bytes_of<std::uint64_t>(4096)},
        {"capacity 2^20", 16, bytes_of<std::uint64_t>(1ull << 20)},
        {"capacity 2^63", 16, bytes_of<std::uint64_t>(1ull << 63)},
        {"capacity 2^64 - 1", 16, bytes_of<std::uint64_t>(kTop)},
        {"data_offset 0", 24, bytes_of<std::uint64_t>(0)},
        {"data_offset 4095", 24, bytes_of<std::uint64_t>(4095)},
        {"data_offset 2^40", 24, bytes_of<std::uint64_t>(1ull << 40)},
        {"data_offset 2^64 - 4096", 24, bytes_of<std::uint64_t>(kTop - 4095)},
    };
    return fields;
}

// Every one of them must be refused: the contract says so.
CaseOutcome must_refuse_each(Stage& stage, const std::vector<ForgedField>& fields,
                             BufferFault (*fault)(const ForgedField&)) {
    RingsSetup setup = stage.default_setup();
    const auto forged_cpus = static_cast<std::uint32_t>(fields.size());
    setup.cpus = forged_cpus + 1;
    stage.set_up(setup);
    emit_everywhere(stage, 3, 100);
    for (std::uint32_t cpu = 0; cpu < forged_cpus; ++cpu)
        break_field(stage, cpu, fault(fields[cpu]), fields[cpu].offset, fields[cpu].bytes,
                    fields[cpu].what);
    stage.start();
    stage.wait_mapped();
    stage.wait_delivered(forged_cpus);
    for (std::uint32_t cpu = 0; cpu < forged_cpus; ++cpu)
        stage.wait_until([&stage, cpu] { return stage.has_refused(cpu); },
                         fmt::format("a refusal of CPU {} ({})", cpu, fields[cpu].what));
    return stage.finish();
}

CaseOutcome absurd_static_fields(Stage& stage) {
    return must_refuse_each(stage, static_fields(), [](const ForgedField& field) {
        return field.offset == 16 ? BufferFault::capacity : BufferFault::data_offset;
    });
}

CaseOutcome each_byte_of_the_magic(Stage& stage) {
    static constexpr std::string_view kMagic = "KMESRING";
    std::vector<ForgedField> fields;
    for (std::uint64_t i = 0; i < kMagic.size(); ++i)
        fields.push_back({"one byte of the magic is one too high",
                          i,
                          {static_cast<std::uint8_t>(kMagic[i] + 1)}});
    return must_refuse_each(stage, fields, [](const ForgedField&) { return BufferFault::magic; });
}

// Read once, or each time, as it likes: but what was mapped stays what was mapped.
CaseOutcome static_fields_that_change(Stage& stage) {
    std::vector<ForgedField> fields = static_fields();
    fields.push_back({"another magic", 0, {'X'}});
    fields.push_back({"another version", 8, bytes_of<std::uint32_t>(2)});
    fields.push_back({"another cpu_id", 12, bytes_of<std::uint16_t>(9)});
    const auto forged_cpus = static_cast<std::uint32_t>(fields.size());
    return play_forged(stage, forged_cpus, Moment::while_it_runs, [&](std::uint32_t cpu) {
        tolerate(stage, cpu, fields[cpu].what);
        // On both sides of the end of the ring.
        fill_up_to(stage, cpu, 300);
        forge_field(stage, cpu, fields[cpu].offset, fields[cpu].bytes);
        emit_some(stage, cpu, 5, 200);
    });
}

constexpr std::uint64_t kGenerations[] = {0, 1, 2, 77, kTop};

// It was 1: lower, the same, higher. The attach that follows gives the same buffer.
CaseOutcome forged_generations(Stage& stage) {
    constexpr std::uint64_t kGenerationOffset = 32;
    return play_forged(stage, std::size(kGenerations), Moment::while_it_runs,
                       [&stage](std::uint32_t cpu) {
                           tolerate(stage, cpu, fmt::format("generation {}", kGenerations[cpu]));
                           forge_field(stage, cpu, kGenerationOffset, bytes_of(kGenerations[cpu]));
                           emit_some(stage, cpu, 2, 100);
                       });
}

// All that is reserved, but for the bytes that a 32-bit store to need_wake clears.
CaseOutcome reserved_bytes_that_change(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    const BufferIndex buffer = stage.rings().history().present_buffer(0);
    const auto fill = [&](std::uint64_t offset, std::uint64_t count) {
        stage.rings().write_metadata(buffer, offset, std::vector<std::uint8_t>(count, 0xff));
    };
    fill(14, 2);
    fill(40, 24);
    fill(80, 48);
    fill(136, 56);
    fill(192, kMetadataBytes - 192);
    stage.rings().history().set_fault(buffer, BufferFault::reserved_not_zero, "reserved bytes");
    emit_everywhere(stage, 3, 100);
    stage.wait_asleep();
    stage.resize(2 * stage.capacity_bytes());
    emit_everywhere(stage, 3, 100);
    stage.wait_asleep();
    return stage.finish();
}

}  // namespace

void add_robust_page_cases(std::vector<Case>& cases) {
    constexpr std::string_view kNoHarm =
        "The consumer refuses the buffer, continues with the whole events, or rests. It neither "
        "crashes nor runs for ever, and drains the sound CPUs.";
    const auto add = [&cases](std::string_view id, std::string_view clause, std::string_view title,
                              std::string_view description, std::string_view expectation,
                              CaseFunction run) {
        cases.push_back(
            {id, Level::robust, clause, title, description, expectation, std::move(run)});
    };
    constexpr std::string_view kBoth =
        "Forge write_pos and tail_pos in seventeen ways on as many CPUs: ahead, back, inside "
        "events, with one old half of the word. The ring is full of whole old events.";
    constexpr std::string_view kLapsAhead =
        "Set write_pos to 2^64 - 1, and 2^32 and 2^62 bytes ahead, on three CPUs whose rings are "
        "full of whole old events. Each event is within the bounds of E7, so a consumer without a "
        "bound on write_pos walks round the ring for ever.";
    constexpr std::string_view kBounded =
        "The consumer takes a write_pos more than the capacity beyond read_pos and tail_pos for "
        "corrupt content. It refuses the buffer, or moves to write_pos. It drains the sound CPUs.";
    add("E7/positions-forged", "E7", "positions that contradict each other", kBoth, kNoHarm,
        [](Stage& stage) {
            return forged_positions(stage, kPositions, Moment::before_the_attach);
        });
    add("E7/positions-forged-while-it-runs", "E7", "positions that go back and forth", kBoth,
        kNoHarm,
        [](Stage& stage) { return forged_positions(stage, kPositions, Moment::while_it_runs); });
    add("E7/write-pos-laps-ahead", "E26", "a write_pos thousands of laps ahead", kLapsAhead,
        kBounded, [](Stage& stage) { return far_ahead(stage, Moment::before_the_attach); });
    add("E7/write-pos-laps-ahead-while-it-runs", "E26",
        "a write_pos that moves thousands of laps ahead during a sleep", kLapsAhead, kBounded,
        [](Stage& stage) { return far_ahead(stage, Moment::while_it_runs); });
    add("E15/generation-forged", "E15", "a generation that goes back, or to any value",
        "Change generation several times without a new buffer.", kNoHarm, forged_generations);
    add("5.1.6.1/absurd-static-fields", "5.1.6.1", "capacities and data offsets of any size",
        "Give ten CPUs an impossible capacity or data_offset, from 0 to 2^64 - 1.",
        "The consumer refuses each of them with an R record and drains the sound CPU.",
        absurd_static_fields);
    add("5.1.6.1/each-byte-of-the-magic", "5.1.6.1", "magic with one wrong byte",
        "Increment one byte of the magic on eight CPUs, another one on each.",
        "The consumer refuses each of them with an R record and drains the sound CPU.",
        each_byte_of_the_magic);
    add("5.1.6.1/static-fields-that-change", "5.1.6.1",
        "static fields that change after the attach",
        "Change a static field of a buffer while the consumer sleeps, on thirteen CPUs. Emit "
        "events on both sides of the end of the ring.",
        kNoHarm, static_fields_that_change);
    add("5.1.6.1/reserved-bytes-that-change", "5.1.6.1",
        "reserved bytes that change after the attach",
        "Set all reserved bytes of CPU 0's page while the consumer sleeps. Then emit events and "
        "resize.",
        "The consumer ignores reserved bytes and drains the buffer.", reserved_bytes_that_change);
}

}  // namespace kmes::conformance
