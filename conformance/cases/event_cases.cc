// SPDX-License-Identifier: MIT
//
// Every shape of an event: sizes, types, headers, origins, clocks, and places in the ring (5.1.4,
// event-model.md).
#include <algorithm>
#include <set>

#include "conformance/cases/colliding_types.h"
#include "conformance/cases/play.h"
#include "conformance/oracle/layout.h"

namespace kmes::conformance {

namespace {

// Emits one event of each size on the CPUs in turn, and waits whenever a quarter of a buffer is
// out.
CaseOutcome sizes(Stage& stage, const std::set<std::uint64_t>& all) {
    stage.start();
    stage.wait_mapped();
    std::uint64_t out = 0;
    std::uint32_t cpu = 0;
    for (const std::uint64_t bytes : all) {
        if (out + bytes > stage.capacity_bytes() / 2) {
            stage.wait_delivered();
            out = 0;
        }
        emit_some(stage, cpu, 1, bytes);
        out += bytes;
        cpu = (cpu + 1) % stage.cpus();
    }
    stage.wait_delivered();
    return stage.finish();
}

CaseOutcome small_sizes(Stage& stage) {
    std::set<std::uint64_t> all;
    for (std::uint64_t bytes = 30; bytes <= 300; ++bytes) all.insert(bytes);
    return sizes(stage, all);
}

// Around every power of two, the event and its payload, and up to exactly 50 % of the capacity
// (5.1.7 step 5).
CaseOutcome edge_sizes(Stage& stage) {
    RingsSetup setup = stage.default_setup();
    // Beyond what 16 bits hold.
    setup.capacity_bytes = std::max<std::uint64_t>(setup.capacity_bytes, 524288);
    stage.set_up(setup);
    const std::uint64_t half = setup.capacity_bytes / 2;
    std::set<std::uint64_t> all{half - 29, half - 8, half - 7, half - 1, half};
    constexpr std::uint64_t kHeader = kHeaderBytesBeforeType + 1;  // with a type of one byte
    for (std::uint64_t power = 512; power <= std::min<std::uint64_t>(half, 262144); power *= 2) {
        for (const std::uint64_t middle : {power, power + kHeader}) {
            for (const std::uint64_t bytes : {middle - 1, middle, middle + 1}) {
                if (bytes <= half) all.insert(bytes);
            }
        }
    }
    return sizes(stage, all);
}

// One event of 61 bytes for each byte of it at which the ring's end can cut it (5.1.4).
CaseOutcome wrap_everywhere(Stage& stage) {
    constexpr std::uint64_t kBytes = 61;
    RingsSetup setup = stage.default_setup();
    // A large ring would have to be filled for each wrap.
    setup.capacity_bytes = 65536;
    stage.set_up(setup);
    stage.start();
    stage.wait_mapped();
    for (std::uint64_t offset = 1; offset < kBytes; ++offset) {
        const auto cpu = static_cast<std::uint32_t>(offset % stage.cpus());
        fill_up_to(stage, cpu, offset);
        emit_some(stage, cpu, 1, kBytes);
        stage.wait_delivered(cpu);
    }
    return stage.finish();
}

CaseOutcome wrap_exactly(Stage& stage) {
    RingsSetup setup = stage.default_setup();
    setup.capacity_bytes = 65536;
    stage.set_up(setup);
    stage.start();
    stage.wait_mapped();
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
        fill_up_to(stage, cpu, 0);
        emit_some(stage, cpu, 2, 77);
        stage.wait_delivered(cpu);
        fill_up_to(stage, cpu, 30);
        emit_some(stage, cpu, 3, 30);
        stage.wait_delivered(cpu);
        // Half of the ring, across its end.
        fill_up_to(stage, cpu, setup.capacity_bytes / 4 + 3);
        stage.wait_delivered(cpu);
        emit_some(stage, cpu, 1, setup.capacity_bytes / 2);
        stage.wait_delivered(cpu);
    }
    return stage.finish();
}

CaseOutcome types(Stage& stage) {
    const std::uint64_t half = stage.default_setup().capacity_bytes / 2;
    std::vector<std::string> all{"a",
                                 "\x7f",
                                 "\xc3\xbc",
                                 "\xe2\x82\xac uro",
                                 "\xf0\x9f\x90\x8d",
                                 std::string("zero\0inside", 11),
                                 std::string("zero\0", 5),
                                 " between spaces ",
                                 "\tline\r\n",
                                 "\n",
                                 "Upper.and.lower"};
    for (const std::size_t length : {16, 31, 63, 64, 65, 127, 128, 255, 256, 257, 4096})
        all.emplace_back(length, 'k');
    all.emplace_back(std::min<std::uint64_t>(half - 60, 32000), 'L');
    stage.start();
    stage.wait_mapped();
    std::uint32_t cpu = 0;
    for (const std::string& type : all) {
        stage.rings().emit(cpu, stage.rings().make(29 + type.size() + 20, type));
        stage.wait_delivered(cpu);
        cpu = (cpu + 1) % stage.cpus();
    }
    return stage.finish();
}

// An event of each type on CPU 0, one after the other, and all of them once more.
CaseOutcome emit_twice(Stage& stage, const std::vector<std::string>& types) {
    stage.start();
    for (int turn = 0; turn < 2; ++turn) {
        stage.wait_asleep();
        stage.freeze();
        for (const std::string& type : types)
            stage.rings().emit(0,
                               stage.rings().make(kHeaderBytesBeforeType + type.size() + 20, type));
        stage.thaw();
    }
    stage.wait_asleep();
    return stage.finish();
}

// For one that keeps types by a part of their bytes, or keeps only so many of them.
CaseOutcome many_types(Stage& stage) {
    constexpr int kTypes = 3000;
    set_up_one_cpu(stage, 1 << 20);
    std::vector<std::string> all;
    for (const std::size_t length : {2, 8, 16, 63, 64, 65, 100, 257, 4096, 4097, 20000}) {
        for (const std::size_t differs_at : {std::size_t{0}, length / 2, length - 1}) {
            all.emplace_back(length, 'k');
            all.back()[differs_at] = 'd';
        }
    }
    for (int i = 0; i < kTypes; ++i)
        all.push_back((i % 2 == 0 ? "type." : std::string(70, 't')) + std::to_string(i));
    // More than 64 KiB of types together.
    for (int i = 0; i < 5; ++i) all.emplace_back(40'000, static_cast<char>('a' + i));
    return emit_twice(stage, all);
}

// Types of `length` bytes that differ in one byte: in each, or in each `step`-th.
void add_alike(std::vector<std::string>& types, std::size_t length, std::size_t step) {
    types.emplace_back(length, 'k');
    for (std::size_t differs_at = 0; differs_at < length; differs_at += step) {
        types.emplace_back(length, 'k');
        types.back()[differs_at] = 'd';
    }
}

// For one that keeps types by some of their bytes, or by a hash that it takes for the type. Each
// comes twice: whichever of two is first, the other follows it.
CaseOutcome types_alike(Stage& stage) {
    set_up_one_cpu(stage, 1 << 20);
    std::vector<std::string> all;
    for (const std::size_t length : {5, 24, 48, 100, 300}) add_alike(all, length, 1);
    add_alike(all, 4000, 61);
    for (const CollidingTypes& each : kCollidingTypes) {
        all.emplace_back(each.first);
        all.emplace_back(each.second);
    }
    return emit_twice(stage, all);
}

CaseOutcome empty_payloads(Stage& stage) {
    emit_everywhere(stage, 3, 30);
    stage.start();
    stage.wait_delivered();
    for (int i = 0; i < 3; ++i) {
        stage.rings().emit(0, stage.rings().make(29 + 12, "twelve bytes"));
        emit_some(stage, 0, 1, 90);
    }
    stage.wait_delivered();
    return stage.finish();
}

CaseOutcome longer_headers(Stage& stage) {
    stage.start();
    stage.wait_mapped();
    std::uint32_t cpu = 0;
    for (const std::uint64_t extra : {1, 2, 3, 4, 7, 8, 16, 64, 200, 1000}) {
        stage.rings().emit(cpu, stage.rings().make(29 + 5 + extra + 40, "later", extra));
        stage.rings().emit(cpu, stage.rings().make(29 + 5 + extra, "later", extra));
        // The header length belongs to the event: events of one type have several.
        for (const std::uint64_t other : {extra / 2, extra + 5, std::uint64_t{0}, extra})
            stage.rings().emit(cpu, stage.rings().make(29 + 5 + other + 40, "later", other));
        emit_some(stage, cpu, 1, 50);
        cpu = (cpu + 1) % stage.cpus();
    }
    stage.wait_delivered();
    return stage.finish();
}

CaseOutcome origins(Stage& stage) {
    stage.start();
    stage.wait_mapped();
    for (unsigned origin = 0; origin < 256; ++origin) {
        EventSpec spec = stage.rings().make(40);
        spec.origin = static_cast<std::uint8_t>(origin);
        stage.rings().emit(origin % stage.cpus(), std::move(spec));
    }
    stage.wait_delivered();
    return stage.finish();
}

CaseOutcome clock_jumps(Stage& stage) {
    stage.start();
    stage.wait_mapped();
    for (const std::uint64_t clock :
         {std::uint64_t{1'700'000'000'000'000'000}, std::uint64_t{1'600'000'000'000'000'000},
          std::uint64_t{1}, std::uint64_t{0xffff'ffff'ffff'fff0}, std::uint64_t{5},
          std::uint64_t{0x7fff'ffff'ffff'ffff}, std::uint64_t{1'700'000'000'000'000'000}}) {
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
            EventSpec spec = stage.rings().make(64);
            spec.timestamp = clock;
            stage.rings().emit(cpu, std::move(spec));
        }
    }
    stage.wait_delivered();
    return stage.finish();
}

// Every byte value in the payload, and payloads that look like headers.
CaseOutcome payload_bytes(Stage& stage) {
    EventSpec every = stage.rings().make(29 + 1 + 256);
    for (std::size_t i = 0; i < 256; ++i) every.payload[i] = static_cast<char>(i);
    EventSpec nested = stage.rings().make(29 + 1 + 64);
    const std::string inner = encode_event(stage.rings().make(64), 3, 0);
    nested.payload = inner;
    EventSpec newlines = stage.rings().make(200);
    std::fill(newlines.payload.begin(), newlines.payload.end(), '\n');
    stage.start();
    stage.wait_mapped();
    for (const EventSpec* spec : {&every, &nested, &newlines}) stage.rings().emit(0, *spec);
    stage.wait_delivered();
    return stage.finish();
}

// Start positions `before` bytes short of a boundary of 64-bit arithmetic, and across it.
CaseOutcome positions_around(Stage& stage, std::uint64_t boundary, std::uint64_t before) {
    RingsSetup setup = stage.default_setup();
    for (std::uint32_t cpu = 0; cpu < setup.cpus; ++cpu)
        setup.start_positions.push_back(boundary - before - 7 * cpu);
    stage.set_up(setup);
    emit_everywhere(stage, 2, 100);
    stage.start();
    stage.wait_delivered();
    emit_everywhere(stage, 40, 333);
    stage.wait_delivered();
    stage.freeze();
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) lap(stage, cpu);
    stage.thaw();
    stage.wait_delivered();
    return stage.finish();
}

}  // namespace

void add_event_cases(std::vector<Case>& cases) {
    const auto add = [&cases](std::string_view id, std::string_view clause, std::string_view title,
                              std::string_view description, CaseFunction run) {
        cases.push_back({id, Level::must, clause, title, description,
                         "The consumer delivers every event once, in order, with its own bytes.",
                         std::move(run)});
    };
    add("event-model/every-small-size", "event-model", "every size from 30 to 300 bytes",
        "Emit one event of every size from 30 to 300 bytes.", small_sizes);
    add("5.1.7-5/sizes-up-to-half", "5.1.7-5", "sizes up to 50 % of the capacity",
        "Emit events and payloads around every power of two, and up to exactly half of the "
        "capacity.",
        edge_sizes);
    add("5.1.4/wrap-at-every-byte", "5.1.4", "a wrap at every byte of an event",
        "Emit an event of 61 bytes across the end of the ring, once for each of its bytes.",
        wrap_everywhere);
    add("5.1.4/wrap-at-an-event-boundary", "5.1.4", "a wrap between events, and across half a ring",
        "Emit events that end exactly at the end of the ring, and one of half the capacity across "
        "it.",
        wrap_exactly);
    add("event-model/types", "event-model", "types of any length",
        "Emit events with types of 1 to thousands of bytes, with UTF-8 sequences of two to four "
        "bytes, and with a zero byte.",
        types);
    add("event-model/many-types", "event-model", "thousands of types at once",
        "Emit 3000 types, and types of 2 to 40,000 bytes that differ in one byte, in one burst, "
        "twice.",
        many_types);
    add("event-model/types-alike", "event-model", "types that differ in one byte, or collide",
        "Emit types of 5 to 4000 bytes that differ in one byte, at each place. Emit pairs of types "
        "with the same FNV-1, FNV-1a, CRC-32, djb2 or other 32-bit hash.",
        types_alike);
    add("event-model/empty-payload", "event-model", "payloads of zero bytes",
        "Emit events without a payload between others.", empty_payloads);
    add("event-model/longer-header", "event-model", "headers longer than 29 + type_len",
        "Emit events whose header_size is 1 to 1000 bytes more than the minimum, as in a later "
        "version. Give events of one type several header lengths.",
        longer_headers);
    add("event-model/origins", "event-model", "every origin class",
        "Emit events of origin classes 0 to 255, of which 4 and more are reserved.", origins);
    add("event-model/clock-jumps", "event-model", "timestamps that jump",
        "Set CLOCK_REALTIME back and forth between events.", clock_jumps);
    add("event-model/payload-bytes", "event-model", "payloads of any bytes",
        "Emit payloads of every byte value, of a whole event, and of newlines.", payload_bytes);
    add("5.1.6.2/positions-beyond-32-bits", "5.1.6.2", "positions around 2^32",
        "Let write_pos and tail_pos pass 2^32.",
        [](Stage& stage) { return positions_around(stage, 1ull << 32, 300); });
    add("5.1.6.2/positions-beyond-31-bits", "5.1.6.2", "positions around 2^31",
        "Let write_pos and tail_pos pass 2^31.",
        [](Stage& stage) { return positions_around(stage, 1ull << 31, 300); });
    add("5.1.6.2/positions-beyond-63-bits", "5.1.6.2", "positions around 2^63",
        "Let write_pos and tail_pos pass 2^63.",
        [](Stage& stage) { return positions_around(stage, 1ull << 63, 300); });
    add("5.1.6.2/positions-near-the-top", "5.1.6.2", "positions just below 2^64",
        "Keep write_pos and tail_pos just below 2^64.", [](Stage& stage) {
            return positions_around(stage, 0, 8 * stage.default_setup().capacity_bytes);
        });
}

}  // namespace kmes::conformance
