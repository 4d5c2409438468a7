// SPDX-License-Identifier: MIT
//
// A producer exactly as fast as the consumer: tail_pos moves just past the event that is being
// read. The next event is whole.
#include "conformance/play/one_by_one.h"

#include "conformance/cases/play.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

// A sequence number is skipped before every third event.
constexpr std::uint64_t kGapEvery = 3;
const AtOnce kFullRingWithGaps{{Times{21, {Drop{}, Emit{kGapEvery, 1000}}}, Drop{}, Emit{2, 1000}}};

Steps torn(const OneByOne& series) {
    return {Asleep{}, EndIfRefused{}, torn_one_by_one(series, {kFullRingWithGaps, AsleepHere{}})};
}

const Row kOneByOneRows[] = {
    {{"5.1.8.1-5/torn-one-by-one", Level::must, "an overwrite of exactly the event that is read",
      "Fill the ring with unread events with gaps in their sequence numbers. Each time that the "
      "consumer begins to read an event, move tail_pos to its end, forty times in a row. Then do "
      "so only at the second event after a gap.",
      "The consumer discards the torn event, continues at tail_pos, and delivers every other "
      "event."},
     {each({OneByOne{Torn::each, TornWhen::after_the_header, 40},
            OneByOne{Torn::each, TornWhen::second, 40}, OneByOne{Torn::each, TornWhen::first, 40},
            OneByOne{Torn::second, TornWhen::after_the_header, 12, kGapEvery},
            OneByOne{Torn::second, TornWhen::second, 12, kGapEvery},
            OneByOne{Torn::second, TornWhen::first, 12, kGapEvery}},
           torn)},
     {.cpus = 1, .capacity = 64 * kKibibyte}},
};

}  // namespace

const std::vector<Case> kOneByOneCases = cases_of(kOneByOneRows);

}  // namespace kmes::conformance
