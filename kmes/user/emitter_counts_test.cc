// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// The counts of emitters: their number is bounded, whatever clients do, and the totals are exact.
#include "kmes/user/emitter_counts.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "kmes/user/libkmes_parts.h"
#include "kmes/user/producer.h"
#include "kmes/user/raw_client.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

EmitterCount sum_of(const std::vector<EmitterCount>& counts) {
    EmitterCount sum = {0, 0, 0, 0, 0, 0};

    for (const EmitterCount& count : counts) {
        sum.emitters += count.emitters;
        sum.events += count.events;
        sum.bytes += count.bytes;
        sum.refused += count.refused;
    }
    return sum;
}

TEST(EmitterCountsTest, LatestComesFirstAfterTheSum) {
    EmitterCounts counts;

    counts.add({0, 5, 1, 1, 40, 0});
    counts.add({getpid(), 0, 1, 2, 80, 1});
    counts.add({0, 5, 1, 1, 40, 0});
    const auto all = counts.snapshot();

    ASSERT_EQ(3u, all.size());
    EXPECT_EQ(0u, all[0].emitters);
    EXPECT_EQ(0u, all[0].events);
    EXPECT_EQ(5u, all[1].user);
    EXPECT_EQ(2u, all[1].events);
    EXPECT_EQ(80u, all[1].bytes);
    EXPECT_EQ(getpid(), all[2].process);
    EXPECT_EQ(1u, all[2].refused);
}

// Processes whose end is not visible: those of another PID namespace, identified by their users.
TEST(EmitterCountsTest, TenThousandPeersAreBoundedAndTheSumsAreExact) {
    EmitterCounts counts;

    for (uid_t user = 0; user < 10000; user++) counts.add({0, user, 1, 2, 100, 1});
    const auto all = counts.snapshot();
    const EmitterCount sum = sum_of(all);

    EXPECT_EQ(EmitterCounts::kMost + 1, all.size());
    EXPECT_EQ(10000 - EmitterCounts::kMost, all[0].emitters);
    EXPECT_EQ(9999u, all[1].user);
    EXPECT_EQ(10000u, sum.emitters);
    EXPECT_EQ(20000u, sum.events);
    EXPECT_EQ(1000000u, sum.bytes);
    EXPECT_EQ(10000u, sum.refused);
}

TEST(EmitterCountsTest, ProcessThatHasEndedIsPartOfTheSum) {
    EmitterCounts counts;
    const pid_t child = fork();

    if (child == 0) _exit(0);
    counts.add({child, 0, 1, 3, 90, 0});
    EXPECT_EQ(2u, counts.snapshot().size());  // the process still exists, as a zombie
    waitpid(child, nullptr, 0);
    for (int i = 0; i < 2; i++) {
        const auto all = counts.snapshot();

        ASSERT_EQ(1u, all.size());
        EXPECT_EQ(1u, all[0].emitters);
        EXPECT_EQ(3u, all[0].events);
    }
}

TEST(EmitterCountsTest, ThreadsLoseNoCount) {
    constexpr unsigned kThreads = 4, kCalls = 5000;
    EmitterCounts counts;
    std::vector<std::thread> threads;

    for (unsigned i = 0; i < kThreads; i++) {
        threads.emplace_back([&counts, i] {
            for (unsigned call = 0; call < kCalls; call++)
                counts.add({0, call % 500 + i, 1, 1, 30, 0});
        });
    }
    for (int i = 0; i < 100; i++) EXPECT_LE(counts.snapshot().size(), EmitterCounts::kMost + 1);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(kThreads * kCalls, sum_of(counts.snapshot()).events);
}

// -- By the socket -----------------------------------------------------------------------------

class EmittersTest : public testing::Test {
  protected:
    EmittersTest() {
        EXPECT_EQ(0, producer_.start_without_registry());
        setenv(KMES_SOCKET_ENVIRONMENT, address_.c_str(), 1);
    }
    ~EmittersTest() override { unsetenv(KMES_SOCKET_ENVIRONMENT); }

    std::vector<kmes_socket_emitter> ask(int expected = 0) {
        std::vector<kmes_socket_emitter> room(KMES_SOCKET_EMITTERS_MAX);
        __u32 count = 0;

        EXPECT_EQ(expected, kmes_socket_emitters(room.data(), &count));
        room.resize(count);
        return room;
    }

    TemporaryFolder folder_;
    std::string address_ = folder_.path("socket");
    Producer producer_{test_options()};
};

TEST_F(EmittersTest, EachProcessHasItsEventsBytesAndRefusals) {
    producer_.serve(address_);
    const pid_t child = fork();

    if (child == 0) {
        const kmes_emit_entry entries[] = {{"ab", 2, "xyz", 3}, {"c", 1, nullptr, 0}};
        __u32 emitted = 0;

        if (kmes_socket_emit_batch(entries, 2, &emitted) != 0) _exit(1);
        _exit(kmes_socket_emit("\xff", 1, nullptr, 0) == -EINVAL ? 0 : 2);
    }
    int status = 0;

    // The process is a zombie until its parent waits for it.
    siginfo_t ended = {};
    ASSERT_EQ(0, waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT));
    EXPECT_EQ(0, kmes_socket_emit("type", 4, "payload", 7));
    auto all = ask();
    ASSERT_EQ(3u, all.size());
    EXPECT_EQ(0u, all[0].emitters);
    EXPECT_EQ(static_cast<__u32>(getpid()), all[1].process);
    EXPECT_EQ(geteuid(), all[1].user);
    EXPECT_EQ(1u, all[1].events);
    EXPECT_EQ(29u + 4 + 7, all[1].bytes);
    EXPECT_EQ(0u, all[1].refused);
    EXPECT_EQ(static_cast<__u32>(child), all[2].process);
    EXPECT_EQ(2u, all[2].events);
    EXPECT_EQ(29u + 2 + 3 + 29 + 1, all[2].bytes);
    EXPECT_EQ(1u, all[2].refused);
    EXPECT_EQ(all[1].bytes + all[2].bytes, producer_.statistics().bytes);
    waitpid(child, &status, 0);
    EXPECT_EQ(0, status);
    all = ask();
    ASSERT_EQ(2u, all.size());
    EXPECT_EQ(1u, all[0].emitters);
    EXPECT_EQ(2u, all[0].events);
}

// The events before the bad one of a batch count.
TEST_F(EmittersTest, BatchCountsWhatIsBeforeItsBadEntry) {
    const kmes_emit_entry entries[] = {{"a", 1, "1", 1}, {"\xff", 1, "2", 1}, {"c", 1, "3", 1}};
    __u32 emitted = 0;

    producer_.serve(address_);
    EXPECT_EQ(-EINVAL, kmes_socket_emit_batch(entries, 3, &emitted));
    EXPECT_EQ(1u, emitted);
    const auto all = ask();

    ASSERT_EQ(2u, all.size());
    EXPECT_EQ(1u, all[1].events);
    EXPECT_EQ(31u, all[1].bytes);
    EXPECT_EQ(1u, all[1].refused);
}

// A producer of two addresses: the emitters at one are visible at the other, to clients that may
// attach.
TEST_F(EmittersTest, AskingIsPartOfThePrivilegeToAttach) {
    const std::string emitters = folder_.path("emit");

    producer_.serve(address_, 0600, Serves::kAttach);
    producer_.serve(emitters, 0600, Serves::kEmit);
    EXPECT_EQ(-EPERM, kmes_socket_emit("t", 1, nullptr, 0));  // a refusal of this process
    setenv(KMES_SOCKET_ENVIRONMENT, emitters.c_str(), 1);
    EXPECT_EQ(0, kmes_socket_emit("t", 1, nullptr, 0));
    ask(-EPERM);
    setenv(KMES_SOCKET_ENVIRONMENT, address_.c_str(), 1);
    const auto all = ask();

    ASSERT_EQ(2u, all.size());
    EXPECT_EQ(1u, all[1].events);
    EXPECT_EQ(1u, all[1].refused);
}

// The longest answer fits into a packet.
TEST_F(EmittersTest, AsManyAsThereCanBe) {
    producer_.serve(address_);
    for (uid_t user = 0; user < 10000; user++)
        producer_.emitter_counts()->add({0, user, 1, 1, 30, 0});
    const auto all = ask();
    uint64_t events = 0;

    EXPECT_EQ(KMES_SOCKET_EMITTERS_MAX, all.size());
    for (const auto& emitter : all) events += emitter.events;
    EXPECT_EQ(10000u, events);
}

}  // namespace
}  // namespace kmes
