// SPDX-License-Identifier: MIT
//
// See faster_producer.h.
#include "conformance/play/faster_producer.h"

#include <utility>

#include "conformance/oracle/layout.h"
#include "conformance/play/play.h"

namespace kmes::conformance {

namespace {

// A producer that is always faster. It overwrites everything unread: a few times between the load
// of tail_pos and the read, then between the read and the next load of tail_pos.
class FasterProducer {
  public:
    FasterProducer(Stage& stage, int times)
        : stage_(stage),
          limit_(stage),
          left_(times),
          calls_(stage.testee().tracer().effects().redirected_calls) {
        stage.guards().guard(0, 0, 1 + 2 * capacity(stage, 0) / kPageBytes,
                             [this](const GuardHit& hit) { return at(hit.place.offset_bytes); });
    }
    bool has_come_to_read() const { return has_read_; }

  private:
    static constexpr std::uint64_t kEventBytes = 1000;
    // All tries of one kind come before those of the other, because the try after a discarded read
    // is of the same kind.
    static constexpr int kInARow = 3;

    AtGuard at(std::uint64_t offset) {
        const bool is_read = offset >= kMetadataBytes;
        if (!is_read && offset != kTailPosOffset) return AtGuard::step;
        // Reads by system calls only count, at the consumer's next load.
        const std::uint64_t calls = stage_.testee().tracer().effects().redirected_calls;
        const bool has_called = calls > std::exchange(calls_, calls);
        if (has_called) is_reading_ = has_read_ = true;
        if (is_read == is_reading_) return AtGuard::step;
        is_reading_ = is_read;
        has_read_ |= is_read;
        if (has_read_ && (has_called || is_read == (left_ / kInARow % 2 == 0))) {
            lap(stage_, 0, kEventBytes);
            if (--left_ == 0 || limit_.is_over()) return AtGuard::release;
        }
        // Other reads of the consumer before its next load do not stop it.
        if (is_read)
            stage_.guards().release_data();
        else
            stage_.guards().guard_data();
        return AtGuard::step;
    }

    Stage& stage_;
    WalkLimit limit_;
    int left_;
    std::uint64_t calls_;
    bool is_reading_ = false;
    bool has_read_ = false;
};

}  // namespace

void OvertakeAgain::operator()(Stage& stage) const {
    stage.wait_asleep();
    const std::uint64_t calls = stage.testee().tracer().effects().redirected_calls;
    FasterProducer producer(stage, times);
    lap(stage, 0);
    stage.wait_asleep(0);
    stage.guards().release();
    if (!producer.has_come_to_read()) stop_unseen(stage, calls);
}

// Some pages are guarded, so a copy of many events at once has read those before.
void TearAgain::operator()(Stage& stage) const {
    constexpr std::uint64_t kEvery = 4;
    const std::uint64_t ring_pages = capacity(stage, 0) / kPageBytes;
    stage.wait_asleep();
    const auto first_page = [&stage, ring_pages] {
        const History& history = stage.rings().history();
        return stage.rings().backend().state(history.current_buffer(0)).tail / kPageBytes %
               ring_pages;
    };
    int left = times;
    bool is_torn = false;  // since the last load of metadata
    const auto at = [&](const GuardHit& hit) {
        const std::uint64_t page = hit.place.offset_bytes / kPageBytes;
        if (page < kMetadataPages) {
            is_torn = false;
        } else if (!is_torn && (page - kMetadataPages) % ring_pages != first_page()) {
            is_torn = true;
            lap(stage, 0, event_bytes);
            if (--left == 0) return AtGuard::release;
        }
        return AtGuard::step;
    };
    stage.guards().guard(0, 0, 1, at);
    for (std::uint64_t page = 1; page <= 2 * ring_pages; page += kEvery)
        stage.guards().guard(0, page, 1, at);
    lap(stage, 0, event_bytes);
    stage.wait_asleep(0);
    stage.guards().release();
}

}  // namespace kmes::conformance
