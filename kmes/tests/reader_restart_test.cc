// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The reader and a producer that is killed (E25). Nothing in the buffer changes, so after a sleep
 * that found nothing the reader checks the producer. Another producer has the numbers of its own
 * session, or continues the old ones.
 */
#include <gtest/gtest.h>

#include <utility>

#include "kmes/tests/test_reader.h"

namespace kmes::tests {
namespace {

constexpr std::uint64_t kAskNs = 50000000;

// The world of a killed producer, and that of the next one.
class ReaderRestart : public testing::Test {
  protected:
    void SetUp() override {
        killed_.session = 1;
        killed_.on_sleep = [this](std::uint32_t*, std::uint32_t, std::uint64_t timeout_ns) {
            sleeps_.push_back(timeout_ns);
            return -ETIMEDOUT;
        };
        killed_.on_identify = [this](kmes_mapping* mapping) { return identify(mapping); };
        ASSERT_EQ(reader_.open(), 0);
        questions_ = 0;
    }

    // The next producer takes the CPU.
    void restart(World* next) {
        killed_.on_attach = [next](kmes_mapping* mapping) {
            next->describe_current(mapping);
            mapping->inode += 1000;
            return 0;
        };
        next_ = next;
    }

    int identify(kmes_mapping* mapping) {
        questions_++;
        if (error_) return error_;
        if (next_) return killed_.on_attach(mapping);
        killed_.describe_current(mapping);
        return 0;
    }

    int wait(std::uint64_t timeout_ns) { return kmes_reader_wait(&reader_.reader, timeout_ns); }

    World killed_{{.last_sequence = 100}};
    Reader reader_{killed_};
    World* next_ = nullptr;
    std::vector<std::uint64_t> sleeps_;
    int questions_ = 0;
    int error_ = 0;
};

TEST_F(ReaderRestart, DrainsTheOldBufferAndGoesOnWithAnotherSession) {
    World next({});
    next.session = 2;
    ASSERT_EQ(killed_.emit_sized(60_b), 0);
    EXPECT_EQ(reader_.drain(), Sequences({101}));
    EXPECT_EQ(wait(kAskNs), -ETIMEDOUT) << "the producer is idle";
    ASSERT_EQ(next.emit_sized(60_b), 0);
    restart(&next);
    killed_.on_sleep = [this](std::uint32_t*, std::uint32_t, std::uint64_t) {
        EXPECT_EQ(killed_.emit_sized(60_b), 0) << "published in the last moment";
        return -ETIMEDOUT;
    };
    EXPECT_EQ(wait(kAskNs), 1);
    EXPECT_EQ(reader_.drain(), Sequences({102, 1}));
    EXPECT_EQ(reader_.reader.statistics.switches, 1u);
    EXPECT_EQ(killed_.attaches, 2) << "one for each buffer";
    EXPECT_EQ(reader_.reader.statistics.lost, 0u);
    EXPECT_EQ(reader_.reader.producer_error, 0);
}

// A process numbers a new session from 1 on, so the number of missed events is known. A kernel may
// have emitted for long.
TEST_F(ReaderRestart, CountsWhatItHasMissedOfAnotherSession) {
    World next({.last_sequence = 7}), third({.last_sequence = 20}), kernel({.last_sequence = 90});
    next.session = 2;
    third.session = 1;
    ASSERT_EQ(killed_.emit_sized(60_b), 0);
    EXPECT_EQ(reader_.drain(), Sequences({101}));
    std::uint64_t lost = 0;
    for (const auto& [world, missed] :
         {std::pair(&next, 7u), std::pair(&third, 20u), std::pair(&kernel, 0u)}) {
        ASSERT_EQ(world->emit_sized(60_b), 0);
        restart(world);
        EXPECT_EQ(wait(kAskNs), 1);
        EXPECT_EQ(reader_.drain().size(), 1u);
        lost += missed;
        EXPECT_EQ(reader_.reader.statistics.lost, lost) << "session " << world->session;
    }
}

TEST_F(ReaderRestart, GoesOnWithTheNumbersOfAResumedSession) {
    World next({.last_sequence = 100});
    next.session = 1;
    for (int i = 0; i < 2; i++) ASSERT_EQ(killed_.emit_sized(60_b), 0);
    EXPECT_EQ(reader_.drain(), Sequences({101, 102}));
    for (int i = 0; i < 4; i++) ASSERT_EQ(next.emit_sized(60_b), 0);
    restart(&next);
    EXPECT_EQ(wait(kAskNs), 1);
    EXPECT_EQ(reader_.drain(), Sequences({103, 104})) << "nothing twice";
    EXPECT_EQ(reader_.reader.statistics.not_newer, 2u);
}

TEST_F(ReaderRestart, AsksOnceInFiftyMillisecondsOfSleep) {
    for (int i = 0; i < 20; i++) EXPECT_EQ(wait(kAskNs / 10), -ETIMEDOUT);
    EXPECT_EQ(questions_, 2);
    EXPECT_EQ(wait(kAskNs - 1), -ETIMEDOUT);
    EXPECT_EQ(questions_, 2);
    EXPECT_EQ(wait(0), -ETIMEDOUT);
    EXPECT_EQ(questions_, 3);
    EXPECT_EQ(wait(kAskNs - 1001), -ETIMEDOUT);
    EXPECT_EQ(wait(1001), -ETIMEDOUT);
    EXPECT_EQ(questions_, 4);
    for (int i = 0; i < 49999; i++) EXPECT_EQ(wait(0), -ETIMEDOUT) << "a caller that polls";
    EXPECT_EQ(questions_, 4) << "each counts for 1 us";
    EXPECT_EQ(wait(0), -ETIMEDOUT);
    EXPECT_EQ(questions_, 5);
}

TEST_F(ReaderRestart, AsksThoughEverySleepIsInterrupted) {
    World next({});
    int answer = -EINTR;
    killed_.on_sleep = [&](std::uint32_t*, std::uint32_t, std::uint64_t) { return answer; };
    for (int i = 0; i < 49; i++) EXPECT_EQ(wait(KMES_NO_TIMEOUT), -EINTR);
    answer = -ETIMEDOUT;
    EXPECT_EQ(wait(999999), -ETIMEDOUT);
    EXPECT_EQ(questions_, 0) << "each counts for 1 ms";
    answer = -EINTR;
    restart(&next);
    EXPECT_EQ(wait(KMES_NO_TIMEOUT), 1);
    EXPECT_EQ(questions_, 1);
}

TEST_F(ReaderRestart, NeverAsksWhenItIsWoken) {
    killed_.on_sleep = [](std::uint32_t*, std::uint32_t, std::uint64_t) { return 0; };
    for (int i = 0; i < 100; i++) EXPECT_EQ(wait(KMES_NO_TIMEOUT), 1);
    EXPECT_EQ(questions_, 0);
}

// The reader has its own limit, in addition to the caller's.
TEST_F(ReaderRestart, SleepsForASecondAtMost) {
    EXPECT_EQ(wait(2500000000), -ETIMEDOUT);
    EXPECT_EQ(sleeps_, Sequences({1000000000, 1000000000, 500000000}));
    EXPECT_EQ(questions_, 3);
    World next({});
    next.session = 2;
    killed_.on_sleep = [&](std::uint32_t*, std::uint32_t, std::uint64_t) {
        if (++questions_ == 10) restart(&next);
        return -ETIMEDOUT;
    };
    EXPECT_EQ(wait(KMES_NO_TIMEOUT), 1) << "who sleeps without a limit comes over too";
}

TEST_F(ReaderRestart, KeepsTheBufferWhileNobodyServes) {
    error_ = -ENOSYS;
    EXPECT_EQ(wait(kAskNs), -ETIMEDOUT);
    EXPECT_EQ(reader_.reader.producer_error, -ENOSYS);
    EXPECT_EQ(reader_.next(), KMES_READ_EMPTY);
    ASSERT_EQ(killed_.emit_sized(60_b), 0);
    EXPECT_EQ(wait(kAskNs), 1);
    EXPECT_EQ(reader_.drain(), Sequences({101}));
    error_ = 0;
    EXPECT_EQ(wait(kAskNs), -ETIMEDOUT);
    EXPECT_EQ(reader_.reader.producer_error, 0);
}

TEST_F(ReaderRestart, ForgetsAnErrorWhenItHasAttachedAgain) {
    error_ = -ENOSYS;
    EXPECT_EQ(wait(kAskNs), -ETIMEDOUT);
    EXPECT_EQ(reader_.reader.producer_error, -ENOSYS);
    error_ = 0;
    ASSERT_EQ(killed_.swap(512_b), 0);
    EXPECT_EQ(reader_.next(), KMES_READ_EMPTY);
    EXPECT_EQ(reader_.reader.producer_error, 0);
}

TEST_F(ReaderRestart, HandsOnWhatTheAttachSaysAndTriesAgain) {
    World next({});
    next.session = 2;
    ASSERT_EQ(next.emit_sized(60_b), 0);
    restart(&next);
    EXPECT_EQ(wait(kAskNs), 1);
    auto attach = killed_.on_attach;
    killed_.on_attach = [](kmes_mapping*) { return -EMFILE; };
    EXPECT_EQ(reader_.next(), -EMFILE);
    EXPECT_EQ(wait(kAskNs), 1);
    killed_.on_attach = attach;
    EXPECT_EQ(reader_.drain(), Sequences({1}));
    EXPECT_EQ(wait(kAskNs), -ETIMEDOUT);
}

// The only producer of a kernel cannot be killed.
TEST_F(ReaderRestart, NeverAsksWhereThereIsOneSession) {
    World world({});
    Reader reader(world);
    world.on_sleep = killed_.on_sleep;
    ASSERT_EQ(reader.open(), 0);
    world.on_identify = [this](kmes_mapping*) { return questions_++; };
    EXPECT_EQ(kmes_reader_wait(&reader.reader, 5000000000), -ETIMEDOUT);
    EXPECT_EQ(sleeps_, Sequences({5000000000}));
    EXPECT_EQ(questions_, 0);
}

TEST_F(ReaderRestart, KeepsABufferThatIsCurrentAfterAll) {
    reader_.reader.config.is_current = [](void*, __u16, kmes_mapping*) { return 0; };
    EXPECT_EQ(wait(kAskNs), 1);
    EXPECT_EQ(reader_.next(), KMES_READ_EMPTY);
    EXPECT_EQ(killed_.attaches, 2);
    EXPECT_EQ(reader_.next(), KMES_READ_EMPTY);
    EXPECT_EQ(killed_.attaches, 2) << "not again at every check";
    EXPECT_EQ(reader_.reader.statistics.switches, 0u);
}

TEST_F(ReaderRestart, AsksForItsOwnCpu) {
    World world({.cpu_id = 7});
    world.session = 1;
    world.on_sleep = killed_.on_sleep;
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    reader.reader.config.attach_functions.identify = [](void*, __u16 cpu_id, kmes_mapping*) {
        return cpu_id == 7 ? -EPERM : -ENODEV;
    };
    EXPECT_EQ(kmes_reader_wait(&reader.reader, kAskNs), -ETIMEDOUT);
    EXPECT_EQ(reader.reader.producer_error, -EPERM);
    reader.reader.config.is_current = [](void*, __u16 cpu_id, kmes_mapping*) {
        return cpu_id == 7 ? -EPROTO : -ENODEV;
    };
    EXPECT_EQ(kmes_reader_wait(&reader.reader, kAskNs), -ETIMEDOUT);
    EXPECT_EQ(reader.reader.producer_error, -EPROTO);
}

TEST_F(ReaderRestart, AsksTheFunctionThatIsGivenForIt) {
    reader_.reader.config.is_current = [](void* context, __u16 cpu_id, kmes_mapping* mapping) {
        EXPECT_NE(context, nullptr);
        EXPECT_EQ(cpu_id, 0u);
        EXPECT_EQ(mapping->session, 1u);
        return -EPERM;
    };
    EXPECT_EQ(wait(kAskNs), -ETIMEDOUT);
    EXPECT_EQ(reader_.reader.producer_error, -EPERM);
    reader_.reader.config.is_current = [](void*, __u16, kmes_mapping*) { return 1; };
    EXPECT_EQ(wait(kAskNs), -ETIMEDOUT);
    EXPECT_EQ(reader_.reader.producer_error, 0);
    EXPECT_EQ(questions_, 0);
}

// A reader that is opened again continues at its old position.
TEST_F(ReaderRestart, ReopenedReaderDeliversNothingTwice) {
    for (int i = 0; i < 3; i++) ASSERT_EQ(killed_.emit_sized(60_b), 0);
    ASSERT_EQ(reader_.next(), KMES_READ_EVENT);
    ASSERT_EQ(reader_.next(), KMES_READ_EVENT);
    kmes_reader_close(&reader_.reader);
    const kmes_reader_place place = kmes_reader_get_place(&reader_.reader);
    EXPECT_TRUE(place.is_known);
    Reader again(killed_);
    again.config.place = place;
    ASSERT_EQ(again.open(), 0);
    EXPECT_EQ(again.drain(), Sequences({103}));
    EXPECT_EQ(again.reader.statistics.lost, 0u);

    killed_.session = 2;  // another producer: its numbers begin again
    Reader anew(killed_);
    anew.config.place = place;
    ASSERT_EQ(anew.open(), 0);
    EXPECT_EQ(anew.drain(), Sequences({101, 102, 103}));
    EXPECT_EQ(anew.reader.statistics.lost, 100u) << "1 to 100 of the new session";

    Reader nothing(killed_);
    ASSERT_EQ(nothing.open(), 0);
    EXPECT_TRUE(kmes_reader_get_place(&nothing.reader).is_known);
    EXPECT_EQ(kmes_reader_get_place(&nothing.reader).last_sequence, 100u);
    EXPECT_EQ(nothing.drain(), Sequences({101, 102, 103}));
    EXPECT_EQ(nothing.reader.statistics.lost, 0u) << "without a place it begins here";

    killed_.session = 1;
    Reader of_the_first(killed_);
    of_the_first.config.place = {2, 0, true};
    ASSERT_EQ(of_the_first.open(), 0);
    EXPECT_EQ(of_the_first.drain(), Sequences({101, 102, 103}));
    EXPECT_EQ(of_the_first.reader.statistics.lost, 100u);

    killed_.session = 0;  // a kernel
    Reader of_a_kernel(killed_);
    of_a_kernel.config.place = place;
    ASSERT_EQ(of_a_kernel.open(), 0);
    EXPECT_EQ(of_a_kernel.drain(), Sequences({101, 102, 103}));
    EXPECT_EQ(of_a_kernel.reader.statistics.lost, 0u);
}

TEST(ReaderClosed, SaysSoAndReadsNothing) {
    World world({});
    Reader reader(world);
    kmes_event_view view;
    kmes_bulk bulk;
    world.on_attach = [](kmes_mapping*) { return -EPROTO; };
    for (int round = 0; round < 2; round++) {  // not opened, and closed
        if (round == 0) {
            EXPECT_EQ(reader.open(), -EPROTO);
        } else {
            EXPECT_EQ(kmes_reader_peek(&reader.reader, &view), KMES_READ_EVENT);
            kmes_reader_close(&reader.reader);
        }
        EXPECT_FALSE(kmes_reader_peek_is_whole(&reader.reader));
        EXPECT_EQ(reader.next(), -EBADF);
        EXPECT_EQ(kmes_reader_wait(&reader.reader, 5), -EBADF);
        EXPECT_EQ(kmes_reader_peek(&reader.reader, &view), -EBADF);
        EXPECT_FALSE(kmes_reader_peek_is_whole(&reader.reader));
        EXPECT_FALSE(kmes_reader_release(&reader.reader));
        EXPECT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 512_b, &bulk, nullptr), -EBADF);
        world.on_attach = nullptr;
        ASSERT_EQ(world.emit_sized(60_b), 0);
        if (round == 0) {
            ASSERT_EQ(reader.open(), 0);
        }
    }
}

}  // namespace
}  // namespace kmes::tests
