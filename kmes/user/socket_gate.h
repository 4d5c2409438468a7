// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The access of a socket's threads to their producer. A thread that a client stalls may outlive the
// producer. It holds this gate, and enters it before each use.
#ifndef KMES_USER_SOCKET_GATE_H
#define KMES_USER_SOCKET_GATE_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace kmes {

class Producer;

class ProducerGate {
  public:
    explicit ProducerGate(Producer* producer) : producer_(producer) {}
    ProducerGate(const ProducerGate&) = delete;
    ProducerGate& operator=(const ProducerGate&) = delete;

    // False: the gate is closed, and the producer may be gone. After true the producer exists until
    // leave().
    bool enter() {
        std::lock_guard lock(mutex_);

        if (is_closed_) return false;
        inside_++;
        return true;
    }

    void leave() {
        std::lock_guard lock(mutex_);

        if (--inside_ == 0) all_left_.notify_all();
    }

    // Admits no thread any more, and waits until all have left. After `grace_ms`, is_cancelled()
    // makes a thread end that still fetches the events of a client.
    void close(uint64_t grace_ms) {
        std::unique_lock lock(mutex_);
        auto have_all_left = [this] { return inside_ == 0; };

        is_closed_ = true;
        if (all_left_.wait_for(lock, std::chrono::milliseconds(grace_ms), have_all_left)) return;
        is_cancelled_.store(true, std::memory_order_relaxed);
        all_left_.wait(lock, have_all_left);
    }

    bool is_closed() const {
        std::lock_guard lock(mutex_);

        return is_closed_;
    }
    bool is_cancelled() const { return is_cancelled_.load(std::memory_order_relaxed); }
    Producer* producer() const { return producer_; }

  private:
    Producer* const producer_;
    mutable std::mutex mutex_;
    std::condition_variable all_left_;
    unsigned inside_ = 0;
    bool is_closed_ = false;
    std::atomic<bool> is_cancelled_{false};
};

}  // namespace kmes

#endif
