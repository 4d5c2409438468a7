// SPDX-License-Identifier: GPL-2.0-only OR MIT
// A listening socket that a service manager passes to a producer: it outlives the producer, and
// other descriptors are refused.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <vector>

#include "kmes/user/producer.h"
#include "kmes/user/raw_client.h"
#include "kmes/user/serve_fixture.h"
#include "kmes/user/socket_address.h"
#include "kmes/user/socket_loop.h"
#include "kmes/user/socket_protocol.h"

namespace kmes {
namespace {

// The actions of a service manager for its services.
class PassedSocketTest : public ServeTest {
  protected:
    void SetUp() override { manager_fd_ = listening(SOCK_SEQPACKET); }
    void TearDown() override { close(manager_fd_); }

    int bound(int type) const {
        struct sockaddr_un name;
        socklen_t length;
        const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

        unlink(address_.c_str());
        EXPECT_EQ(0, kmes_socket_address(address_.c_str(), &name, &length));
        EXPECT_EQ(0, bind(fd, reinterpret_cast<struct sockaddr*>(&name), length));
        return fd;
    }

    int listening(int type) const {
        const int fd = bound(type);

        EXPECT_EQ(0, listen(fd, 8));
        return fd;
    }

    int copy() const { return fcntl(manager_fd_, F_DUPFD_CLOEXEC, 0); }

    int manager_fd_ = -1;
};

int passed_error(Producer& producer, int fd, Serves serves = Serves::kAttachAndEmit) {
    try {
        producer.serve_passed(fd, serves);
    } catch (const std::system_error& error) {
        return error.code().value();
    }
    return 0;
}

TEST_F(PassedSocketTest, ConnectionsWaitForTheNextProducer) {
    auto first = started();
    auto next = started();

    ASSERT_EQ(0, passed_error(*first, copy()));
    EXPECT_EQ(0, attach_error(address_));
    EXPECT_EQ(EALREADY, serve_error(*first, folder_.path("other")));
    EXPECT_EQ(EADDRINUSE, serve_error(*next, address_));
    first->retire();
    EXPECT_TRUE(exists(address_));
    RawClient client(address_);

    ASSERT_TRUE(client.ask(KMES_SOCKET_ATTACH, 0));
    ASSERT_EQ(0, passed_error(*next, copy()));
    EXPECT_EQ(0, client.reply());
}

// The end of a producer closes the accepted connections, and leaves the rest.
TEST_F(PassedSocketTest, EndOfAProducerLeavesConnectionsThatWait) {
    auto first = started();
    auto next = started();
    std::vector<std::unique_ptr<RawClient>> clients;

    for (int i = 0; i < 4; i++) clients.push_back(std::make_unique<RawClient>(address_));
    {
        // The test never runs its steps, so no connection is accepted before the end.
        SocketLoop loop(first.get(), std::make_unique<ListeningAddress>(copy()),
                        Serves::kAttachAndEmit, WorkersOptions{false, {}});

        loop.close_all();
    }
    ASSERT_EQ(0, passed_error(*next, copy()));
    for (auto& client : clients) {
        ASSERT_TRUE(client->ask(KMES_SOCKET_ATTACH, 0));
        EXPECT_EQ(0, client->reply());
    }
}

// A socket that serves only attach accepts no descriptors. The next producer serves both.
TEST_F(PassedSocketTest, NextProducerAcceptsDescriptorsAgain) {
    auto first = started();
    auto next = started();

    ASSERT_EQ(0, passed_error(*first, copy(), Serves::kAttach));
    EXPECT_EQ(-EPERM, emit_error(address_));
    first->retire();
    ASSERT_EQ(0, passed_error(*next, copy()));
    RawClient client(address_);
    struct kmes_socket_request request = {KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT, 0, 2, 1, 0};
    const int body = memfd_create("body", MFD_CLOEXEC);

    ASSERT_EQ(2, write(body, "tp", 2));
    ASSERT_TRUE(client.send_bytes(&request, sizeof(request), {body}));
    EXPECT_EQ(0, client.reply());
    close(body);
}

TEST_F(PassedSocketTest, OtherDescriptorsAreRefusedAndStayOpen) {
    auto producer = started();
    int pair[2];

    ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
    const int kinds[] = {open("/dev/null", O_RDWR | O_CLOEXEC),
                         socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                         listening(SOCK_STREAM),
                         bound(SOCK_DGRAM),
                         bound(SOCK_SEQPACKET),
                         pair[0],
                         pair[1]};

    for (int fd : kinds) {
        EXPECT_EQ(EINVAL, passed_error(*producer, fd)) << fd;
        EXPECT_EQ(0, close(fd));
    }
    EXPECT_EQ(EINVAL, passed_error(*producer, 1 << 20));
    EXPECT_EQ(EINVAL, passed_error(*producer, -1));
}

}  // namespace
}  // namespace kmes
