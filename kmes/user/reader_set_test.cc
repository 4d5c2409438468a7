// SPDX-License-Identifier: GPL-2.0-only OR MIT
// A reader of all CPUs: no event is lost or repeated, no CPU is starved, and no sleep misses an
// event.
#include <gtest/gtest.h>
#include <poll.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "kmes/user/reader_set_testing.h"

namespace kmes {
namespace {

constexpr uint64_t kLongNs = 3600'000'000'000;

TEST_F(ReaderSetTest, DeliversTheEventsOfEveryCpu) {
    start(3);
    ASSERT_EQ(0, kmes_reader_set_open(&set_, nullptr));
    EXPECT_EQ(3u, kmes_reader_set_cpus(set_));
    EXPECT_EQ(0, consume());
    for (unsigned cpu = 0; cpu < 3; cpu++) emit(cpu, 600);
    EXPECT_EQ(1800, consume());
    EXPECT_EQ(0, consume());
    for (unsigned cpu = 0; cpu < 3; cpu++) {
        EXPECT_EQ(600u, last_[cpu]);
        EXPECT_EQ(600u, kmes_reader_set_statistics(set_, cpu).delivered);
        EXPECT_EQ(0, kmes_reader_set_error(set_, cpu));
    }
    EXPECT_EQ(-EINVAL, kmes_reader_set_error(set_, 3));
    EXPECT_EQ(0u, kmes_reader_set_statistics(set_, 3).delivered);
}

TEST_F(ReaderSetTest, SleepsForAllCpusAtATime) {
    for (const bool is_exclusive : {false, true}) {
        start(4);
        kmes_reader_set_options options = {};

        options.is_exclusive = is_exclusive;
        last_.clear();
        ASSERT_EQ(0, kmes_reader_set_open(&set_, &options));
        for (unsigned cpu = 0; cpu < 4; cpu++) {
            std::thread emitter([this, cpu] {
                EXPECT_TRUE(comes_true([this] { return is_set_asleep(); }));
                emit(cpu);
            });

            EXPECT_EQ(1, poll(KMES_NO_TIMEOUT));
            emitter.join();
        }
        kmes_reader_set_close(set_);
        set_ = nullptr;
    }
}

// More CPUs than the kernel accepts in one wait.
TEST_F(ReaderSetTest, WaitsForMoreCpusThanOneSleepCovers) {
    start(140);
    ASSERT_EQ(0, kmes_reader_set_open(&set_, nullptr));
    std::thread emitter([this] {
        EXPECT_TRUE(comes_true([this] { return is_set_asleep(); }));
        emit(139);
    });

    EXPECT_EQ(1, poll(KMES_NO_TIMEOUT));
    EXPECT_EQ(1u, last_[139]);
    emitter.join();
}

TEST_F(ReaderSetTest, TimeIsOverWhereNothingComes) {
    start(2);
    ASSERT_EQ(0, kmes_reader_set_open(&set_, nullptr));
    EXPECT_EQ(0, poll(0));
    EXPECT_EQ(0, poll(1000));
    EXPECT_EQ(-ETIMEDOUT, kmes_reader_set_wait(set_, 0));
    emit(1);
    EXPECT_EQ(1, kmes_reader_set_wait(set_, 0));
    EXPECT_EQ(1, poll(0));
}

TEST_F(ReaderSetTest, FunctionThatStopsLosesNothing) {
    start(2);
    ASSERT_EQ(0, kmes_reader_set_open(&set_, nullptr));
    emit(0, 100);
    emit(1, 100);
    then_ = [this](const kmes_event_view&) { return total_ % 7 == 0 ? -ECANCELED : 0; };
    for (int stops = 0; stops < 28; stops++) EXPECT_EQ(-ECANCELED, consume());
    EXPECT_EQ(196, total_);
    then_ = [](const kmes_event_view&) { return 1; };
    EXPECT_EQ(1, consume());
    EXPECT_EQ(1, poll(0));
    then_ = nullptr;
    EXPECT_EQ(1, consume(1));
    EXPECT_EQ(1, consume());
    EXPECT_EQ(100u, last_[0]);
    EXPECT_EQ(100u, last_[1]);
}

// Each event of CPU 0 causes another one.
TEST_F(ReaderSetTest, RingThatIsNeverEmptyStarvesNobody) {
    start(3);
    ASSERT_EQ(0, kmes_reader_set_open(&set_, nullptr));
    emit(0);
    emit(1, 300);
    emit(2);
    then_ = [this](const kmes_event_view& view) {
        if (view.cpu_id == 0) emit(0);
        return 0;
    };
    EXPECT_EQ(3000, consume(3000));
    EXPECT_EQ(300u, last_[1]);
    EXPECT_EQ(1u, last_[2]);
}

TEST_F(ReaderSetTest, FollowsEveryBuffer) {
    start(3);
    ASSERT_EQ(0, kmes_reader_set_open(&set_, nullptr));
    for (int i = 0; i < 6; i++) {
        for (unsigned cpu = 0; cpu < 3; cpu++) emit(cpu, 40);
        if (i % 2) {
            EXPECT_LT(0, consume(50));
        }
        ASSERT_EQ(0, producer_->resize(k64KiB << (i & 1)));
    }
    std::thread resizer([this] {
        EXPECT_TRUE(comes_true([this] { return is_set_asleep(); }));
        EXPECT_EQ(0, producer_->resize(k64KiB));
        emit(2);
    });

    while (last_[2] < 241) ASSERT_LE(0, poll(KMES_NO_TIMEOUT));
    resizer.join();
    EXPECT_EQ(240u, last_[0]);
    EXPECT_EQ(240u, last_[1]);
}

TEST_F(ReaderSetTest, TakesAnEventOfAnySize) {
    start(2);
    ASSERT_EQ(0, kmes_reader_set_open(&set_, nullptr));
    const std::string large(k64KiB / 2 - 100, 'x');
    kmes_event_view view;

    ASSERT_EQ(0, producer_->emit(1, "t", bytes_of(large)));
    ASSERT_EQ(KMES_READ_EVENT, kmes_reader_set_next(set_, &view));
    EXPECT_EQ(large, std::string(reinterpret_cast<const char*>(view.payload), view.payload_len));
    EXPECT_EQ(KMES_READ_EMPTY, kmes_reader_set_next(set_, &view));
}

TEST_F(ReaderSetTest, ShowsEventsInPlace) {
    start(2);
    ASSERT_EQ(0, kmes_reader_set_open(&set_, nullptr));
    kmes_event_view view;

    EXPECT_EQ(KMES_READ_EMPTY, kmes_reader_set_peek(set_, &view));
    EXPECT_FALSE(kmes_reader_set_peek_is_whole(set_));
    EXPECT_FALSE(kmes_reader_set_release(set_));
    emit(1, 2);
    ASSERT_EQ(KMES_READ_EVENT, kmes_reader_set_peek(set_, &view));
    EXPECT_EQ(1u, view.sequence);
    EXPECT_TRUE(kmes_reader_set_peek_is_whole(set_));
    EXPECT_TRUE(kmes_reader_set_release(set_));
    ASSERT_EQ(KMES_READ_EVENT, kmes_reader_set_peek(set_, &view));
    EXPECT_EQ(2u, view.sequence);
    emit(1, 3000);  // it is overwritten
    EXPECT_FALSE(kmes_reader_set_release(set_));
    EXPECT_EQ(KMES_READ_EVENT, kmes_reader_set_next(set_, &view));
    EXPECT_LT(2u, view.sequence);
}

// One wake for many events, and only after the unread bytes have reached the watermark.
TEST_F(ReaderSetTest, WaitsForTheWatermark) {
    start(2);
    kmes_reader_set_options options = {};

    options.is_exclusive = true;
    options.watermark_bytes = 8192;
    options.watermark_ns = kLongNs;
    ASSERT_EQ(0, kmes_reader_set_open(&set_, &options));
    std::thread emitter([this] {
        EXPECT_TRUE(comes_true([this] { return is_set_asleep(); }));
        emit(0);
        EXPECT_TRUE(comes_true([this] { return asking_cpus(*producer_) == 0; }));
        emit(0, 200);
        emit(1, 200);
    });

    EXPECT_LE(8192 / 30, poll(KMES_NO_TIMEOUT));
    emitter.join();
    EXPECT_EQ(1u, producer_->statistics().wakes);
}

TEST_F(ReaderSetTest, WatermarkEndsWithItsTimeAndWithTheTimeout) {
    start(2);
    kmes_reader_set_options options = {};

    options.watermark_bytes = 8192;
    options.watermark_ns = 1'000'000;
    ASSERT_EQ(0, kmes_reader_set_open(&set_, &options));
    emit(1);
    EXPECT_EQ(1, poll(KMES_NO_TIMEOUT));
    kmes_reader_set_close(set_);
    options.watermark_ns = kLongNs;
    ASSERT_EQ(0, kmes_reader_set_open(&set_, &options));
    last_.clear();
    EXPECT_EQ(1, poll(1'000'000));
    options.watermark_bytes = UINT64_MAX;  // a ring that is a quarter full is enough
    kmes_reader_set_close(set_);
    ASSERT_EQ(0, kmes_reader_set_open(&set_, &options));
    last_.clear();
    emit(0, 1000);
    EXPECT_EQ(1001, poll(KMES_NO_TIMEOUT));
}

// -- CPUs that refuse, end and come again ------------------------------------------------------

TEST_F(ReaderSetTest, CpuThatRefusesIsTriedAgain) {
    start(3);
    kmes_reader_set_options options = refusing_.options();

    refusing_.first = 2;
    refusing_.refusals = 2;
    ASSERT_EQ(0, kmes_reader_set_open(&set_, &options));
    EXPECT_EQ(-EMFILE, kmes_reader_set_error(set_, 2));
    emit(0);
    emit(2);
    EXPECT_EQ(1, poll(KMES_NO_TIMEOUT));
    EXPECT_EQ(1u, last_[0]);
    EXPECT_EQ(1, poll(KMES_NO_TIMEOUT));
    EXPECT_EQ(1u, last_[2]);
    EXPECT_EQ(0, kmes_reader_set_error(set_, 2));
}

TEST_F(ReaderSetTest, ChangeThatIsRefusedIsTriedAgain) {
    start(2);
    kmes_reader_set_options options = refusing_.options();

    ASSERT_EQ(0, kmes_reader_set_open(&set_, &options));
    emit(1);
    EXPECT_EQ(1, consume());
    ASSERT_EQ(0, producer_->resize(2 * k64KiB));
    emit(1);
    refusing_.refusals = 3;
    EXPECT_EQ(1, poll(KMES_NO_TIMEOUT));
    EXPECT_EQ(2u, last_[1]);
    EXPECT_EQ(0, kmes_reader_set_error(set_, 1));
}

TEST_F(ReaderSetTest, GenerationIsThatOfTheBufferThatIsRead) {
    start(2);
    ASSERT_EQ(0, kmes_reader_set_open(&set_, nullptr));
    const uint64_t before = kmes_reader_set_generation(set_, 1);

    ASSERT_EQ(0, producer_->resize(2 * k64KiB));
    EXPECT_EQ(before, kmes_reader_set_generation(set_, 1));
    EXPECT_TRUE(switches_to(before + 1, 1));
    EXPECT_EQ(0u, kmes_reader_set_generation(set_, 2));
}

// Unlike the generation, it changes with the first event of a buffer and not with the attach.
TEST_F(ReaderSetTest, BufferIsThatOfTheLastEvent) {
    start(2);
    ASSERT_EQ(0, kmes_reader_set_open(&set_, nullptr));
    const kmes_reader_buffer* buffer = kmes_reader_set_buffer(set_, 1);
    kmes_event_view view;

    ASSERT_NE(nullptr, buffer);
    EXPECT_EQ(nullptr, kmes_reader_set_buffer(set_, 2));
    EXPECT_EQ(0u, buffer->generation);
    emit(1, 2);
    EXPECT_EQ(2, consume());
    const kmes_reader_buffer first = *buffer;
    EXPECT_EQ(kmes_reader_set_get_place(set_, 1).session, first.session);
    EXPECT_EQ(kmes_reader_set_generation(set_, 1), first.generation);
    EXPECT_EQ(0u, first.switches);
    ASSERT_EQ(0, producer_->resize(2 * k64KiB));
    EXPECT_TRUE(switches_to(first.generation + 1, 1));
    EXPECT_EQ(first.generation, buffer->generation) << "there was no event";
    emit(1, 2);
    then_ = [&](const kmes_event_view&) {
        EXPECT_EQ(first.generation + 1, buffer->generation);
        EXPECT_EQ(1u, buffer->switches);
        return 0;
    };
    EXPECT_EQ(2, consume());
    emit(1);
    ASSERT_EQ(0, producer_->resize(k64KiB));
    emit(1);
    for (const unsigned switches : {1u, 2u}) {
        ASSERT_TRUE(
            comes_true([&] { return kmes_reader_set_peek(set_, &view) == KMES_READ_EVENT; }));
        EXPECT_EQ(switches, buffer->switches);
        EXPECT_TRUE(kmes_reader_set_release(set_));
    }
    EXPECT_EQ(0u, kmes_reader_set_buffer(set_, 0)->session) << "it had no event";
}

TEST_F(ReaderSetTest, OpenSaysWhyNoCpuCanBeRead) {
    start(2);
    kmes_reader_set_options options = refusing_.options();

    refusing_.refusals = 2;
    EXPECT_EQ(-EMFILE, kmes_reader_set_open(&set_, &options));
    EXPECT_EQ(nullptr, set_);
    producer_.reset();
    EXPECT_EQ(-ENOSYS, kmes_reader_set_open(&set_, nullptr));
    EXPECT_EQ(nullptr, set_);
}

TEST_F(ReaderSetTest, GoesOnWithTheNextProducer) {
    start(2);
    ASSERT_EQ(0, kmes_reader_set_open(&set_, nullptr));
    emit(0, 3);
    emit(1, 3);
    EXPECT_EQ(6, consume());
    producer_->retire();
    producer_->stop_serving();
    EXPECT_EQ(-ENOSYS, poll(1'000'000));
    EXPECT_EQ(-ENOSYS, kmes_reader_set_error(set_, 0));
    start(2);
    last_.clear();
    const kmes_reader_buffer before = *kmes_reader_set_buffer(set_, 1);
    emit(1);
    EXPECT_EQ(1, poll(KMES_NO_TIMEOUT));
    EXPECT_EQ(1u, last_[1]);
    EXPECT_NE(before.session, kmes_reader_set_buffer(set_, 1)->session);
    EXPECT_EQ(before.switches + 1, kmes_reader_set_buffer(set_, 1)->switches);
}

// Each question may take a second, and the caller's time is over.
TEST_F(ReaderSetTest, OneCpuAtATimeAsksAProducerThatDoesNotAnswer) {
    static std::vector<unsigned> asked;
    kmes_reader_set_options options = {};

    start(4);
    asked.clear();
    options.configure = [](void*, kmes_reader_config* config, __u16 cpu) {
        kmes_reader_by_libkmes(config, cpu);
        config->is_current = [](void*, __u16 of, kmes_mapping*) {
            asked.push_back(of);
            return -ETIMEDOUT;
        };
    };
    options.cpus = Refusing::cpus;
    ASSERT_EQ(0, kmes_reader_set_open(&set_, &options));
    while (asked.size() < 8) {
        const size_t before = asked.size();

        kmes_reader_set_wait(set_, 1);
        ASSERT_GE(before + 1, asked.size());
    }
    EXPECT_EQ((std::vector<unsigned>{0, 1, 2, 3, 0, 1, 2, 3}), asked);
}

// The mappings of this process that a consumer could write. Those of the producer exist before.
size_t writable_metadata() {
    std::ifstream maps("/proc/self/maps");
    size_t count = 0;

    for (std::string line; std::getline(maps, line);)
        count += line.find("kmes") != std::string::npos && line.find("rw-s") != std::string::npos;
    return count;
}

TEST_F(ReaderSetTest, ReadOnlySetAsksForNoWake) {
    start(2);
    kmes_reader_set_options options = {};
    const size_t writable = writable_metadata();

    EXPECT_LT(0u, writable);
    options.is_read_only = true;
    ASSERT_EQ(0, kmes_reader_set_open(&set_, &options));
    EXPECT_EQ(writable, writable_metadata());
    EXPECT_EQ(-ETIMEDOUT, kmes_reader_set_wait(set_, 20'000'000));
    EXPECT_EQ(0u, asking_cpus(*producer_));
    for (int i = 0; i < 3; i++) {
        std::thread emitter([this, i] {
            if (i == 1) {
                EXPECT_EQ(0, producer_->resize(2 * k64KiB));
            }
            emit(1);
        });

        EXPECT_EQ(1, poll(KMES_NO_TIMEOUT));
        emitter.join();
    }
    EXPECT_EQ(0u, asking_cpus(*producer_));
    const size_t of_new_buffers = writable_metadata();  // the producer's

    kmes_reader_set_close(set_);
    set_ = nullptr;
    EXPECT_EQ(of_new_buffers, writable_metadata());
    EXPECT_EQ(0u, producer_->statistics().wakes);
}

TEST_F(ReaderSetTest, ReadOnlySetHasAHandle) {
    start(2);
    kmes_reader_set_options options = {};

    options.is_read_only = true;
    ASSERT_EQ(0, kmes_reader_set_open(&set_, &options));
    pollfd entry = {kmes_reader_set_fd(set_), POLLIN, 0};

    EXPECT_EQ(0, consume());
    EXPECT_EQ(0, ::poll(&entry, 1, 50));
    emit(0);
    EXPECT_EQ(1, ::poll(&entry, 1, static_cast<int>(patience_ns() / 1'000'000)));
    EXPECT_EQ(1, consume());
    EXPECT_EQ(0u, asking_cpus(*producer_));
}

// The structure of a program that was compiled with the header of another release.
TEST_F(ReaderSetTest, OptionsMayBeThoseOfAnotherRelease) {
    start(1);
    struct {
        kmes_reader_set_options known;
        uint64_t later[600];
    } options = {};
    const auto opens_with = [&](uint64_t size) {
        options.known.size = size;
        const int error = kmes_reader_set_open(&set_, &options.known);

        EXPECT_EQ(error == 0, set_ != nullptr);
        kmes_reader_set_close(set_);
        set_ = nullptr;
        return error;
    };

    EXPECT_EQ(0, opens_with(0));
    EXPECT_EQ(0, opens_with(sizeof(options.known)));
    EXPECT_EQ(0, opens_with(sizeof(options.known) + 16));
    EXPECT_EQ(-EINVAL, opens_with(KMES_READER_SET_OPTIONS_0_20_BYTES - 1));
    EXPECT_EQ(-E2BIG, opens_with(4097));
    options.later[1] = 1;
    EXPECT_EQ(-E2BIG, opens_with(sizeof(options.known) + 16));
    EXPECT_EQ(0, opens_with(sizeof(options.known) + 8));
    EXPECT_EQ(0, opens_with(0));
    // The fields that the size covers are read.
    options.known.watermark_bytes = 1;
    EXPECT_EQ(-EINVAL, opens_with(sizeof(options.known)));
    EXPECT_EQ(-EINVAL, opens_with(0));
}

TEST_F(ReaderSetTest, OptionsThatContradictAreRefused) {
    start(1);
    kmes_reader_set_options bytes_alone = {}, time_alone = {}, no_count = {};
    kmes_reader_set_options read_only_alone = {}, read_only_configured = refusing_.options();
    kmes_reader_set_options no_place = {};

    bytes_alone.watermark_bytes = 1;
    time_alone.watermark_ns = 1;
    no_count.configure = Refusing::configure;
    read_only_alone.is_read_only = read_only_alone.is_exclusive = true;
    read_only_configured.is_read_only = true;
    no_place.places = 2;
    for (const auto* options :
         {&bytes_alone, &time_alone, &no_count, &read_only_alone, &read_only_configured, &no_place})
        EXPECT_EQ(-EINVAL, kmes_reader_set_open(&set_, options));
    kmes_reader_set_close(nullptr);
}

}  // namespace
}  // namespace kmes
