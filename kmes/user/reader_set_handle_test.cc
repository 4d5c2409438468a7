// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The handle of a set. It is readable whenever an event is unread, wherever between two steps of
// the library it was published. It is unreadable when all events are read.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "kmes/user/futex.h"
#include "kmes/user/reader_set_testing.h"
#include "kmes/user/under_tsan.h"

namespace {

// An action at the next call of one of the wrapped functions, once.
struct Place {
    const char* name = nullptr;
    bool is_after = false;
};
std::atomic<const Place*> armed_place{nullptr};
std::function<void()> action;
std::atomic<bool> is_done{false};
std::atomic<bool> has_no_waitv{false};

void pass(const char* name, bool is_after) {
    const Place* place = armed_place.load();

    if (!place || place->name != std::string(name) || place->is_after != is_after) return;
    if (!armed_place.compare_exchange_strong(place, nullptr)) return;
    action();
    is_done = true;
}

}  // namespace

extern "C" {
int __real_kmes_futex_wait_any(const struct kmes_futex_wait*, unsigned, __u64);
int __real_kmes_futex_wake_all(__u32*);
int __real_kmes_reader_wait_begin(kmes_reader*, kmes_wait*);
bool __real_kmes_reader_wait_end(kmes_reader*, __u64);
ssize_t __real_read(int, void*, size_t);
ssize_t __real_write(int, const void*, size_t);

int __wrap_kmes_futex_wait_any(const struct kmes_futex_wait* waits, unsigned count,
                               __u64 timeout_ns) {
    pass("sleep", false);
    const int result =
        has_no_waitv ? -ENOSYS : __real_kmes_futex_wait_any(waits, count, timeout_ns);

    pass("sleep", true);
    return result;
}
int __wrap_kmes_futex_wake_all(__u32* word) {
    pass("end sleep", false);
    const int result = __real_kmes_futex_wake_all(word);

    pass("end sleep", true);
    return result;
}
int __wrap_kmes_reader_wait_begin(kmes_reader* reader, kmes_wait* wait) {
    pass("ask", false);
    const int result = __real_kmes_reader_wait_begin(reader, wait);

    pass("ask", true);
    return result;
}
bool __wrap_kmes_reader_wait_end(kmes_reader* reader, __u64 slept_ns) {
    pass("end ask", false);
    const bool result = __real_kmes_reader_wait_end(reader, slept_ns);

    pass("end ask", true);
    return result;
}
ssize_t __wrap_read(int fd, void* bytes, size_t count) {
    if (count == 8) pass("unreadable", false);
    const ssize_t result = __real_read(fd, bytes, count);

    if (count == 8) pass("unreadable", true);
    return result;
}
ssize_t __wrap_write(int fd, const void* bytes, size_t count) {
    if (count == 8) pass("readable", false);
    const ssize_t result = __real_write(fd, bytes, count);

    if (count == 8) pass("readable", true);
    return result;
}
}

namespace kmes {
namespace {

constexpr uint64_t kLongNs = 3600'000'000'000;

bool is_readable(int fd) {
    pollfd entry = {fd, POLLIN, 0};

    return poll(&entry, 1, 0) == 1 && entry.revents == POLLIN;
}

int patience_ms() {
    return static_cast<int>(patience_ns() / 1'000'000);
}

class HandleTest : public ReaderSetTest {
  protected:
    void TearDown() override {
        armed_place = nullptr;
        has_no_waitv = false;
        is_done = false;
        ReaderSetTest::TearDown();
    }

    void open(const kmes_reader_set_options& options = {}) {
        kmes_reader_set_close(set_);
        set_ = nullptr;
        ASSERT_EQ(0, kmes_reader_set_open(&set_, &options));
        fd_ = kmes_reader_set_fd(set_);
        ASSERT_LE(0, fd_);
    }

    // Waits until the thread owns the readers, and has asked every CPU for a wake.
    void drain_and_wait_for_sleep() {
        ASSERT_LE(0, consume());
        ASSERT_TRUE(comes_true([this] { return is_set_asleep(); }));
    }

    // Events up to `sequence` of `cpu` come, each only after the handle was readable.
    void read_until(unsigned cpu, uint64_t sequence) {
        while (last_[cpu] < sequence) {
            pollfd entry = {fd_, POLLIN, 0};

            ASSERT_EQ(1, ::poll(&entry, 1, patience_ms())) << "event " << last_[cpu] + 1;
            ASSERT_LE(0, consume());
        }
    }

    int fd_ = -1;
};

TEST_F(HandleTest, IsReadableUntilACallFindsNothing) {
    start(2);
    open();
    EXPECT_EQ(fd_, kmes_reader_set_fd(set_));
    EXPECT_TRUE(is_readable(fd_));
    EXPECT_EQ(0, consume());
    EXPECT_FALSE(is_readable(fd_));
    emit(0, 2);
    emit(1);
    EXPECT_TRUE(comes_true([this] { return is_readable(fd_); }));
    for (int left = 3; left > 0; left--) {
        EXPECT_TRUE(is_readable(fd_));
        EXPECT_EQ(1, consume(1));
    }
    EXPECT_TRUE(is_readable(fd_));
    EXPECT_EQ(0, consume(1));
    EXPECT_FALSE(is_readable(fd_));
}

// A call finds events before the thread does.
TEST_F(HandleTest, CallThatLeavesEventsMakesItReadable) {
    start(2);
    open();
    for (int i = 0; i < 200; i++) {
        EXPECT_EQ(0, consume());
        emit(1, 2);
        EXPECT_EQ(1, consume(1));
        EXPECT_TRUE(is_readable(fd_));
        EXPECT_EQ(1, consume());
    }
}

TEST_F(HandleTest, EventAtAnyStepMakesItReadable) {
    static const Place places[] = {
        {"unreadable", false}, {"unreadable", true}, {"end sleep", false}, {"end sleep", true},
        {"ask", false},        {"ask", true},        {"sleep", false},     {"sleep", true},
        {"end ask", false},    {"end ask", true},    {"readable", false},  {"readable", true},
    };

    for (const bool is_exclusive : {false, true}) {
        start(2);
        kmes_reader_set_options options = {};

        options.is_exclusive = is_exclusive;
        last_.clear();
        open(options);
        action = [this] {
            emit(1);
            // The other thread may react before this one continues: that is another interleaving.
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        };
        for (const Place& place : places) {
            SCOPED_TRACE(std::string(place.is_after ? "after " : "before ") + place.name);
            is_done = false;
            armed_place = &place;
            consume();  // gives the readers to the thread, or reaches the place
            emit(0);
            read_until(0, last_[0] + 1);
            ASSERT_TRUE(comes_true([this] {
                if (is_readable(fd_)) consume();
                return is_done.load();
            }));
            read_until(1, last_[1] + (last_[1] < static_cast<uint64_t>(&place - places) + 1));
            EXPECT_EQ(static_cast<uint64_t>(&place - places) + 1, last_[1]);
        }
    }
}

// One event is unread at a time, so that no later event hides one that the handle misses.
template <typename Wait>
void hand_over(HandleTest*, int rounds, Producer& producer, kmes_reader_set* set, Wait wait) {
    std::atomic<int> read{0};
    std::thread emitter([&] {
        for (int i = 0; i < rounds; i++) {
            if (!comes_true([&] { return read == i; })) return;
            EXPECT_EQ(0, producer.emit(static_cast<unsigned>(i) % 3, "t"));
        }
    });

    while (read < rounds) {
        const int woken = wait();
        int count;

        EXPECT_EQ(1, woken) << "after " << read << " events";
        if (woken != 1) break;
        count = kmes_reader_set_consume(
            set, 0, [](void*, const kmes_event_view*) { return 0; }, nullptr);
        EXPECT_LE(0, count);
        read += count;
    }
    emitter.join();
}

TEST_F(HandleTest, LosesNoEventInEpoll) {
    start(3);
    open();
    for (const uint32_t events : {EPOLLIN | 0u, EPOLLIN | EPOLLET}) {
        const int epoll = epoll_create1(EPOLL_CLOEXEC);
        epoll_event event = {events, {}};

        ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, fd_, &event));
        hand_over(this, 300, *producer_, set_,
                  [&] { return epoll_wait(epoll, &event, 1, patience_ms()); });
        close(epoll);
    }
}

TEST_F(HandleTest, LosesNoEventInPoll) {
    for (const bool is_exclusive : {false, true}) {
        start(3);
        kmes_reader_set_options options = {};

        options.is_exclusive = is_exclusive;
        open(options);
        hand_over(this, 300, *producer_, set_, [this] {
            pollfd entry = {fd_, POLLIN, 0};

            return ::poll(&entry, 1, patience_ms());
        });
    }
}

TEST_F(HandleTest, KernelWithoutAWaitForSeveralWordsServes) {
    start(3);
    has_no_waitv = true;
    open();
    hand_over(this, 20, *producer_, set_, [this] {
        pollfd entry = {fd_, POLLIN, 0};

        return ::poll(&entry, 1, patience_ms());
    });
}

TEST_F(HandleTest, CoversMoreCpusThanOneSleepDoes) {
    start(140);
    open();
    drain_and_wait_for_sleep();
    emit(139);
    read_until(139, 1);
}

TEST_F(HandleTest, WorksBesideTheWaitsOfTheSet) {
    start(2);
    open();
    for (uint64_t i = 1; i <= 20; i++) {
        drain_and_wait_for_sleep();
        EXPECT_EQ(-ETIMEDOUT, kmes_reader_set_wait(set_, 0));
        EXPECT_FALSE(is_readable(fd_));
        emit(1);
        EXPECT_EQ(1, kmes_reader_set_wait(set_, KMES_NO_TIMEOUT));
        EXPECT_TRUE(is_readable(fd_));
        EXPECT_EQ(1, kmes_reader_set_poll(set_, KMES_NO_TIMEOUT, on_event, this));
        EXPECT_EQ(i, last_[1]);
        EXPECT_EQ(0, kmes_reader_set_error(set_, 1));
        EXPECT_EQ(i, kmes_reader_set_statistics(set_, 1).delivered);
        EXPECT_EQ(i, kmes_reader_set_get_place(set_, 1).last_sequence);
    }
}

TEST_F(HandleTest, ShowsEventsInPlace) {
    start(2);
    open();
    kmes_event_view view;

    drain_and_wait_for_sleep();
    emit(0);
    ASSERT_EQ(KMES_READ_EVENT, kmes_reader_set_peek(set_, &view));
    EXPECT_TRUE(is_readable(fd_));
    EXPECT_TRUE(kmes_reader_set_release(set_));
    EXPECT_TRUE(is_readable(fd_));
    EXPECT_EQ(KMES_READ_EMPTY, kmes_reader_set_peek(set_, &view));
    EXPECT_FALSE(is_readable(fd_));
}

TEST_F(HandleTest, FollowsEveryBuffer) {
    start(2);
    open();
    for (uint64_t i = 1; i <= 6; i++) {
        drain_and_wait_for_sleep();
        ASSERT_EQ(0, producer_->resize(k64KiB << (i & 1)));
        emit(1);
        read_until(1, i);
    }
}

TEST_F(HandleTest, GoesOnWithTheNextProducer) {
    start(2);
    open();
    drain_and_wait_for_sleep();
    producer_->retire();
    producer_->stop_serving();
    ASSERT_TRUE(comes_true([this] { return is_readable(fd_); }));
    EXPECT_EQ(0, consume());
    EXPECT_NE(0, kmes_reader_set_error(set_, 0));
    EXPECT_FALSE(is_readable(fd_));
    start(2);
    last_.clear();
    emit(1);
    read_until(1, 1);
}

TEST_F(HandleTest, WaitsForTheWatermark) {
    start(2);
    kmes_reader_set_options options = {};

    options.is_exclusive = true;
    options.watermark_bytes = 8192;
    options.watermark_ns = kLongNs;
    open(options);
    drain_and_wait_for_sleep();
    emit(0);
    ASSERT_TRUE(comes_true([this] { return asking_cpus(*producer_) == 0; }));
    EXPECT_FALSE(is_readable(fd_));
    emit(0, 200);
    emit(1, 200);
    read_until(0, 201);
}

TEST_F(HandleTest, ThreadBlocksAllSignals) {
    start(1);
    std::map<std::string, std::string> before, blocked;
    const auto read_masks = [](auto* masks) {
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
            std::ifstream status(task.path() / "status");

            for (std::string line; std::getline(status, line);)
                if (line.starts_with("SigBlk:")) (*masks)[task.path().filename()] = line;
        }
    };

    read_masks(&before);
    open();
    read_masks(&blocked);
    for (const auto& [task, mask] : before) blocked.erase(task);
    ASSERT_EQ(1u, blocked.size());
    // No mask has SIGKILL and SIGSTOP, and 32 and 33 are the C library's own.
    const uint64_t never = 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1) | 3ull << 31;

    EXPECT_EQ(~0ull, std::stoull(blocked.begin()->second.substr(7), nullptr, 16) | never);
}

TEST_F(HandleTest, CloseLeavesNoThreadAndNoDescriptor) {
    start(2);
    open();
    kmes_reader_set_close(set_);
    set_ = nullptr;
    const auto tasks = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
    };
    const size_t descriptors = open_descriptors();
    const auto threads = tasks();

    for (int i = 0; i < 50; i++) {
        open();
        if (i % 3) consume();
        if (i % 3 == 2) drain_and_wait_for_sleep();
        kmes_reader_set_close(set_);
        set_ = nullptr;
    }
    // The producer of this process closes its ends of the leases a little later.
    EXPECT_TRUE(comes_true([&] { return open_descriptors() <= descriptors; }));
    EXPECT_TRUE(comes_true([&] { return tasks() == threads; }));
}

constexpr bool kChildMayHaveThreads = !KMES_UNDER_TSAN;  // ThreadSanitizer ends such a child

// The actions of the child on its copy change nothing in the parent.
int use_in_child(kmes_reader_set* set, int fd) {
    const auto ignore = [](void*, const kmes_event_view*) { return 0; };

    if (fcntl(fd, F_GETFD) != -1) return 1;
    if (kmes_reader_set_consume(set, 0, ignore, nullptr) != 2) return 2;
    if (kmes_reader_set_wait(set, 0) != -ETIMEDOUT) return 3;
    if (!kChildMayHaveThreads) return 0;
    const int own = kmes_reader_set_fd(set);

    if (own < 0 || !is_readable(own)) return 4;
    if (kmes_reader_set_consume(set, 0, ignore, nullptr) != 0 || is_readable(own)) return 5;
    kmes_reader_set_close(set);
    return fcntl(own, F_GETFD) == -1 ? 0 : 6;
}

TEST_F(HandleTest, ForkLeavesItToTheParent) {
    start(2);
    open();
    for (int i = 0; i < 20; i++) {
        drain_and_wait_for_sleep();
        emit(0, 2);
        ASSERT_TRUE(comes_true([this] { return is_readable(fd_); }));
        const pid_t child = fork();
        int status = 0;

        if (child == 0) _exit(use_in_child(set_, fd_));
        ASSERT_EQ(child, waitpid(child, &status, 0));
        EXPECT_EQ(0, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        EXPECT_TRUE(is_readable(fd_));
        EXPECT_EQ(2, consume());
    }
    drain_and_wait_for_sleep();
    emit(1);
    read_until(1, 1);
}

// As after closefrom: the program has closed the descriptor, and may have reused its number.
TEST_F(HandleTest, ClosedDescriptorIsMadeAgain) {
    start(2);
    const std::string path = folder_.path("file");
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    open();
    for (uint64_t i = 1; i <= 8; i++) {
        const bool is_reused = i % 2, is_of_thread = i % 4 < 2;
        const int before = fd_;

        if (is_of_thread) drain_and_wait_for_sleep();
        if (is_reused) {
            ASSERT_EQ(before, dup2(file, before));
        } else {
            close(before);
        }
        fd_ = kmes_reader_set_fd(set_);
        ASSERT_LE(0, fd_);
        EXPECT_EQ(fd_, kmes_reader_set_fd(set_));
        EXPECT_TRUE(is_readable(fd_));
        if (is_reused) {
            EXPECT_NE(before, fd_);
            close(before);
        }
        drain_and_wait_for_sleep();
        EXPECT_FALSE(is_readable(fd_));
        emit(1);
        read_until(1, i);
    }
    struct stat status = {};

    EXPECT_EQ(0, fstat(file, &status));
    EXPECT_EQ(0, status.st_size);
    close(file);
}

TEST_F(HandleTest, WritesIntoNoFileThatHasItsNumber) {
    start(1);
    open();
    const std::string path = folder_.path("file");
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    ASSERT_EQ(fd_, dup2(file, fd_));
    EXPECT_EQ(0, consume());
    emit(0);
    EXPECT_EQ(1, consume());
    kmes_reader_set_close(set_);
    set_ = nullptr;
    struct stat status = {};

    EXPECT_EQ(0, fstat(fd_, &status));
    EXPECT_EQ(0, status.st_size);
    close(fd_);
    close(file);
}

}  // namespace
}  // namespace kmes
