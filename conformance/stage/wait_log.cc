// SPDX-License-Identifier: MIT
//
// See wait_log.h.
#include "conformance/stage/wait_log.h"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "conformance/oracle/layout.h"

namespace kmes::conformance {

namespace {

using std::chrono::milliseconds;

// Longer than the longest limit of a wait that the contract allows.
constexpr milliseconds kTimedWait{400};
// Long enough for such a wait on each of some CPUs in turn; less than the time to hang.
constexpr milliseconds kLongTimedWait{2000};

// Returns the word of this buffer that `wait` sleeps on.
std::optional<FutexWord> word_in(const FutexWait& wait, BufferId buffer) {
    for (const FutexWord& word : wait.words) {
        if (word.place.buffer == buffer) return word;
    }
    return std::nullopt;
}

}  // namespace

void WaitLog::watch(const Rings& rings) {
    rings_ = &rings;
    sleeps_.assign(rings.cpus(), 0);
    last_sleeper_.assign(rings.cpus(), 0);
    iteration_begun_.assign(rings.cpus(), 0);
}

// -- Reported by the stage -------------------------------------------------------------------

bool WaitLog::enter(const FutexWait& wait) {
    all_.push_back(wait);
    sleep_clock_.enter(wait);
    if (wait.limit == TimeLimit::kNone && !interrupted_.contains(wait.tid)) return false;
    between_waits_ = wait.tid;
    last_nap_[wait.tid] = Clock::now();
    return true;
}

std::optional<std::uint32_t> WaitLog::sleep_on(const FutexWait& wait, const FutexWord& word) {
    const std::optional<BufferIndex> buffer = buffers_.index_of(word.place.buffer);
    if (!buffer) return std::nullopt;
    const std::uint32_t cpu = cpu_of(*buffer);
    ++sleeps_.at(cpu);
    last_sleeper_.at(cpu) = wait.tid;
    waiting_[wait.tid] = Wait{wait, cpu, *buffer, rings_->history().operations()};
    return cpu;
}

std::optional<WaitLog::End> WaitLog::leave(const FutexWaitEnd& end) {
    sleep_clock_.leave(end);
    const auto found = waiting_.find(end.tid);
    if (found == waiting_.end()) return std::nullopt;
    const FutexWait& wait = found->second.wait;
    const bool is_interrupted = end.result == -EINTR;
    interruptions_[end.tid] += is_interrupted;
    if (is_interrupted)
        interrupted_.insert(end.tid);
    else
        interrupted_.erase(end.tid);
    if (is_interrupted || end.result == -ETIMEDOUT) between_waits_ = end.tid;
    for (const FutexWord& word : wait.words) {
        // A thread that ended in its wait begins no iteration.
        if (end.thread_ended) break;
        if (const std::optional<BufferIndex> buffer = buffers_.index_of(word.place.buffer))
            begin_iteration(cpu_of(*buffer));
    }
    return End{wait.limit != TimeLimit::kNone, is_interrupted};
}

void WaitLog::forget(const FutexWaitEnd& end) {
    if (end.result == -EAGAIN) {
        refused_waits_.note(rings_->history().operations());
        refused_last_.insert(end.tid);
    } else {
        refused_last_.erase(end.tid);
    }
    waiting_.erase(end.tid);
}

void WaitLog::begin_iteration(std::uint32_t cpu) {
    iteration_begun_.at(cpu) = rings_->history().operations();
}

// -- The threads that sleep now --------------------------------------------------------------

const WaitLog::Wait* WaitLog::wait_on(std::uint32_t cpu, BufferIndex buffer) const {
    for (const auto& [tid, wait] : waiting_) {
        for (const FutexWord& word : wait.wait.words) {
            const std::optional<BufferIndex> index = buffers_.index_of(word.place.buffer);
            if (index && *index == buffer && cpu_of(*index) == cpu &&
                word.place.offset_bytes == kFutexWordOffset)
                return &wait;
        }
    }
    return nullptr;
}

bool WaitLog::sleeps_without_limit(std::uint32_t cpu) const {
    const Wait* wait = wait_on(cpu, rings_->history().current_buffer(cpu));
    return wait != nullptr && wait->wait.limit == TimeLimit::kNone;
}

bool WaitLog::sleeps_for(std::uint32_t cpu, Clock::duration limit) const {
    const BufferIndex buffer = rings_->history().current_buffer(cpu);
    const Wait* wait = wait_on(cpu, buffer);
    if (wait == nullptr) return false;
    const std::optional<FutexWord> word = word_in(wait->wait, buffers_.id_of(buffer));
    return word && !word->is_private && limit_of(wait->wait).value_or(limit) >= limit;
}

bool WaitLog::asleep(std::uint32_t cpu) const {
    const BufferIndex buffer = rings_->history().current_buffer(cpu);
    if (const Wait* wait = wait_on(cpu, buffer)) {
        const std::optional<FutexWord> word = word_in(wait->wait, buffers_.id_of(buffer));
        return word && word->value_expected == rings_->counters().of(buffer);
    }
    if (!buffers_.has_mapped(buffer)) return false;
    // A thread that has ever waited on this CPU's own word usually waits there again.
    return sleeps_.at(cpu) == 0 ? is_in_timed_wait(buffer) : is_in_timed_wait_elsewhere(cpu);
}

// True if one thread serves several CPUs, and chooses the CPU on which it sleeps with a limit. It
// may return to this CPU late.
bool WaitLog::is_in_timed_wait_elsewhere(std::uint32_t cpu) const {
    const auto found = waiting_.find(last_sleeper_.at(cpu));
    return found != waiting_.end() && found->second.wait.limit != TimeLimit::kNone &&
           found->second.begun_operation >= rings_->history().operations() &&
           clock_.is_still_for(scaled(kLongTimedWait, timeout_scale_));
}

// True if one thread serves several CPUs with a limit (contract): it sleeps on one of the words,
// and then checks all buffers. If another thread has mapped this buffer, the owner of the wait is
// unknown. Then a time without any action decides.
bool WaitLog::is_in_timed_wait(BufferIndex buffer) const {
    const bool long_enough = clock_.is_still_for(scaled(kTimedWait, timeout_scale_));
    return std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& entry) {
        const Wait& wait = entry.second;
        return wait.wait.limit != TimeLimit::kNone &&
               wait.begun_operation >= rings_->history().operations() &&
               (long_enough || buffers_.last_maker_of(buffer) == entry.first);
    });
}

bool WaitLog::proves_idle(std::uint32_t cpu) const {
    const BufferIndex buffer = rings_->history().current_buffer(cpu);
    const Wait* wait = wait_on(cpu, buffer);
    if (!wait || wait->wait.limit != TimeLimit::kNone) return false;
    const std::optional<FutexWord> word = word_in(wait->wait, buffers_.id_of(buffer));
    return word && word->value_expected == rings_->counters().of(buffer) &&
           wait->begun_operation >= rings_->history().operations();
}

const WaitLog::Wait* WaitLog::lone_timed_wait() const {
    constexpr int kHasATimer = 3;
    if (waiting_.size() != 1) return nullptr;
    const auto& [tid, wait] = *waiting_.begin();
    // If other threads have slept too, they are busy now.
    const bool is_only_sleeper =
        std::all_of(last_sleeper_.begin(), last_sleeper_.end(),
                    [tid = tid](pid_t sleeper) { return sleeper == 0 || sleeper == tid; });
    if (!is_only_sleeper) return nullptr;
    const auto interruptions = interruptions_.find(tid);
    const bool has_limit =
        wait.wait.limit != TimeLimit::kNone ||
        (interruptions != interruptions_.end() && interruptions->second >= kHasATimer);
    return has_limit ? &wait : nullptr;
}

// -- All waits so far ------------------------------------------------------------------------

std::optional<TimePoint> WaitLog::last_nap(pid_t thread) const {
    const auto found = last_nap_.find(thread);
    if (found == last_nap_.end()) return std::nullopt;
    return found->second;
}

std::uint64_t WaitLog::refused_waits() const {
    return refused_waits_.count(rings_->history().operations());
}

}  // namespace kmes::conformance
