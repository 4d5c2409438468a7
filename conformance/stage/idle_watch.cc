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

// The interval of the checks. No verdict depends on it: it only saves checks.
constexpr milliseconds kCheckInterval{15};
constexpr unsigned kLeastChecks = 20;
// A thread whose last wait with a limit began no longer ago repeats such waits.
constexpr milliseconds kNap{1000};

}  // namespace

bool IdleWatch::check(const StageParts& parts, milliseconds long_time) {
    Tracer& tracer = parts.testee.tracer();
    const std::size_t attaches = parts.testee.attaches().size();
    const TimePoint now = Clock::now();
    if (std::exchange(since_, parts.clock.last_work()) != parts.clock.last_work()) {
        checks_ = calm_checks_ = 0;
        threads_.clear();
        begin_ = now;
        attaches_ = attaches;
    }
    if (now - checked_at_ < kCheckInterval) return false;
    checked_at_ = now;
    // A runtime may start threads at any time.
    for (const pid_t tid : tracer.testee_threads()) {
        if (!threads_.contains(tid))
            threads_.emplace(tid, Since{now, processor_time_of(tid), 0, 0});
    }
    const Clock::duration recent = scaled(kNap, parts.settings.timeout_scale);
    const Inspection inspection = tracer.inspect();
    for (const ThreadState& thread : inspection.threads) {
        const auto from = threads_.find(thread.tid);
        if (from == threads_.end()) continue;
        ++from->second.checks;
        from->second.blocked_checks += is_out_of_the_way(thread) ? 1 : 0;
    }
    const auto is_calm = [&](const ThreadState& thread) {
        const std::optional<TimePoint> nap = parts.wait_log.last_nap(thread.tid);
        return is_out_of_the_way(thread) || (nap && now - *nap <= recent) ||
               is_mostly_idle(thread.tid, attaches);
    };
    const bool all_calm =
        !inspection.threads.empty() &&
        std::all_of(inspection.threads.begin(), inspection.threads.end(), is_calm);
    ++checks_;
    calm_checks_ += all_calm ? 1 : 0;
    return all_calm && checks_ > kLeastChecks && calm_checks_ * 10 > checks_ * 8 &&
           now - parts.clock.last_work() > long_time;
}

// True if the thread ran for a small part of the time since the last work of the testee. On a busy
// machine no check may find such a thread blocked. Examples are a thread that timers interrupt in a
// wait on another word, and a garbage collector that works every few milliseconds. Time in which
// the thread waited for a processor does not count. A thread that spins runs all of the time.
// The tracer stops a thread that attaches all the time for most of the time. On a busy machine the
// thread waits for that too. Such a thread must run even less, and some checks must find it
// blocked.
bool IdleWatch::is_mostly_idle(pid_t tid, std::size_t attaches_now) const {
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
               from->second.blocked_checks * kBlockedAtOneOf >= from->second.checks;
    return had * kPart < all - waited;
}

}  // namespace kmes::conformance
