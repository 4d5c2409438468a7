// SPDX-License-Identifier: MIT
//
// Events of every form: types, headers, origins, clocks, places in the ring, and numbers at the
// ends of their range (event-model.md, 5.1.4). Sizes are in event_model_sizes.cc.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/colliding_types.h"
#include "conformance/cases/play.h"
#include "conformance/model/layout.h"
#include "conformance/oracle/layout.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;

// Emits one event of each size on the CPUs in turn. Waits whenever a quarter of a buffer is
// undelivered.
Step sizes(std::function<std::set<std::uint64_t>(std::uint64_t capacity)> sizes_of) {
    return [sizes_of](Stage& stage) {
        std::uint64_t out = 0;
        std::uint32_t cpu = 0;
        for (const std::uint64_t bytes : sizes_of(stage.capacity_bytes())) {
            if (out + bytes > stage.capacity_bytes() / 2) {
                stage.waits().delivered();
                out = 0;
            }
            emit_some(stage, cpu, 1, bytes);
            out += bytes;
            cpu = (cpu + 1) % stage.cpus();
        }
    };
}

std::set<std::uint64_t> small_sizes(std::uint64_t) {
    std::set<std::uint64_t> all;
    for (std::uint64_t bytes = kLeastEventBytes; bytes <= 300; ++bytes) all.insert(bytes);
    return all;
}

// Sizes around every power of two, of the event and of its payload, up to exactly 50 % of the
// capacity (5.1.7 step 5).
std::set<std::uint64_t> sizes_up_to_half(std::uint64_t capacity) {
    const std::uint64_t half = capacity / 2;
    std::set<std::uint64_t> all{half - kHeaderBytesBeforeType, half - 8, half - 7, half - 1, half};
    const std::uint64_t kHeader = kHeaderBytesBeforeType + 1;  // with a type of one byte
    for (std::uint64_t power = 512; power <= std::min<std::uint64_t>(half, 262144); power *= 2) {
        for (const std::uint64_t middle : {power, power + kHeader}) {
            for (const std::uint64_t bytes : {middle - 1, middle, middle + 1}) {
                if (bytes <= half) all.insert(bytes);
            }
        }
    }
    return all;
}

const std::uint64_t kWrappedBytes = kLeastEventBytes + 31;

// Emits an event for each of its bytes at which the ring's end can cut it (5.1.4).
void wrap_everywhere(Stage& stage) {
    for (std::uint64_t offset = 1; offset < kWrappedBytes; ++offset) {
        const auto cpu = static_cast<std::uint32_t>(offset % stage.cpus());
        fill_up_to(stage, cpu, offset);
        emit_some(stage, cpu, 1, kWrappedBytes);
        stage.waits().delivered(cpu);
    }
}

// The last event is half of the ring, across its end.
const Steps kWrapExactly{EmitTo{},
                         Emit{2, 77},
                         DeliveredHere{},
                         EmitTo{kLeastEventBytes},
                         Emit{3, kLeastEventBytes},
                         DeliveredHere{},
                         EmitTo{current(1, 4) + 3},
                         DeliveredHere{},
                         Emit{1, current(1, 2)},
                         DeliveredHere{}};

EventSpec of_type(Stage& stage, const std::string& type) {
    return stage.rings().events().make(kHeaderBytesBeforeType + type.size() + 20, type);
}

void emit_types(Stage& stage) {
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
    std::uint32_t cpu = 0;
    for (const std::string& type : all) {
        stage.rings().emit(cpu, of_type(stage, type));
        stage.waits().delivered(cpu);
        cpu = (cpu + 1) % stage.cpus();
    }
}

// Emits an event of each type on CPU 0, one after the other, and all of them once more.
Steps twice(std::vector<std::string> (*types)()) {
    const auto emit_types = [types](Stage& stage) {
        for (const std::string& type : types()) stage.rings().emit(0, of_type(stage, type));
    };
    return {Times{2, {Asleep{}, AtOnce{{emit_types}}}}, Asleep{}};
}
const Setup kOneMebibyte{.cpus = 1, .capacity = kMebibyte};

// For a consumer that keeps types by a part of their bytes, or keeps only a limited number.
std::vector<std::string> many_types() {
    constexpr int kTypes = 3000;
    std::vector<std::string> all;
    for (const std::size_t length : {2, 8, 16, 63, 64, 65, 100, 257, 4096, 4097, 20000}) {
        for (const std::size_t differs_at : {std::size_t{0}, length / 2, length - 1}) {
            all.emplace_back(length, 'k');
            all.back()[differs_at] = 'd';
        }
    }
    for (int i = 0; i < kTypes; ++i)
        all.push_back((i % 2 == 0 ? "type." : std::string(70, 't')) + std::to_string(i));
    // More than 64 KiB of types in total.
    for (int i = 0; i < 5; ++i) all.emplace_back(40'000, static_cast<char>('a' + i));
    return all;
}

// Adds types of `length` bytes that differ in one byte: each byte, or each `step`-th.
void add_alike(std::vector<std::string>& types, std::size_t length, std::size_t step) {
    types.emplace_back(length, 'k');
    for (std::size_t differs_at = 0; differs_at < length; differs_at += step) {
        types.emplace_back(length, 'k');
        types.back()[differs_at] = 'd';
    }
}

// For a consumer that keeps types by some of their bytes, or by a hash that it takes for the type.
// Each comes twice, so of any two the second also follows the first.
std::vector<std::string> types_alike() {
    std::vector<std::string> all;
    for (const std::size_t length : {5, 24, 48, 100, 300}) add_alike(all, length, 1);
    add_alike(all, 4000, 61);
    for (const CollidingTypes& each : kCollidingTypes) {
        all.emplace_back(each.first);
        all.emplace_back(each.second);
    }
    return all;
}

void emit_longer_headers(Stage& stage) {
    require_longer_headers();
    std::uint32_t cpu = 0;
    for (const std::uint64_t extra : {1, 2, 3, 4, 7, 8, 16, 64, 200, 1000}) {
        stage.rings().emit(cpu, stage.rings().events().make(kHeaderBytesBeforeType + 5 + extra + 40,
                                                            "later", extra));
        stage.rings().emit(
            cpu, stage.rings().events().make(kHeaderBytesBeforeType + 5 + extra, "later", extra));
        // The header length belongs to the event: events of one type can have several.
        for (const std::uint64_t other : {extra / 2, extra + 5, std::uint64_t{0}, extra})
            stage.rings().emit(cpu, stage.rings().events().make(
                                        kHeaderBytesBeforeType + 5 + other + 40, "later", other));
        emit_some(stage, cpu, 1, 50);
        cpu = (cpu + 1) % stage.cpus();
    }
}

// Gives an unread event identities that no other event has.
void put_identities(Stage& stage, std::uint32_t cpu, const Emitted& emitted) {
    constexpr std::uint64_t kIdentityBytes = 16;
    std::vector<std::uint8_t> bytes(layout().identities * kIdentityBytes);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::uint8_t>(0xff - emitted.sequence * 7 - i);
    stage.rings().forged().write_data(stage.rings().history().current_buffer(cpu),
                                      emitted.position + layout().identities_offset, bytes);
}

void emit_origins(Stage& stage) {
    const bool has_identities = layout().identities != 0;
    if (has_identities) stage.holding().freeze();
    for (unsigned origin = 0; origin < 256; ++origin) {
        EventSpec spec = stage.rings().events().make(40);
        spec.origin = static_cast<std::uint8_t>(origin);
        const std::uint32_t cpu = origin % stage.cpus();
        const Emitted emitted = stage.rings().emit(cpu, std::move(spec));
        if (has_identities) put_identities(stage, cpu, emitted);
    }
    if (has_identities) stage.holding().thaw();
}

// Emits an event with each timestamp on each CPU.
Step timestamps(std::vector<std::uint64_t> all) {
    return [all = std::move(all)](Stage& stage) {
        for (const std::uint64_t timestamp : all) {
            for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
                EventSpec spec = stage.rings().events().make(64);
                spec.timestamp = timestamp;
                stage.rings().emit(cpu, std::move(spec));
            }
        }
    };
}

// Every byte value in the payload, and payloads that look like headers.
void emit_payload_bytes(Stage& stage) {
    EventSpec every = stage.rings().events().make(kHeaderBytesBeforeType + 1 + 256);
    for (std::size_t i = 0; i < 256; ++i) every.payload[i] = static_cast<char>(i);
    EventSpec nested = stage.rings().events().make(kHeaderBytesBeforeType + 1 + 64);
    nested.payload = encode_event(stage.rings().events().make(64), 3, 0);
    EventSpec newlines = stage.rings().events().make(200);
    std::fill(newlines.payload.begin(), newlines.payload.end(), '\n');
    for (const EventSpec* spec : {&every, &nested, &newlines}) stage.rings().emit(0, *spec);
}

const Steps kDropAndResize{
    Asleep{},          EmitEverywhere{3},  Asleep{},          OnEachCpu{{Drop{}}},
    EmitEverywhere{2}, Resize{current(2)}, EmitEverywhere{2}, Asleep{}};
Setup sequences_from(std::uint64_t first) {
    return {.rings = [first](RingsSetup& rings) { rings.first_sequence = first; },
            .before_start = {EmitEverywhere{2}}};
}

// futex_counter advances by one for each wake: eight wakes make it wrap.
const Steps kEightWakes{Asleep{}, Times{8, {EmitEverywhere{}, Asleep{}}}};
Setup counter_from(std::uint32_t first) {
    return {.rings = [first](RingsSetup& rings) { rings.first_futex_counter = first; }};
}

Step resize_between_events(std::uint64_t factor) {
    return InOrder{{EmitEverywhere{2}, Resize{current(factor)}, EmitEverywhere{2}, Asleep{}}};
}

// Drops in a row on CPU 0, without a wake.
Step drops(std::uint64_t count) {
    return InOrder{{Drop{count}, Asleep{}, EmitEverywhere{}}};
}

constexpr std::string_view kOwnNumbers =
    "The consumer delivers every event once, in order, with its sequence number and timestamp.";
constexpr std::string_view kComparesCounter =
    "The consumer compares futex_counter for equality only, so it never sleeps on an unread event.";

// A large ring would have to be filled for each wrap.
const Setup kSmallRing{.capacity = 64 * kKibibyte};

const Row kEventRows[] = {
    {{"event-model/every-small-size", must,
      in_layout("every size from {} to 300 bytes", kLeastEventBytes),
      in_layout("Emit one event of every size from {} to 300 bytes.", kLeastEventBytes), kOwnBytes},
     {AllMapped{}, sizes(small_sizes), Delivered{}}},
    // Sizes that exceed 16 bits.
    {{"5.1.7-5/sizes-up-to-half", must, "sizes up to 50 % of the capacity",
      "Emit events and payloads around every power of two, and up to exactly half of the capacity.",
      kOwnBytes},
     {AllMapped{}, sizes(sizes_up_to_half), Delivered{}},
     {.rings =
          [](RingsSetup& rings) {
              rings.capacity_bytes = std::max<std::uint64_t>(rings.capacity_bytes, 524288);
          }}},
    {{"5.1.4/wrap-at-every-byte", must, "a wrap at every byte of an event",
      in_layout("Emit an event of {} bytes across the end of the ring, once for each of its bytes.",
                kWrappedBytes),
      kOwnBytes},
     {AllMapped{}, wrap_everywhere},
     kSmallRing},
    {{"5.1.4/wrap-at-an-event-boundary", must, "a wrap between events, and across half a ring",
      "Emit events that end exactly at the end of the ring, and one of half the capacity across "
      "it.",
      kOwnBytes},
     {AllMapped{}, OnEachCpu{kWrapExactly}},
     kSmallRing},
    {{"event-model/types", must, "types of any length",
      "Emit events with types of 1 to thousands of bytes, with UTF-8 sequences of two to four "
      "bytes, and with a zero byte.",
      kOwnBytes},
     {AllMapped{}, emit_types}},
    {{"event-model/many-types", must, "thousands of types at once",
      "Emit 3000 types, and types of 2 to 40,000 bytes that differ in one byte, in one burst, "
      "twice.",
      kOwnBytes},
     twice(many_types),
     kOneMebibyte},
    {{"event-model/types-alike", must, "types that differ in one byte, or collide",
      "Emit types of 5 to 4000 bytes that differ in one byte, at each place. Emit pairs of types "
      "with the same FNV-1, FNV-1a, CRC-32, djb2 or other 32-bit hash.",
      kOwnBytes},
     twice(types_alike),
     kOneMebibyte},
    {{"event-model/empty-payload", must, "payloads of zero bytes",
      "Emit events without a payload between others.", kOwnBytes},
     {Delivered{},
      Times{3,
            {[](Stage& stage) {
                 stage.rings().emit(
                     0, stage.rings().events().make(kHeaderBytesBeforeType + 12, "twelve bytes"));
             },
             Emit{1, 90}}},
      Delivered{}},
     {.before_start = {EmitEverywhere{3, kLeastEventBytes}}}},
    {{"event-model/longer-header", must,
      in_layout("headers longer than {} + type_len", kHeaderBytesBeforeType),
      "Emit events whose header_size is 1 to 1000 bytes more than the minimum, as in a later "
      "version. Give events of one type several header lengths.",
      kOwnBytes},
     {AllMapped{}, emit_longer_headers, Delivered{}}},
    {{"event-model/origins", must, "every origin class",
      layout().identities == 0
          ? "Emit events of origin classes 0 to 255, of which 4 and more are reserved."
          : "Emit events of origin classes 0 to 255, of which 4 and more are reserved. Each has "
            "GUIDs of its own.",
      kOwnBytes},
     {AllMapped{}, emit_origins, Delivered{}}},
    {{"event-model/clock-jumps", must, "timestamps that jump",
      "Set CLOCK_REALTIME back and forth between events.", kOwnBytes},
     {AllMapped{},
      timestamps({1'700'000'000'000'000'000, 1'600'000'000'000'000'000, 1, 0xffff'ffff'ffff'fff0, 5,
                  0x7fff'ffff'ffff'ffff, 1'700'000'000'000'000'000}),
      Delivered{}}},
    {{"event-model/payload-bytes", must, "payloads of any bytes",
      "Emit payloads of every byte value, of a whole event, and of newlines.", kOwnBytes},
     {AllMapped{}, emit_payload_bytes, Delivered{}}},
};

// A case with 2^63 resizes is impossible, so no case asks for such a generation.
const Row kNumberRows[] = {
    {{"5.1.6.3/counter-wraps", must, "futex_counter across 2^32",
      "Set futex_counter to three below 2^32. Emit eight events, each to a sleeping consumer.",
      kComparesCounter},
     kEightWakes,
     counter_from(0xfffffffd)},
    {{"5.1.6.3/counter-beyond-31-bits", must, "futex_counter across 2^31",
      "Set futex_counter to three below 2^31. Emit eight events, each to a sleeping consumer.",
      kComparesCounter},
     kEightWakes,
     counter_from(0x7ffffffd)},
    {{"event-model/sequences-beyond-32-bits", must, "sequence numbers beyond 2^32",
      "Let the sequence numbers cross 2^32. Drop an event and resize afterwards.", kOwnNumbers},
     kDropAndResize,
     sequences_from((1ull << 32) - 3)},
    {{"event-model/sequences-beyond-63-bits", must, "sequence numbers beyond 2^63",
      "Let the sequence numbers cross 2^63. Drop an event and resize afterwards.", kOwnNumbers},
     kDropAndResize,
     sequences_from((1ull << 63) - 3)},
    {{"5.1.6.1/generations-beyond-32-bits", must, "generation beyond 2^32",
      "Set the generation of the first buffers to two below 2^32. Resize three times.",
      kOwnNumbers},
     {Asleep{}, resize_between_events(2), resize_between_events(1), resize_between_events(2)},
     {.rings = [](RingsSetup& rings) { rings.first_generation = (1ull << 32) - 2; },
      .before_start = {EmitEverywhere{2}}}},
    {{"5.1.9/long-runs-of-drops", must, "hundreds of dropped events in a row",
      "Drop 255, 256 and 300 events in a row, without a wake.",
      "The consumer delivers what follows. An L record, where there is one, has the exact number."},
     {Asleep{}, EmitEverywhere{}, drops(255), drops(256), drops(300), Asleep{}}},
    {{"event-model/timestamps-at-the-ends", must, "timestamps of 0 and 2^64 - 1",
      "Emit events with timestamps of 0, 1, 2^63 and 2^64 - 1.", kOwnNumbers},
     {AllMapped{}, timestamps({0, 0xffff'ffff'ffff'ffff, 0, 1, 0x8000'0000'0000'0000, 0}),
      Asleep{}},
     {.before_start = {[](Stage& stage) { stage.rings().events().take_timestamps_as_given(); }}}},
};

}  // namespace

const std::vector<Case> kEventCases = cases_of(kEventRows);
const std::vector<Case> kNumberCases = cases_of(kNumberRows);

}  // namespace kmes::conformance
