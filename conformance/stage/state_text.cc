// SPDX-License-Identifier: MIT
//
// See state_text.h.
#include "conformance/stage/state_text.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace kmes::conformance {

namespace {

constexpr long kFutexWaitCall = 455;  // newer than the system's headers

constexpr std::int64_t kNanosecondsInSecond = 1'000'000'000;
constexpr std::int64_t kFarSeconds = 60;

std::string clock_text(int clock) {
    return clock == CLOCK_REALTIME    ? "CLOCK_REALTIME"
           : clock == CLOCK_MONOTONIC ? "CLOCK_MONOTONIC"
                                      : fmt::format("clock {}", clock);
}

std::string activity_text(const ThreadState& thread) {
    switch (thread.activity) {
        case Activity::kRunning:
            return "running";
        case Activity::kHeld:
            return "held by the suite";
        case Activity::kEnded:
            return "ending";
        case Activity::kBlocked:
            break;
    }
    std::string text = "blocked in " + call_text(thread.call_number);
    for (const FutexWord& word : thread.words)
        text +=
            fmt::format(", on a ring word at offset {} ({} futex, expects {}, current value {})",
                        word.place.offset_bytes, word.is_private ? "private" : "shared",
                        word.value_expected, word.value_there);
    if (const auto seconds = far_limit_seconds(thread))
        text += fmt::format(", with a time limit {} s ahead{}", *seconds,
                            thread.limit == TimeLimit::kAbsolute
                                ? fmt::format(" (absolute, by {})", clock_text(thread.limit_clock))
                                : "");
    else if (thread.limit != TimeLimit::kNone)
        text += ", with a time limit";
    return text;
}

// "12", "12 and 13", "12, 13 and 14", "12, 13 and 62 others".
std::string some_of(const std::vector<pid_t>& tids) {
    constexpr std::size_t kAtMost = 3;
    std::string text;
    const std::size_t named = tids.size() <= kAtMost ? tids.size() : kAtMost - 1;
    for (std::size_t i = 0; i < named; ++i) {
        if (i > 0) text += i + 1 == tids.size() ? " and " : ", ";
        text += std::to_string(tids[i]);
    }
    if (named < tids.size()) text += fmt::format(" and {} others", tids.size() - named);
    return text;
}

}  // namespace

std::optional<std::int64_t> far_limit_seconds(const ThreadState& thread) {
    if (thread.activity != Activity::kBlocked || thread.limit == TimeLimit::kNone)
        return std::nullopt;
    timespec now{};
    if (thread.limit == TimeLimit::kAbsolute) clock_gettime(thread.limit_clock, &now);
    const std::int64_t seconds = thread.limit_ns / kNanosecondsInSecond - now.tv_sec;
    return seconds > kFarSeconds ? std::optional(seconds) : std::nullopt;
}

std::string call_text(long number) {
    struct Call {
        long number;
        std::string_view name;
    };
    static constexpr Call kCalls[] = {
        {SYS_futex, "futex"},
        {SYS_futex_waitv, "futex_waitv"},
        {kFutexWaitCall, "futex_wait"},
        {SYS_read, "read"},
        {SYS_write, "write"},
        {SYS_writev, "writev"},
        {SYS_poll, "poll"},
        {SYS_ppoll, "ppoll"},
        {SYS_select, "select"},
        {SYS_pselect6, "pselect6"},
        {SYS_epoll_wait, "epoll_wait"},
        {SYS_epoll_pwait, "epoll_pwait"},
        {SYS_nanosleep, "nanosleep"},
        {SYS_clock_nanosleep, "clock_nanosleep"},
        {SYS_wait4, "wait4"},
        {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
        {SYS_pause, "pause"},
        {SYS_io_uring_enter, "io_uring_enter"},
    };
    for (const Call& call : kCalls) {
        if (call.number == number) return fmt::format("system call {} ({})", number, call.name);
    }
    return number < 0 ? "the kernel" : fmt::format("system call {}", number);
}

std::string ranges_text(const std::vector<std::uint32_t>& numbers) {
    std::string text;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t last = i;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
        text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
        if (last > i) text += fmt::format("{}{}", last == i + 1 ? ", " : " to ", numbers[last]);
        i = last + 1;
    }
    return text;
}

std::string describe_threads(const Inspection& inspection) {
    constexpr std::size_t kKindsAtMost = 6;
    std::string text = fmt::format("{} thread{}", inspection.threads.size(),
                                   inspection.threads.size() == 1 ? "" : "s");
    // Groups the threads by state, in the order of the first thread of each state.
    std::vector<std::pair<std::string, std::vector<pid_t>>> kinds;
    for (const ThreadState& thread : inspection.threads) {
        const std::string activity = activity_text(thread);
        const auto same = std::find_if(kinds.begin(), kinds.end(),
                                       [&](const auto& kind) { return kind.first == activity; });
        if (same != kinds.end())
            same->second.push_back(thread.tid);
        else
            kinds.push_back({activity, {thread.tid}});
    }
    for (std::size_t i = 0; i < kinds.size() && i < kKindsAtMost; ++i)
        text += fmt::format("; {} {}", some_of(kinds[i].second), kinds[i].first);
    if (kinds.size() > kKindsAtMost) text += "; the others do the same";
    return text;
}

bool waits_by_io_uring(const Inspection& inspection) {
    return std::any_of(inspection.threads.begin(), inspection.threads.end(),
                       [](const ThreadState& thread) {
                           return thread.activity == Activity::kBlocked &&
                                  thread.call_number == SYS_io_uring_enter;
                       });
}

}  // namespace kmes::conformance
