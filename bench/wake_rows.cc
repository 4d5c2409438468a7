// SPDX-License-Identifier: MIT
//
// The cost of waking a sleeping thread, compared with other mechanisms of Linux. Two threads wake
// each other in turn; an operation is one wake, half of a round trip. A second table counts the
// wakes of a reader that sleeps whenever its ring is empty, under three loads.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/mapped_reader.h"
#include "bench/rows.h"
#include "kmes/user/producer.h"

namespace kmes::bench {
namespace {

constexpr std::uint64_t kSampleWakes = 2000;

// One direction between the threads: one calls wake(), the other wait().
class Channel {
  public:
    virtual ~Channel() = default;
    virtual void wake() = 0;
    virtual void wait() = 0;
};

class EventFd : public Channel {
  public:
    EventFd() : fd_(eventfd(0, EFD_CLOEXEC)) { must(fd_ >= 0, "eventfd"); }
    ~EventFd() override { close(fd_); }
    EventFd(const EventFd&) = delete;
    EventFd& operator=(const EventFd&) = delete;

    void wake() override {
        const std::uint64_t one = 1;

        must(write(fd_, &one, sizeof(one)) == sizeof(one), "write");
    }
    void wait() override {
        std::uint64_t count;

        must(read(fd_, &count, sizeof(count)) == sizeof(count), "read");
    }

  protected:
    const int fd_;
};

class EpolledEventFd : public EventFd {
  public:
    EpolledEventFd() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
        struct epoll_event event = {};

        event.events = EPOLLIN;
        must(epoll_ >= 0 && epoll_ctl(epoll_, EPOLL_CTL_ADD, fd_, &event) == 0, "epoll");
    }
    ~EpolledEventFd() override { close(epoll_); }
    EpolledEventFd(const EpolledEventFd&) = delete;
    EpolledEventFd& operator=(const EpolledEventFd&) = delete;

    void wait() override {
        struct epoll_event event;

        must(epoll_wait(epoll_, &event, 1, -1) == 1, "epoll_wait");
        EventFd::wait();
    }

  private:
    const int epoll_;
};

class Pipe : public Channel {
  public:
    Pipe() { must(pipe(fds_) == 0, "pipe"); }
    ~Pipe() override {
        close(fds_[0]);
        close(fds_[1]);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    void wake() override { must(write(fds_[1], "w", 1) == 1, "write"); }
    void wait() override {
        char byte;

        must(read(fds_[0], &byte, 1) == 1, "read");
    }

  private:
    int fds_[2] = {-1, -1};
};

// An event, and a reader that sleeps until it arrives.
class Ring : public Channel {
  public:
    explicit Ring(std::uint64_t payload_bytes) : payload_(payload_bytes) {}

    void wake() override { must(ring_.producer->emit(0, kType, payload_) == 0, "emit"); }
    void wait() override {
        struct kmes_event_view view;

        while (kmes_reader_next(ring_.reader->get(), room_, sizeof(room_), &view) != 1)
            must(kmes_reader_wait(ring_.reader->get(), KMES_NO_TIMEOUT) == 1, "wait");
    }

  private:
    std::vector<std::byte> payload_;
    ReadRing ring_;
    std::byte room_[4096];
};

// A thread that answers each wake by a wake.
class Partner {
  public:
    Partner(std::unique_ptr<Channel> there, std::unique_ptr<Channel> back)
        : there_(std::move(there)), back_(std::move(back)), thread_([this] { answer(); }) {}
    ~Partner() {
        is_ended_.store(true);
        there_->wake();
        thread_.join();
    }
    Partner(const Partner&) = delete;
    Partner& operator=(const Partner&) = delete;

    void exchange(std::uint64_t wakes) {
        for (std::uint64_t i = 0; i < wakes; i += 2) {
            there_->wake();
            back_->wait();
        }
    }

  private:
    void answer() {
        for (;;) {
            there_->wait();
            if (is_ended_.load()) return;
            back_->wake();
        }
    }

    std::unique_ptr<Channel> there_;
    std::unique_ptr<Channel> back_;
    std::atomic<bool> is_ended_ = false;
    std::thread thread_;
};

template <typename Way, typename... Arguments>
Variant variant(const char* name, Arguments... arguments) {
    auto partner = std::make_shared<Partner>(std::make_unique<Way>(arguments...),
                                             std::make_unique<Way>(arguments...));

    return {name, [=](std::uint64_t n) { partner->exchange(n); }, 2, kSampleWakes};
}

// Repeatedly `burst` events and a pause, `events` events in total.
struct Load {
    std::uint64_t events;
    std::uint64_t burst;
    std::chrono::microseconds rest;
};

constexpr Load kLight = {256, 1, std::chrono::microseconds(200)};
constexpr Load kMedium = {8192, 32, std::chrono::microseconds(200)};
constexpr Load kHeavy = {65536, 65536, {}};

// A producer, and a reader that sleeps whenever the ring is empty.
class Sleeper {
  public:
    explicit Sleeper(std::uint64_t payload_bytes)
        : payload_(payload_bytes), thread_([this] { read(); }) {}
    ~Sleeper() {
        is_ended_.store(true);
        emit();
        thread_.join();
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    // The reader sleeps before the first event.
    Sample wakes_of_1000(const Load& load) {
        wait_until_asleep();
        const std::uint64_t before = ring_.producer->statistics(0).wakes;

        for (std::uint64_t done = 0; done < load.events; done += load.burst) {
            for (std::uint64_t i = 0; i < load.burst; i++) emit();
            if (load.rest.count() > 0) std::this_thread::sleep_for(load.rest);
        }
        const std::uint64_t wakes = ring_.producer->statistics(0).wakes - before;

        return {1000.0 * static_cast<double>(wakes) / static_cast<double>(load.events), false};
    }

  private:
    void emit() { must(ring_.producer->emit(0, kType, payload_) == 0, "emit"); }

    void wait_until_asleep() const {
        while (!__atomic_load_n(ring_.attachment.buffers[0]->buffer()->shared.need_wake,
                                __ATOMIC_ACQUIRE))
            std::this_thread::yield();
    }

    void read() {
        std::byte room[4096];
        struct kmes_event_view view;

        for (;;) {
            while (kmes_reader_next(ring_.reader->get(), room, sizeof(room), &view) == 1) continue;
            // The last event comes after is_ended_ is set, so the reader sees it.
            if (is_ended_.load()) return;
            must(kmes_reader_wait(ring_.reader->get(), KMES_NO_TIMEOUT) == 1, "wait");
        }
    }

    std::vector<std::byte> payload_;
    ReadRing ring_;
    std::atomic<bool> is_ended_ = false;
    std::thread thread_;
};

Table wakes_table(std::uint64_t payload_bytes) {
    auto sleeper = std::make_shared<Sleeper>(payload_bytes);
    auto add = [&](const char* name, const Load& load) {
        Variant variant = {name, {}};

        variant.take = [=] { return sleeper->wakes_of_1000(load); };
        return variant;
    };

    return {"wakes",
            {add("light: single events", kLight), add("medium: bursts of 32", kMedium),
             add("heavy: no rest", kHeavy)},
            "for 1000 events"};
}

}  // namespace

std::vector<Table> wake_tables(std::uint64_t payload_bytes, const Effort&) {
    return {{"one wake",
             {variant<EventFd>("eventfd"), variant<EpolledEventFd>("eventfd and epoll"),
              variant<Pipe>("pipe"), variant<Ring>("an event of KMES", payload_bytes)}},
            wakes_table(payload_bytes)};
}

}  // namespace kmes::bench
