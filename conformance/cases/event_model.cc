// SPDX-License-Identifier: MIT
//
// Events of every form: types, headers, origins, clocks, places in the ring, and numbers at the
// ends of their range (event-model.md, 5.1.4). Sizes are in event_model_sizes.cc.
#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/model/layout.h"
#include "conformance/play/colliding_types.h"
#include "conformance/play/row.h"
#include "conformance/play/value_stream.h"

namespace kmes::conformance {

namespace {

using enum Level;

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

// An event for each of its bytes at which the ring's end can cut it (5.1.4).
const Step kWrapEverywhere = each_below(kWrappedBytes - 1, [](std::uint64_t i) {
    const std::uint64_t offset = i + 1;
    return Steps{OnCpu{static_cast<std::uint32_t>(offset),
                       {EmitTo{offset}, Emit{1, kWrappedBytes}, DeliveredHere{}}}};
});

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

const std::vector<std::string> kTypes = [] {
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
    for (const std::size_t length : {16, 31, 63, 64, 65, 127, 128, 255, 256, 257, 4096, 32000})
        all.emplace_back(length, 'k');
    return all;
}();

// An event of each type, one after the other, and all of them once more.
Steps twice(std::vector<std::string> (*types)()) {
    return {Times{2, {Asleep{}, AtOnce{{EmitTypes{types}}}}}, Asleep{}};
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

// The header length belongs to the event: events of one type can have several.
const Step kLongerHeaders = each_in_turn(
    std::vector<std::uint64_t>{1, 2, 3, 4, 7, 8, 16, 64, 200, 1000}, [](std::uint64_t extra) {
        const auto emit = [](std::uint64_t payload, std::uint64_t further) {
            return EmitEvent{
                .type = "later", .payload_bytes = payload, .extra_header_bytes = further};
        };
        return Steps{emit(40, extra), emit(0, extra),  emit(40, extra / 2), emit(40, extra + 5),
                     emit(40, 0),     emit(40, extra), Emit{1, 50}};
    });

// The identities of an event are written after it. So the testee may not run meanwhile.
const Steps kOrigins = [] {
    const Step emit = each_below(256, [](std::uint64_t origin) {
        return Steps{OnCpu{static_cast<std::uint32_t>(origin),
                           {EmitEvent{.payload_bytes = 10,
                                      .origin = static_cast<std::uint8_t>(origin),
                                      .has_own_identities = true}}}};
    });
    return layout().identities == 0 ? Steps{emit} : Steps{AtOnce{{emit}}};
}();

// An event with each timestamp on each CPU.
Step timestamps(std::initializer_list<std::uint64_t> all) {
    return each(all, [](std::uint64_t timestamp) {
        return Steps{OnEachCpu{{EmitEvent{.payload_bytes = 34, .timestamp = timestamp}}}};
    });
}

const std::string kEveryByte = [] {
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
    return bytes;
}();

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
     {AllMapped{}, EmitSizes{small_sizes}, Delivered{}}},
    // Sizes that exceed 16 bits.
    {{"5.1.7-5/sizes-up-to-half", must, "sizes up to 50 % of the capacity",
      "Emit events and payloads around every power of two, and up to exactly half of the capacity.",
      kOwnBytes},
     {AllMapped{}, EmitSizes{sizes_up_to_half}, Delivered{}},
     {.rings =
          [](RingsSetup& rings) {
              rings.capacity_bytes = std::max<std::uint64_t>(rings.capacity_bytes, 524288);
          }}},
    {{"5.1.4/wrap-at-every-byte", must, "a wrap at every byte of an event",
      in_layout("Emit an event of {} bytes across the end of the ring, once for each of its bytes.",
                kWrappedBytes),
      kOwnBytes},
     {AllMapped{}, kWrapEverywhere},
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
     {AllMapped{}, each_in_turn(kTypes,
                                [](const std::string& type) {
                                    return Steps{EmitEvent{.type = type}, DeliveredHere{}};
                                })}},
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
     {Delivered{}, Times{3, {EmitEvent{.type = "twelve bytes", .payload_bytes = 0}, Emit{1, 90}}},
      Delivered{}},
     {.before_start = {EmitEverywhere{3, kLeastEventBytes}}}},
    {{"event-model/longer-header", must,
      in_layout("headers longer than {} + type_len", kHeaderBytesBeforeType),
      "Emit events whose header_size is 1 to 1000 bytes more than the minimum, as in a later "
      "version. Give events of one type several header lengths.",
      kOwnBytes},
     {AllMapped{}, RequireLongerHeaders{}, kLongerHeaders, Delivered{}}},
    {{"event-model/origins", must, "every origin class",
      layout().identities == 0
          ? "Emit events of origin classes 0 to 255, of which 4 and more are reserved."
          : "Emit events of origin classes 0 to 255, of which 4 and more are reserved. Each has "
            "GUIDs of its own.",
      kOwnBytes},
     {AllMapped{}, InOrder{kOrigins}, Delivered{}}},
    {{"event-model/clock-jumps", must, "timestamps that jump",
      "Set CLOCK_REALTIME back and forth between events.", kOwnBytes},
     {AllMapped{},
      timestamps({1'700'000'000'000'000'000, 1'600'000'000'000'000'000, 1, 0xffff'ffff'ffff'fff0, 5,
                  0x7fff'ffff'ffff'ffff, 1'700'000'000'000'000'000}),
      Delivered{}}},
    {{"event-model/payload-bytes", must, "payloads of any bytes",
      "Emit payloads of every byte value, of a whole event, and of newlines.", kOwnBytes},
     {AllMapped{}, EmitEvent{.payload = kEveryByte},
      EmitEvent{.payload = image_of_event(kLeastEventBytes + 34, 3)},
      EmitEvent{.payload = std::string(170, '\n')}, Delivered{}}},
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
