// SPDX-License-Identifier: MIT
//
// A large unread backlog: more than a consumer copies, counts or delivers at once. It keeps state
// from one part to the next: the beginning of an event, a count, a position, the fact that its
// buffer was replaced. That state must still hold if the ring has moved on in between.
#include <bit>
#include <string>

#include "conformance/cases/play.h"
#include "conformance/oracle/layout.h"
#include "conformance/play/overtaken_buffer.h"
#include "conformance/play/row.h"
#include "conformance/play/tail_loads.h"

namespace kmes::conformance {

namespace {

// Texts of several cases.
constexpr std::string_view kOldFirst =
    "The consumer delivers all of them, from the old buffer first, in however many parts.";

constexpr std::uint64_t kCapacity = 2 * kMebibyte;
constexpr std::uint64_t kEvents = 1500;
constexpr std::uint64_t kEventBytes = 1000;
const Setup kBacklogRing{.cpus = 1, .capacity = kCapacity};

// All events at once, so that the consumer never sees only a part of them.
const Step kBacklog = AtOnce{{Emit{kEvents, kEventBytes}}};

// `passed` bytes of the backlog are overwritten.
Step overtake(std::uint64_t passed) {
    return EmitBytes{kCapacity - kEvents * kEventBytes + passed};
}

// Overwrites while the consumer reads: in the first part that it copies, or in a later one.
Steps torn_on_the_way(std::uint64_t page) {
    const auto torn_by = [page](std::uint64_t passed) {
        return Steps{
            Place{},
            UnderRead{.at = page * kPageBytes, .wake = {kBacklog}, .actions = {overtake(passed)}}};
    };
    return {each({page * kPageBytes + 3 * kEventBytes / 2, kEvents * kEventBytes}, torn_by)};
}

// The smallest size with such a type whose multiples end `left` bytes before `window`; 0: none.
std::uint64_t size_that_leaves(std::uint64_t window, std::uint64_t left, std::uint64_t type_bytes) {
    constexpr std::uint64_t kMost = 4000;
    for (std::uint64_t bytes = kLeastEventBytes + type_bytes; bytes <= kMost; ++bytes) {
        if ((window - left) % bytes == 0) return bytes;
    }
    return 0;
}

// A consumer that copies parts of any power of two cuts an event's header at each field. The copied
// part is then not a whole header.
Step headers_cut() {
    constexpr std::uint64_t kTypeBytes = 256;  // so that the first byte of type_len alone is 0
    InOrder all;
    for (std::uint64_t window = 4096; window <= kMebibyte; window *= 2) {
        for (const std::uint64_t left :
             {kHeaderSizeAt, kTypeLengthAt, kTypeLengthAt + 1, kHeaderBytesBeforeType}) {
            const std::uint64_t bytes = size_that_leaves(window, left, kTypeBytes);
            if (bytes == 0) continue;
            all.steps.push_back(Asleep{});
            all.steps.push_back(
                AtOnce{{Times{window / bytes + 3, {EmitTyped{bytes, kTypeBytes}}}}});
        }
    }
    return all;
}

// The first `left` bytes of an event_size are copied, and form an impossible size: the missing
// bytes are not zeros. The events before it have the same size, except the first.
Steps cut_in_its_size(std::uint64_t window, std::uint64_t left, std::uint64_t bytes) {
    constexpr std::uint64_t kFirstAtLeast = 64;
    const std::uint64_t before = (window - left - kFirstAtLeast) / bytes;
    return {Asleep{}, AtOnce{{Emit{1, window - left - before * bytes}, Emit{before + 3, bytes}}}};
}

Step sizes_cut() {
    InOrder all;
    for (std::uint64_t window = 4096; window <= kMebibyte; window *= 2) {
        // 0x101 to 0x11d and 0x1000a: the first byte or two of these are less than any size.
        all.steps.push_back(InOrder{cut_in_its_size(window, 1, 0x101)});
        all.steps.push_back(InOrder{cut_in_its_size(window, 1, 0x11d)});
        if (window >= 0x40000) all.steps.push_back(InOrder{cut_in_its_size(window, 2, 0x1000a)});
    }
    return all;
}

constexpr std::uint64_t kMany = 20'000;
const std::uint64_t kSmallBytes = kLeastEventBytes + 10;
// The smallest ring in which all of them survive.
const std::uint64_t kManyRing = std::bit_ceil(kMany * kSmallBytes);

constexpr std::uint64_t kSmallest = 70'000;
const std::uint64_t kSmallestRing = std::bit_ceil(kSmallest * kLeastEventBytes);

// As many events as a ring can contain: more than 2^17 in each form of the layout.
const std::uint64_t kFullRingBytes = std::bit_ceil(((1 << 17) + 1) * kLeastEventBytes);
const std::uint64_t kFull = kFullRingBytes / kLeastEventBytes;
const Step kFullRing = Emit{kFull, kLeastEventBytes};
const std::string kFullText =
    fmt::format("{} events of {} bytes", grouped(kFull), kLeastEventBytes);
const std::uint64_t kFullMebibytes = kFullRingBytes / kMebibyte;

const Row kBacklogRows[] = {
    {{"5.1.8.1-2/overtaken-amid-a-backlog", Level::must,
      "a large backlog overwritten between two parts",
      "Emit 1500 events at once into a ring of 2 MiB. Before each access to the metadata page in "
      "turn, overwrite 600, 1100 or all of them.",
      "The consumer continues at tail_pos and discards an event of which it has only a part."},
     {Limited{{each({600'000, 1'100'000, 1'500'000},
                    [](std::uint64_t passed) {
                        return Steps{BeforeEachAccess{
                            .actions = {overtake(passed)}, .wake = {kBacklog}, .last = 16}};
                    })}}},
     kBacklogRing},
    {{"5.1.8.1-5/backlog-torn-on-the-way", Level::must,
      "a large backlog overwritten at a later page",
      "Emit 1500 events at once into a ring of 2 MiB. When the consumer reaches the 20th page or "
      "a later one, overwrite all events before that page, or all events.",
      "The consumer loads tail_pos after each part that it copies, and continues there."},
     {each({20, 70, 100, 140, 200, 300}, torn_on_the_way)},
     kBacklogRing},
    {{"5.1.8.1-5/very-large-event-torn", Level::must,
      "an event of 4 MiB overwritten during the copy",
      "Stop the consumer in the middle of an event of 4 MiB. Lap the ring of 8 MiB.",
      "The consumer sees in its second load of tail_pos that the event was overwritten, and "
      "discards it."},
     {Asleep{}, EndIfRefused{},
      UnderRead{.at = 2 * kMebibyte,
                .wake = {Emit{1, 4 * kMebibyte}},
                .actions = {EmitHeaders{8, kMebibyte}}}},
     {.cpus = 1, .capacity = 8 * kMebibyte}},
    {{"5.1.8.1-4/headers-cut-by-any-part", Level::must, "headers across every power of two",
      in_layout("Emit backlogs with a header across 4 KiB, 8 KiB, and so on up to 1 MiB. Its 4th, "
                "{}th, {}th or {}th byte is the last one before that border.",
                kTypeLengthAt, kTypeLengthAt + 1, kHeaderBytesBeforeType),
      "The consumer parses a header only when it has copied all of it."},
     {headers_cut(), Asleep{}},
     kBacklogRing},
    {{"5.1.8.1-4/sizes-cut-by-any-part", Level::must, "event sizes across every power of two",
      "Emit backlogs in which an event_size crosses a border at 4 KiB, 8 KiB, and so on up to 1 "
      "MiB. Its first byte (257, 285) or its first two (65,546) are before the border.",
      "The consumer uses a size only when it has copied all of it."},
     {sizes_cut(), Asleep{}},
     kBacklogRing},
    {{"5.1.8.1-6/full-of-the-smallest-events", Level::must,
      "a full ring of the smallest events before the attach",
      in_layout("Fill a ring of {} MiB with {} before the consumer attaches.", kFullMebibytes,
                kFullText),
      kEachOnce},
     {Asleep{}},
     {.cpus = 1, .capacity = kFullRingBytes, .before_start = {kFullRing}}},
    {{"E10/full-of-the-smallest-unread", Level::erratum,
      "the largest possible number of unread events",
      in_layout(
          "Emit {}. While they are unread, replace the buffer of {} MiB by one of 64 KiB. Then, "
          "before each access in turn, emit an event, resize with shifted positions, and lap "
          "the new buffer.",
          kFullText, kFullMebibytes),
      "The consumer delivers all events, from the old buffer first. It loads generation before "
      "each sleep, however much it has delivered."},
     {Asleep{}, AtOnce{{kFullRing, Resize{kMebibyte / 16}}}, Asleep{}, NudgingOff{},
      BeforeEachAccess{
          {Emit{1, kSmallBytes}, Resize{kMebibyte / 16, PositionRule::shift, 1000}, Lap{9000}}}},
     {.cpus = 1, .capacity = kFullRingBytes}},
    {{"E24/full-ring-at-its-load-of-generation", Level::erratum,
      "a full ring before the load of generation",
      in_layout(
          "At the first load of generation in an iteration, and at the second in another, emit "
          "{}. Replace the buffer of {} MiB by one of 64 KiB there.",
          kFullText, kFullMebibytes),
      "The consumer loads write_pos of the old buffer again and delivers all events from there, "
      "in however many parts."},
     {ActAt{.place = "before load {} of generation",
            .play_at = before_load_of_generation(),
            .wake = {Emit{1, kSmallBytes}},
            .actions = {kFullRing, Resize{kMebibyte / 16}},
            .last = 2,
            .before = {Asleep{}, EndIfRefused{}, InTurn{{{}, {Resize{kFullRingBytes}}}}, Asleep{}}},
      Resize{kFullRingBytes}, Asleep{}},
     {.cpus = 1, .capacity = kFullRingBytes, .nudging = false}},
    {{"E21/full-of-the-smallest-survivors", Level::erratum,
      "a next buffer full of delivered events",
      in_layout("Wait until {} are delivered. Replace the buffer of {} MiB by one of {} MiB and "
                "emit one event.",
                kFullText, kFullMebibytes, 2 * kFullMebibytes),
      "The consumer skips all events that it has delivered, however many there are, and delivers "
      "the new one."},
     {Asleep{}, AtOnce{{Resize{2 * kFullRingBytes}, Emit{1, kSmallBytes}}}, Asleep{}},
     {.cpus = 1, .capacity = kFullRingBytes, .before_start = {kFullRing}}},
    {{"E10/twenty-thousand-unread", Level::erratum,
      "twenty thousand unread events in the old buffer",
      "Emit 20,000 events. While all or half of them are unread, replace the buffer by a buffer "
      "that holds few of them.",
      kOldFirst},
     {Asleep{}, EndIfRefused{}, Emit{1, kSmallBytes}, EmitTo{}, Asleep{},
      AtOnce{{Emit{kMany, kSmallBytes}, Resize{kMebibyte / 16}}}, Asleep{}, Resize{kManyRing},
      Asleep{}, EndIfRefused{}, Emit{1, kSmallBytes}, EmitTo{}, Asleep{},
      UnderRead{.at = kMany * kSmallBytes / 2,
                .wake = {AtOnce{{Emit{kMany, kSmallBytes}}}},
                .actions = {Resize{kMebibyte / 16}},
                .if_unseen = IfUnseen::ignore},
      Resize{kManyRing}, Asleep{}},
     {.cpus = 1, .capacity = kManyRing, .nudging = false}},
    {{"E10/five-mebibytes-unread", Level::erratum, "five mebibytes unread in the old buffer",
      "Emit 52 events of 100 KB. While they are unread, replace the buffer of 8 MiB by one of 64 "
      "KiB.",
      kOldFirst},
     {Times{2,
            {Asleep{}, EndIfRefused{}, AtOnce{{Emit{52, 100'000}, Resize{kMebibyte / 16}}},
             Asleep{}, Resize{8 * kMebibyte}}},
      Asleep{}},
     {.cpus = 1, .capacity = 8 * kMebibyte, .nudging = false}},
    {{"E10/next-buffer-overtaken-at-every-step", Level::erratum,
      "the next buffer overwritten before the old one is drained",
      "Before each access to the metadata page in turn, emit five events and replace the buffer. "
      "Before every other access to the next buffer's page, overwrite all of the next buffer.",
      "The consumer delivers the events from the old buffer, because the next one may be "
      "overwritten."},
     {OvertakeNextBuffer{}},
     {.cpus = 1, .nudging = false}},
    {{"5.1.8.3-5/twenty-thousand-survivors", Level::must, "twenty thousand events in both buffers",
      "Let 20,000 events survive two changes of the buffer, with half of them delivered before.",
      "The consumer delivers each event once, in however many parts it reads them."},
     {Asleep{}, Emit{kMany / 2, kSmallBytes}, Asleep{},
      AtOnce{{Emit{kMany / 2, kSmallBytes}, Resize{2 * kManyRing}}}, Asleep{}, Resize{kManyRing},
      Asleep{}, Emit{3, kSmallBytes}, Asleep{}},
     {.cpus = 1, .capacity = kManyRing}},
    {{"5.1.8.3-5/seventy-thousand-survivors", Level::must,
      "seventy thousand delivered events in the next buffer",
      in_layout(
          "Wait until 70,000 events of {} bytes are delivered. Replace the buffer so that all "
          "survive.",
          kLeastEventBytes),
      "The consumer delivers none of them again, however many there are."},
     {Times{10, {Asleep{}, AtOnce{{Emit{kSmallest / 10, kLeastEventBytes}}}}}, Asleep{},
      Resize{kSmallestRing}, Asleep{}, Emit{1, kSmallBytes}, Asleep{}},
     {.cpus = 1, .capacity = kSmallestRing}},
    {{"E10/overtaken-and-shrunk-at-every-step", Level::erratum, "a lap, then a smaller buffer",
      "Before each access to the metadata page in turn, lap the buffer and replace it by a "
      "buffer that holds a quarter of it.",
      "The consumer continues at tail_pos of the old buffer, and then in the new one."},
     {Limited{{BeforeEachAccess{.actions = {Lap{usual(1, 8)}, Resize{usual()}},
                                .last = 40,
                                .before = {Asleep{}, EndIfRefused{}},
                                .afterwards = {Asleep{}, Resize{usual(4)}}}}}},
     {.cpus = 1, .capacity = usual(4), .nudging = false}},
};

}  // namespace

const std::vector<Case> kBacklogCases = cases_of(kBacklogRows);

}  // namespace kmes::conformance
