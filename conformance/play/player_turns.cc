// SPDX-License-Identifier: MIT
//
// A player whose moves come by turns (turns.h). Before each access of a thread, and while all
// sleep, it chooses the next actor. See player.h.
#include <algorithm>
#include <chrono>

#include "conformance/play/player.h"

namespace kmes::conformance {

namespace {

// After this many turns of a thread without progress, all threads run freely.
constexpr std::uint64_t kInVainAtMost = 5;
// Consecutive checks, without an access between.
constexpr int kBlockedChecks = 3;
// No verdict depends on it; a running thread makes progress in this time even on a busy machine.
constexpr std::chrono::milliseconds kLongestTurn{1000};

}  // namespace

bool Player::others_can_continue(pid_t thread) const {
    return std::any_of(threads_.begin(), threads_.end(), [&](pid_t other) {
        return other != thread && !stage_.wait_log().is_waiting(other);
    });
}

void Player::yield(pid_t thread, std::uint64_t accesses) {
    const std::uint64_t end = accesses_ + accesses;
    if (thread == 0) return;  // all threads sleep
    stage_.holding().hold_while(
        thread, [this, thread, end] { return accesses_ < end && others_can_continue(thread); });
}

bool Player::perform_next() {
    if (!turns_) {
        std::uint32_t last = 0;
        for (const Move& move : schedule_.moves) last = std::max(last, move.point.phase);
        return phase_ <= last;
    }
    const std::optional<Turns::ProducerAction> chosen = turns_->next();
    if (!chosen) return false;
    AccessPoint point;
    point.phase = phase_;
    point.cpu = chosen->cpu;
    point.kind = PointKind::sleep;
    const Move move{point, chosen->action, chosen->parameter, 0, chosen->written};
    trace_.drawn.push_back(move);
    act_and_record(move, 0);
    return true;
}

// The thread with the highest priority of those that can continue.
std::optional<pid_t> Player::first_at_turn() const {
    std::optional<pid_t> first;
    for (const Turns::Thread& each : turns_->threads()) {
        if (stage_.wait_log().is_waiting(each.tid) || stuck_.contains(each.tid)) continue;
        if (!first || turns_->goes_before(each.tid, *first)) first = each.tid;
    }
    return first;
}

// Returns nothing if the first thread is held in an outer call: it cannot continue before this
// thread has made its access.
std::optional<pid_t> Player::must_yield_to(pid_t thread) const {
    const std::optional<pid_t> first = first_at_turn();
    const bool is_before = first && *first != thread && turns_->goes_before(*first, thread);
    if (!is_before || std::ranges::find(held_, *first) != held_.end()) return std::nullopt;
    return first;
}

void Player::yield_turn(const AccessPoint& point, pid_t thread) {
    const std::uint64_t before = accesses_;
    // The actions meanwhile are recorded after it.
    const std::size_t at = trace_.drawn.size();
    trace_.drawn.push_back({point, Action::yield, 0});
    held_.push_back(thread);
    std::uint64_t seen = accesses_;
    int blocked_checks = 0;
    const auto goes_on = [&] {
        const std::optional<pid_t> first = must_yield_to(thread);
        if (!first) return false;
        const bool moves = accesses_ != seen || !is_blocked(*first);
        seen = accesses_;
        blocked_checks = moves ? 0 : blocked_checks + 1;
        return blocked_checks < kBlockedChecks;
    };
    stage_.holding().hold_while(thread, goes_on, kLongestTurn);
    held_.pop_back();
    trace_.drawn[at].parameter = accesses_ - before;
    const std::optional<pid_t> first = must_yield_to(thread);
    if (!first) return;
    // It waits for something else, perhaps for the held thread.
    stuck_.insert(*first);
    ++turns_without_progress_;
}

// Whether the thread has ended, or sleeps elsewhere than on a ring word.
bool Player::is_blocked(pid_t thread) const {
    for (const ThreadState& each : stage_.testee().tracer().inspect().threads) {
        if (each.tid == thread) return is_out_of_the_way(each);
    }
    return true;
}

void Player::take_turns(const AccessPoint& point, pid_t thread) {
    turns_->add(thread, point.cpu);
    stuck_.erase(thread);
    for (;;) {
        if (const std::optional<Turns::ProducerAction> chosen = turns_->next_before(thread)) {
            const std::uint32_t further =
                (chosen->cpu + scenario_.cpus - point.cpu) % scenario_.cpus;
            const Move move{point, chosen->action, chosen->parameter, further, chosen->written};
            trace_.drawn.push_back(move);
            act_and_record(move, thread);
        } else if (turns_without_progress_ < kInVainAtMost && must_yield_to(thread)) {
            yield_turn(point, thread);
        } else if (!turns_->step(thread)) {
            return;
        }
    }
}

}  // namespace kmes::conformance
