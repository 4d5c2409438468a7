// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The reader's sleep (5.1.8.2 with E1, E2, E3, E12, E17) and the loop over it: the order of its
 * accesses, its stores to need_wake, its timeouts and its results.
 */
#include <gtest/gtest.h>

#include <algorithm>

#include "kmes/tests/test_reader.h"

namespace kmes::tests {
namespace {

using Labels = std::vector<enum kmes_order_label>;

/* Returns the labels of the reader's accesses in one wait. */
Labels labels_of_wait(Reader& reader, std::uint64_t timeout_ns) {
    Labels labels;
    ScopedHook hook([&](const kmes_order_access& access) { labels.push_back(access.label); });
    kmes_reader_wait(&reader.reader, timeout_ns);
    return labels;
}

// E2: the counter before the re-check. E1: the full fence between the store and the loads. E3:
// generation together with write_pos, after the fence.
TEST(ReaderWait, ReadsTheCounterThenAsksThenFencesThenChecksAgain) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    EXPECT_EQ(
        labels_of_wait(reader, 5),
        Labels({KMES_ORDER_SLEEP_COUNTER, KMES_ORDER_ASK_WAKE, KMES_ORDER_SLEEP_FENCE,
                KMES_ORDER_SLEEP_WRITE_POS, KMES_ORDER_SLEEP_GENERATION, KMES_ORDER_CLEAR_WAKE}));
}

// E1 for a producer without a full fence: the platform's barrier between the store and the loads.
TEST(ReaderWait, ExecutesTheBarrierWhereTheMappingNeedsIt) {
    World world({});
    Reader reader(world);
    static Labels labels;

    world.platform.barrier = [](void*) {
        labels.push_back(KMES_ORDER_LABEL_COUNT);
        return 0;
    };
    ASSERT_EQ(reader.open(), 0);
    labels.clear();
    kmes_reader_wait(&reader.reader, 5);
    EXPECT_EQ(labels, Labels()) << "nobody needs it";
    reader.reader.mapping.needs_barrier = true;
    {
        ScopedHook hook([](const kmes_order_access& access) { labels.push_back(access.label); });
        kmes_reader_wait(&reader.reader, 5);
    }
    EXPECT_EQ(labels,
              Labels({KMES_ORDER_SLEEP_COUNTER, KMES_ORDER_ASK_WAKE, KMES_ORDER_SLEEP_BARRIER,
                      KMES_ORDER_LABEL_COUNT, KMES_ORDER_SLEEP_FENCE, KMES_ORDER_SLEEP_WRITE_POS,
                      KMES_ORDER_SLEEP_GENERATION, KMES_ORDER_CLEAR_WAKE}));
}

// Returns the longest sleep of a reader, with this barrier.
std::uint64_t longest_sleep_ns(int (*barrier)(void*), std::uint64_t timeout_ns) {
    World world({});
    Reader reader(world);
    std::uint64_t longest_ns = 0;

    world.platform.barrier = barrier;
    world.on_sleep = [&](std::uint32_t*, std::uint32_t, std::uint64_t limit_ns) {
        longest_ns = std::max(longest_ns, limit_ns);
        return 0;
    };
    EXPECT_EQ(reader.open(), 0);
    reader.reader.mapping.needs_barrier = true;
    EXPECT_EQ(kmes_reader_wait(&reader.reader, timeout_ns), 1);
    return longest_ns;
}

// A barrier that reached no producer costs a bounded time.
TEST(ReaderWait, SleepsWithALimitWhereItReliesOnTheBarrier) {
    const auto works = [](void*) { return 0; };
    const auto fails = [](void*) { return -ENOMEM; };

    EXPECT_EQ(longest_sleep_ns(works, KMES_NO_TIMEOUT), 100000000u);
    EXPECT_EQ(longest_sleep_ns(works, 100000001), 100000000u);
    EXPECT_EQ(longest_sleep_ns(works, 7), 7u);
    EXPECT_EQ(longest_sleep_ns(fails, KMES_NO_TIMEOUT), 1000000u);
    EXPECT_EQ(longest_sleep_ns(nullptr, KMES_NO_TIMEOUT), 1000000u) << "no barrier at all";
    EXPECT_EQ(longest_sleep_ns(fails, 999999), 999999u);
    EXPECT_EQ(longest_sleep_ns(fails, 7), 7u);
}

// The caller's timeout holds, however many limited sleeps it takes.
TEST(ReaderWait, TimesOutAfterShortSleepsWithoutTheBarrier) {
    World world({});
    Reader reader(world);
    int sleeps = 0;

    world.on_sleep = [&](std::uint32_t*, std::uint32_t, std::uint64_t) {
        sleeps++;
        return -ETIMEDOUT;
    };
    ASSERT_EQ(reader.open(), 0);
    reader.reader.mapping.needs_barrier = true;
    EXPECT_EQ(kmes_reader_wait(&reader.reader, 2500000), -ETIMEDOUT);
    EXPECT_EQ(sleeps, 3);
}

// E12: a sharer never clears the flag.
TEST(ReaderWait, NeverClearsTheFlagInSharedMode) {
    World world({});
    Reader reader(world);
    reader.config.sharing = KMES_SHARED;
    ASSERT_EQ(reader.open(), 0);
    const Labels labels = labels_of_wait(reader, 5);
    EXPECT_EQ(std::count(labels.begin(), labels.end(), KMES_ORDER_CLEAR_WAKE), 0);
    EXPECT_EQ(*world.first().buffer.shared.need_wake, 1);
    ASSERT_EQ(world.emit_sized(30_b), 0);
    EXPECT_EQ(kmes_reader_wait(&reader.reader, 5), 1);
    EXPECT_EQ(*world.first().buffer.shared.need_wake, 1);
}

// 5.1.8.2 steps 2 and 6.
TEST(ReaderWait, ClearsTheFlagWhenItIsAlone) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    world.on_sleep = [&](std::uint32_t*, std::uint32_t, std::uint64_t) {
        EXPECT_EQ(*world.first().buffer.shared.need_wake, 1) << "set while it sleeps";
        return 0;
    };
    EXPECT_EQ(kmes_reader_wait(&reader.reader, KMES_NO_TIMEOUT), 1);
    EXPECT_EQ(*world.first().buffer.shared.need_wake, 0);
    ASSERT_EQ(world.emit_sized(30_b), 0);
    EXPECT_EQ(kmes_reader_wait(&reader.reader, KMES_NO_TIMEOUT), 1);
    EXPECT_EQ(*world.first().buffer.shared.need_wake, 0);
    EXPECT_EQ(reader.reader.statistics.sleeps, 1u);
}

// E12: the end of the reader's own limit is not reported to the caller, but an interruption is.
TEST(ReaderWait, HandsOnAnInterruptionOfASleepThatHasALimit) {
    World world({});
    Reader reader(world);
    reader.config.sharing = KMES_SHARED;
    reader.config.shared_limit_ns = 50;
    ASSERT_EQ(reader.open(), 0);
    int answer = -EINTR;
    world.on_sleep = [&](std::uint32_t*, std::uint32_t, std::uint64_t timeout_ns) {
        EXPECT_EQ(timeout_ns, 50u);
        return answer;
    };
    EXPECT_EQ(kmes_reader_wait(&reader.reader, KMES_NO_TIMEOUT), -EINTR);
    answer = -ETIMEDOUT;
    EXPECT_EQ(kmes_reader_wait(&reader.reader, KMES_NO_TIMEOUT), 1);
    EXPECT_EQ(kmes_reader_wait(&reader.reader, 50), -ETIMEDOUT);
}

// E7: a reader that has stopped does not search again.
TEST(ReaderWait, SaysThatTheReaderHasStoppedBeforeItChecks) {
    World world({});
    ASSERT_EQ(world.emit_sized(60_b), 0);
    Reader reader(world);
    reader.config.stop_on_corrupt = true;
    reader.config.spin_looks = 3;
    ASSERT_EQ(reader.open(), 0);
    world.first().memory.data()[offsetof(kmes_event_header, type_len)] = 0;
    EXPECT_EQ(reader.next(), -EBADMSG);
    EXPECT_EQ(kmes_reader_wait(&reader.reader, 5), -EBADMSG);
}

TEST(ReaderWait, SleepsOnTheCounterWithTheValueReadBeforeTheRecheck) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    *world.first().buffer.shared.futex_counter = 41;
    std::uint32_t* slept_on = nullptr;
    std::uint32_t expected = 0;
    world.on_sleep = [&](std::uint32_t* word, std::uint32_t value, std::uint64_t) {
        slept_on = word;
        expected = value;
        return 0;
    };
    ScopedHook hook([&](const kmes_order_access& access) {
        if (access.label == KMES_ORDER_SLEEP_FENCE) *world.first().buffer.shared.futex_counter = 42;
    });
    EXPECT_EQ(kmes_reader_wait(&reader.reader, KMES_NO_TIMEOUT), 1);
    EXPECT_EQ(slept_on, world.first().buffer.shared.futex_counter);
    EXPECT_EQ(expected, 41u);
}

// For a caller that sleeps for several readers at a time: the same accesses, in two halves.
TEST(ReaderWaitInHalves, AsksThenSaysWhatToSleepOnThenClearsTheFlag) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    *world.first().buffer.shared.futex_counter = 41;
    kmes_wait wait{};
    Labels labels;
    {
        ScopedHook hook([&](const kmes_order_access& access) {
            labels.push_back(access.label);
            if (access.label == KMES_ORDER_SLEEP_FENCE)
                *world.first().buffer.shared.futex_counter = 42;
        });
        EXPECT_EQ(kmes_reader_wait_begin(&reader.reader, &wait), 0);
    }
    EXPECT_EQ(labels, Labels({KMES_ORDER_SLEEP_COUNTER, KMES_ORDER_ASK_WAKE, KMES_ORDER_SLEEP_FENCE,
                              KMES_ORDER_SLEEP_WRITE_POS, KMES_ORDER_SLEEP_GENERATION}));
    EXPECT_EQ(wait.word, world.first().buffer.shared.futex_counter);
    EXPECT_EQ(wait.expected, 41u);
    EXPECT_EQ(wait.limit_ns, KMES_NO_TIMEOUT);
    EXPECT_EQ(*world.first().buffer.shared.need_wake, 1);
    EXPECT_EQ(reader.reader.statistics.sleeps, 1u);
    EXPECT_FALSE(kmes_reader_wait_end(&reader.reader, 0));
    EXPECT_EQ(*world.first().buffer.shared.need_wake, 0);
}

TEST(ReaderWaitInHalves, HasNothingToEndWhereThereIsAnEvent) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    kmes_wait wait{};
    EXPECT_EQ(kmes_reader_unread_bytes(&reader.reader), 0u);
    ASSERT_EQ(world.emit_sized(30_b), 0);
    EXPECT_EQ(kmes_reader_unread_bytes(&reader.reader), 30_b);
    EXPECT_EQ(kmes_reader_wait_begin(&reader.reader, &wait), 1);
    EXPECT_EQ(*world.first().buffer.shared.need_wake, 0);
    EXPECT_EQ(reader.reader.statistics.sleeps, 0u);
    EXPECT_EQ(reader.next(), KMES_READ_EVENT);
    EXPECT_EQ(kmes_reader_unread_bytes(&reader.reader), 0u);
    *world.first().buffer.shared.write_pos = 7;  // behind the read position
    EXPECT_EQ(kmes_reader_unread_bytes(&reader.reader), 0u);
}

TEST(ReaderWaitInHalves, SharedOneHasALimitAndKeepsTheFlag) {
    World world({});
    Reader reader(world);
    reader.config.sharing = KMES_SHARED;
    reader.config.shared_limit_ns = 50;
    ASSERT_EQ(reader.open(), 0);
    kmes_wait wait{};
    EXPECT_EQ(kmes_reader_wait_begin(&reader.reader, &wait), 0);
    EXPECT_EQ(wait.limit_ns, 50u);
    EXPECT_FALSE(kmes_reader_wait_end(&reader.reader, 50));
    EXPECT_EQ(*world.first().buffer.shared.need_wake, 1);
}

TEST(ReaderWaitInHalves, SaysThatTheReaderHasStopped) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    ASSERT_EQ(world.emit_sized(30_b), 0);
    kmes_reader_close(&reader.reader);
    kmes_wait wait{};
    EXPECT_EQ(kmes_reader_wait_begin(&reader.reader, &wait), -EBADF);
    EXPECT_EQ(kmes_reader_unread_bytes(&reader.reader), 0u);
}

// E25: after a sleep that was woken, the producer is not checked; after one that found nothing it
// is, after 50 ms.
TEST(ReaderWaitInHalves, AsksForAProducerThatMayBeKilled) {
    World world({});
    Reader reader(world);
    reader.config.is_current = [](void*, __u16, kmes_mapping*) { return 0; };
    ASSERT_EQ(reader.open(), 0);
    reader.reader.mapping.session = 5;
    kmes_wait wait{};
    EXPECT_EQ(kmes_reader_wait_begin(&reader.reader, &wait), 0);
    EXPECT_EQ(wait.limit_ns, 1000000000u);
    EXPECT_FALSE(kmes_reader_wait_end(&reader.reader, 0));
    EXPECT_EQ(reader.reader.unasked_ns, 0u);
    EXPECT_FALSE(kmes_reader_wait_end(&reader.reader, 49999999));
    EXPECT_TRUE(kmes_reader_wait_end(&reader.reader, 1));
    EXPECT_EQ(kmes_reader_wait_begin(&reader.reader, &wait), 1);
    EXPECT_EQ(*world.first().buffer.shared.need_wake, 0);
}

TEST(ReaderWait, SaysWhyItEnded) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    for (const auto& [said, expected] :
         {std::pair{0, 1}, {-ETIMEDOUT, -ETIMEDOUT}, {-EINTR, -EINTR}}) {
        std::uint64_t limit = 0;
        world.on_sleep = [&, said = said](std::uint32_t*, std::uint32_t, std::uint64_t timeout_ns) {
            limit = timeout_ns;
            return said;
        };
        EXPECT_EQ(kmes_reader_wait(&reader.reader, 1234), expected);
        EXPECT_EQ(limit, 1234u);
        EXPECT_EQ(*world.first().buffer.shared.need_wake, 0);
    }
}

// E12: a consumer that cannot know sleeps with a time limit, which is not the caller's.
TEST(ReaderWait, HasALimitOfItsOwnInSharedMode) {
    World world({});
    Reader reader(world);
    reader.config.sharing = KMES_SHARED;
    std::uint64_t limit = 0;
    world.on_sleep = [&](std::uint32_t*, std::uint32_t, std::uint64_t timeout_ns) {
        limit = timeout_ns;
        return -ETIMEDOUT;
    };
    ASSERT_EQ(reader.open(), 0);
    EXPECT_EQ(kmes_reader_wait(&reader.reader, KMES_NO_TIMEOUT), 1);
    EXPECT_EQ(limit, 100000000u) << "100 ms where nothing is said";
    EXPECT_EQ(kmes_reader_wait(&reader.reader, 7), -ETIMEDOUT) << "the caller's limit is shorter";
    EXPECT_EQ(limit, 7u);
    reader.reader.config.shared_limit_ns = 900;
    EXPECT_EQ(kmes_reader_wait(&reader.reader, KMES_NO_TIMEOUT), 1);
    EXPECT_EQ(limit, 900u);
}

// E3: a consumer must not fall asleep on a dead buffer.
TEST(ReaderWait, DoesNotSleepOnABufferThatWasRetired) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    ASSERT_EQ(world.swap(512_b), 0);
    world.on_sleep = [](std::uint32_t*, std::uint32_t, std::uint64_t) -> int {
        ADD_FAILURE() << "asleep on a dead buffer";
        return 0;
    };
    EXPECT_EQ(kmes_reader_wait(&reader.reader, KMES_NO_TIMEOUT), 1);
    EXPECT_EQ(*world.first().buffer.shared.need_wake, 0);
}

// 5.1.8.2 step 4, optional: a spin that finds an event ends without a request for a wake.
TEST(ReaderWait, SpinsAsLongAsItsOptionSays) {
    World world({});
    Reader reader(world);
    reader.config.spin_looks = 3;
    ASSERT_EQ(reader.open(), 0);
    Labels labels = labels_of_wait(reader, 1);
    EXPECT_EQ(std::count(labels.begin(), labels.end(), KMES_ORDER_LOAD_WRITE_POS), 3);
    EXPECT_EQ(std::count(labels.begin(), labels.end(), KMES_ORDER_ASK_WAKE), 1);
    int loads = 0;
    ScopedHook hook([&](const kmes_order_access& access) {
        EXPECT_NE(access.label, KMES_ORDER_ASK_WAKE);
        if (access.label == KMES_ORDER_LOAD_WRITE_POS && ++loads == 2) {
            ASSERT_EQ(world.emit_sized(30_b), 0);
        }
    });
    EXPECT_EQ(kmes_reader_wait(&reader.reader, 1), 1);
    EXPECT_EQ(loads, 2);
}

TEST(ReaderRun, DeliversSleepsAndStopsOnRequest) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    ASSERT_EQ(world.emit_sized(30_b), 0);
    int sleeps = 0;
    world.on_sleep = [&](std::uint32_t*, std::uint32_t, std::uint64_t) -> int {
        if (++sleeps == 1) return -EINTR;  // continues
        EXPECT_EQ(world.emit_sized(40_b), 0);
        return 0;
    };
    Sequences delivered;
    const int result = kmes_reader_run(
        &reader.reader, reader.room, sizeof(reader.room),
        [](void* context, const kmes_event_view* view) {
            auto* sequences = static_cast<Sequences*>(context);
            sequences->push_back(view->sequence);
            return sequences->size() == 3 ? 17 : 0;
        },
        &delivered);
    EXPECT_EQ(result, 17);
    EXPECT_EQ(delivered, Sequences({1, 2, 3}));
    EXPECT_EQ(sleeps, 3);
}

TEST(ReaderRun, EndsWithTheErrorOfAReadOrOfTheFunctionOrOfASleep) {
    World world({});
    Reader reader(world);
    reader.config.stop_on_corrupt = true;
    ASSERT_EQ(reader.open(), 0);
    const kmes_event_function one = [](void*, const kmes_event_view*) { return -EINTR; };
    world.on_sleep = [](std::uint32_t*, std::uint32_t, std::uint64_t) { return -EFAULT; };
    EXPECT_EQ(kmes_reader_run(&reader.reader, reader.room, 100_b, one, nullptr), -EFAULT);
    ASSERT_EQ(world.emit_sized(50_b), 0);
    EXPECT_EQ(kmes_reader_run(&reader.reader, reader.room, 49, one, nullptr), -EMSGSIZE);
    EXPECT_EQ(kmes_reader_run(&reader.reader, reader.room, 50_b, one, nullptr), -EINTR)
        << "the function's own";
    *world.first().buffer.shared.write_pos += 10;
    EXPECT_EQ(kmes_reader_run(&reader.reader, reader.room, 50_b, one, nullptr), -EBADMSG);
}

}  // namespace
}  // namespace kmes::tests
