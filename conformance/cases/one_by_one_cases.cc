// SPDX-License-Identifier: MIT
//
// A producer exactly as fast as the consumer: tail_pos moves just past the event that is being
// read. The next event is whole.
#include "conformance/cases/play.h"
#include "conformance/play/moves.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

constexpr std::uint64_t kSingleCapacity = 65536;
constexpr std::uint64_t kSingleEventBytes = 1000;
constexpr std::uint64_t kSingleEvents = kSingleCapacity / kSingleEventBytes;
// Before every such event a sequence number is skipped.
constexpr std::uint64_t kGapEvery = 3;

// Every event, or the second one after a gap.
enum class Torn { each, second_after_a_gap };

// At the first access to the event, at the second, or when the whole header has been read.
enum class When { first, second, after_the_header };

class OneByOne {
  public:
    OneByOne(Stage& stage, Torn torn, When when, int times)
        : stage_(stage), torn_(torn), when_(when), left_(times) {
        stage.guards().guard(0, 1, 2 * kSingleCapacity / kPageBytes, [this](const GuardHit& hit) {
            return at(hit.place.offset_bytes - kMetadataBytes);
        });
    }

  private:
    AtGuard at(std::uint64_t offset) {
        const History& history = stage_.rings().history();
        const Buffer& buffer = history.buffer(history.current_buffer(0));
        const Placement* event = placement_at(buffer, offset, 0);
        if (event == nullptr) return AtGuard::step;
        if (!has_begun_ || event->position != position_) {
            has_begun_ = true;
            position_ = event->position;
            accesses_ = 0;
            is_due_ = true;
            ++number_;
        }
        ++accesses_;
        const bool is_meant = torn_ == Torn::each || number_ % kGapEvery == 2;
        // A consumer that skipped other events reads a later one. The skipped ones must survive.
        const bool is_next = event == &buffer.placements[buffer.tail_index] || torn_ != Torn::each;
        const std::uint64_t begun = (offset - event->position) & (kSingleCapacity - 1);
        const bool is_now = when_ == When::first    ? accesses_ == 1
                            : when_ == When::second ? accesses_ == 2
                                                    : begun > kHeaderBytesBeforeType;
        if (!is_due_ || !is_now || !is_meant || !is_next) return AtGuard::step;
        is_due_ = false;
        stage_.rings().emit_bytes(0, bytes_that_give_up(buffer, *event));
        return --left_ == 0 ? AtGuard::release : AtGuard::step;
    }

    Stage& stage_;
    Torn torn_;
    When when_;
    int left_;
    bool has_begun_ = false;
    std::uint64_t position_ = 0;
    std::uint64_t number_ = 0;  // of the event that is being read, from 1
    unsigned accesses_ = 0;     // to that event
    bool is_due_ = false;       // the event has not been torn yet
};

CaseOutcome torn_one_by_one(Stage& stage) {
    struct Series {
        Torn torn;
        When when;
        int times;
    };
    constexpr Series kSeries[] = {{Torn::each, When::after_the_header, 40},
                                  {Torn::each, When::second, 40},
                                  {Torn::each, When::first, 40},
                                  {Torn::second_after_a_gap, When::after_the_header, 12},
                                  {Torn::second_after_a_gap, When::second, 12},
                                  {Torn::second_after_a_gap, When::first, 12}};
    set_up_one_cpu(stage, kSingleCapacity);
    stage.start();
    for (const Series& series : kSeries) {
        stage.wait_asleep();
        if (stage.testee().has_ended(0))
            break;  // refused: the judge decides whether that was correct
        const OneByOne producer(stage, series.torn, series.when, series.times);
        stage.holding().freeze();
        for (std::uint64_t i = 0; i < kSingleEvents; ++i) {
            if (i % kGapEvery == 0) stage.rings().drop(0);
            emit_some(stage, 0, 1, kSingleEventBytes);
        }
        stage.holding().thaw();
        stage.wait_asleep(0);
        stage.guards().release();
    }
    return stage.finish();
}

const Row kOneByOneRows[] = {
    {{"5.1.8.1-5/torn-one-by-one", Level::must, "an overwrite of exactly the event that is read",
      "Fill the ring with unread events with gaps in their sequence numbers. Each time that the "
      "consumer begins to read an event, move tail_pos to its end, forty times in a row. Then do "
      "so only at the second event after a gap.",
      "The consumer discards the torn event, continues at tail_pos, and delivers every other "
      "event."},
     torn_one_by_one},
};

}  // namespace

const std::vector<Case> kOneByOneCases = cases_of(kOneByOneRows);

}  // namespace kmes::conformance
