// SPDX-License-Identifier: MIT
//
// C++20: a coroutine for each CPU, all on one thread. A coroutine that finds nothing suspends and
// gives the scheduler the counter that it read; the scheduler sleeps for all of them in
// futex_waitv.

#include <linux/futex.h>

#include <atomic>
#include <coroutine>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "../c/contract.h"

namespace {

struct Sleeper {
    std::coroutine_handle<> who;
    unsigned char* ring;
    uint32_t seen;
};

std::deque<std::coroutine_handle<>> ready;
std::vector<Sleeper> asleep;

struct Task {
    struct promise_type {
        Task get_return_object() { return {}; }
        std::suspend_always initial_suspend() {
            ready.push_back(std::coroutine_handle<promise_type>::from_promise(*this));
            return {};
        }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
};

struct Yield {
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> handle) const { ready.push_back(handle); }
    void await_resume() const {}
};

struct Sleep {
    unsigned char* ring;
    uint32_t seen;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> handle) const {
        asleep.push_back({handle, ring, seen});
    }
    void await_resume() const {}
};

class Ring {
  public:
    Ring(int cpu, int cpus) {
        std::vector<int> fds(static_cast<size_t>(cpus));
        attach_again(fds.data(), cpus, &capacity_);
        for (int i = 0; i < cpus; ++i) {
            if (i != cpu) close(fds[static_cast<size_t>(i)]);
        }
        fd_ = fds[static_cast<size_t>(cpu)];
        base = map_ring(fd_, capacity_);
        refusal = refusal_of(base, capacity_);
        if (refusal != nullptr) return;
        generation = load(AT_GENERATION);
        position = load(AT_TAIL_POS);
    }
    ~Ring() {
        unmap_ring(base, capacity_);
        close(fd_);
    }
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    uint64_t load(int at) const {
        return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(base + at)).load();
    }
    bool is_retired() const { return load(AT_GENERATION) != generation; }
    bool is_empty() const { return position >= load(AT_WRITE_POS); }

    // The next event, if there is one. Sets `*corrupt` if the bytes there cannot be an event.
    std::optional<std::vector<unsigned char>> take(shape* shape, bool* corrupt) {
        for (;;) {
            const uint64_t end = load(AT_WRITE_POS);
            if (position >= end) return std::nullopt;
            const uint64_t tail = load(AT_TAIL_POS);
            if (tail > position) {
                position = tail;
                continue;
            }
            const uint64_t room = room_within(end - position, capacity_);
            const unsigned char* at = base + METADATA_BYTES + (position & (capacity_ - 1));
            const bool fits = shape_of(at, room, shape);
            std::vector<unsigned char> copy;
            if (fits) copy.assign(at, at + shape->event_size);
            std::atomic_thread_fence(std::memory_order_acquire);
            const uint64_t now = load(AT_TAIL_POS);
            if (now > position) {
                position = now;
                continue;
            }
            *corrupt = !fits;
            if (fits) position += shape->event_size;
            return copy;
        }
    }

    unsigned char* base = nullptr;
    const char* refusal = nullptr;
    uint64_t generation = 0;
    uint64_t position = 0;

  private:
    int fd_ = -1;
    uint64_t capacity_ = 0;
};

constexpr int kBudget = 16;
report records;
int running = 0;

// Delivers up to kBudget events. Returns false when the CPU has ended.
bool deliver_some(int cpu, Ring& ring, uint64_t& last, int* left) {
    shape found{};
    bool corrupt = false;
    for (; *left > 0; --*left) {
        const auto event = ring.take(&found, &corrupt);
        if (!event) return true;
        if (corrupt) {
            report_refusal(&records, cpu, "corrupt content");
            return false;
        }
        if (found.sequence <= last) continue;
        if (last != 0 && found.sequence != last + 1)
            report_line(&records, 'L', cpu, found.sequence - last - 1);
        last = found.sequence;
        report_event(&records, cpu, event->data(), &found);
        if (is_the_end(event->data(), &found)) return false;
    }
    return true;
}

Task consume(int cpu, int cpus) {
    auto ring = std::make_unique<Ring>(cpu, cpus);
    uint64_t last = 0;
    bool goes_on = ring->refusal == nullptr;
    if (!goes_on) report_refusal(&records, cpu, ring->refusal);
    while (goes_on) {
        const bool retired = ring->is_retired();
        int left = kBudget;
        goes_on = deliver_some(cpu, *ring, last, &left);
        if (!goes_on) break;
        if (left == 0) {
            co_await Yield{};
            continue;
        }
        if (retired) {
            ring.reset();
            ring = std::make_unique<Ring>(cpu, cpus);
            goes_on = ring->refusal == nullptr;
            if (goes_on) {
                report_line(&records, 'G', cpu, ring->generation);
            } else {
                report_refusal(&records, cpu, ring->refusal);
            }
            continue;
        }
        auto& counter = *reinterpret_cast<uint32_t*>(ring->base + AT_FUTEX_COUNTER);
        std::atomic_ref<uint8_t> flag(ring->base[AT_NEED_WAKE]);
        const uint32_t seen = std::atomic_ref(counter).load(std::memory_order_acquire);
        flag.exchange(1);
        if (ring->is_empty() && !ring->is_retired()) co_await Sleep{ring->base, seen};
        flag.store(0, std::memory_order_relaxed);
    }
    --running;
}

// A coroutine whose counter has moved is ready; if none has, the thread sleeps until one does.
void sleep_for_all() {
    std::vector<futex_waitv> waits;
    for (const Sleeper& sleeper : asleep) {
        futex_waitv wait{};
        wait.val = sleeper.seen;
        wait.uaddr = reinterpret_cast<uint64_t>(sleeper.ring + AT_FUTEX_COUNTER);
        wait.flags = FUTEX_32;
        waits.push_back(wait);
    }
    syscall(SYS_futex_waitv, waits.data(), waits.size(), 0, nullptr, 0);
    for (const Sleeper& sleeper : asleep) ready.push_back(sleeper.who);
    asleep.clear();
}

}  // namespace

int main() {
    const int cpus = count_cpus();
    running = cpus;
    for (int i = 0; i < cpus; ++i) consume(i, cpus);
    while (running > 0) {
        if (ready.empty()) {
            report_flush(&records);
            sleep_for_all();
        }
        const auto next = ready.front();
        ready.pop_front();
        next.resume();
    }
    report_flush(&records);
    return 0;
}
