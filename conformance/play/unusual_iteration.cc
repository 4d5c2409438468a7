// SPDX-License-Identifier: MIT
//
// See unusual_iteration.h.
#include "conformance/play/unusual_iteration.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "conformance/oracle/layout.h"
#include "conformance/play/moves.h"
#include "conformance/play/play.h"

namespace kmes::conformance {

namespace {

constexpr std::uint64_t kCapacity = kUnusualCapacity;
constexpr int kMany = 800;  // all of them fit into the buffer together

// Leaves two unread events, so few accesses follow until the store to need_wake.
void lap_to_few(Stage& stage) {
    lap(stage, 0, kCapacity / 2);
}

// As lap_to_few, with fitting sizes at the place of the event at `position`.
void lap_with_whole_headers(Stage& stage, std::uint64_t position) {
    const TornSizes kWhole{kShortHeader + 60, kShortHeader, 1};
    overwrite_all(stage, [&](std::string& payload, std::uint64_t over) {
        const std::uint64_t begin = over + kHeaderBytesBeforeType + 1;  // for a type of one byte
        put_sizes(payload, (position - begin) & (kCapacity - 1), kWhole);
    });
}

bool touches(const GuardHit& hit, std::uint64_t offset, std::uint64_t bytes, bool writes) {
    return std::any_of(hit.accesses.begin(), hit.accesses.end(), [&](const BufferAccess& access) {
        return access.touches(offset, bytes) && (writes ? access.is_write : access.is_read);
    });
}

}  // namespace

std::string_view describe(Disturbance disturbance) {
    switch (disturbance) {
        case Disturbance::given_up:
            return "after the second check found an event";
        case Disturbance::lapped:
            return "after a lap";
        case Disturbance::torn:
            return "after a torn read";
        case Disturbance::torn_whole:
            return "after a torn read with a plausible header";
        case Disturbance::many:
            return "after an iteration with hundreds of events";
        case Disturbance::new_buffer:
            return "before the first sleep on a new buffer";
        case Disturbance::empty_buffer:
            return "before the first sleep on an empty buffer";
        case Disturbance::replaced_meanwhile:
            return "after a change to a buffer that was replaced before its first access";
        case Disturbance::timed_out:
            return "after a wait that timed out";
        case Disturbance::refused:
            return "after a wait that returned EAGAIN";
        case Disturbance::interrupted:
            return "after a wait that returned EINTR";
    }
    return "";
}

void replace_at_the_next_attach(Stage& stage) {
    stage.hooks().set_on_attached([&stage, is_done = false](const Attached& attached) mutable {
        if (attached.error != 0 || std::exchange(is_done, true)) return;
        stage.resize(stage.capacity_bytes());
    });
}

void UnusualIteration::begin() {
    switch (disturbance_) {
        case Disturbance::torn_whole:
            torn_at_ = write_pos(stage_, 0);
            emit_some(stage_, 0, 1, 100);
            return;
        case Disturbance::given_up:
        case Disturbance::torn:
            emit_some(stage_, 0, 1, 100);
            return;
        case Disturbance::lapped:
            is_made_ = true;
            stage_.holding().freeze();
            lap_to_few(stage_);
            stage_.holding().thaw();
            return;
        case Disturbance::many:
            stage_.holding().freeze();
            emit_some(stage_, 0, kMany, kCapacity / (kMany + 1));
            stage_.holding().thaw();
            return;
        case Disturbance::new_buffer:
            stage_.testee().read_report();
            reported_before_ = reported_changes(stage_, 0);
            stage_.resize(stage_.capacity_bytes());
            emit_some(stage_, 0, 1, 100);
            return;
        case Disturbance::replaced_meanwhile:
            replace_at_the_next_attach(stage_);
            is_ready_ = true;
            stage_.resize(kCapacity);
            return;
        case Disturbance::empty_buffer:
            // The newest event is too large for the smaller buffer, so nothing is copied.
            stage_.resize(4 * kCapacity);
            emit_some(stage_, 0, 1, 2 * kCapacity);
            stage_.wait_asleep();
            is_ready_ = true;
            stage_.resize(kCapacity);
            return;
        case Disturbance::timed_out:
            wake_with(-ETIMEDOUT);
            return;
        case Disturbance::interrupted:
            wake_with(-EINTR);
            return;
        case Disturbance::refused:
            is_made_ = true;
            // The kernel restarts a wait after a stop, and then finds another value.
            stage_.holding().freeze();
            emit_some(stage_, 0, 1, 70);
            stage_.holding().thaw();
            return;
    }
}

void UnusualIteration::wake_with(std::int64_t result) {
    is_made_ = true;
    stage_.hooks().set_wake_result(result);
    wake_spuriously(stage_, 0);
    stage_.hooks().set_wake_result(0);
}

bool UnusualIteration::check_before(const GuardHit& hit) {
    const bool is_at_another = disturbance_ == Disturbance::empty_buffer ||
                               disturbance_ == Disturbance::replaced_meanwhile;
    if (disturbance_ == Disturbance::many && !is_made_) {
        stage_.testee().read_report();
        is_made_ = is_delivered(stage_, 0);
    }
    if (is_made_ || !(is_at_another || disturbance_ == Disturbance::new_buffer)) return is_made_;
    if (stage_.buffers().buffer_at(hit.place) != stage_.rings().history().current_buffer(0))
        return false;
    if (is_at_another) return is_made_ = is_ready_;
    stage_.testee().read_report();
    is_made_ = reported_changes(stage_, 0) > reported_before_ && is_delivered(stage_, 0);
    return is_made_;
}

bool UnusualIteration::make_after(const GuardHit& hit) {
    if (is_made_) return false;
    if (disturbance_ == Disturbance::given_up && need_wake() != 0 &&
        touches(hit, kNeedWakeOffset, 1, true)) {
        emit_some(stage_, 0, 1, 70);
        is_made_ = true;
    } else if (disturbance_ == Disturbance::torn && touches(hit, kTailPosOffset, 8, false)) {
        lap_to_few(stage_);
        is_made_ = true;
    } else if (disturbance_ == Disturbance::torn_whole && touches(hit, kTailPosOffset, 8, false)) {
        lap_with_whole_headers(stage_, torn_at_);
        is_made_ = true;
    }
    return is_made_;
}

std::uint8_t UnusualIteration::need_wake() const {
    return stage_.rings().backend().need_wake(stage_.rings().history().current_buffer(0));
}

void play_after(Disturbance disturbance, const std::function<void()>& play) {
    try {
        play();
    } catch (Stop& stop) {
        if (stop.verdict == Verdict::fail)
            stop.finding.message += "; this happened " + std::string(describe(disturbance));
        throw;
    }
}

}  // namespace kmes::conformance
