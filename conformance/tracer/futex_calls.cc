// SPDX-License-Identifier: MIT
//
// See futex_calls.h.

#include "conformance/tracer/futex_calls.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "conformance/tracer/memory.h"
#include "conformance/tracer/traced_calls.h"

namespace kmes::conformance::tracing {
namespace {

// struct futex_waitv, and the flags of the futex2 calls. (Newer versions of linux/futex.h name them
// FUTEX2_*.)
constexpr uint32_t kSizeMask = 0x03;
constexpr uint32_t kPrivate2 = 0x80;
constexpr uint64_t kMostWords = 128;

struct WaitvEntry {
    uint64_t value;
    uint64_t address;
    uint32_t flags;
    uint32_t reserved;
};
static_assert(sizeof(WaitvEntry) == 24);

void set_limit(FutexWait& wait, pid_t tid, uint64_t timespec_at, TimeLimit kind, int clock) {
    if (timespec_at == 0) return;
    wait.limit = kind;
    wait.limit_clock = clock;
    if (const auto time = read_value<timespec>(tid, timespec_at)) {
        wait.limit_ns = static_cast<int64_t>(time->tv_sec) * 1'000'000'000 + time->tv_nsec;
    }
}

bool is_wait_operation(int command) {
    return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET ||
           command == FUTEX_WAIT_REQUEUE_PI || command == FUTEX_LOCK_PI ||
           command == FUTEX_LOCK_PI2;
}

}  // namespace

std::optional<FutexWord> FutexCalls::word_at(uint64_t address, uint32_t expected, bool is_private) {
    const auto place = mappings_.place_of(address);
    if (!place) return std::nullopt;
    FutexWord word;
    word.place = *place;
    word.address = address;
    word.value_expected = expected;
    word.is_private = is_private;
    BufferAccess access{*place, sizeof(uint32_t), true, false};
    word.value_there = static_cast<uint32_t>(buffers_.value_of(access));
    return word;
}

std::optional<FutexWait> FutexCalls::read_wait(pid_t tid, long number,
                                               const uint64_t (&arguments)[6]) {
    FutexWait wait;
    wait.tid = tid;
    wait.call_number = number;
    wait.operation = FUTEX_WAIT;
    const auto value = static_cast<uint32_t>(arguments[number == SYS_futex ? 2 : 1]);
    if (number == SYS_futex) {
        const auto operation = static_cast<uint32_t>(arguments[1]);
        wait.operation = static_cast<int>(operation & FUTEX_CMD_MASK);
        if (!is_wait_operation(wait.operation)) return std::nullopt;
        const auto word = word_at(arguments[0], value, (operation & FUTEX_PRIVATE_FLAG) != 0);
        if (!word) return std::nullopt;
        wait.words.push_back(*word);
        const bool is_relative = wait.operation == FUTEX_WAIT;
        const bool is_realtime =
            (operation & FUTEX_CLOCK_REALTIME) != 0 || wait.operation == FUTEX_LOCK_PI;
        set_limit(wait, tid, arguments[3],
                  is_relative ? TimeLimit::kRelative : TimeLimit::kAbsolute,
                  is_realtime && !is_relative ? CLOCK_REALTIME : CLOCK_MONOTONIC);
        if (wait.operation == FUTEX_WAIT_BITSET) wait.bitset = static_cast<uint32_t>(arguments[5]);
    } else if (number == kFutexWaitCall) {
        const auto flags = static_cast<uint32_t>(arguments[3]);
        auto word = word_at(arguments[0], value, (flags & kPrivate2) != 0);
        if (!word) return std::nullopt;
        word->size_bytes = 1u << (flags & kSizeMask);
        wait.words.push_back(*word);
        wait.bitset = static_cast<uint32_t>(arguments[2]);
        set_limit(wait, tid, arguments[4], TimeLimit::kAbsolute, static_cast<int>(arguments[5]));
    } else if (number == SYS_futex_waitv) {
        const uint64_t count = std::min<uint64_t>(static_cast<uint32_t>(arguments[1]), kMostWords);
        std::vector<WaitvEntry> entries(count);
        if (!read_memory(tid, arguments[0], entries.data(), count * sizeof(WaitvEntry)))
            return std::nullopt;
        wait.words_in_call = count;
        for (const WaitvEntry& entry : entries) {
            auto word = word_at(entry.address, static_cast<uint32_t>(entry.value),
                                (entry.flags & kPrivate2) != 0);
            if (!word) continue;
            word->size_bytes = 1u << (entry.flags & kSizeMask);
            wait.words.push_back(*word);
        }
        if (wait.words.empty()) return std::nullopt;
        set_limit(wait, tid, arguments[3], TimeLimit::kAbsolute, static_cast<int>(arguments[4]));
    } else {
        return std::nullopt;
    }
    return wait;
}

std::optional<FutexOther> FutexCalls::read_other(pid_t tid, long number,
                                                 const uint64_t (&arguments)[6]) const {
    if (number != SYS_futex && number != kFutexWakeCall) return std::nullopt;
    const auto place = mappings_.place_of(arguments[0]);
    if (!place) return std::nullopt;
    FutexOther other;
    other.tid = tid;
    other.place = *place;
    if (number == SYS_futex) {
        other.operation = static_cast<int>(static_cast<uint32_t>(arguments[1]) & FUTEX_CMD_MASK);
        other.is_private = (arguments[1] & FUTEX_PRIVATE_FLAG) != 0;
        other.value = static_cast<uint32_t>(arguments[2]);
    } else {
        other.operation = FUTEX_WAKE;
        other.is_private = (arguments[3] & kPrivate2) != 0;
        other.value = static_cast<uint32_t>(arguments[2]);
    }
    return other;
}

}  // namespace kmes::conformance::tracing
