// SPDX-License-Identifier: MIT
//
// See one_by_one.h.
#include "conformance/play/one_by_one.h"

#include "conformance/play/moves.h"

namespace kmes::conformance {

namespace {

class EqualProducer {
  public:
    EqualProducer(Stage& stage, const OneByOne& series)
        : stage_(stage), series_(series), left_(series.times), capacity_bytes_(capacity(stage, 0)) {
        stage.guards().guard(0, 1, 2 * capacity_bytes_ / kPageBytes, [this](const GuardHit& hit) {
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
        const bool is_each = series_.torn == Torn::each;
        const bool is_meant = is_each || number_ % series_.of_each == 2;
        // A consumer that skipped other events reads a later one. The skipped ones must survive.
        const bool is_next = event == &buffer.placements[buffer.tail_index] || !is_each;
        const std::uint64_t begun = (offset - event->position) & (capacity_bytes_ - 1);
        if (!is_due_ || !is_now(begun) || !is_meant || !is_next) return AtGuard::step;
        is_due_ = false;
        stage_.rings().emit_bytes(0, bytes_that_give_up(buffer, *event));
        return --left_ == 0 ? AtGuard::release : AtGuard::step;
    }

    // `begun`: the bytes of the event before this access.
    bool is_now(std::uint64_t begun) const {
        if (series_.when == TornWhen::after_the_header) return begun > kHeaderBytesBeforeType;
        return accesses_ == (series_.when == TornWhen::first ? 1 : 2);
    }

    Stage& stage_;
    OneByOne series_;
    std::uint64_t left_;
    std::uint64_t capacity_bytes_;
    bool has_begun_ = false;
    std::uint64_t position_ = 0;
    std::uint64_t number_ = 0;  // of the event that is being read, from 1
    unsigned accesses_ = 0;     // to that event
    bool is_due_ = false;       // the event has not been torn yet
};

}  // namespace

Step torn_one_by_one(const OneByOne& series, const Steps& steps) {
    const auto play_torn = [series](Stage& stage, const std::function<void()>& play) {
        EqualProducer producer(stage, series);
        play();
        stage.guards().release();
    };
    return Around{play_torn, steps};
}

}  // namespace kmes::conformance
