// SPDX-License-Identifier: MIT
//
// Futex calls of the testee on ring words: which word, which value, how long, private or shared
// (5.1.8.2 step 5, E2, E17). Knows the calls' layouts and the table of mappings.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/interest.h"
#include "conformance/tracer/memory.h"

namespace kmes::conformance {
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

std::optional<FutexWord> Tracer::Engine::futex_word(uint64_t address, uint32_t expected,
                                                    bool is_private) {
    const auto place = place_of(address);
    if (!place) return std::nullopt;
    FutexWord word;
    word.place = *place;
    word.address = address;
    word.value_expected = expected;
    word.is_private = is_private;
    BufferAccess access{*place, sizeof(uint32_t), true, false};
    word.value_there = static_cast<uint32_t>(buffer_value(access));
    return word;
}

std::optional<FutexWait> Tracer::Engine::parse_wait(pid_t tid, long number,
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
        const auto word = futex_word(arguments[0], value, (operation & FUTEX_PRIVATE_FLAG) != 0);
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
        auto word = futex_word(arguments[0], value, (flags & kPrivate2) != 0);
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
            auto word = futex_word(entry.address, static_cast<uint32_t>(entry.value),
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

std::optional<FutexOther> Tracer::Engine::parse_other(pid_t tid, long number,
                                                      const uint64_t (&arguments)[6]) {
    if (number != SYS_futex && number != kFutexWakeCall) return std::nullopt;
    const auto place = place_of(arguments[0]);
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

bool Tracer::Engine::watch_futex(Thread& thread, const user_regs_struct& registers) {
    const auto number = call_number_of(registers);
    uint64_t arguments[6];
    arguments_of(registers, arguments);
    if (thread.wait) {
        const ActiveWait& old = *thread.wait;
        const bool is_same =
            number == old.number && std::equal(arguments, arguments + 6, old.arguments);
        if (number == SYS_restart_syscall || is_same) {
            // The kernel restarts the interrupted wait: it has been reported already.
            thread.wait->interrupted = false;
            return true;
        }
        // A handler left the call without returning to it.
        end_futex_wait(thread, -EINTR);
    }
    if (auto wait = parse_wait(thread.tid, number, arguments)) {
        wait->wait_id = next_wait_id_++;
        ActiveWait active;
        active.report = *wait;
        active.number = number;
        active.resume_address = registers.rip;
        std::copy(std::begin(arguments), std::end(arguments), std::begin(active.arguments));
        thread.wait = std::move(active);
        go_apart();
        push(thread, std::move(*wait));
        return true;
    }
    if (auto other = parse_other(thread.tid, number, arguments)) {
        push(thread, std::move(*other));
        return true;
    }
    return false;
}

void Tracer::Engine::end_futex_wait(Thread& thread, int64_t result) {
    if (!thread.wait) return;
    push(thread, FutexWaitEnd{thread.tid, thread.wait->report.wait_id, result});
    thread.wait.reset();
}

void Tracer::Engine::drop_futex_wait(Thread& thread) {
    if (!thread.wait) return;
    push(FutexWaitEnd{thread.tid, thread.wait->report.wait_id, 0, true});
    thread.wait.reset();
}

}  // namespace kmes::conformance
