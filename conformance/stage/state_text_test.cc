// SPDX-License-Identifier: MIT
#include "conformance/stage/state_text.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>

namespace kmes::conformance {

namespace {

ThreadState thread_in(pid_t tid, long call_number) {
    ThreadState thread;
    thread.tid = tid;
    thread.activity = Activity::kBlocked;
    thread.call_number = call_number;
    return thread;
}

TEST(RangesText, JoinsNeighbours) {
    EXPECT_EQ(ranges_text({}), "");
    EXPECT_EQ(ranges_text({3}), "3");
    EXPECT_EQ(ranges_text({3, 4}), "3, 4");
    EXPECT_EQ(ranges_text({0, 1, 2, 3, 7, 9, 10}), "0 to 3, 7, 9, 10");
}

TEST(DescribeThreads, GroupsThreadsInTheSameState) {
    Inspection inspection;
    inspection.threads = {thread_in(11, SYS_futex)};
    EXPECT_EQ(describe_threads(inspection), "1 thread; 11 blocked in system call 202 (futex)");
    for (const pid_t tid : {12, 13, 14}) inspection.threads.push_back(thread_in(tid, SYS_futex));
    inspection.threads.push_back(thread_in(20, 999));
    inspection.threads.push_back(thread_in(21, 999));
    EXPECT_EQ(describe_threads(inspection),
              "6 threads; 11, 12 and 2 others blocked in system call 202 (futex); 20 and 21 "
              "blocked in system call 999");
}

TEST(WaitsByIoUring, IsTrueForABlockedThread) {
    Inspection inspection;
    inspection.threads = {thread_in(11, SYS_futex), thread_in(12, SYS_io_uring_enter)};
    EXPECT_TRUE(waits_by_io_uring(inspection));
    inspection.threads.back().activity = Activity::kRunning;
    EXPECT_FALSE(waits_by_io_uring(inspection));
}

TEST(DescribeThreads, ShowsADistantLimit) {
    ThreadState thread = thread_in(11, SYS_futex);
    thread.limit = TimeLimit::kRelative;
    thread.limit_ns = 90'000'000;
    Inspection inspection;
    inspection.threads = {thread};
    EXPECT_EQ(describe_threads(inspection),
              "1 thread; 11 blocked in system call 202 (futex), with a time limit");
    EXPECT_FALSE(far_limit_seconds(thread));
    inspection.threads.front().limit_ns = 3600ll * 1'000'000'000;
    EXPECT_EQ(describe_threads(inspection),
              "1 thread; 11 blocked in system call 202 (futex), with a time limit 3600 s ahead");
    // A time of day, for a clock that counts from the boot of the machine.
    thread.limit = TimeLimit::kAbsolute;
    thread.limit_clock = CLOCK_MONOTONIC;
    thread.limit_ns = time(nullptr) * 1'000'000'000;
    inspection.threads = {thread};
    EXPECT_NE(describe_threads(inspection).find(" s ahead (absolute, by CLOCK_MONOTONIC)"),
              std::string::npos)
        << describe_threads(inspection);
    thread.limit_clock = CLOCK_REALTIME;
    EXPECT_FALSE(far_limit_seconds(thread));
}

TEST(DescribeThreads, ListsAtMostSixStates) {
    Inspection inspection;
    for (pid_t tid = 1; tid <= 9; ++tid) inspection.threads.push_back(thread_in(tid, 600 + tid));
    const std::string text = describe_threads(inspection);
    EXPECT_NE(text.find("6 blocked in system call 606; the others do the same"), std::string::npos)
        << text;
}

}  // namespace

}  // namespace kmes::conformance
