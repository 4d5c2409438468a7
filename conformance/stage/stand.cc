// SPDX-License-Identifier: MIT
//
// See stand.h.
#include "conformance/stage/stand.h"

#include <cstddef>
#include <utility>

namespace kmes::conformance {

void Stand::begin(std::uint64_t nth) {
    state_ = State::on_its_way;
    nth_ = nth;
    done_ = 0;
    accesses_.clear();
    released_ = std::exchange(held_, {});
}

void Stand::end() {
    state_ = State::nowhere;
    released_ = std::exchange(held_, {});
}

bool Stand::holds(const GuardHit& hit, std::uint32_t cpu) {
    if (state_ == State::on_its_way && done_ + 1 == nth_) {
        state_ = State::standing;
        record(hit, cpu, std::nullopt);
    }
    if (!is_standing()) return false;
    held_.push_back(hit.tid);
    return true;
}

void Stand::note_done(const GuardHit& hit, std::uint32_t cpu, GuardStep step) {
    if (state_ != State::on_its_way) return;
    ++done_;
    record(hit, cpu, std::move(step));
}

std::vector<Stand::Access> Stand::take_accesses() {
    return std::exchange(accesses_, {});
}

std::vector<pid_t> Stand::take_released() {
    return std::exchange(released_, {});
}

void Stand::record(const GuardHit& hit, std::uint32_t cpu, std::optional<GuardStep> step) {
    constexpr std::size_t kAccessesKept = 64;
    if (accesses_.size() < kAccessesKept) accesses_.push_back({hit, cpu, std::move(step)});
}

}  // namespace kmes::conformance
