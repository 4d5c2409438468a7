// SPDX-License-Identifier: MIT
//
// See idle_watch.h.
#include "conformance/stage/idle_watch.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "conformance/stage/stage_parts.h"

namespace kmes::conformance {

namespace {

using std::chrono::milliseconds;

// Between two looks at the threads: no verdict, only a saving of looks.
constexpr milliseconds kLookEvery{15};
constexpr unsigned kLooks = 20;
// A thread whose last wait with a limit began no longer ago comes and goes between such waits.
constexpr milliseconds kNap{1000};

}  // namespace

bool IdleWatch::idles(const StageParts& parts, milliseconds long_time) {
    Tracer& tracer = parts.testee.tracer();
    const std::size_t attaches = parts.testee.attaches().size();
    const TimePoint now = Clock::now();
    if (std::exchange(since_, parts.clock.last_work()) != parts.clock.last_work()) {
        looks_ = calm_looks_ = 0;
        threads_.clear();
        begin_ = now;
        attaches_ = attaches;
    }
    if (now - looked_at_ < kLookEvery) return false;
    looked_at_ = now;
    // A runtime begins threads at any time.
    for (const pid_t tid : tracer.testee_threads()) {
        if (!threads_.contains(tid))
            threads_.emplace(tid, Since{now, processor_time_of(tid), 0, 0});
    }
    const Clock::duration recent = scaled(kNap, parts.settings.timeout_scale);
    const Inspection inspection = tracer.inspect();
    for (const ThreadState& thread : inspection.threads) {
        const auto from = threads_.find(thread.tid);
        if (from == threads_.end()) continue;
        ++from->second.looks;
        from->second.blocked_looks += is_out_of_the_way(thread) ? 1 : 0;
    }
    const auto is_calm = [&](const ThreadState& thread) {
        const std::optional<TimePoint> nap = parts.wait_log.last_nap(thread.tid);
        return is_out_of_the_way(thread) || (nap && now - *nap <= recent) ||
               hardly_runs(thread.tid, attaches);
    };
    const bool all_calm =
        !inspection.threads.empty() &&
        std::all_of(inspection.threads.begin(), inspection.threads.end(), is_calm);
    ++looks_;
    calm_looks_ += all_calm ? 1 : 0;
    return all_calm && looks_ > kLooks && calm_looks_ * 10 > looks_ * 8 &&
           now - parts.clock.last_work() > long_time;
}

// Since nothing has come of the testee any more. A thread that waits elsewhere than on a ring word,
// and is interrupted there by timers, or works a little every few milliseconds (a collector of
// garbage), is never found blocked on a busy machine. Of the time in which it had no processor to
// wait for, it ran in a small part; one that goes round and round runs in all of it.
// (A thread that attaches all the time is stopped by the tracer for most of it, and on a busy
// machine it waits for that, too: it must run even less, and be found blocked now and then.)
bool IdleWatch::hardly_runs(pid_t tid, std::size_t attaches_now) const {
    constexpr int kPart = 4;
    constexpr int kSmallPart = 20;
    constexpr unsigned kBlockedAtOneOf = 5;
    constexpr milliseconds kOften{20};
    const auto from = threads_.find(tid);
    if (from == threads_.end()) return false;
    const Clock::duration all = Clock::now() - from->second.at;
    const ProcessorTime now = processor_time_of(tid);
    const Clock::duration had = now.had - from->second.time.had;
    const Clock::duration waited = now.waited_for - from->second.time.waited_for;
    if (now.had == Clock::duration{}) return false;
    const auto attaches = static_cast<std::int64_t>(attaches_now - attaches_);
    if (attaches * kOften > Clock::now() - begin_)
        return had * kSmallPart < all && (had + waited) * 2 < all &&
               from->second.blocked_looks * kBlockedAtOneOf >= from->second.looks;
    return had * kPart < all - waited;
}

}  // namespace kmes::conformance
