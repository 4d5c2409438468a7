// SPDX-License-Identifier: GPL-2.0-only OR MIT
// One time limit for several calls at a socket. The peer sends little by little.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "kmes/user/time_limit.h"

namespace kmes {
namespace {

constexpr int kPackets = 4000;  // 4 s of them, and more on a slow machine
constexpr timeval kLimit = {0, 100000};

class TimeLimitTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_));
        ASSERT_EQ(0, setsockopt(ends_[0], SOL_SOCKET, SO_RCVTIMEO, &kLimit, sizeof(kLimit)));
    }
    void TearDown() override {
        close(ends_[0]);
        close(ends_[1]);
    }

    int ends_[2] = {-1, -1};
};

TEST_F(TimeLimitTest, IsNotExtendedByAPeerThatSendsLittleByLittle) {
    std::atomic<bool> is_over = false;
    std::thread peer([&] {
        for (int i = 0; i < kPackets && !is_over; ++i) {
            // A packet that does not fit is not missed: nobody reads after the limit.
            send(ends_[1], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    kmes_time_limit limit = kmes_begin_limit(ends_[0], SO_RCVTIMEO);
    char byte;
    int received = 0;

    while (received < kPackets && kmes_shorten_limit(&limit) && recv(ends_[0], &byte, 1, 0) == 1)
        ++received;
    const int error = errno;

    kmes_end_limit(&limit);
    is_over = true;
    peer.join();
    EXPECT_EQ(EAGAIN, error);
    EXPECT_LT(received, kPackets);
}

TEST_F(TimeLimitTest, IsRestoredForTheNextCall) {
    kmes_time_limit limit = kmes_begin_limit(ends_[0], SO_RCVTIMEO);
    timeval now = {};
    socklen_t length = sizeof(now);

    ASSERT_TRUE(kmes_shorten_limit(&limit));
    ASSERT_TRUE(kmes_shorten_limit(&limit));
    kmes_end_limit(&limit);
    ASSERT_EQ(0, getsockopt(ends_[0], SOL_SOCKET, SO_RCVTIMEO, &now, &length));
    EXPECT_EQ(kLimit.tv_sec, now.tv_sec);
    EXPECT_EQ(kLimit.tv_usec, now.tv_usec);
}

// For the kernel, a time-out of 0 means no limit.
TEST_F(TimeLimitTest, OfZeroNeverEnds) {
    const timeval none = {0, 0};

    ASSERT_EQ(0, setsockopt(ends_[0], SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)));
    kmes_time_limit limit = kmes_begin_limit(ends_[0], SO_RCVTIMEO);

    EXPECT_TRUE(kmes_shorten_limit(&limit));
    EXPECT_TRUE(kmes_shorten_limit(&limit));
    kmes_end_limit(&limit);
}

}  // namespace
}  // namespace kmes
