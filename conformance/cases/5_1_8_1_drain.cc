// SPDX-License-Identifier: MIT
//
// The drain loop (5.1.8.1): order, sequence numbers, gaps and batches (5.1.7, 5.1.9), and bursts of
// events of which some are overwritten.
#include <bit>
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

// A batch with one timestamp, whose events also agree in everything else except the sequence
// number.
void emit_equal_batch(Stage& stage) {
    stage.rings().batch(0, std::vector<EventSpec>(5, stage.rings().events().make(90)));
}

const Row kDrainRows[] = {
    {{"5.1.8.1-6/drain", Level::must, "drain in order",
      "Emit events before the attach. Then emit 1 to 10 events of growing sizes on every CPU, ten "
      "times.",
      kEachOnce},
     {Delivered{}, each_below(10,
                              [](std::uint64_t i) {
                                  return Steps{EmitEverywhere{i + 1, 30 + 37 * (i + 1)},
                                               Delivered{}};
                              })},
     {.before_start = {EmitEverywhere{20, 100}}}},
    {{"E11/begins-at-tail-pos", Level::must, "a start at tail_pos",
      "Let the buffers wrap before the consumer attaches, so that the oldest event is in the "
      "middle of the data region.",
      "The consumer begins at tail_pos and delivers everything from there."},
     {Delivered{}, EmitEverywhere{3, 100}, Delivered{}},
     {.before_start = {OnEachCpu{{Lap{3000, 111}}}}}},
    {{"5.1.8.1-1/full-ring", Level::must, "a full ring",
      "Emit exactly capacity bytes between tail_pos and write_pos.",
      "The consumer delivers every event of a full ring, which is not an empty one."},
     {Delivered{}},
     {.before_start = {OnEachCpu{{Emit{4, current(1, 4)}}}}}},
    {{"5.1.8/one-busy-cpu", Level::must, "one busy CPU among idle ones",
      "Emit events on the last CPU only.",
      "The consumer delivers these events while the other CPUs are idle."},
     {Asleep{}, OnCpu{kLastCpu, {Times{20, {Emit{5, 150}, DeliveredHere{}}}}}}},
    {{"5.1.9/gap-of-dropped-events", Level::must, "gaps from dropped events",
      "Drop events of over 50 % of the capacity. Each uses a sequence number (5.1.7 step 5).",
      "The consumer delivers the events after a gap. An L record, where there is one, has the "
      "exact count of missing numbers."},
     {Delivered{}, OnEachCpu{{Emit{}, Drop{1, 1}, Emit{3, 100}, Drop{}}}, Delivered{},
      EmitEverywhere{1, 60}, Delivered{}, OnEachCpu{{Drop{}}}},
     {.before_start = {Emit{2, 100}, Drop{}, Emit{2, 100}}}},
    {{"5.1.9/gap-before-the-first", Level::must, "a gap before the first event",
      "Drop the first two events of each CPU before the consumer attaches.",
      "The consumer counts no loss before the first event that it delivers."},
     {Delivered{}},
     {.before_start = {OnEachCpu{{Drop{2}, Emit{2, 100}}}}}},
    {{"5.1.7/batches", Level::must, "batches",
      "Publish batches of 1 to 256 events at once, one of them with a dropped event, each while "
      "the consumer sleeps.",
      "The consumer delivers every event of a batch after one wake."},
     {Asleep{},
      each({1, 2, 64, 256},
           [](std::uint64_t count) {
               return Steps{OnEachCpu{{growing_batch(count, 40)}}, Asleep{}};
           }),
      Batch{{100, 101, current(1, 2) + 1, 102, 103, 104}}, Asleep{}, Call{emit_equal_batch},
      Asleep{}}},
    {{"E8/batch-larger-than-the-room", Level::erratum, "a batch larger than the buffer",
      "Emit a batch of more than twice the capacity. The producer publishes parts of it, because "
      "tail_pos may not reach write_pos.",
      "The consumer delivers what is not overwritten, and nothing torn or early."},
     {Asleep{}, OnEachCpu{{growing_batch(21, current(1, 8))}}, Asleep{}},
     {.before_start = {EmitEverywhere{10, 200}}}},
};

// -- Several events at once --

constexpr std::uint64_t kBurst = 8;
constexpr std::uint64_t kBurstEventBytes = 700;
const Steps kEmitBurst{Emit{kBurst, kBurstEventBytes}};

// The ring is full of older events and the burst. tail_pos moves `passed` bytes into the burst.
Step overwrite_burst_bytes(std::uint64_t passed) {
    return EmitBytes{current() - kBurst * kBurstEventBytes + passed};
}

Step overwrite_burst(std::uint64_t passed) {
    return BeforeAccessTo{.wake = kEmitBurst, .actions = {overwrite_burst_bytes(passed)}};
}

// Emits as many small events as the ring holds, and `more`.
Step emit_full_ring_and(std::uint64_t more) {
    return Emit{current(1, kLeastEventBytes) + more, kLeastEventBytes};
}

const std::uint64_t kFewBytes = kLeastEventBytes + 18;

const Row kBurstRows[] = {
    {{"5.1.8.1-2/lapped-between-two-loads", Level::must, "a lap during a read of several events",
      "Emit eight events at once. Before each access to the metadata page in turn, lap the ring, "
      "the eight events included.",
      "The consumer continues at tail_pos and uses nothing that it read ahead or kept."},
     {overwrite_burst(kBurst * kBurstEventBytes)}},
    {{"5.1.8.1-2/lapped-in-part-between-two-loads", Level::must,
      "a part of several events overwritten",
      "Emit eight events at once. Before each access to the metadata page in turn, overwrite the "
      "first three of them.",
      "The consumer continues at tail_pos and delivers the other five."},
     {overwrite_burst(3 * kBurstEventBytes)}},
    {{"5.1.8.1-5/burst-torn-in-part", Level::must,
      "a part of several events overwritten during the copy",
      "Emit eight events at once. At an access to their data, overwrite the first three.",
      "The consumer sees in its load of tail_pos after the copy that the first event was "
      "overwritten, however much it copies at once."},
     {Asleep{}, each({1, 2, 9, 40, 120},
                     [](std::uint64_t access) {
                         return Steps{EmitTo{}, Asleep{},
                                      BeforeAccessTo{
                                          .wake = kEmitBurst,
                                          .actions = {overwrite_burst_bytes(3 * kBurstEventBytes)},
                                          .first_page = 1,
                                          .pages = 2,
                                          .accesses = {access}}};
                     })}},
    {{"5.1.8.1-5/torn-by-one-event", Level::must, "exactly the current event overwritten",
      "Stop the consumer in the middle of an event of four pages. Overwrite exactly that event, "
      "so that tail_pos is its end.",
      "The consumer discards the event, because read_pos < tail_pos."},
     {Asleep{}, each({1, 2, 4},
                     [](std::uint64_t page) {
                         return Steps{EmitTo{}, Asleep{},
                                      BeforeAccessTo{.wake = {Emit{1, kVictimBytes}},
                                                     .actions = {EmitBytes{current()}},
                                                     .first_page = page,
                                                     .accesses = {1}}};
                     })}},
    {{"5.1.9/gap-of-many-events", Level::must, "a lap of very many small events",
      in_layout(
          "Overwrite 300, 36,000 and 66,000 events of {} bytes at once. Overwrite 66,000 once "
          "more while the consumer reads a burst.",
          kLeastEventBytes),
      "The consumer continues at tail_pos. Its L records count the lost events."},
     {each({300, 36'000, 66'000},
           [](std::uint64_t lost) { return Steps{Asleep{}, AtOnce{{emit_full_ring_and(lost)}}}; }),
      BeforeAccessTo{
          .wake = kEmitBurst, .actions = {emit_full_ring_and(66'000)}, .accesses = {3, 5, 9, 14}},
      Asleep{}},
     {.cpus = 1, .before_start = {Emit{3, 100}}}},
    {{"5.1.8.1-6/seventy-thousand-events", Level::must,
      "more events of one CPU than 16 bits can count",
      "Emit 66,000 small events before the attach. Later emit 1, 255, 256, 1024, 4096 and 65,536 "
      "events at once. Then overwrite one event during the copy, and emit an event before each "
      "access in turn.",
      "The consumer delivers each event once, in order. It makes each check, however much it has "
      "delivered."},
     {each({1, 255, 256, 1024, 4096, 65'536},
           [](std::uint64_t events) { return Steps{Asleep{}, AtOnce{{Emit{events, kFewBytes}}}}; }),
      Asleep{}, EndIfRefused{}, EmitTo{}, Asleep{},
      UnderRead{.at = 4 * kPageBytes,
                .wake = {Emit{1, 8 * kPageBytes}},
                .actions = {EmitHeaders{8, kMebibyte / 2}}},
      BeforeEachAccess{{Emit{1, 70}}}},
     {.cpus = 1,
      .capacity = std::bit_ceil(66'000 * kFewBytes),
      .before_start = {Emit{66'000, kFewBytes}}}},
};

}  // namespace

const std::vector<Case> kDrainCases = cases_of(kDrainRows);
const std::vector<Case> kBurstCases = cases_of(kBurstRows);

}  // namespace kmes::conformance
