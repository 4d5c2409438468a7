// SPDX-License-Identifier: MIT
//
// See sleep_watch.h.
#include "conformance/play/sleep_watch.h"

#include <set>
#include <string>

#include "conformance/oracle/layout.h"
#include "conformance/play/writer_hold.h"

namespace kmes::conformance {

namespace {

// Watches from its creation to its end.
class SleepWatch {
  public:
    // Guards the metadata page and calls `act` at the k-th access. Releases a page that is loaded
    // again and again in a spin. k = 0: only watches.
    SleepWatch(Stage& stage, const SleepBlame& blame, std::uint64_t k,
               const std::function<void(pid_t)>& act)
        : stage_(stage), blame_(blame) {
        stage.hooks().set_on_wait(
            [this](const FutexWait& wait, std::uint32_t cpu) { check(wait, cpu); });
        stage.guards().guard(0, 0, 1, [this, k, act](const GuardHit& hit) {
            if (hit.place.offset_bytes == kWritePosOffset) loaders_.insert(hit.tid);
            if (++accesses_ == k) act(hit.tid);
            return accesses_ > k + kAccessesAtMost ? AtGuard::release : AtGuard::step;
        });
    }
    ~SleepWatch() { stage_.hooks().set_on_wait(nullptr); }
    SleepWatch(const SleepWatch&) = delete;
    SleepWatch& operator=(const SleepWatch&) = delete;

    bool has_loaded(pid_t thread) const { return loaders_.contains(thread); }
    std::uint64_t accesses() const { return accesses_; }

  private:
    static constexpr std::uint64_t kAccessesAtMost = 200;

    // If two threads load write_pos, one may sleep while the other still works.
    void check(const FutexWait& wait, std::uint32_t cpu) {
        if (has_blamed_ || cpu != 0 || loaders_ != std::set<pid_t>{wait.tid}) return;
        if (!is_long(wait) || !sleeps_on_undelivered(stage_, wait)) return;
        has_blamed_ = true;
        stage_.findings().blame(blame_.clause, std::string(blame_.message));
    }

    Stage& stage_;
    SleepBlame blame_;
    std::set<pid_t> loaders_;
    std::uint64_t accesses_ = 0;
    bool has_blamed_ = false;
};

}  // namespace

PlayAt at_access_before_a_sleep(const SleepBlame& blame) {
    return [blame](Stage& stage, std::uint64_t number, const std::function<void()>& wake,
                   const std::function<void(pid_t)>& act) {
        SleepWatch watch(stage, blame, number, act);
        wake();
        stage.wait_asleep();
        stage.guards().release();
        return watch.accesses() >= number;
    };
}

PlayAt at_write_before_a_sleep(const SleepBlame& blame) {
    return [blame](Stage& stage, std::uint64_t number, const std::function<void()>& wake,
                   const std::function<void(pid_t)>& act) {
        SleepWatch watch(stage, blame, 0, nullptr);
        WriterHold hold(stage, [&watch](pid_t thread) { return watch.has_loaded(thread); });
        wake();
        const bool is_held = hold.wait_held(number);
        if (is_held) act(hold.thread());
        stage.wait_asleep();
        stage.guards().release();
        return is_held;
    };
}

}  // namespace kmes::conformance
