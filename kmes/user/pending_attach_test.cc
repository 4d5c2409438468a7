// SPDX-License-Identifier: GPL-2.0-only OR MIT
// A reader set that attaches to a producer that does not answer: no read waits for it. The test
// relays each request to a producer, or not. Without the relay a read could not return.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "kmes/user/libkmes_reader.h"
#include "kmes/user/producer.h"
#include "kmes/user/reader_set.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

constexpr unsigned kLease = KMES_SOCKET_LEASE;
constexpr unsigned kAttach = KMES_SOCKET_ATTACH;
constexpr unsigned kIdentify = KMES_SOCKET_IDENTIFY;

// An address whose requests reach the producer when the test says so.
class Relay {
  public:
    Relay(const std::string& address, std::string producer) : producer_(std::move(producer)) {
        const Address at(address);

        listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        EXPECT_EQ(0, bind(listener_, at.get(), at.length));
        EXPECT_EQ(0, listen(listener_, 64));
    }
    ~Relay() {
        forget();
        close(listener_);
    }
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;

    // True if a request has come that was not answered. An abandoned one does not count.
    bool has_request() {
        while (client_ < 0) {
            client_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (client_ < 0) return false;
            if (recv(client_, &request_, sizeof(request_), 0) != sizeof(request_)) drop();
        }
        return true;
    }
    unsigned operation() const { return request_.operation; }

    // Relays the request, and the reply with its descriptors.
    void answer() {
        const Address at(producer_);
        const int server = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        struct kmes_socket_reply reply;
        struct iovec piece = {&request_, sizeof(request_)};
        alignas(struct cmsghdr) char room[CMSG_SPACE(2 * sizeof(int))];
        struct msghdr message = {};

        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        EXPECT_EQ(0, connect(server, at.get(), at.length));
        EXPECT_EQ(ssize_t{sizeof(request_)}, sendmsg(server, &message, MSG_NOSIGNAL));
        piece = {&reply, sizeof(reply)};
        message.msg_control = room;
        message.msg_controllen = sizeof(room);
        EXPECT_EQ(ssize_t{sizeof(reply)}, recvmsg(server, &message, MSG_CMSG_CLOEXEC));
        message.msg_flags = 0;
        EXPECT_EQ(ssize_t{sizeof(reply)}, sendmsg(client_, &message, MSG_NOSIGNAL));
        for (struct cmsghdr* part = CMSG_FIRSTHDR(&message); part;
             part = CMSG_NXTHDR(&message, part)) {
            int fds[2];

            std::memcpy(fds, CMSG_DATA(part), sizeof(fds));
            for (const int fd : fds) close(fd);
        }
        kept_.push_back(server);
        kept_.push_back(client_);
        client_ = -1;
    }
    void refuse(int error) {
        struct kmes_socket_reply reply = {};

        reply.magic = KMES_SOCKET_MAGIC;
        reply.error = error;
        EXPECT_EQ(ssize_t{sizeof(reply)}, send(client_, &reply, sizeof(reply), MSG_NOSIGNAL));
        drop();
    }

    void drop() {
        close(client_);
        client_ = -1;
    }

    // Closes all connections.
    void forget() {
        for (const int fd : kept_) close(fd);
        kept_.clear();
        while (has_request()) drop();
    }

  private:
    struct Address {
        struct sockaddr_un socket;
        socklen_t length;

        explicit Address(const std::string& text) {
            EXPECT_EQ(0, kmes_socket_address(text.c_str(), &socket, &length));
        }
        const struct sockaddr* get() const {
            return reinterpret_cast<const struct sockaddr*>(&socket);
        }
    };

    const std::string producer_;
    int listener_ = -1;
    int client_ = -1;
    struct kmes_socket_request request_ = {};
    std::vector<int> kept_;
};

// The producer stops after the attach of CPU 0. Its answer for CPU 1 does not come in its time.
struct Stopping {
    kmes_attach_functions real = {};
    std::string slow_address;
    unsigned late = 0;

    static int attach(void* context, __u16 cpu, kmes_mapping* mapping) {
        auto* self = static_cast<Stopping*>(context);

        if (cpu != 1 || self->late++ > 0) return self->real.attach(nullptr, cpu, mapping);
        setenv("KMES_SOCKET", self->slow_address.c_str(), 1);
        return -ETIMEDOUT;
    }
    static int identify(void* context, __u16 cpu, kmes_mapping* mapping) {
        return static_cast<Stopping*>(context)->real.identify(nullptr, cpu, mapping);
    }
    static void detach(void* context, kmes_mapping* mapping) {
        static_cast<Stopping*>(context)->real.detach(nullptr, mapping);
    }
    static void configure(void* context, kmes_reader_config* config, __u16 cpu) {
        kmes_reader_by_libkmes(config, cpu);
        static_cast<Stopping*>(context)->real = config->attach_functions;
        config->attach_functions = {attach, identify, detach, context};
    }
    static int cpus(void*) { return 3; }
};

class PendingAttachTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(0, producer_.start_without_registry());
        producer_.serve(address_);
        sockets_without_set_ = open_sockets();
        open_set();
        emit("a");
    }
    void TearDown() override {
        kmes_reader_set_close(set_);
        unsetenv("KMES_SOCKET");
    }

    // An open waits for the producer, so it does not use the relay.
    void open_set() {
        setenv("KMES_SOCKET", address_.c_str(), 1);
        ASSERT_EQ(0, kmes_reader_set_open(&set_, nullptr));
        setenv("KMES_SOCKET", slow_address_.c_str(), 1);
    }
    static size_t open_sockets() {
        size_t count = 0;

        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            std::error_code unknown;

            count += std::filesystem::read_symlink(entry, unknown).native().starts_with("socket:");
        }
        return count;
    }

    void emit(const char* type) { ASSERT_EQ(0, producer_.emit(0, type)); }
    // Makes another buffer, which the set must attach to.
    void resize(const char* type) {
        is_large_ = !is_large_;
        ASSERT_EQ(0, producer_.resize(is_large_ ? 128 << 10 : 64 << 10));
        emit(type);
    }

    // Reads what is there. This does not wait for the relay.
    void read() {
        const auto append = [](void* context, const struct kmes_event_view* view) {
            static_cast<std::string*>(context)->append(reinterpret_cast<const char*>(view->type),
                                                       view->type_len);
            return 0;
        };

        const int result = kmes_reader_set_poll(set_, 0, append, &seen_);

        // The error of the only CPU.
        EXPECT_TRUE(result >= 0 || result == kmes_reader_set_error(set_, 0)) << result;
    }
    // Reads until a request of this operation has come.
    void expect_request(unsigned operation) {
        ASSERT_TRUE(comes_true([this] {
            read();
            return relay_.has_request();
        }));
        EXPECT_EQ(operation, relay_.operation());
    }
    void expect_seen(const std::string& types) {
        EXPECT_TRUE(comes_true([&] {
            read();
            return seen_ == types;
        })) << seen_;
    }
    TemporaryFolder folder_;
    std::string address_ = folder_.path("socket");
    std::string slow_address_ = folder_.path("slow");
    Producer producer_{test_options()};
    Relay relay_{slow_address_, address_};
    Stopping stopping_;
    kmes_reader_set* set_ = nullptr;
    std::string seen_;
    size_t sockets_without_set_ = 0;
    bool is_large_ = false;
};

TEST_F(PendingAttachTest, GoesOnInLaterReads) {
    resize("b");
    expect_request(kLease);
    EXPECT_EQ("a", seen_) << "the old buffer is drained first";
    relay_.answer();
    expect_request(kIdentify);
    read();
    EXPECT_EQ("a", seen_);
    relay_.answer();
    expect_seen("ab");
    emit("c");
    expect_seen("abc");
    EXPECT_EQ(0u, kmes_reader_set_statistics(set_, 0).lost);
    EXPECT_EQ(1u, kmes_reader_set_statistics(set_, 0).switches);
    EXPECT_EQ(0, kmes_reader_set_error(set_, 0));
}

TEST_F(PendingAttachTest, IsReportedWhenItIsLate) {
    resize("b");
    expect_request(kLease);
    EXPECT_TRUE(comes_true([this] {
        read();
        return kmes_reader_set_error(set_, 0) == -ETIMEDOUT;
    }));
    relay_.answer();
    expect_request(kIdentify);
    relay_.answer();
    expect_seen("ab");
    EXPECT_EQ(0, kmes_reader_set_error(set_, 0));
}

// E19: the answer names another buffer than the mapped one.
TEST_F(PendingAttachTest, BufferIsReplacedBeforeTheAnswer) {
    resize("b");
    expect_request(kLease);
    relay_.answer();
    expect_request(kIdentify);
    resize("c");
    relay_.answer();
    expect_request(kLease);
    relay_.answer();
    expect_request(kIdentify);
    relay_.answer();
    expect_seen("abc");
    EXPECT_EQ(0u, kmes_reader_set_statistics(set_, 0).lost);
}

// E19: the answer was right when the producer sent it.
TEST_F(PendingAttachTest, BufferIsReplacedAfterTheAnswer) {
    resize("b");
    expect_request(kLease);
    relay_.answer();
    expect_request(kIdentify);
    relay_.answer();
    resize("c");
    expect_request(kLease);
    relay_.answer();
    expect_request(kIdentify);
    relay_.answer();
    expect_seen("abc");
    EXPECT_EQ(0u, kmes_reader_set_statistics(set_, 0).lost);
}

TEST_F(PendingAttachTest, AsksAnOlderProducerWithoutALease) {
    resize("b");
    expect_request(kLease);
    relay_.refuse(-EPROTO);
    expect_request(kAttach);
    relay_.answer();
    expect_request(kIdentify);
    relay_.answer();
    expect_seen("ab");
}

TEST_F(PendingAttachTest, BeginsAgainAfterAnError) {
    resize("b");
    expect_request(kLease);
    relay_.answer();
    expect_request(kIdentify);
    relay_.refuse(-EPERM);
    expect_request(kLease);
    relay_.answer();
    expect_request(kIdentify);
    relay_.answer();
    expect_seen("ab");
}

// Otherwise it would wait 30 s for each CPU.
TEST_F(PendingAttachTest, OpenWaitsForOneRequest) {
    Producer producer(test_options(3));
    ASSERT_EQ(0, producer.start_without_registry());
    producer.serve(folder_.path("three"));
    stopping_.slow_address = folder_.path("slow-three");
    Relay relay(stopping_.slow_address, folder_.path("three"));
    kmes_reader_set_options options = {};
    options.configure = Stopping::configure;
    options.cpus = Stopping::cpus;
    options.context = &stopping_;
    kmes_reader_set_close(set_);
    setenv("KMES_SOCKET", folder_.path("three").c_str(), 1);
    ASSERT_EQ(0, kmes_reader_set_open(&set_, &options));
    EXPECT_EQ(-ETIMEDOUT, kmes_reader_set_error(set_, 1));
    EXPECT_EQ(0, kmes_reader_set_error(set_, 2)) << "it waits for the answer";
    ASSERT_TRUE(relay.has_request());
    EXPECT_EQ(kLease, relay.operation());
    ASSERT_EQ(0, producer.emit(0, "a"));
    ASSERT_EQ(0, producer.emit(2, "c"));
    expect_seen("a");
    EXPECT_TRUE(comes_true([&] {
        if (relay.has_request()) relay.answer();
        read();
        return seen_ == "ac" && kmes_reader_set_error(set_, 1) == 0;
    })) << seen_;
    EXPECT_EQ(0u, kmes_reader_set_statistics(set_, 2).lost);
}

TEST_F(PendingAttachTest, LeavesNoConnection) {
    for (const bool is_attached : {false, true}) {
        resize("b");
        expect_request(kLease);
        if (is_attached) {
            relay_.answer();
            expect_request(kIdentify);
        }
        kmes_reader_set_close(set_);
        set_ = nullptr;
        relay_.forget();
        // The producer of this process closes its ends later.
        EXPECT_TRUE(comes_true([this] { return open_sockets() == sockets_without_set_; }))
            << open_sockets();
        open_set();
    }
}

TEST_F(PendingAttachTest, AnswerIsForTheParentOfAChild) {
    for (const bool is_attached : {false, true}) {
        resize("b");
        expect_request(kLease);
        if (is_attached) {
            relay_.answer();
            expect_request(kIdentify);
        }
        const pid_t child = fork();

        if (child == 0) {
            read();  // asks by a connection of its own
            kmes_reader_set_close(set_);
            _exit(0);
        }
        int status = -1;

        ASSERT_EQ(child, waitpid(child, &status, 0));
        EXPECT_EQ(0, status);
        relay_.answer();
        if (!is_attached) {
            // The request of the child may be the next one. Nobody waits for its answer.
            ASSERT_TRUE(comes_true([this] {
                read();
                while (relay_.has_request() && relay_.operation() == kLease) relay_.drop();
                return relay_.has_request();
            }));
            relay_.answer();
        }
        expect_seen(is_attached ? "abb" : "ab");
    }
}

TEST_F(PendingAttachTest, GoesOnInTheThreadOfTheDescriptor) {
    const int readable = kmes_reader_set_fd(set_);

    ASSERT_LE(0, readable);
    resize("b");
    expect_request(kLease);
    relay_.answer();
    // The thread of the descriptor goes on.
    EXPECT_TRUE(comes_true([this] { return relay_.has_request(); }));
    relay_.answer();
    expect_seen("ab");
}

}  // namespace
}  // namespace kmes
