// SPDX-License-Identifier: MIT
//
// The thread that watches the accesses. It counts its own turns, so time in which the machine stood
// still does not count. An access costs two stores.

#include "conformance/tracer/limited_access.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "conformance/tracer/proc.h"

namespace kmes::conformance::tracing {
namespace {

constexpr std::chrono::milliseconds kTurn{250};
constexpr uint64_t kMostTurns = kAccessLimit / kTurn;

// The accesses of one thread.
struct Accesses {
    Accesses();
    ~Accesses();
    Accesses(const Accesses&) = delete;
    Accesses& operator=(const Accesses&) = delete;

    const pid_t thread = gettid();
    std::atomic<uint64_t> count{0};  // odd: during an access
    std::atomic<bool> has_exceeded{false};
    // Of the watch: the number of its turns in which the same access was seen.
    uint64_t seen_count = 0;
    uint64_t turns = 0;
};

class Watch {
  public:
    // Never destroyed: its thread has no end, and others can outlive main().
    static Watch& get() {
        static Watch* const watch = new Watch;
        return *watch;
    }
    void add(Accesses& accesses) {
        const std::scoped_lock lock(mutex_);
        all_.push_back(&accesses);
    }
    void remove(Accesses& accesses) {
        const std::scoped_lock lock(mutex_);
        std::erase(all_, &accesses);
    }

  private:
    Watch() {
        // Signals are for the other threads.
        sigset_t every;
        sigset_t before;
        sigfillset(&every);
        pthread_sigmask(SIG_SETMASK, &every, &before);
        std::thread([this] {
            for (;;) {
                std::this_thread::sleep_for(kTurn);
                check_all();
            }
        }).detach();
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    void check_all() {
        const std::scoped_lock lock(mutex_);
        for (Accesses* accesses : all_) check(*accesses);
    }

    static void check(Accesses& accesses) {
        const uint64_t count = accesses.count.load(std::memory_order_relaxed);
        const bool is_same = count % 2 == 1 && count == accesses.seen_count;
        accesses.seen_count = count;
        accesses.turns = is_same ? accesses.turns + 1 : 0;
        if (accesses.turns < kMostTurns) return;
        accesses.turns = 0;
        accesses.has_exceeded = true;
        // Any of them can have the userfaultfd; the access ends when all copies of it are closed.
        for (const pid_t process : processes_traced_by(accesses.thread)) kill(process, SIGKILL);
    }

    std::mutex mutex_;
    std::vector<Accesses*> all_;
};

Accesses::Accesses() {
    Watch::get().add(*this);
}

Accesses::~Accesses() {
    Watch::get().remove(*this);
}

Accesses& accesses_of_this_thread() {
    thread_local Accesses accesses;
    return accesses;
}

void count_one() {
    std::atomic<uint64_t>& count = accesses_of_this_thread().count;
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

LimitedAccess::LimitedAccess() {
    count_one();
}

LimitedAccess::~LimitedAccess() {
    count_one();
}

bool take_exceeded_limit() {
    return accesses_of_this_thread().has_exceeded.exchange(false);
}

}  // namespace kmes::conformance::tracing
