// SPDX-License-Identifier: GPL-2.0-only OR MIT
// A signal handler forks wherever libkmes or a producer has a lock that fork takes. The handler
// runs at once, or when the thread has released the lock; it never waits for its own thread.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "kmes/user/emitter.h"
#include "kmes/user/libkmes.h"
#include "kmes/user/reader_set.h"
#include "kmes/user/test_support.h"

namespace {

thread_local bool is_armed = false;
std::atomic<int> forks{0};
std::atomic<int> bad_children{0};
// The child returns from the handler, and continues the call that the signal has interrupted.
std::atomic<bool> child_continues{false};
std::atomic<bool> is_child{false};

// The unlocks of the fork itself raise no further signal.
void fork_in_handler(int) {
    const bool was_armed = std::exchange(is_armed, false);
    const pid_t child = fork();
    int status = 0;

    is_armed = was_armed && child != 0;
    if (child == 0) {
        if (!child_continues) _exit(0);
        is_child = true;
        return;
    }
    if (waitpid(child, &status, 0) != child || status != 0) bad_children++;
    forks++;
}

void interrupt() {
    if (is_armed) raise(SIGUSR1);
}

}  // namespace

extern "C" {
int __real_pthread_mutex_unlock(pthread_mutex_t*);
ssize_t __real_read(int, void*, size_t);
ssize_t __real_write(int, const void*, size_t);

// Before the unlock: the thread has the lock.
int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
    interrupt();
    return __real_pthread_mutex_unlock(mutex);
}
// A set reads and writes its descriptor under its lock.
ssize_t __wrap_read(int fd, void* bytes, size_t count) {
    interrupt();
    return __real_read(fd, bytes, count);
}
ssize_t __wrap_write(int fd, const void* bytes, size_t count) {
    interrupt();
    return __real_write(fd, bytes, count);
}
}

namespace kmes {
namespace {

class ForkInHandlerTest : public testing::Test {
  protected:
    void SetUp() override {
        struct sigaction action = {};

        action.sa_handler = fork_in_handler;
        action.sa_flags = SA_RESTART;
        sigaction(SIGUSR1, &action, nullptr);
        setenv("KMES_SOCKET", address_.c_str(), 1);
        producer_ = std::make_unique<Producer>(test_options(2));
        ASSERT_EQ(0, producer_->start_without_registry());
        producer_->serve(address_);
        forks = 0;
        bad_children = 0;
    }
    void TearDown() override { unsetenv("KMES_SOCKET"); }

    // In another thread, so that a handler that waits for its own thread fails the test.
    static void expect_forks(const char* name, std::function<void()> call) {
        auto is_over = std::make_shared<std::atomic<bool>>(false);
        const int before = forks;

        std::thread([is_over, call = std::move(call)] {
            is_armed = true;
            call();
            is_armed = false;
            *is_over = true;
        }).detach();
        ASSERT_TRUE(comes_true([&is_over] { return is_over->load(); })) << name;
        EXPECT_LT(before, forks) << name;
        EXPECT_EQ(0, bad_children) << name;
    }

    TemporaryFolder folder_;
    const std::string address_ = folder_.path("socket");
    std::unique_ptr<Producer> producer_;
};

TEST_F(ForkInHandlerTest, Table) {
    int fds[2] = {-1, -1};
    int count = 2;
    __u64 capacity = 0;
    void* base = nullptr;

    expect_forks("attach", [&] { EXPECT_EQ(0, kmes_attach(fds, &count, &capacity)); });
    expect_forks("map", [&] { EXPECT_EQ(0, kmes_map(fds[0], capacity, &base)); });
    expect_forks("unmap", [&] { EXPECT_EQ(0, kmes_unmap(base, capacity)); });
    for (int fd : fds) close(fd);
}

TEST_F(ForkInHandlerTest, Emitter) {
    kmes_emitter* emitter = nullptr;

    expect_forks("open", [&] { EXPECT_EQ(0, kmes_emitter_open(&emitter)); });
    expect_forks("emit", [&] { kmes_emitter_emit(emitter, "t", 1, nullptr, 0); });
    expect_forks("close", [&] { kmes_emitter_close(emitter); });
}

TEST_F(ForkInHandlerTest, Set) {
    kmes_reader_set* set = nullptr;
    kmes_event_view view;

    ASSERT_EQ(0, kmes_reader_set_open(&set, nullptr));
    expect_forks("fd", [&] { EXPECT_LE(0, kmes_reader_set_fd(set)); });
    expect_forks("give", [&] { EXPECT_EQ(KMES_READ_EMPTY, kmes_reader_set_next(set, &view)); });
    // The thread has the readers until this call takes them.
    expect_forks("wait", [&] { kmes_reader_set_wait(set, 1000000); });
    expect_forks("close", [&] { kmes_reader_set_close(set); });
}

TEST_F(ForkInHandlerTest, Producer) {
    const std::string second = folder_.path("second");
    Producer producer(test_options());

    ASSERT_EQ(0, producer.start_without_registry());
    expect_forks("serve", [&] { producer.serve(second); });
    expect_forks("stop", [&] { producer.stop_serving(); });
}

// The child of the handler continues the wait of a set, and reads the set afterwards.
TEST_F(ForkInHandlerTest, ChildContinuesTheInterruptedCall) {
    kmes_reader_set* set = nullptr;
    kmes_event_view view;

    ASSERT_EQ(0, kmes_reader_set_open(&set, nullptr));
    ASSERT_LE(0, kmes_reader_set_fd(set));
    ASSERT_EQ(KMES_READ_EMPTY, kmes_reader_set_next(set, &view));
    child_continues = true;
    expect_forks("wait", [&] {
        kmes_reader_set_wait(set, 0);
        if (!is_child) return;
        const bool is_empty = kmes_reader_set_next(set, &view) == KMES_READ_EMPTY;

        kmes_reader_set_close(set);
        _exit(is_empty ? 0 : 1);
    });
    child_continues = false;
    kmes_reader_set_close(set);
}

}  // namespace
}  // namespace kmes
