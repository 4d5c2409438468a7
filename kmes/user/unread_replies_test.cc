// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Clients that attach and do not read the reply. Its descriptors stay in flight, and the kernel
// counts them for the user of the producer. The test executes each step of the server, by its own
// clock.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kmes/user/producer.h"
#include "kmes/user/raw_client.h"
#include "kmes/user/socket_loop.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/socket_server.h"
#include "kmes/user/test_support.h"
#include "kmes/user/unread_shares.h"

namespace kmes {
namespace {

constexpr size_t kLimit = 32;                // of this process's user: 8 descriptors
constexpr size_t kReplies = kLimit / 4 / 2;  // to attach, of one CPU
constexpr uint64_t kNsPerMs = 1000000;

class UnreadRepliesTest : public testing::Test {
  protected:
    void SetUp() override {
        producer_ = std::make_unique<Producer>(test_options(2));
        ASSERT_EQ(0, producer_->start_without_registry());
        serve(kLimit);
    }
    void TearDown() override { stop(); }

    void serve(size_t limit) {
        stop();
        loop_ = std::make_unique<SocketLoop>(
            producer_.get(), std::make_unique<ListeningAddress>(address_, 0600),
            Serves::kAttachAndEmit, WorkersOptions{false, {now_ns, this}}, UnreadShares(limit));
    }

    void stop() {
        if (!loop_) return;
        loop_->close_all();
        while (loop_->workers()->work_once()) continue;
        loop_->stop();
        loop_.reset();
    }

    static uint64_t now_ns(void* context) {
        return static_cast<UnreadRepliesTest*>(context)->now_ms_ * kNsPerMs;
    }

    // Enough steps to accept and serve a few clients.
    void run_steps() {
        for (int i = 0; i < 16; i++) {
            ASSERT_TRUE(loop_->workers()->gate()->enter());
            loop_->poll_once(0);
            loop_->workers()->gate()->leave();
        }
    }

    std::unique_ptr<RawClient> asks(uint32_t operation, uint32_t cpu = 0) {
        auto client = std::make_unique<RawClient>(address_);

        EXPECT_TRUE(client->ask(operation, cpu));
        run_steps();
        return client;
    }

    // As many clients as the share permits. Each has its reply, and none has read it.
    std::vector<std::unique_ptr<RawClient>> use_up_the_share(
        uint32_t operation = KMES_SOCKET_ATTACH) {
        std::vector<std::unique_ptr<RawClient>> clients;

        for (size_t i = 0; i < kReplies; i++) {
            clients.push_back(asks(operation));
            EXPECT_TRUE(clients.back()->has_reply());
        }
        return clients;
    }

    TemporaryFolder folder_;
    std::string address_ = folder_.path("socket");
    uint64_t now_ms_ = 1000000;
    std::unique_ptr<Producer> producer_;
    std::unique_ptr<SocketLoop> loop_;
};

TEST_F(UnreadRepliesTest, ReplyWaitsUntilAnotherIsRead) {
    auto hostile = use_up_the_share();
    auto client = asks(KMES_SOCKET_ATTACH);
    size_t descriptors = 0;

    EXPECT_FALSE(client->has_reply());
    EXPECT_EQ(0, hostile.front()->reply());
    run_steps();
    EXPECT_EQ(0, client->reply(&descriptors));
    EXPECT_EQ(2u, descriptors);
    ASSERT_TRUE(client->ask(KMES_SOCKET_ATTACH, 1));  // the connection continues
    run_steps();
    EXPECT_EQ(0, client->reply());
}

TEST_F(UnreadRepliesTest, OtherRequestsDoNotWait) {
    auto hostile = use_up_the_share();

    EXPECT_EQ(0, asks(KMES_SOCKET_IDENTIFY)->reply());
    EXPECT_EQ(0, asks(KMES_SOCKET_EMITTERS)->reply());
    EXPECT_EQ(-EINVAL, asks(KMES_SOCKET_ATTACH, 2)->reply());
    EXPECT_EQ(0, producer_->emit(0, "t"));
}

TEST_F(UnreadRepliesTest, ReplyThatWaitsTooLongIsAnError) {
    auto hostile = use_up_the_share();

    for (uint32_t operation : {KMES_SOCKET_ATTACH, KMES_SOCKET_LEASE}) {
        auto client = asks(operation);

        now_ms_ += SocketServer::kMaxUnreadWaitMs;
        run_steps();
        EXPECT_FALSE(client->has_reply());
        now_ms_ += 1;
        run_steps();
        EXPECT_EQ(-EMFILE, client->reply());
        EXPECT_EQ(1, client->reply());  // the connection is over
    }
}

// Its end of the connection keeps the descriptors in flight, whatever the server does.
TEST_F(UnreadRepliesTest, ClosedConnectionsStillCount) {
    auto hostile = use_up_the_share();

    now_ms_ += SocketServer::kIdleMs + 1;
    run_steps();
    auto client = asks(KMES_SOCKET_ATTACH);

    EXPECT_FALSE(client->has_reply());
    EXPECT_EQ(0, hostile.back()->reply());
    EXPECT_EQ(1, hostile.back()->reply());  // the server had closed it
    run_steps();
    EXPECT_TRUE(client->has_reply());
    hostile.clear();
    run_steps();
    EXPECT_TRUE(asks(KMES_SOCKET_ATTACH)->has_reply());
}

// A worker would close a connection with descriptors, and forget what is unread in it.
TEST_F(UnreadRepliesTest, RequestBeforeTheReplyIsReadEndsTheConnectionAndCounts) {
    auto hostile = use_up_the_share();
    const struct kmes_socket_request request = {
        KMES_SOCKET_MAGIC, KMES_SOCKET_IDENTIFY, 0, 0, 0, 0};

    for (auto& client : hostile)
        ASSERT_TRUE(client->send_bytes(&request, sizeof(request), {STDERR_FILENO}));
    run_steps();
    while (loop_->workers()->work_once()) continue;
    auto client = asks(KMES_SOCKET_ATTACH);

    EXPECT_FALSE(client->has_reply());
    hostile.clear();
    run_steps();
    EXPECT_EQ(0, client->reply());
}

TEST_F(UnreadRepliesTest, ClientThatGoesWhileItsReplyWaits) {
    auto hostile = use_up_the_share();

    const size_t before = open_descriptors();

    for (uint32_t operation : {KMES_SOCKET_ATTACH, KMES_SOCKET_LEASE}) asks(operation);
    run_steps();
    EXPECT_EQ(before, open_descriptors());
    auto client = asks(KMES_SOCKET_ATTACH);

    EXPECT_FALSE(client->has_reply());
    hostile.pop_back();
    run_steps();
    EXPECT_EQ(0, client->reply());
}

// A lease that the client did not get must not keep need_wake set (E12).
TEST_F(UnreadRepliesTest, LeaseThatIsRefusedHasEnded) {
    auto hostile = use_up_the_share(KMES_SOCKET_LEASE);
    auto client = asks(KMES_SOCKET_LEASE);
    Attachment now;

    ASSERT_EQ(0, producer_->inspect(0, &now));
    __atomic_store_n(now.buffers[0]->buffer()->shared.need_wake, 1, __ATOMIC_SEQ_CST);
    now_ms_ += SocketServer::kMaxUnreadWaitMs + 1;
    run_steps();
    ASSERT_EQ(-EMFILE, client->reply());
    EXPECT_EQ(1u, asking_cpus(*producer_));
    hostile.clear();
    run_steps();
    EXPECT_EQ(0u, asking_cpus(*producer_));
}

TEST_F(UnreadRepliesTest, ReplyThatIsLargerThanTheShareWaitsForAllOthers) {
    serve(4);
    auto first = asks(KMES_SOCKET_ATTACH, KMES_SOCKET_ALL_CPUS);
    auto next = asks(KMES_SOCKET_ATTACH, KMES_SOCKET_ALL_CPUS);
    size_t descriptors = 0;

    EXPECT_TRUE(first->has_reply());
    EXPECT_FALSE(next->has_reply());
    EXPECT_EQ(0, first->reply());
    run_steps();
    EXPECT_EQ(0, next->reply(&descriptors));
    EXPECT_EQ(4u, descriptors);
}

TEST_F(UnreadRepliesTest, NothingIsLeftOpen) {
    const size_t before = open_descriptors();

    for (int i = 0; i < 3; i++) {
        auto hostile = use_up_the_share();
        auto client = asks(KMES_SOCKET_ATTACH);

        now_ms_ += SocketServer::kIdleMs + 1;
        run_steps();
        hostile.clear();
        client.reset();
        run_steps();
        EXPECT_EQ(before, open_descriptors());
    }
}

constexpr uid_t kOne = 100001;
constexpr uid_t kOther = 100002;

bool permits(uid_t user, size_t descriptors, const std::vector<std::pair<uid_t, size_t>>& unread) {
    UnreadShares::Count count = UnreadShares(800).begin_count();

    for (const auto& [other, number] : unread) count.add(other, number);
    return count.permits(user, descriptors);
}

TEST(UnreadSharesTest, UserHasAnEighth) {
    EXPECT_TRUE(permits(kOne, 2, {{kOne, 98}}));
    EXPECT_FALSE(permits(kOne, 3, {{kOne, 98}}));
    EXPECT_FALSE(permits(kOne, 1, {{kOne, 50}, {kOne, 50}}));
}

TEST(UnreadSharesTest, OtherUsersHaveAQuarter) {
    EXPECT_TRUE(permits(kOne, 2, {{kOther, 198}}));
    EXPECT_FALSE(permits(kOne, 3, {{kOther, 198}}));
    EXPECT_FALSE(permits(kOne, 2, {{kOther, 150}, {kOne, 50}}));
}

TEST(UnreadSharesTest, RootAndTheUserOfTheProducerHaveTheirOwnQuarter) {
    for (uid_t user : {uid_t{0}, geteuid()}) {
        EXPECT_TRUE(permits(user, 2, {{kOne, 200}, {user, 198}}));
        EXPECT_FALSE(permits(user, 3, {{geteuid(), 198}}));
        EXPECT_TRUE(permits(kOne, 100, {{user, 200}}));
    }
}

TEST(UnreadSharesTest, LargeReplyIsPermittedAlone) {
    EXPECT_TRUE(permits(kOne, 1000, {{0, 200}}));
    EXPECT_FALSE(permits(kOne, 1000, {{kOther, 2}}));
    EXPECT_TRUE(permits(0, 1000, {{kOne, 200}}));
    EXPECT_FALSE(permits(0, 1000, {{0, 2}}));
}

TEST(UnreadSharesTest, LimitHasAMaximum) {
    const size_t eighth = UnreadShares::kMaxLimit / 8;
    UnreadShares::Count count = UnreadShares(SIZE_MAX).begin_count();

    count.add(kOne, eighth - 2);
    EXPECT_TRUE(count.permits(kOne, 2));
    EXPECT_FALSE(count.permits(kOne, 3));
}

}  // namespace
}  // namespace kmes
