// SPDX-License-Identifier: MIT
//
// The C++ binding over a real producer: the range, in-place reads, coroutines, errors, ownership.
#include "bindings/cpp/kmes.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>

#include <algorithm>
#include <memory>
#include <ranges>
#include <string>
#include <thread>
#include <vector>

#include "kmes/user/producer.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

using namespace std::chrono_literals;

static_assert(std::ranges::input_range<reader_set::range>);
static_assert(std::ranges::view<reader_set::range>);
static_assert(!std::is_copy_constructible_v<reader_set>);
static_assert(std::is_nothrow_move_constructible_v<reader_set>);
static_assert(detail::is_view_of_ring<std::string_view>);
static_assert(detail::is_view_of_ring<std::span<const std::byte>>);
static_assert(detail::is_view_of_ring<event>);
static_assert(!detail::is_view_of_ring<std::string>);

class BindingTest : public testing::Test {
  protected:
    void SetUp() override {
        setenv("KMES_SOCKET", address_.c_str(), 1);
        producer_ = std::make_unique<Producer>(test_options(2));
        ASSERT_EQ(0, producer_->start_without_registry());
        producer_->serve(address_);
    }
    void TearDown() override { unsetenv("KMES_SOCKET"); }

    void emit(unsigned cpu, std::string_view type, std::string_view payload = "") {
        ASSERT_EQ(0, producer_->emit(cpu, type, bytes_of(payload)));
    }

    TemporaryFolder folder_;
    std::string address_ = folder_.path("socket");
    std::unique_ptr<Producer> producer_;
};

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(BindingTest, RangeDeliversEveryFieldOfEachCpu) {
    reader_set set;
    emit(0, "a", "first");
    emit(1, "b");
    std::vector<event_copy> got;
    for (const event& each : set.available()) got.push_back(each.copy());
    ASSERT_EQ(2u, got.size());
    std::ranges::sort(got, {}, &event_copy::cpu);
    EXPECT_EQ("a", got[0].type);
    EXPECT_EQ("first", text_of(got[0].payload));
    EXPECT_EQ(1u, got[0].sequence);
    EXPECT_NE(0u, got[0].timestamp_ns);
    EXPECT_EQ(1u, got[1].cpu);
    EXPECT_TRUE(got[1].payload.empty());
    EXPECT_EQ(0, std::ranges::distance(set.available()));
    EXPECT_EQ(1u, set.statistics(0).delivered);
    EXPECT_EQ(1u, set.place(1).last_sequence);
}

TEST_F(BindingTest, RangeComposesWithViews) {
    reader_set set;
    for (int i = 0; i < 9; i++) emit(0, i % 2 ? "odd" : "even");
    const auto is_odd = [](const event& each) { return each.type == "odd"; };
    std::vector<std::uint64_t> sequences;
    for (const event& each : set.available() | std::views::filter(is_odd))
        sequences.push_back(each.sequence);
    EXPECT_EQ((std::vector<std::uint64_t>{2, 4, 6, 8}), sequences);
}

TEST_F(BindingTest, EventsSleepsUntilAnEventComes) {
    reader_set set;
    std::thread emitter([this] {
        for (int i = 0; i < 100; i++) emit(i % 2, i == 99 ? "end" : "t");
    });
    int count = 0;
    for (const event& each : set.events()) {
        count++;
        if (each.type == "end") break;
    }
    emitter.join();
    for (const event& each : set.available()) count += each.sequence > 0;
    EXPECT_EQ(100, count);
}

TEST_F(BindingTest, EventsEndsAfterItsLimit) {
    reader_set set;
    EXPECT_EQ(0, std::ranges::distance(set.events(1ms)));
    EXPECT_FALSE(set.wait(0ns));
    EXPECT_FALSE(set.wait(-1ns));
}

TEST_F(BindingTest, LossesAreReportedAtTheNextEvent) {
    reader_set set;
    emit(0, "t");
    EXPECT_EQ(1, std::ranges::distance(set.available()));
    const std::string payload(1000, 'x');
    for (int i = 0; i < 1000; i++) emit(0, "t", payload);
    std::uint64_t lost = 0, got = 0;
    for (const event& each : set.available()) {
        lost += each.lost_before;
        got++;
    }
    EXPECT_GT(lost, 0u);
    EXPECT_EQ(1000u, lost + got);
}

TEST_F(BindingTest, ReadInPlaceReturnsAValueOfWholeBytesOnly) {
    reader_set set;
    emit(0, "t", "in place");
    EXPECT_EQ("in place",
              *set.read_in_place([](const event& each) { return text_of(each.payload); }));
    EXPECT_FALSE(set.read_in_place([](const event& each) { return each.sequence; }));

    // The first call sees an event that the producer overwrites meanwhile: its value is discarded.
    emit(0, "t", "overwritten");
    int calls = 0;
    const auto slow = [&](const event& each) {
        if (calls++ == 0) {
            const std::string payload(1000, 'x');
            for (int i = 0; i < 200; i++) emit(0, "t", payload);
        }
        return each.sequence;
    };
    EXPECT_GT(*set.read_in_place(slow), 2u);
    EXPECT_EQ(2, calls);
}

TEST_F(BindingTest, ExceptionInPlaceLeavesTheEventUnread) {
    reader_set set;
    emit(0, "t");
    const auto throws = [](const event&) -> int { throw std::runtime_error("no"); };
    EXPECT_THROW(set.read_in_place(throws), std::runtime_error);
    EXPECT_EQ(1u, set.try_next()->sequence);
}

task collect(reader_set& set, int count, std::vector<std::uint64_t>& into) {
    for (int i = 0; i < count; i++) into.push_back((co_await set.next()).sequence);
}

TEST_F(BindingTest, CoroutinesTakeTurns) {
    reader_set set;
    std::vector<std::uint64_t> first, second;
    task one = collect(set, 3, first);
    task two = collect(set, 2, second);
    EXPECT_TRUE(set.dispatch());
    for (int i = 0; i < 4; i++) emit(0, "t");
    EXPECT_TRUE(set.dispatch(1));
    EXPECT_EQ(1u, first.size());
    EXPECT_TRUE(set.run(0ns));
    EXPECT_TRUE(two.is_done());
    emit(0, "t");
    EXPECT_FALSE(set.run());
    EXPECT_TRUE(one.is_done());
    EXPECT_EQ((std::vector<std::uint64_t>{1, 3, 5}), first);
    EXPECT_EQ((std::vector<std::uint64_t>{2, 4}), second);
}

TEST_F(BindingTest, DescriptorTellsAnEventLoopWhenToDispatch) {
    reader_set set;
    std::vector<std::uint64_t> sequences;
    task one = collect(set, 2, sequences);
    pollfd poll = {set.fd(), POLLIN, 0};
    EXPECT_TRUE(set.dispatch());
    EXPECT_EQ(0, ::poll(&poll, 1, 0));
    emit(0, "t");
    emit(1, "t");
    EXPECT_EQ(1, ::poll(&poll, 1, -1));
    while (set.dispatch()) ASSERT_EQ(1, ::poll(&poll, 1, -1));
    EXPECT_EQ(2u, sequences.size());
}

TEST_F(BindingTest, DestroyedTaskDoesNotWaitAnyMore) {
    reader_set set;
    std::vector<std::uint64_t> first, second, third;
    task one = collect(set, 1, first);
    {
        task gone = collect(set, 1, second);
        task also_gone = collect(set, 1, second);
    }
    task three = collect(set, 1, third);
    emit(0, "t");
    emit(0, "t");
    EXPECT_FALSE(set.dispatch());
    EXPECT_EQ((std::vector<std::uint64_t>{1}), first);
    EXPECT_TRUE(second.empty());
    EXPECT_EQ((std::vector<std::uint64_t>{2}), third);
}

TEST_F(BindingTest, SetMayEndBeforeATaskThatWaits) {
    std::vector<std::uint64_t> sequences;
    auto set = std::make_unique<reader_set>();
    task one = collect(*set, 1, sequences);
    set.reset();
    EXPECT_FALSE(one.is_done());
}

task fail(reader_set& set) {
    co_await set.next();
    throw std::runtime_error("of the coroutine");
}

TEST_F(BindingTest, TaskKeepsItsException) {
    reader_set set;
    task one = fail(set);
    one.get();
    emit(0, "t");
    EXPECT_FALSE(set.dispatch());
    EXPECT_TRUE(one.is_done());
    EXPECT_THROW(one.get(), std::runtime_error);
}

TEST_F(BindingTest, SetMovesWithItsCoroutines) {
    reader_set set;
    std::vector<std::uint64_t> sequences;
    task one = collect(set, 1, sequences);
    reader_set other = std::move(set);
    EXPECT_FALSE(set);
    emit(0, "t");
    EXPECT_FALSE(other.dispatch());
    EXPECT_EQ(1u, sequences.size());
}

// The set tries the CPUs again within the limit, and each attempt ends a wait without an event.
TEST_F(BindingTest, LimitHoldsAfterTheEndOfTheProducer) {
    const auto code_of = [](const auto& call) {
        try {
            call();
        } catch (const std::system_error& error) {
            return error.code().value();
        }
        return 0;
    };
    reader_set set;
    std::vector<std::uint64_t> sequences;
    task one = collect(set, 2, sequences);
    emit(0, "t");
    EXPECT_TRUE(set.dispatch());
    producer_->retire();
    producer_->stop_serving();
    EXPECT_EQ(ENOSYS, code_of([&] { set.run(500ms); }));
    EXPECT_EQ(ENOSYS, code_of([&] {
                  for (const event& each : set.events(500ms)) ADD_FAILURE() << each.sequence;
              }));
    EXPECT_EQ(1u, sequences.size());
}

TEST_F(BindingTest, ErrorsAreNumbersOfErrno) {
    setenv("KMES_SOCKET", folder_.path("nobody").c_str(), 1);
    std::error_code error;
    EXPECT_FALSE(reader_set::open(error));
    EXPECT_EQ(std::errc::function_not_supported, error);
    EXPECT_THROW(reader_set{}, std::system_error);
    emit(0, "this producer is not asked");
    EXPECT_THROW(kmes::emit("t"), std::system_error);
    kmes::emit(std::string(70000, 't'), {}, error);
    EXPECT_EQ(std::errc::no_space_on_device, error);
}

TEST_F(BindingTest, EmitReachesTheProducer) {
    reader_set set;
    kmes::emit("from.a.peer", bytes_of("payload"));
    const std::optional<event> found = set.try_next();
    ASSERT_TRUE(found);
    EXPECT_EQ("from.a.peer", found->type);
    std::error_code error;
    EXPECT_TRUE(set.error_of(2));
    kmes::emit("", {}, error);
    EXPECT_EQ(std::errc::invalid_argument, error);
}

TEST_F(BindingTest, GenerationFollowsAResize) {
    reader_set set;
    const std::uint64_t before = set.generation(0);
    ASSERT_EQ(0, producer_->resize(128 << 10));
    for (const event& each : set.available()) EXPECT_EQ(0u, each.lost_before);
    EXPECT_EQ(before + 1, set.generation(0));
    EXPECT_EQ(0u, set.generation(2));
    EXPECT_EQ(0u, set.buffer(0).generation) << "there was no event";
    emit(0, "t");
    ASSERT_TRUE(set.try_next());
    EXPECT_EQ(before + 1, set.buffer(0).generation);
    EXPECT_EQ(1u, set.buffer(0).switches);
}

}  // namespace
}  // namespace kmes
