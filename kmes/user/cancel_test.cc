// SPDX-License-Identifier: GPL-2.0-only OR MIT
// A thread with a pending cancellation calls each function of libkmes and of a producer. The call
// returns, keeps no lock, and leaves no descriptor. The thread ends at its next cancellation point.
#include <gtest/gtest.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kmes/user/counter_clock.h"
#include "kmes/user/emitter.h"
#include "kmes/user/libkmes.h"
#include "kmes/user/libkmes_reader.h"
#include "kmes/user/merge.h"
#include "kmes/user/places.h"
#include "kmes/user/reader_set.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

struct Run {
    std::function<void()> call;
    std::atomic<bool> has_returned{false};
    std::atomic<bool> is_over{false};
};

void* run_cancelled(void* argument) {
    Run* run = static_cast<Run*>(argument);

    pthread_cancel(pthread_self());
    run->call();
    run->has_returned = true;
    pthread_testcancel();
    return nullptr;
}

// The thread is cancelled after the return of `call`, and not inside it.
testing::AssertionResult returns_before_the_cancellation(std::function<void()> call) {
    Run run;
    pthread_t thread;
    void* result = nullptr;

    run.call = std::move(call);
    if (pthread_create(&thread, nullptr, run_cancelled, &run) != 0)
        return testing::AssertionFailure() << "no thread";
    pthread_join(thread, &result);
    if (!run.has_returned) return testing::AssertionFailure() << "the thread ended in the call";
    if (result != PTHREAD_CANCELED)
        return testing::AssertionFailure() << "the cancellation was lost";
    return testing::AssertionSuccess();
}

// Runs `call` in another thread, so that a lock that is never released fails the test.
bool returns(std::function<void()> call) {
    auto run = std::make_shared<Run>();

    run->call = std::move(call);
    std::thread([run] {
        run->call();
        run->is_over = true;
    }).detach();
    return comes_true([&run] { return run->is_over.load(); });
}

void fork_once() {
    const pid_t child = fork();

    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
}

struct Named {
    const char* name;
    std::function<void()> call;
};

class CancelTest : public testing::Test {
  protected:
    void SetUp() override {
        setenv("KMES_SOCKET", address_.c_str(), 1);
        producer_ = std::make_unique<Producer>(test_options(2));
        ASSERT_EQ(0, producer_->start_without_registry());
        producer_->serve(address_);
    }
    void TearDown() override { unsetenv("KMES_SOCKET"); }

    // Each call runs while a cancellation is pending. A fork then waits for no lock.
    static void expect_uncancelled(const std::vector<Named>& calls) {
        for (const Named& named : calls) {
            ASSERT_TRUE(returns_before_the_cancellation(named.call)) << named.name;
            ASSERT_TRUE(returns(fork_once)) << named.name;
        }
    }

    TemporaryFolder folder_;
    const std::string address_ = folder_.path("socket");
    std::unique_ptr<Producer> producer_;
};

TEST_F(CancelTest, AttachAndEmit) {
    const struct kmes_emit_entry entry = {"t", 1, nullptr, 0};
    int fds[2] = {-1, -1};
    int count = 2, cpus = 0;
    __u64 capacity = 0;
    __u32 emitted = 0;
    void* base = nullptr;

    expect_uncancelled({
        {"attach", [&] { EXPECT_EQ(0, kmes_attach(fds, &count, &capacity)); }},
        {"map", [&] { EXPECT_EQ(0, kmes_map(fds[0], capacity, &base)); }},
        {"unmap", [&] { EXPECT_EQ(0, kmes_unmap(base, capacity)); }},
        {"emit", [] { EXPECT_EQ(0, kmes_emit("t", 1, nullptr, 0)); }},
        {"emit_batch", [&] { EXPECT_EQ(0, kmes_emit_batch(&entry, 1, &emitted)); }},
        {"cpus", [&] { cpus = kmes_cpus_by_libkmes(); }},
    });
    EXPECT_EQ(2, cpus);
    for (int fd : fds) close(fd);
}

// The last mapping of an attach: kmes_unmap closes the connection of the lease.
TEST_F(CancelTest, UnmapOfTheLastMapping) {
    int fds[2] = {-1, -1};
    int count = 2;
    __u64 capacity = 0;
    void* base = nullptr;

    ASSERT_EQ(0, kmes_attach(fds, &count, &capacity));
    ASSERT_EQ(0, kmes_map(fds[0], capacity, &base));
    for (int fd : fds) close(fd);
    ASSERT_TRUE(returns_before_the_cancellation([&] { kmes_unmap(base, capacity); }));
    EXPECT_TRUE(returns(fork_once));
    EXPECT_TRUE(returns([] {
        int none = 0;
        __u64 bytes = 0;

        kmes_attach(nullptr, &none, &bytes);
    }));
}

TEST_F(CancelTest, Emitter) {
    const struct kmes_emit_entry entry = {"t", 1, nullptr, 0};
    kmes_emitter* emitter = nullptr;
    __u32 emitted = 0;

    expect_uncancelled({
        {"open", [&] { EXPECT_EQ(0, kmes_emitter_open(&emitter)); }},
        {"emit", [&] { EXPECT_EQ(0, kmes_emitter_emit(emitter, "t", 1, nullptr, 0)); }},
        {"emit_batch",
         [&] { EXPECT_EQ(0, kmes_emitter_emit_batch(emitter, &entry, 1, &emitted)); }},
    });
    // Another thread gets the lock.
    EXPECT_TRUE(returns([emitter] { kmes_emitter_emit(emitter, "t", 1, nullptr, 0); }));
    expect_uncancelled({{"close", [&] { kmes_emitter_close(emitter); }}});
}

TEST_F(CancelTest, Set) {
    kmes_reader_set* set = nullptr;
    kmes_event_view view;
    int events = 0;
    const auto count = [](void* context, const kmes_event_view*) {
        ++*static_cast<int*>(context);
        return 0;
    };

    producer_->emit(0, "t");
    expect_uncancelled({
        {"open", [&] { EXPECT_EQ(0, kmes_reader_set_open(&set, nullptr)); }},
        {"fd", [&] { EXPECT_LE(0, kmes_reader_set_fd(set)); }},
        {"consume", [&] { EXPECT_EQ(1, kmes_reader_set_consume(set, 0, +count, &events)); }},
        {"next",
         [&] {
             // The thread of the descriptor owns the readers, and another buffer is current.
             producer_->resize(producer_->statistics(0).swaps % 2 ? 128 << 10 : 64 << 10);
             EXPECT_EQ(KMES_READ_EMPTY, kmes_reader_set_next(set, &view));
         }},
        {"wait", [&] { kmes_reader_set_wait(set, 1000000); }},
        {"poll", [&] { EXPECT_EQ(0, kmes_reader_set_poll(set, 1000000, +count, &events)); }},
        {"close", [&] { kmes_reader_set_close(set); }},
    });
    EXPECT_EQ(1, events);
}

TEST_F(CancelTest, Merge) {
    kmes_reader_set* set = nullptr;
    kmes_merge* merge = nullptr;
    kmes_event_view view;
    bool is_late = false;

    ASSERT_EQ(0, kmes_reader_set_open(&set, nullptr));
    producer_->emit(0, "t");
    expect_uncancelled({
        {"open", [&] { EXPECT_EQ(0, kmes_merge_open(&merge, set, nullptr)); }},
        {"next",
         [&] {
             producer_->resize(128 << 10);
             kmes_merge_flush(merge);
             EXPECT_EQ(KMES_READ_EVENT, kmes_merge_next(merge, &view, &is_late));
         }},
        {"wait", [&] { kmes_merge_wait(merge, 1000000); }},
        {"close", [&] { kmes_merge_close(merge); }},
    });
    kmes_reader_set_close(set);
}

TEST_F(CancelTest, Reader) {
    const struct kmes_reader_place place = {1, 2, true};
    struct kmes_reader_config config = {};
    struct kmes_reader reader;
    uint8_t bytes[256];
    kmes_event_view view;
    struct kmes_reader_place read = {};
    int length = 0;

    kmes_reader_by_libkmes(&config, 0);
    expect_uncancelled({
        {"open", [&] { EXPECT_EQ(0, kmes_reader_open(&reader, &config)); }},
        {"next",
         [&] {
             producer_->resize(128 << 10);
             producer_->emit(0, "t");
             EXPECT_EQ(KMES_READ_EVENT, kmes_reader_next(&reader, bytes, sizeof(bytes), &view));
         }},
        {"wait", [&] { kmes_reader_wait(&reader, 1000000); }},
        {"close", [&] { kmes_reader_close(&reader); }},
        {"places_write", [&] { length = kmes_places_write(&place, 1, bytes, sizeof(bytes)); }},
        {"places_read", [&] { EXPECT_EQ(1, kmes_places_read(bytes, length, &read, 1)); }},
    });
    EXPECT_EQ(2u, read.last_sequence);
}

TEST_F(CancelTest, Producer) {
    const std::string second = folder_.path("second");
    const std::string file = folder_.path("state");
    ProducerOptions options = test_options(2);
    std::unique_ptr<Producer> producer;
    ResumeState state;

    options.nudges.in_background = true;
    expect_uncancelled({
        {"constructor", [&] { producer = std::make_unique<Producer>(options); }},
        {"start", [&] { EXPECT_EQ(0, producer->start_without_registry()); }},
        {"serve", [&] { producer->serve(second); }},
        {"resize", [&] { EXPECT_EQ(0, producer->resize(128 << 10)); }},
        {"set_max_event_bytes", [&] { EXPECT_EQ(0, producer->set_max_event_bytes(4096)); }},
        {"emit", [&] { EXPECT_EQ(0, producer->emit(0, "t")); }},
        {"attach",
         [&] {
             Attachment attachment;  // the last handle of the older buffers closes their files

             EXPECT_EQ(0, producer->attach(&attachment));
             EXPECT_EQ(0, producer->resize(64 << 10));
         }},
        {"nudge", [&] { producer->nudge(); }},
        {"nudge_due", [&] { producer->nudge_due(); }},
        {"stop_serving", [&] { producer->stop_serving(); }},
        {"serve again", [&] { producer->serve(second); }},
        {"retire", [&] { state = producer->retire(); }},
        {"destructor", [&] { producer.reset(); }},
        {"save", [&] { state.save(file); }},
        {"take", [&] { EXPECT_EQ(state.session, ResumeState::take(file).session); }},
        {"memory", [] { BufferMemory::create({.capacity_bytes = 64 << 10}); }},
        {"clock", [] { counter_is_usable(); }},
    });
}

// Everything that the calls opened is closed again.
TEST_F(CancelTest, NothingStaysOpen) {
    const auto work = [] {
        kmes_reader_set* set = nullptr;
        kmes_emitter* emitter = nullptr;

        EXPECT_EQ(0, kmes_reader_set_open(&set, nullptr));
        EXPECT_LE(0, kmes_reader_set_fd(set));
        kmes_reader_set_close(set);
        EXPECT_EQ(0, kmes_emitter_open(&emitter));
        EXPECT_EQ(0, kmes_emitter_emit(emitter, "t", 1, nullptr, 0));
        kmes_emitter_close(emitter);
    };

    work();  // what the process opens once
    // The producer closes its side of a connection later, so `before` can be too high by these
    // connections. In 20 calls, a leak exceeds that.
    const size_t before = open_descriptors();

    for (int i = 0; i < 20; i++) ASSERT_TRUE(returns_before_the_cancellation(work));
    EXPECT_TRUE(comes_true([&] { return open_descriptors() <= before; }));
}

}  // namespace
}  // namespace kmes
