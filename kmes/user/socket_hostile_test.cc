// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Clients whose descriptors take any time to close: a TCP socket that lingers, as the last
// reference to it. Other clients attach and emit, and the producer retires, while each still
// lingers. It lingers for an hour, or until the test resets it.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kmes/user/futex.h"
#include "kmes/user/producer.h"
#include "kmes/user/raw_client.h"
#include "kmes/user/socket_address.h"
#include "kmes/user/socket_loop.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

// A TCP socket full of bytes that its peer does not read. Its close takes an hour.
class LingeringSocket {
  public:
    LingeringSocket() {
        struct sockaddr_in address = {};
        socklen_t length = sizeof(address);
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const std::vector<char> bytes(65536);
        const struct linger hour = {1, 3600};

        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        auto* name = reinterpret_cast<struct sockaddr*>(&address);

        EXPECT_EQ(0, bind(listener, name, sizeof(address)));
        EXPECT_EQ(0, listen(listener, 1));
        EXPECT_EQ(0, getsockname(listener, name, &length));
        fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(0, connect(fd_, name, length));
        peer_ = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        close(listener);
        while (send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) continue;
        EXPECT_EQ(0, setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)));
    }
    // Ends the wait in any thread, by a reset.
    ~LingeringSocket() {
        const struct linger at_once = {1, 0};

        setsockopt(peer_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        close(peer_);
        close_here();
    }
    LingeringSocket(const LingeringSocket&) = delete;
    LingeringSocket& operator=(const LingeringSocket&) = delete;

    int fd() const { return fd_; }
    // Closes the test's own reference, while another one is in flight.
    void close_here() {
        if (fd_ >= 0) close(std::exchange(fd_, -1));
    }

  private:
    int fd_ = -1;
    int peer_ = -1;
};

// The clock of the server, which its thread reads after each poll. It can stop.
class HeldClock {
  public:
    Clock clock() { return {now_ns, this}; }
    // For the calls of this thread.
    static void use_here() { is_used_here = true; }
    void hold() {
        is_waited_for_ = false;
        is_held_ = true;
    }
    bool is_waited_for() const { return is_waited_for_; }
    void release() {
        is_held_ = false;
        is_held_.notify_all();
    }

  private:
    static uint64_t now_ns(void* context) {
        auto* self = static_cast<HeldClock*>(context);

        if (is_used_here && self->is_held_) {
            self->is_waited_for_ = true;
            self->is_held_.wait(true);
        }
        return kmes_clock_monotonic_ns();
    }

    static thread_local bool is_used_here;
    std::atomic<bool> is_held_{false};
    std::atomic<bool> is_waited_for_{false};
};

thread_local bool HeldClock::is_used_here = false;

// A server whose thread can be stopped before it reads what has arrived.
class Server {
  public:
    Server(Producer* producer, const std::string& address)
        : loop_(std::make_shared<SocketLoop>(
              producer, std::make_unique<ListeningAddress>(address, 0600), Serves::kAttachAndEmit,
              WorkersOptions{.clock = clock_.clock()})) {
        loop_->workers()->start([loop = loop_] {
            HeldClock::use_here();
            loop->run();
        });
    }
    ~Server() { stop(); }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    void hold() {
        clock_.hold();
        loop_->workers()->wake();
        EXPECT_TRUE(comes_true([] { return clock_.is_waited_for(); }));
    }
    void release() { clock_.release(); }
    void stop() {
        if (loop_) loop_->stop();
        loop_.reset();
    }

  private:
    static HeldClock clock_;  // a stalled worker that was abandoned reads it later
    std::shared_ptr<SocketLoop> loop_;
};

HeldClock Server::clock_;

class SocketHostileTest : public testing::Test {
  protected:
    void SetUp() override {
        producer_ = std::make_unique<Producer>(test_options());
        ASSERT_EQ(0, producer_->start_without_registry());
        server_ = std::make_unique<Server>(producer_.get(), address_);
    }

    // Runs `attack` while the server receives nothing, so that the reference in flight is the last
    // one.
    void attack_unseen(const std::function<void()>& attack) {
        server_->hold();
        attack();
        server_->release();
    }

    int attach_error() {
        RawClient client(address_);

        EXPECT_TRUE(client.ask(KMES_SOCKET_ATTACH, 0));
        return client.reply();
    }

    // Emits a batch of one event, which is passed as a descriptor.
    int batch_error() {
        RawClient client(address_);
        struct kmes_emit_entry entry = {nullptr, 1, nullptr, 0};
        struct kmes_socket_request request = {
            KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT_BATCH, 0, 1, 0, 1};
        int file = memfd_create("client", MFD_CLOEXEC);

        EXPECT_EQ(1, write(file, "t", 1));
        EXPECT_EQ(static_cast<ssize_t>(sizeof(entry)), write(file, &entry, sizeof(entry)));
        EXPECT_TRUE(client.send_bytes(&request, sizeof(request), {file}));
        close(file);
        return client.reply();
    }

    // Other clients are served while the lingering socket is open, and the producer can end.
    void expect_no_harm() {
        EXPECT_EQ(0, attach_error());
        EXPECT_EQ(0, batch_error());
        EXPECT_EQ(0, producer_->emit(0, "t"));
        server_.reset();
        producer_.reset();  // retires
    }

    TemporaryFolder folder_;
    std::string address_ = folder_.path("socket");
    std::unique_ptr<Producer> producer_;
    std::unique_ptr<Server> server_;
};

const struct kmes_socket_request identify = {KMES_SOCKET_MAGIC, KMES_SOCKET_IDENTIFY, 0, 0, 0, 0};

TEST_F(SocketHostileTest, DescriptorOfARequestThatHasNone) {
    LingeringSocket hostile;
    RawClient client(address_);

    attack_unseen([&] {
        ASSERT_TRUE(client.send_bytes(&identify, sizeof(identify), {hostile.fd()}));
        hostile.close_here();
    });
    expect_no_harm();
}

TEST_F(SocketHostileTest, DescriptorInThePlaceOfABatch) {
    LingeringSocket hostile;
    RawClient client(address_);
    struct kmes_socket_request request = {KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT_BATCH, 0, 0, 0, 1};

    attack_unseen([&] {
        ASSERT_TRUE(client.send_bytes(&request, sizeof(request), {hostile.fd()}));
        hostile.close_here();
    });
    expect_no_harm();
}

// The server's end then has an error, which comes before the packet with the descriptor.
TEST_F(SocketHostileTest, ReplyThatIsUnreadWhenADescriptorFollows) {
    LingeringSocket hostile;
    std::optional<RawClient> client(address_);

    ASSERT_TRUE(client->ask(KMES_SOCKET_IDENTIFY, 0));
    ASSERT_TRUE(comes_true([&] { return client->has_reply(); }));
    attack_unseen([&] {
        ASSERT_TRUE(client->send_bytes(&identify, sizeof(identify), {hostile.fd()}));
        hostile.close_here();
        client.reset();
    });
    expect_no_harm();
}

// The kernel drops descriptors that do not fit.
TEST_F(SocketHostileTest, MoreDescriptorsThanThereIsRoomFor) {
    LingeringSocket hostile;
    RawClient client(address_);
    int file = memfd_create("client", MFD_CLOEXEC);

    attack_unseen([&] {
        ASSERT_TRUE(
            client.send_bytes(&identify, sizeof(identify), {file, file, file, hostile.fd()}));
        hostile.close_here();
    });
    close(file);
    expect_no_harm();
}

TEST_F(SocketHostileTest, ConnectionThatIsClosedWithADescriptorInIt) {
    LingeringSocket hostile;

    attack_unseen([&] {
        RawClient client(address_);

        ASSERT_TRUE(client.send_bytes("x", 1, {hostile.fd()}));
        hostile.close_here();
    });
    expect_no_harm();
}

// The first request ends the connection, and the second one is never received.
TEST_F(SocketHostileTest, DescriptorAfterTheEndOfAConnection) {
    for (size_t bytes : {1u, 0u}) {
        LingeringSocket hostile;
        RawClient client(address_);

        attack_unseen([&] {
            ASSERT_TRUE(client.send_bytes("x", bytes));
            ASSERT_TRUE(client.send_bytes("", 0));
            ASSERT_TRUE(client.send_bytes("x", bytes, {hostile.fd()}));
            hostile.close_here();
        });
        EXPECT_EQ(0, attach_error());
        EXPECT_EQ(0, batch_error());
    }
    expect_no_harm();
}

TEST_F(SocketHostileTest, ConnectionThatIsNotAcceptedBeforeTheEnd) {
    LingeringSocket hostile;
    server_->hold();
    RawClient client(address_);

    ASSERT_TRUE(client.send_bytes(&identify, sizeof(identify), {hostile.fd()}));
    hostile.close_here();
    std::thread stopping([this] { server_->stop(); });

    EXPECT_TRUE(comes_true(other_threads_sleep));
    server_->release();
    stopping.join();
    producer_.reset();
}

// At the limit of one client its further requests with descriptors are rejected. Requests without
// descriptors continue, for it and for others.
TEST_F(SocketHostileTest, ManyLingeringDescriptorsOfOneClient) {
    std::vector<std::unique_ptr<LingeringSocket>> hostile;
    std::vector<std::unique_ptr<RawClient>> clients;

    for (int i = 0; i < 12; i++) {
        hostile.push_back(std::make_unique<LingeringSocket>());
        clients.push_back(std::make_unique<RawClient>(address_));
    }
    attack_unseen([&] {
        for (size_t i = 0; i < clients.size(); i++) {
            ASSERT_TRUE(clients[i]->send_bytes(&identify, sizeof(identify), {hostile[i]->fd()}));
            hostile[i]->close_here();
        }
    });
    EXPECT_EQ(0, attach_error());
    EXPECT_EQ(-EBUSY, batch_error());
    EXPECT_EQ(0, attach_error());
    hostile.clear();
    EXPECT_TRUE(comes_true([this] { return batch_error() == 0; }));
    producer_->retire();
}

// A stopped server abandons its stalled threads; the address is free at once.
TEST_F(SocketHostileTest, AddressIsServedAgainWhileTheOldServerLingers) {
    LingeringSocket hostile;
    RawClient client(address_);

    attack_unseen([&] {
        ASSERT_TRUE(client.send_bytes(&identify, sizeof(identify), {hostile.fd()}));
        hostile.close_here();
    });
    server_ = nullptr;
    server_ = std::make_unique<Server>(producer_.get(), address_);
    expect_no_harm();
}

}  // namespace
}  // namespace kmes
