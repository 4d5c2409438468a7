// SPDX-License-Identifier: MIT
//
// See patience.h.

#include "conformance/tracer/patience.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <string>

#include "conformance/tracer/proc.h"

namespace kmes::conformance {
namespace {

constexpr auto kLongestTurn = std::chrono::milliseconds(500);
// The number of checks within the limit of a long wait.
constexpr int kChecks = 10;
// A wait that is over sooner reads no file of /proc.
constexpr auto kShortWait = std::chrono::milliseconds(1);
// A wait ends after this many times its limit, whatever the machine does.
constexpr int kMostLimits = 10;

}  // namespace

// The second number of schedstat grows when a thread gets the processor that it waited for. If the
// kernel keeps no count, there are zeros, or no file.
ProcessorTime processor_time_of(pid_t tid) {
    const auto content = tracing::read_small_file("/proc/" + std::to_string(tid) + "/schedstat");
    uint64_t had = 0;
    uint64_t waited_for = 0;
    if (!content || sscanf(content->c_str(), "%" SCNu64 " %" SCNu64, &had, &waited_for) != 2)
        return {};
    return {std::chrono::nanoseconds(had), std::chrono::nanoseconds(waited_for)};
}

void Patience::restart() {
    begin_ = Clock::now();
    is_short_ = true;
}

void Patience::begin_to_count(TimePoint now) {
    is_short_ = false;
    begin_ = asked_ = now;
    next_check_ = now + limit_ / kChecks;
    lost_ = {};
    times_.clear();
    times_[::gettid()] = processor_time_of(::gettid());
}

bool Patience::check(const std::vector<pid_t>& tids) {
    Clock::duration most{};
    bool is_starving = false;
    for (const pid_t tid : tids) {
        const auto before = times_.find(tid);
        const ProcessorTime now = processor_time_of(tid);
        if (before != times_.end()) {
            most = std::max(most, now.waited_for - before->second.waited_for);
            const auto status = tracing::read_status(tid);
            const bool wants_to_run = status && (status->state == 'R' || status->state == 'D');
            is_starving = is_starving || (wants_to_run && now.had == before->second.had);
        }
        times_[tid] = now;
    }
    // A testee that is stopped at each call also waits while the runner waits for a processor.
    const ProcessorTime runner = processor_time_of(::gettid());
    lost_ += most + (runner.waited_for - times_[::gettid()].waited_for);
    times_[::gettid()] = runner;
    return is_starving;
}

bool Patience::is_over(const std::vector<pid_t>& tids) {
    const TimePoint now = Clock::now();
    if (is_short_) {
        if (now - begin_ >= kShortWait) begin_to_count(now);
        return false;
    }
    if (now - asked_ > kLongestTurn) lost_ += now - asked_ - kLongestTurn;
    asked_ = now;
    if (now < next_check_) return false;
    next_check_ = now + limit_ / kChecks;
    const bool is_starving = check(tids);
    if (now - begin_ >= kMostLimits * limit_) return true;
    return !is_starving && now - begin_ - lost_ >= limit_;
}

}  // namespace kmes::conformance
