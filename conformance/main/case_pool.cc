// SPDX-License-Identifier: MIT
//
// See case_pool.h.
#include "conformance/main/case_pool.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "conformance/play/workers.h"

namespace kmes::conformance {
namespace {

// How many cases may begin before the one that the caller waits for. Each waiting outcome keeps
// megabytes of history.
constexpr std::size_t kMostAhead = 32;

class Pool {
  public:
    Pool(const std::vector<const Case*>& cases, unsigned jobs, const CasePoolCalls& calls)
        : cases_(cases), calls_(calls), slots_(cases.size()) {
        const std::vector<int> processors = allowed_processors();
        for (unsigned i = 0; i < jobs; ++i) {
            const int processor = processors.empty() ? -1 : processors[i % processors.size()];
            workers_.emplace_back([this, processor] { work(processor); });
        }
    }

    // Ends the running cases first: an exception of `take` also leads here.
    ~Pool() {
        {
            const std::lock_guard lock(mutex_);
            is_ending_ = true;
        }
        changed_.notify_all();
        for (std::thread& worker : workers_) worker.join();
    }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    void run() {
        for (std::size_t i = 0; i < cases_.size(); ++i) {
            calls_.wait_for(i);
            std::optional<PlayedCase> played = wait_for_case(i);
            if (!played) return take_results_from(i);
            if (!calls_.take(i, std::move(*played))) return;
        }
    }

  private:
    enum class State { waiting, playing, played, cut_short };
    struct Slot {
        State state = State::waiting;
        std::optional<PlayedCase> played;
    };

    bool is_exclusive(std::size_t index) const {
        return cases_[index]->demand == Demand::explored || cases_[index]->demand == Demand::soak;
    }

    // Call both with mutex_ locked.
    bool is_exhausted() const { return is_ending_ || next_ >= cases_.size(); }
    bool may_begin() const {
        if (exclusive_runs_) return false;
        return is_exclusive(next_) ? playing_ == 0 : next_ < awaited_ + kMostAhead;
    }

    void work(int processor) {
        for (;;) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return is_exhausted() || may_begin(); });
            if (is_exhausted()) return;
            if (calls_.is_over()) {
                is_ending_ = true;
                changed_.notify_all();
                return;
            }
            const std::size_t index = next_++;
            Slot& slot = slots_[index];
            slot.state = State::playing;
            ++playing_;
            exclusive_runs_ = is_exclusive(index);
            lock.unlock();
            std::optional<PlayedCase> played = calls_.play(*cases_[index], processor);
            lock.lock();
            slot.state = played ? State::played : State::cut_short;
            slot.played = std::move(played);
            --playing_;
            exclusive_runs_ = false;
            changed_.notify_all();
        }
    }

    // Returns nullopt if the case was cut short or will not begin.
    std::optional<PlayedCase> wait_for_case(std::size_t index) {
        std::unique_lock lock(mutex_);
        awaited_ = index;
        changed_.notify_all();
        Slot& slot = slots_[index];
        changed_.wait(lock, [&] {
            return slot.state == State::played || slot.state == State::cut_short ||
                   (slot.state == State::waiting && is_ending_);
        });
        return std::exchange(slot.played, std::nullopt);
    }

    // After the end of the run: takes the cases that were still running when an earlier case was
    // cut short.
    void take_results_from(std::size_t first) {
        {
            std::unique_lock lock(mutex_);
            is_ending_ = true;
            changed_.notify_all();
            changed_.wait(lock, [this] { return playing_ == 0; });
        }
        for (std::size_t i = first; i < slots_.size(); ++i) {
            if (slots_[i].played && !calls_.take(i, std::move(*slots_[i].played))) return;
        }
    }

    const std::vector<const Case*>& cases_;
    const CasePoolCalls& calls_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Slot> slots_;
    std::size_t next_ = 0;     // the case that begins next
    std::size_t awaited_ = 0;  // the case that the caller's thread waits for
    std::size_t playing_ = 0;
    bool exclusive_runs_ = false;
    bool is_ending_ = false;  // no case begins any more
    std::vector<std::thread> workers_;
};

void play_in_turn(const std::vector<const Case*>& cases, const CasePoolCalls& calls) {
    for (std::size_t i = 0; i < cases.size() && !calls.is_over(); ++i) {
        calls.wait_for(i);
        std::optional<PlayedCase> played = calls.play(*cases[i], -1);
        if (!played || !calls.take(i, std::move(*played))) return;
    }
}

}  // namespace

unsigned default_jobs() {
    return std::clamp<unsigned>(static_cast<unsigned>(allowed_processors().size()), 1, kMostJobs);
}

void play_cases(const std::vector<const Case*>& cases, unsigned jobs, const CasePoolCalls& calls) {
    if (jobs <= 1 || cases.size() <= 1) return play_in_turn(cases, calls);
    const ChildSignalBlocked child_signal;
    Pool(cases, jobs, calls).run();
}

}  // namespace kmes::conformance
