// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The producer's socket with misbehaving clients, and its address. The packets are written by hand;
// emit_calls_test.cc, attach_calls_test.cc and process_test.cc test the use by libkmes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <system_error>
#include <vector>

#include "kmes/user/producer.h"
#include "kmes/user/raw_client.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

class SocketTest : public testing::Test {
  protected:
    void start(unsigned cpus, EmitterMode emitters = EmitterMode::kLocked) {
        ProducerOptions options = test_options(cpus);

        options.emitters = emitters;
        producer_ = std::make_unique<Producer>(options);
        ASSERT_EQ(0, producer_->start_without_registry());
        producer_->serve(address_);
    }

    // Other clients are still served.
    void expect_alive() {
        RawClient client(address_);

        EXPECT_TRUE(client.ask(KMES_SOCKET_IDENTIFY, 0));
        EXPECT_EQ(0, client.reply());
    }

    TemporaryFolder folder_;
    std::string address_ = folder_.path("socket");
    std::unique_ptr<Producer> producer_;
};

TEST_F(SocketTest, AttachPassesTwoDescriptorsACpu) {
    start(3);
    RawClient client(address_);
    struct kmes_socket_reply reply;
    size_t descriptors = 0;

    ASSERT_TRUE(client.ask(KMES_SOCKET_ATTACH, KMES_SOCKET_ALL_CPUS));
    EXPECT_EQ(0, client.reply(&descriptors, &reply));
    EXPECT_EQ(6u, descriptors);
    EXPECT_EQ(3u, reply.cpus);
    EXPECT_EQ(3u, reply.count);
    EXPECT_EQ(65536u, reply.capacity);
    EXPECT_EQ(producer_->session(), reply.session);
    ASSERT_TRUE(client.ask(KMES_SOCKET_ATTACH, 2));  // the same connection again
    EXPECT_EQ(0, client.reply(&descriptors, &reply));
    EXPECT_EQ(2u, descriptors);
    EXPECT_EQ(2u, reply.first);
    ASSERT_TRUE(client.ask(KMES_SOCKET_ATTACH, 3));
    EXPECT_EQ(-EINVAL, client.reply());
}

TEST_F(SocketTest, MalformedRequestsAreAnsweredAndClosed) {
    start(1);
    const struct kmes_socket_request bad[] = {
        {0, KMES_SOCKET_ATTACH, 0, 0, 0, 0},                  // magic
        {KMES_SOCKET_MAGIC, 0, 0, 0, 0, 0},                   // operation
        {KMES_SOCKET_MAGIC, 99, 0, 0, 0, 0},                  // operation
        {KMES_SOCKET_MAGIC, KMES_SOCKET_ATTACH, 0, 1, 0, 0},  // a body that does not exist
        {KMES_SOCKET_MAGIC, KMES_SOCKET_ATTACH, 0, 0, 0, 1},  // count
        {KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT, 0, 10, 1, 0},   // as above
        {KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT, 0, 0, 1, 0},    // a type longer than the body
        {KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT, 0, ~0u, ~0u, 0},
        {KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT, 0, 0, 0, 1},        // a count of no batch
        {KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT_BATCH, 0, 0, 0, 1},  // without its file
    };

    for (const struct kmes_socket_request& request : bad) {
        RawClient client(address_);

        ASSERT_TRUE(client.send_bytes(&request, sizeof(request)));
        EXPECT_EQ(-EPROTO, client.reply());
        EXPECT_EQ(1, client.reply());
    }
    for (size_t length : {size_t{1}, size_t{23}, size_t{200000}}) {
        RawClient client(address_);
        std::vector<char> bytes(length, 'x');

        ASSERT_TRUE(client.send_bytes(bytes.data(), bytes.size()));
        EXPECT_EQ(-EPROTO, client.reply());
        EXPECT_EQ(1, client.reply());
    }
    expect_alive();
}

TEST_F(SocketTest, DescriptorsOfClientsAreNotKept) {
    start(1);
    int file = memfd_create("client", MFD_CLOEXEC);
    size_t before = open_descriptors();

    for (size_t count : {1u, 2u, 3u, 100u, 253u}) {
        RawClient client(address_);
        struct kmes_socket_request request = {KMES_SOCKET_MAGIC, KMES_SOCKET_ATTACH, 0, 0, 0, 0};

        ASSERT_TRUE(client.send_bytes(&request, sizeof(request), std::vector<int>(count, file)));
        EXPECT_EQ(-EPROTO, client.reply());
    }
    EXPECT_TRUE(comes_true([before] { return open_descriptors() == before; }));
    close(file);
}

// A body as a file: a file that is no memory file, or too short, is rejected without a wait.
TEST_F(SocketTest, BodiesAreReadFromMemoryFilesAlone) {
    start(1);
    struct kmes_socket_request request = {KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT, 0, 1000, 1, 0};
    int ends[2];
    int empty = memfd_create("empty", MFD_CLOEXEC);

    ASSERT_EQ(0, pipe2(ends, O_CLOEXEC));
    for (int fd : {ends[0], empty}) {
        RawClient client(address_);

        ASSERT_TRUE(client.send_bytes(&request, sizeof(request), {fd}));
        EXPECT_EQ(-EPROTO, client.reply());
    }
    for (int fd : {ends[0], ends[1], empty}) close(fd);
    EXPECT_EQ(0u, producer_->statistics().events);
    expect_alive();
}

// The type of a kmes_emit has at most 65535 bytes.
TEST_F(SocketTest, TypesThatNoCallCanHaveAreMalformed) {
    start(1);
    struct kmes_socket_request request = {KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT, 0, 65536, 65536, 0};
    int file = memfd_create("client", MFD_CLOEXEC);

    ASSERT_EQ(0, ftruncate(file, 65536));
    for (int error : {-EPROTO, -ENOSPC}) {
        RawClient client(address_);

        ASSERT_TRUE(client.send_bytes(&request, sizeof(request), {file}));
        EXPECT_EQ(error, client.reply());
        request.type_len--;
    }
    close(file);
}

// -- Batches: a memory file whose entries have any pointers ------------------------------------

class BatchFile {
  public:
    BatchFile() : fd_(memfd_create("client", MFD_CLOEXEC)) {}
    ~BatchFile() { close(fd_); }
    BatchFile(const BatchFile&) = delete;
    BatchFile& operator=(const BatchFile&) = delete;

    void text(const char* text) { append(text, strlen(text)); }
    void entry(uint64_t type, uint16_t type_len, uint64_t payload, uint32_t payload_len) {
        struct kmes_emit_entry entry = {reinterpret_cast<const void*>(type), type_len,
                                        reinterpret_cast<const void*>(payload), payload_len};

        append(&entry, sizeof(entry));
    }
    int fd() const { return fd_; }

    // Returns the error of the reply, and the number of emitted entries.
    int send(RawClient* client, uint32_t entries_offset, uint32_t count, uint32_t* emitted) {
        struct kmes_socket_request request = {
            KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT_BATCH, 0, entries_offset, 0, count};
        struct kmes_socket_reply whole = {};

        EXPECT_TRUE(client->send_bytes(&request, sizeof(request), {fd_}));
        int error = client->reply(nullptr, &whole);

        *emitted = whole.emitted;
        return error;
    }

  private:
    void append(const void* from, size_t bytes) {
        EXPECT_EQ(static_cast<ssize_t>(bytes), write(fd_, from, bytes));
    }

    int fd_;
};

TEST_F(SocketTest, BatchesAreServedFromAMemoryFile) {
    start(1);
    RawClient client(address_);
    BatchFile file;
    uint32_t emitted = 99;

    file.text("typepay");
    file.entry(0, 4, 4, 3);
    file.entry(0, 1, ~0ull, 0);
    EXPECT_EQ(0, file.send(&client, 7, 2, &emitted));
    EXPECT_EQ(2u, emitted);
    // The same connection again. After the entries there are no bytes.
    EXPECT_EQ(-EFAULT, file.send(&client, 7, 3, &emitted));
    EXPECT_EQ(2u, emitted);
    EXPECT_EQ(-EINVAL, file.send(&client, 7, 0, &emitted));
    EXPECT_EQ(0u, emitted);
    EXPECT_EQ(-EINVAL, file.send(&client, 7, 257, &emitted));
    EXPECT_EQ(0u, emitted);

    std::vector<Delivered> events = InProcessReader(*producer_, 0).drain();

    ASSERT_EQ(4u, events.size());
    EXPECT_EQ("type", events[0].type);
    EXPECT_EQ("pay", events[0].payload);
    EXPECT_EQ(KMES_ORIGIN_USERSPACE, events[0].origin);
    EXPECT_EQ("t", events[3].type);
    EXPECT_EQ("", events[3].payload);
}

// A worker serves each of them and returns the connection.
TEST_F(SocketTest, ConnectionGoesOnAfterEveryBatch) {
    start(1);
    RawClient client(address_);
    BatchFile file;

    file.entry(0, 1, 0, 0);
    for (int i = 0; i < 2000; i++) {
        uint32_t emitted = 99;

        ASSERT_EQ(0, file.send(&client, 0, 1, &emitted)) << i;
        EXPECT_EQ(1u, emitted);
    }
}

TEST_F(SocketTest, EntriesThatPointNowhereAreAFault) {
    start(1);
    RawClient client(address_);
    const uint64_t nowhere[] = {~0ull, 1ull << 63, (1ull << 63) - 1, 1 << 20, 6};

    for (uint64_t offset : nowhere) {
        BatchFile file;
        uint32_t emitted = 99;

        file.text("t");
        file.entry(0, 1, 0, 1);
        file.entry(0, 1, offset, 60);
        EXPECT_EQ(-EFAULT, file.send(&client, 1, 2, &emitted)) << offset;
        EXPECT_EQ(1u, emitted);
        EXPECT_EQ(-EFAULT, file.send(&client, 34, 1, &emitted)) << "half an entry";
        EXPECT_EQ(0u, emitted);
    }
    EXPECT_EQ(5u, producer_->statistics().events);
    expect_alive();
}

TEST_F(SocketTest, BatchesThatAreNotWhatTheySayAreMalformed) {
    start(1);
    BatchFile file;
    int ends[2];

    file.text("0123456789");
    ASSERT_EQ(0, pipe2(ends, O_CLOEXEC));
    const struct {
        struct kmes_socket_request request;
        std::vector<int> fds;
    } rows[] = {
        {{KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT_BATCH, 0, 0, 0, 1}, {ends[0]}},
        {{KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT_BATCH, 0, 11, 0, 1}, {file.fd()}},
        {{KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT_BATCH, 0, ~0u, 0, 1}, {file.fd()}},
        {{KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT_BATCH, 0, 0, 1, 1}, {file.fd()}},
        {{KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT_BATCH, 0, 0, 0, 1}, {file.fd(), file.fd()}},
    };

    for (const auto& row : rows) {
        RawClient client(address_);

        ASSERT_TRUE(client.send_bytes(&row.request, sizeof(row.request), row.fds));
        EXPECT_EQ(-EPROTO, client.reply());
        EXPECT_EQ(1, client.reply());
    }
    struct {
        struct kmes_socket_request request;
        char body[2];
    } with_body = {{KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT_BATCH, 0, 2, 0, 1}, {'t', 'p'}};
    RawClient client(address_);

    ASSERT_TRUE(client.send_bytes(&with_body, sizeof(with_body.request) + 2, {file.fd()}));
    EXPECT_EQ(-EPROTO, client.reply());
    for (int fd : ends) close(fd);
    EXPECT_EQ(0u, producer_->statistics().events);
    expect_alive();
}

// A client that does not read its replies gets no more of them (each holds descriptors).
TEST_F(SocketTest, ClientThatDoesNotReadIsCutOff) {
    start(1);
    RawClient client(address_);
    int sent = 0;

    while (sent < 1000 && client.ask(KMES_SOCKET_ATTACH, 0)) sent++;
    int replies = 0;

    while (client.reply() == 0) replies++;
    EXPECT_LE(replies, 2);
    expect_alive();
}

TEST_F(SocketTest, StalledClientsHoldUpNobody) {
    start(1);
    std::vector<std::unique_ptr<RawClient>> stalled;

    for (int i = 0; i < 100; i++) {  // more than the server has room for
        stalled.push_back(std::make_unique<RawClient>(address_));
        expect_alive();
    }
    EXPECT_EQ(0, producer_->emit(0, "t"));
    EXPECT_EQ(0, producer_->resize(65536));
    expect_alive();
}

TEST_F(SocketTest, BootPhaseIsAnsweredByEagain) {
    Producer producer(test_options());

    producer.serve(address_);
    RawClient client(address_);

    ASSERT_TRUE(client.ask(KMES_SOCKET_ATTACH, 0));
    EXPECT_EQ(-EAGAIN, client.reply());
    ASSERT_TRUE(client.ask(KMES_SOCKET_IDENTIFY, 0));
    EXPECT_EQ(-EAGAIN, client.reply());
    ASSERT_EQ(0, producer.start_without_registry());
    ASSERT_TRUE(client.ask(KMES_SOCKET_ATTACH, 0));
    EXPECT_EQ(0, client.reply());
}

TEST_F(SocketTest, EmittersWithoutALockAreNotJoined) {
    start(1, EmitterMode::kSingle);
    RawClient client(address_);
    struct {
        struct kmes_socket_request request;
        char body[2];
    } event = {{KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT, 0, 2, 1, 0}, {'t', 'p'}};

    ASSERT_TRUE(client.send_bytes(&event, sizeof(event.request) + 2));
    EXPECT_EQ(-EOPNOTSUPP, client.reply());
    BatchFile file;
    uint32_t emitted = 99;

    file.entry(0, 1, 0, 0);
    EXPECT_EQ(-EOPNOTSUPP, file.send(&client, 0, 1, &emitted));
    EXPECT_EQ(0u, emitted);
}

TEST_F(SocketTest, PathHasThePermissionsThatWereAskedFor) {
    start(1);
    struct stat status = {};

    ASSERT_EQ(0, stat(address_.c_str(), &status));
    EXPECT_EQ(0600u, status.st_mode & 0777);
    producer_->stop_serving();
    EXPECT_EQ(-1, stat(address_.c_str(), &status));
    producer_->serve(address_, 0640);
    ASSERT_EQ(0, stat(address_.c_str(), &status));
    EXPECT_EQ(0640u, status.st_mode & 0777);
}

TEST_F(SocketTest, AddressesThatCannotBeHadAreRefused) {
    start(1);
    Producer other(test_options());
    auto error_of = [&other](const std::string& address) {
        try {
            other.serve(address);
        } catch (const std::system_error& error) {
            return error.code().value();
        }
        return 0;
    };

    EXPECT_EQ(EADDRINUSE, error_of(address_));  // another process serves there
    EXPECT_EQ(EINVAL, error_of(""));
    EXPECT_EQ(EINVAL, error_of("@"));
    EXPECT_EQ(ENAMETOOLONG, error_of(std::string(200, 'x')));
    EXPECT_EQ(ENOENT, error_of(folder_.path("no/folder")));
    std::ofstream(folder_.path("file")) << "precious";
    EXPECT_EQ(EADDRINUSE, error_of(folder_.path("file")));  // never removed
    EXPECT_THROW(producer_->serve(folder_.path("second")), std::system_error);
    expect_alive();
}

TEST_F(SocketTest, SocketThatWasLeftBehindIsReplaced) {
    struct sockaddr_un name;
    socklen_t length;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    ASSERT_EQ(0, kmes_socket_address(address_.c_str(), &name, &length));
    ASSERT_EQ(0, bind(fd, reinterpret_cast<struct sockaddr*>(&name), length));
    close(fd);
    start(1);
    expect_alive();
}

TEST_F(SocketTest, AbstractNamesServeToo) {
    // Concurrent sandboxes have the same process ids, and share the abstract names.
    address_ = "@kmes-test-" + std::to_string(std::random_device()());
    start(1);
    expect_alive();
    producer_->stop_serving();
    producer_->serve(address_);
    expect_alive();
}

}  // namespace
}  // namespace kmes
