// SPDX-License-Identifier: MIT
//
// Events with lengths just below, at and above each power of two, up to the largest possible one
// (event-model, 5.1.4, 5.1.7 step 5). The length is that of the payload, the header or the type,
// inside the data region or across its end. A consumer with a fixed buffer, or with a length in too
// few bits, fails at one of them.
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/play/large_events.h"
#include "conformance/play/row.h"
#include "conformance/play/value_stream.h"

namespace kmes::conformance {

namespace {

using enum Level;

constexpr std::uint64_t kSmallPayload = 20;

Step of_size(std::uint64_t size) {
    return Emit{1, size};
}
Step of_payload(std::uint64_t length) {
    return Emit{1, kLeastEventBytes + length};
}
Step of_header(std::uint64_t size) {
    return EmitTyped{size + kSmallPayload, 1, size - kLeastEventBytes};
}
Step of_type(std::uint64_t length) {
    return EmitTyped{kHeaderBytesBeforeType + length + kSmallPayload, length};
}

std::uint64_t half(std::uint64_t size) {
    return size / 2;
}
std::uint64_t half_of_payload(std::uint64_t length) {
    return kLeastEventBytes + length / 2;
}
std::uint64_t half_of_type(std::uint64_t length) {
    return kHeaderBytesBeforeType + (length + 1) / 2;
}

// One CPU for each length from `least` to `most` around every power of two. The first event of each
// CPU crosses the end of the data region `before_end` bytes after its beginning; the second does
// not.
struct Lengths {
    std::uint64_t least;
    std::uint64_t most;
    std::uint64_t capacity_bytes;
    Step (*emit)(std::uint64_t length);
    std::uint64_t (*before_end)(std::uint64_t length);
};
Row each_length(const CaseText& text, const Lengths& of) {
    const std::vector<std::uint64_t> lengths = around_powers_of_two(of.least, of.most);
    const Step emit =
        each_in_turn(lengths, [&of](std::uint64_t length) { return Steps{of.emit(length)}; });
    const auto begin_before_end = [of, lengths](RingsSetup& rings) {
        for (const std::uint64_t length : lengths)
            rings.start_positions.push_back(5 * of.capacity_bytes - of.before_end(length));
    };
    return {text,
            {Asleep{}, Times{2, {emit, Delivered{}}}},
            {.cpus = static_cast<std::uint32_t>(lengths.size()),
             .capacity = of.capacity_bytes,
             .rings = begin_before_end}};
}

// The event of every CPU survives a shrink to its half and is alone in the new buffer, across its
// end. The testee attaches after the first shrink, and sleeps before the second one.
constexpr std::uint64_t kSurvivorCapacity = 2 * kMebibyte;
const std::vector<std::uint64_t> kSurvivors = {
    kSurvivorCapacity / 2 + 1, kSurvivorCapacity - 64 * kKibibyte,
    kSurvivorCapacity - kLeastEventBytes, kSurvivorCapacity - 1, kSurvivorCapacity};
const Step kEmitAndShrink = each_in_turn(kSurvivors, [](std::uint64_t bytes) {
    return Steps{Emit{1, bytes},
                 SwapAndMove{kSurvivorCapacity, 7 * kSurvivorCapacity - bytes / 2 - 1, bytes}};
});

// Headers whose size exceeds 12, 15 and 16 bits: because of the type, or because of fields of a
// later version.
struct HeaderBytes {
    std::uint64_t type;
    std::uint64_t extra;
};
constexpr HeaderBytes kLargeHeaders[] = {{4100, 0},  {1, 5000},      {32768, 0},
                                         {40000, 9}, {1, 66000},     {65535, 0},
                                         {65507, 3}, {65535, 40000}, {1, 1'200'000}};
const Step kEmitLargeHeaders = each(kLargeHeaders, [](const HeaderBytes& header) {
    const std::uint64_t bytes = kHeaderBytesBeforeType + header.type + header.extra + 100;
    return Steps{OnEachCpu{{EmitTyped{bytes, header.type, header.extra}}}, Delivered{}};
});

// The kernel may emit events that no call accepts (MaxEventSize limits only the calls).
Steps one_event_of(std::uint64_t mebibytes) {
    return {Asleep{}, Emit{1, mebibytes * kMebibyte}, Asleep{}};
}

const Setup kOneCpuOf4Mebibytes{.cpus = 1, .capacity = 4 * kMebibyte};

const Row kSizeRows[] = {
    each_length(
        {"event-model/sizes-around-powers-of-two", must, "event sizes around every power of two",
         in_layout("Emit events of 2^k - 1, 2^k and 2^k + 1 bytes, from {} bytes to 1 MiB, one CPU "
                   "for each size. Emit them across the end of the data region and within it.",
                   kLeastEventBytes),
         kDeliversWhole},
        {kLeastEventBytes, kMebibyte, 2 * kMebibyte, of_size, half}),
    each_length({"event-model/payloads-around-powers-of-two", must,
                 "payload lengths around every power of two",
                 "Emit events as in event-model/sizes-around-powers-of-two, with payloads of 0 "
                 "bytes to 512 KiB.",
                 kDeliversWhole},
                {0, kMebibyte / 2, 2 * kMebibyte, of_payload, half_of_payload}),
    each_length(
        {"event-model/headers-around-powers-of-two", must, "header sizes around every power of two",
         in_layout("Emit events as in event-model/sizes-around-powers-of-two, with headers of {} "
                   "bytes to 512 KiB and payloads of 20 bytes.",
                   kLeastEventBytes),
         kDeliversWhole},
        {kLeastEventBytes, kMebibyte / 2, 2 * kMebibyte, of_header, half}),
    each_length(
        {"event-model/types-around-powers-of-two", must, "type lengths around every power of two",
         "Emit events as in event-model/sizes-around-powers-of-two, with types of 1 to "
         "65,535 bytes. The end of the data region is inside the type.",
         kDeliversWhole},
        {1, 0xffff, 256 * kKibibyte, of_type, half_of_type}),
    {{"event-model/sizes-up-to-128-mebibytes", must, "event sizes up to half of the largest ring",
      "Emit an event of each power of two from 2 MiB to 128 MiB across the end of a ring of twice "
      "its size. Emit those below 128 MiB within the region too.",
      kDeliversWhole},
     {Asleep{}, Emit{1, kMebibyte}, Asleep{}, EmitLargeEvents{}},
     kOneCpuOf4Mebibytes},
    {{"5.1.8.1-5/largest-event-torn", must, "an event of 128 MiB overwritten during the copy",
      "Emit an event of 128 MiB in a ring of twice its size. At the first access to the second "
      "half of the event, overwrite it by an event of the same size.",
      "The consumer loads tail_pos after the copy, however large the event is, and discards it."},
     {Asleep{}, TearLargestEvent{}},
     kOneCpuOf4Mebibytes},
    {{"E7/survivors-larger-than-half", erratum,
      "survivors of a shrink larger than half of the ring",
      "Shrink the rings of five CPUs to half. In each, one event of between half of the new ring "
      "and all of it survives across the end. Shrink before the attach, and again while the "
      "consumer is stopped.",
      kDeliversWhole},
     {Asleep{}, Resize{2 * kSurvivorCapacity}, Asleep{}, AtOnce{{kEmitAndShrink}}, Asleep{},
      EmitEverywhere{2}, Delivered{}},
     {.cpus = 5, .capacity = 2 * kSurvivorCapacity, .before_start = {kEmitAndShrink}}},
};

const Row kLargeHeaderRows[] = {
    {{"event-model/large-headers", must, "headers of up to 1.2 MB",
      "Emit types of 4 to 64 KiB, and headers that are longer than their type by up to 1,200,000 "
      "bytes.",
      "The consumer reads type_len as 16 bits and header_size as 32, with no limit other than the "
      "event's size."},
     {RequireLongerHeaders{}, kEmitLargeHeaders},
     {.capacity = 4 * kMebibyte}},
};

const Row kMebibyteRows[] = {
    {{"event-model/five-mebibytes", must, "an event of 5 MiB, a header of 200,000 bytes",
      "Emit an event of 5 MiB, and one with a header of more than 2^17 bytes, into a ring of 16 "
      "MiB.",
      kDeliversWhole},
     {Asleep{}, Emit{1, 5 * kMebibyte}, Asleep{}, EmitTyped{300'000, 11, 200'000}, Asleep{}},
     {.cpus = 1, .capacity = 16 * kMebibyte}},
    {{"event-model/nine-mebibytes", must, "an event of 9 MiB",
      "Emit an event of 9 MiB, which is larger than most thread stacks, into a ring of 32 MiB.",
      kDeliversWhole},
     one_event_of(9),
     {.cpus = 1, .capacity = 32 * kMebibyte}},
    {{"event-model/eighteen-mebibytes", must, "an event of 18 MiB",
      "Emit an event of 18 MiB, which is more than 2^24 bytes, into a ring of 64 MiB.",
      kDeliversWhole},
     one_event_of(18),
     {.cpus = 1, .capacity = 64 * kMebibyte}},
};

}  // namespace

const std::vector<Case> kSizeCases = cases_of(kSizeRows);
const std::vector<Case> kLargeHeaderCases = cases_of(kLargeHeaderRows);
const std::vector<Case> kMebibyteCases = cases_of(kMebibyteRows);

}  // namespace kmes::conformance
