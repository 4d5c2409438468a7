// SPDX-License-Identifier: MIT
//
// See access_stop.h.
#include "conformance/stage/access_stop.h"

#include <cstddef>
#include <utility>

namespace kmes::conformance {

void AccessStop::begin(std::uint64_t nth) {
    state_ = State::counting;
    nth_ = nth;
    done_ = 0;
    accesses_.clear();
    released_ = std::exchange(held_, {});
}

void AccessStop::end() {
    state_ = State::off;
    released_ = std::exchange(held_, {});
}

bool AccessStop::hold_if_due(const GuardHit& hit, std::uint32_t cpu) {
    if (state_ == State::counting && done_ + 1 == nth_) {
        state_ = State::stopped;
        record(hit, cpu, std::nullopt);
    }
    if (!is_stopped()) return false;
    held_.push_back(hit.tid);
    return true;
}

void AccessStop::note_done(const GuardHit& hit, std::uint32_t cpu, GuardStep step) {
    if (state_ != State::counting) return;
    ++done_;
    record(hit, cpu, std::move(step));
}

std::vector<AccessStop::Access> AccessStop::take_accesses() {
    return std::exchange(accesses_, {});
}

std::vector<pid_t> AccessStop::take_released() {
    return std::exchange(released_, {});
}

void AccessStop::record(const GuardHit& hit, std::uint32_t cpu, std::optional<GuardStep> step) {
    constexpr std::size_t kAccessesKept = 64;
    if (accesses_.size() < kAccessesKept) accesses_.push_back({hit, cpu, std::move(step)});
}

}  // namespace kmes::conformance
