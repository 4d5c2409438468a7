// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Producer with several threads and with signal handlers: no event is lost or repeated, no wake is
// lost, and no event comes after the end.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <thread>

#include "kmes/user/futex.h"
#include "kmes/user/owner_lock.h"
#include "kmes/user/producer.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

constexpr uint64_t k64KiB = 64 << 10;
constexpr uint64_t k4MiB = 4 << 20;

// "<thread> <number>": each thread counts from 1.
void emit_numbered(Producer* producer, unsigned cpu, int thread, int count) {
    for (int i = 1; i <= count; i++) {
        std::string text = std::to_string(thread) + " " + std::to_string(i);

        ASSERT_EQ(0, producer->emit(cpu, "numbered", bytes_of(text)));
    }
}

// Expects all events: sequence numbers without a gap from 1, and the events of each thread in its
// order.
void expect_all_numbered(const std::vector<Delivered>& events, int threads, int count) {
    std::map<int, int> last;

    ASSERT_EQ(static_cast<size_t>(threads) * static_cast<size_t>(count), events.size());
    for (size_t i = 0; i < events.size(); i++) {
        int thread = 0, number = 0;

        ASSERT_EQ(i + 1, events[i].sequence);
        ASSERT_EQ(2, sscanf(events[i].payload.c_str(), "%d %d", &thread, &number));
        ASSERT_EQ(last[thread] + 1, number);
        last[thread] = number;
    }
}

uint8_t need_wake(const Producer& producer, unsigned cpu) {
    Attachment attachment;

    if (producer.attach(cpu, &attachment) != 0) return 0;
    return __atomic_load_n(attachment.buffers[0]->buffer()->shared.need_wake, __ATOMIC_RELAXED);
}

TEST(OwnerLockTest, KnowsItsOwner) {
    OwnerLock lock;

    EXPECT_FALSE(lock.is_held_here());
    EXPECT_TRUE(lock.lock());
    EXPECT_TRUE(lock.is_held_here());
    EXPECT_FALSE(lock.lock());
    std::thread([&lock] { EXPECT_FALSE(lock.is_held_here()); }).join();
    lock.unlock();
    EXPECT_FALSE(lock.is_held_here());
}

TEST(OwnerLockTest, KeepsThreadsOut) {
    OwnerLock lock;
    uint64_t count = 0;
    std::vector<std::thread> threads;

    for (int i = 0; i < 4; i++) {
        threads.emplace_back([&lock, &count] {
            for (int round = 0; round < 5000; round++) {
                ASSERT_TRUE(lock.lock());
                count++;
                if (round % 64 == 0) std::this_thread::yield();
                lock.unlock();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(20000u, count);
}

// The sleeping thread gets the lock next, and not the thread that is already running.
TEST(OwnerLockTest, LetsAThreadThatWaitsInFirst) {
    OwnerLock lock;
    bool was_first = false;

    ASSERT_TRUE(lock.lock());
    std::thread waiter([&] {
        ASSERT_TRUE(lock.lock());
        was_first = true;
        lock.unlock();
    });
    EXPECT_TRUE(comes_true(other_threads_sleep));
    lock.unlock();
    lock.let_others_in(UINT64_MAX / 2);
    ASSERT_TRUE(lock.lock());
    EXPECT_TRUE(was_first);
    lock.unlock();
    waiter.join();
    lock.let_others_in(UINT64_MAX / 2);  // no thread waits
}

TEST(OwnerLockTest, LetsNobodyInForLongerThanTheTimeout) {
    OwnerLock lock;

    ASSERT_TRUE(lock.lock());
    std::thread waiter([&] {
        ASSERT_TRUE(lock.lock());
        lock.unlock();
    });
    EXPECT_TRUE(comes_true(other_threads_sleep));
    lock.let_others_in(1);  // it is still held, so no thread gets it
    lock.unlock();
    waiter.join();
}

TEST(ConcurrencyTest, SeveralEmittersOnOneCpuLoseNothing) {
    ProducerOptions options = test_options();

    options.capacity_bytes = k4MiB;
    Producer producer(options);
    std::vector<std::thread> threads;

    ASSERT_EQ(0, producer.start_without_registry());
    for (int i = 0; i < 4; i++) threads.emplace_back(emit_numbered, &producer, 0, i, 3000);
    for (std::thread& thread : threads) thread.join();
    expect_all_numbered(InProcessReader(producer, 0).drain(), 4, 3000);
}

// E16: batches of several threads on one CPU are appended to each other, and all events are
// published.
TEST(ConcurrencyTest, BatchesOfSeveralThreadsAreAllPublished) {
    ProducerOptions options = test_options();

    options.capacity_bytes = k4MiB;
    Producer producer(options);
    std::vector<std::thread> threads;

    ASSERT_EQ(0, producer.start_without_registry());
    for (int thread = 0; thread < 3; thread++) {
        threads.emplace_back([&producer, thread] {
            for (int batch = 0; batch < 100; batch++) {
                std::vector<std::string> texts;
                std::vector<BatchEntry> entries;
                size_t emitted = 0;

                for (int i = 1; i <= 20; i++)
                    texts.push_back(std::to_string(thread) + " " + std::to_string(20 * batch + i));
                for (const std::string& text : texts) entries.push_back({"b", bytes_of(text)});
                ASSERT_EQ(0, producer.emit_batch(0, entries, &emitted));
                ASSERT_EQ(20u, emitted);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    expect_all_numbered(InProcessReader(producer, 0).drain(), 3, 2000);
}

// 5.1.8.4: emitters, a reader and a resizer run concurrently. No reader is lapped: the rings are
// large enough.
TEST(ConcurrencyTest, ResizesLoseNothingUnderEmittersAndAReader) {
    ProducerOptions options = test_options();

    options.capacity_bytes = k4MiB;
    Producer producer(options);
    std::vector<Delivered> events;
    std::atomic<bool> ends{false};

    ASSERT_EQ(0, producer.start_without_registry());
    InProcessReader reader(producer, 0);
    std::thread emitters[2];

    for (int i = 0; i < 2; i++) emitters[i] = std::thread(emit_numbered, &producer, 0, i, 5000);
    std::thread reading([&] {
        while (!ends.load()) {
            for (Delivered& event : reader.drain()) events.push_back(std::move(event));
        }
    });

    for (int i = 0; i < 16; i++) EXPECT_EQ(0, producer.resize(k4MiB << (i & 1)));
    for (std::thread& emitter : emitters) emitter.join();
    ends = true;
    reading.join();
    for (Delivered& event : reader.drain()) events.push_back(std::move(event));
    expect_all_numbered(events, 2, 5000);
    EXPECT_EQ(0u, reader.core().statistics.lost);
    EXPECT_EQ(17u, producer.statistics().swaps);
}

// A served call checks the capacity of a buffer that is being replaced and dropped. Every entry is
// as large as the smaller buffer allows.
TEST(ConcurrencyTest, ResizesLoseNothingUnderServedBatches) {
    ProducerOptions options = test_options();

    options.nudges.keep_ms = 0;
    Producer producer(options);
    const CallerMemory memory = {[](void*, void* to, const void* from, __u64 bytes) {
                                     std::memcpy(to, from, bytes);
                                     return 0;
                                 },
                                 nullptr};
    const std::string payload(k64KiB / 2 - 30, 'p');
    std::vector<struct kmes_emit_entry> entries(20, {"t", 1, payload.data(), 0});
    std::vector<std::thread> threads;

    entries[7].payload_len = static_cast<__u32>(payload.size());
    ASSERT_EQ(0, producer.start_without_registry());
    for (int thread = 0; thread < 2; thread++) {
        threads.emplace_back([&] {
            for (int i = 0; i < 200; i++) {
                uint32_t emitted = 0;

                ASSERT_EQ(0, producer.serve_emit_batch(0, memory, entries.data(), 20, &emitted));
                ASSERT_EQ(20u, emitted);
            }
        });
    }
    for (int i = 0; i < 40; i++) {
        EXPECT_EQ(0, producer.resize(k64KiB << (i % 2)));
        producer.nudge_due();
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(8000u, producer.statistics().events);
    EXPECT_EQ(0u, producer.statistics().dropped);
    EXPECT_EQ(8000u, InProcessReader(producer, 0).drain().back().sequence);
}

// A lapped reader reports its exact loss.
TEST(ConcurrencyTest, LappedReaderCountsItsLosses) {
    Producer producer(test_options());
    std::vector<Delivered> events;
    std::atomic<bool> ends{false};

    ASSERT_EQ(0, producer.start_without_registry());
    ASSERT_EQ(0, producer.emit(0, "first"));
    InProcessReader reader(producer, 0);

    events = reader.drain();
    ASSERT_EQ(1u, events.size());
    std::thread emitter([&] {
        emit_numbered(&producer, 0, 0, 20000);
        ends = true;
    });

    while (!ends.load()) {
        for (Delivered& event : reader.drain()) events.push_back(std::move(event));
    }
    emitter.join();
    for (Delivered& event : reader.drain()) events.push_back(std::move(event));
    uint64_t lost = 0;

    for (size_t i = 1; i < events.size(); i++) {
        int thread = 0, number = 0;

        lost += events[i].lost_before;
        ASSERT_EQ(events[i - 1].sequence + events[i].lost_before + 1, events[i].sequence);
        ASSERT_EQ(2, sscanf(events[i].payload.c_str(), "%d %d", &thread, &number));
        ASSERT_EQ(events[i].sequence, static_cast<uint64_t>(number) + 1);
    }
    EXPECT_EQ(20001u, events.back().sequence);
    EXPECT_EQ(20001u, events.size() + lost);
    EXPECT_EQ(lost, reader.core().statistics.lost);
}

// -- Sleep and wake ---------------------------------------------------------------------------

// A reader that is asleep, or about to sleep (its flag is set), returns after `act`.
void expect_woken_by(Producer* producer, const std::function<void()>& act) {
    InProcessReader reader(*producer, 0);
    std::atomic<int> result{-1};

    ASSERT_EQ(0, reader.open_error());
    reader.drain();
    std::thread sleeper([&] { result = kmes_reader_wait(&reader.core(), patience_ns()); });

    EXPECT_TRUE(comes_true([&] { return need_wake(*producer, 0) == 1; }));
    act();
    sleeper.join();
    EXPECT_EQ(1, result.load());
}

TEST(ConcurrencyTest, SleepersAreWokenByAnEvent) {
    Producer producer(test_options());

    ASSERT_EQ(0, producer.start_without_registry());
    for (int i = 1; i <= 20; i++) {
        expect_woken_by(&producer, [&] { EXPECT_EQ(0, producer.emit(0, "t")); });
        EXPECT_EQ(static_cast<uint64_t>(i), producer.statistics().wakes);
    }
}

TEST(ConcurrencyTest, SleepersAreWokenByABatchAndByACommit) {
    Producer producer(test_options());
    std::vector<BatchEntry> entries(5, BatchEntry{"t", {}});
    size_t emitted;

    ASSERT_EQ(0, producer.start_without_registry());
    expect_woken_by(&producer, [&] { EXPECT_EQ(0, producer.emit_batch(0, entries, &emitted)); });
    EXPECT_EQ(1u, producer.statistics().wakes);  // one for each batch
    expect_woken_by(&producer, [&] {
        Reservation reservation;

        EXPECT_EQ(0, producer.reserve(0, "t", 0, &reservation));
        reservation.commit();
    });
    EXPECT_EQ(2u, producer.statistics().wakes);
}

// E3
TEST(ConcurrencyTest, SleepersAreWokenByAResize) {
    Producer producer(test_options());

    ASSERT_EQ(0, producer.start_without_registry());
    for (int i = 0; i < 10; i++)
        expect_woken_by(&producer, [&] { EXPECT_EQ(0, producer.resize(k64KiB)); });
}

// E25
TEST(ConcurrencyTest, SleepersAreWokenByTheEnd) {
    Producer producer(test_options());

    ASSERT_EQ(0, producer.start_without_registry());
    expect_woken_by(&producer, [&] { producer.retire(); });
}

// E19: a reader sleeps on a retired buffer, with the generation that the swap stored there. Only a
// nudge wakes it.
TEST(ConcurrencyTest, SleepersOnARetiredBufferAreWokenByANudge) {
    Producer producer(test_options());
    Attachment attachment;

    ASSERT_EQ(0, producer.start_without_registry());
    ASSERT_EQ(0, producer.attach(&attachment));
    ASSERT_EQ(0, producer.resize(k64KiB));
    struct kmes_fields& shared = attachment.buffers[0]->buffer()->shared;
    const uint32_t counter = __atomic_load_n(shared.futex_counter, __ATOMIC_ACQUIRE);
    const uint64_t generation = __atomic_load_n(shared.generation, __ATOMIC_ACQUIRE);
    std::atomic<int> result{-1};
    std::thread sleeper(
        [&] { result = kmes_futex_wait(shared.futex_counter, counter, patience_ns()); });

    ASSERT_EQ(0, producer.emit(0, "t"));
    EXPECT_EQ(1u, producer.nudge());
    sleeper.join();
    EXPECT_EQ(0, result.load());
    EXPECT_EQ(generation + 1, __atomic_load_n(shared.generation, __ATOMIC_ACQUIRE));
}

// E19, with the background thread that nudges by the clock.
TEST(ConcurrencyTest, BackgroundThreadNudges) {
    ProducerOptions options = test_options();

    options.nudges.in_background = true;
    Producer producer(options);
    Attachment attachment;

    ASSERT_EQ(0, producer.start_without_registry());
    ASSERT_EQ(0, producer.attach(&attachment));
    ASSERT_EQ(0, producer.resize(k64KiB));
    __u64* generation = attachment.buffers[0]->buffer()->shared.generation;

    EXPECT_TRUE(comes_true([&] { return __atomic_load_n(generation, __ATOMIC_ACQUIRE) >= 5; }));
}

// -- E14 --------------------------------------------------------------------------------------

// An attach waits during a resize: no reply has buffers of two capacities.
TEST(ConcurrencyTest, AttachNeverSeesHalfAResize) {
    Producer producer(test_options(4));
    std::atomic<bool> ends{false};

    ASSERT_EQ(0, producer.start_without_registry());
    std::thread attaching([&] {
        while (!ends.load()) {
            Attachment attachment;

            ASSERT_EQ(0, producer.attach(&attachment));
            for (const BufferHandle& memory : attachment.buffers)
                ASSERT_EQ(attachment.capacity_bytes, memory->capacity_bytes());
        }
    });

    for (int i = 0; i < 40; i++) EXPECT_EQ(0, producer.resize(k64KiB << (i % 3)));
    ends = true;
    attaching.join();
}

// -- E25 --------------------------------------------------------------------------------------

// The producer ends while emitters run. Accepted events are present, later ones were rejected, and
// the state has the last number.
TEST(ConcurrencyTest, TheEndCutsEmittersOffCleanly) {
    for (int round = 0; round < 10; round++) {
        ProducerOptions options = test_options();

        options.capacity_bytes = k4MiB;
        Producer producer(options);
        std::atomic<uint64_t> accepted{0};
        std::vector<std::thread> threads;

        ASSERT_EQ(0, producer.start_without_registry());
        InProcessReader reader(producer, 0);

        for (int i = 0; i < 3; i++) {
            threads.emplace_back([&] {
                int error;

                while ((error = producer.emit_in_kernel(0, "t")) == 0) accepted++;
                EXPECT_EQ(-ESHUTDOWN, error);
            });
        }
        EXPECT_TRUE(comes_true([&] { return accepted.load() > 100; }));
        ResumeState state = producer.retire();

        for (std::thread& thread : threads) thread.join();
        ASSERT_EQ(1u, state.cpus.size());
        EXPECT_EQ(accepted.load(), state.cpus[0].last_sequence);
        EXPECT_EQ(accepted.load(), producer.statistics().events);
        std::vector<Delivered> events = reader.drain();

        ASSERT_FALSE(events.empty());
        EXPECT_EQ(accepted.load(), events.back().sequence);
    }
}

// -- E16: a signal handler in the middle of an emission ------------------------------------------

Producer* handler_producer;
std::atomic<bool> clock_raises;
int handler_result;
bool handler_is_a_call;

void on_signal(int) {
    handler_result = handler_is_a_call ? handler_producer->emit(0, "nested")
                                       : handler_producer->emit_in_kernel(0, "nested");
}

// Called inside the critical section: the signal arrives during the emission.
uint64_t raising_clock_ns(void*) {
    if (clock_raises.exchange(false)) raise(SIGUSR1);
    return 1;
}

class NestedTest : public testing::TestWithParam<EmitterMode> {
  protected:
    void SetUp() override {
        struct sigaction action = {};

        action.sa_handler = on_signal;
        sigaction(SIGUSR1, &action, &before_);
        clock_raises = false;
        handler_result = 1;
    }
    void TearDown() override { sigaction(SIGUSR1, &before_, nullptr); }

    ProducerOptions options() {
        ProducerOptions options = test_options();

        options.emitters = GetParam();
        options.clock.now_ns = raising_clock_ns;
        return options;
    }

    struct sigaction before_ = {};
};

TEST_P(NestedTest, InKernelEventIsCountedAndItsGapShows) {
    Producer producer(options());

    ASSERT_EQ(0, producer.start_without_registry());
    handler_producer = &producer;
    handler_is_a_call = false;
    ASSERT_EQ(0, producer.emit(0, "first"));
    clock_raises = true;
    ASSERT_EQ(0, producer.emit(0, "interrupted"));
    EXPECT_EQ(-EBUSY, handler_result);
    EXPECT_EQ(1u, producer.statistics().dropped_nested);  // also before its number is used
    ASSERT_EQ(0, producer.emit(0, "after"));

    std::vector<Delivered> events = InProcessReader(producer, 0).drain();

    ASSERT_EQ(3u, events.size());
    EXPECT_EQ(1u, events[0].sequence);
    // The number of the nested emission is used before the next one is assigned (E16).
    EXPECT_EQ(4u, events[2].sequence);
    EXPECT_EQ(1u, events[1].lost_before + events[2].lost_before);
    EXPECT_EQ(1u, producer.statistics().dropped);
    EXPECT_EQ(1u, producer.statistics().dropped_nested);
}

TEST_P(NestedTest, CallIsRefusedAndUsesNoNumber) {
    Producer producer(options());

    ASSERT_EQ(0, producer.start_without_registry());
    handler_producer = &producer;
    handler_is_a_call = true;
    clock_raises = true;
    ASSERT_EQ(0, producer.emit(0, "interrupted"));
    EXPECT_EQ(-EBUSY, handler_result);
    ASSERT_EQ(0, producer.emit(0, "after"));
    EXPECT_EQ(2u, InProcessReader(producer, 0).drain().back().sequence);
    EXPECT_EQ(0u, producer.statistics().dropped);
}

TEST_P(NestedTest, BetweenTheEventsOfABatchAHandlerMayEmit) {
    Producer producer(options());
    std::vector<BatchEntry> entries = {{"a", {}}, {"b", {}}};
    size_t emitted;

    ASSERT_EQ(0, producer.start_without_registry());
    handler_producer = &producer;
    handler_is_a_call = false;
    clock_raises = true;  // the clock of a batch is read once, outside of the section
    ASSERT_EQ(0, producer.emit_batch(0, entries, &emitted));
    EXPECT_EQ(0, handler_result);
    EXPECT_EQ(3u, InProcessReader(producer, 0).drain().size());
}

INSTANTIATE_TEST_SUITE_P(Modes, NestedTest,
                         testing::Values(EmitterMode::kLocked, EmitterMode::kSingle),
                         [](const auto& info) {
                             return info.param == EmitterMode::kLocked ? "Locked" : "Single";
                         });

}  // namespace
}  // namespace kmes
