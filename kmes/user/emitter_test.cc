// SPDX-License-Identifier: GPL-2.0-only OR MIT
// kmes_emitter: one connection for many events, which survives restarts, forks, threads and closes.
#include "kmes/user/emitter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kmes/user/libkmes.h"
#include "kmes/user/libkmes_parts.h"
#include "kmes/user/producer.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/socket_server.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

struct CloseEmitter {
    void operator()(kmes_emitter* emitter) const { kmes_emitter_close(emitter); }
};
using Emitter = std::unique_ptr<kmes_emitter, CloseEmitter>;

Emitter open_emitter() {
    kmes_emitter* emitter = nullptr;

    EXPECT_EQ(0, kmes_emitter_open(&emitter));
    return Emitter(emitter);
}

int emit(const Emitter& emitter, const std::string& type, const std::string& payload = "") {
    return kmes_emitter_emit(emitter.get(), type.data(), static_cast<__u16>(type.size()),
                             payload.data(), static_cast<__u32>(payload.size()));
}

class EmitterTest : public testing::Test {
  protected:
    void SetUp() override {
        setenv("KMES_SOCKET", address_.c_str(), 1);
        serve();
    }
    void TearDown() override { unsetenv("KMES_SOCKET"); }

    // Called after the end of the previous producer.
    void serve() {
        producer_.reset();
        producer_ = std::make_unique<Producer>(test_options(2));
        ASSERT_EQ(0, producer_->start_without_registry());
        producer_->serve(address_);
    }
    // Returns the number of events of each type in all rings.
    std::map<std::string, unsigned> types() const {
        std::map<std::string, unsigned> found;

        for (uint16_t cpu = 0; cpu < 2; cpu++) {
            for (const Delivered& event : InProcessReader(*producer_, cpu).drain())
                found[event.type]++;
        }
        return found;
    }

    TemporaryFolder folder_;
    std::string address_ = folder_.path("socket");
    std::unique_ptr<Producer> producer_;
};

TEST_F(EmitterTest, OpensNothingForAnEvent) {
    const Emitter emitter = open_emitter();
    struct rlimit before = {};

    ASSERT_EQ(0, emit(emitter, "b"));  // the producer has accepted the connection
    const int lowest = dup(0);

    close(lowest);
    ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
    const struct rlimit none = {static_cast<rlim_t>(lowest), before.rlim_max};

    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
    const int by_call = kmes_emit("a", 1, nullptr, 0) == 0 ? 0 : errno;
    int error = 0;

    for (int i = 0; i < 100 && error == 0; i++) error = emit(emitter, "b", "payload");
    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
    EXPECT_EQ(EMFILE, by_call);
    EXPECT_EQ(0, error);
    EXPECT_EQ((std::map<std::string, unsigned>{{"b", 101}}), types());
}

TEST_F(EmitterTest, HasTheErrorsOfTheCallAndGoesOn) {
    const Emitter emitter = open_emitter();
    const struct kmes_emit_entry entries[3] = {
        {"t", 1, "p", 1}, {"t", 1, "p", 1}, {"t", 0, "p", 1}};
    __u32 emitted = 99;

    EXPECT_EQ(-EINVAL, emit(emitter, ""));
    EXPECT_EQ(-EINVAL, emit(emitter, "\xff"));
    EXPECT_EQ(-ENOSPC, emit(emitter, "t", std::string(1 << 20, 'x')));
    EXPECT_EQ(-EFAULT, kmes_emitter_emit_batch(emitter.get(), entries, 3, nullptr));
    EXPECT_EQ(-EINVAL, kmes_emitter_emit_batch(emitter.get(), entries, 3, &emitted));
    EXPECT_EQ(2u, emitted);
    EXPECT_EQ(0, kmes_emitter_emit_batch(emitter.get(), entries, 2, &emitted));
    EXPECT_EQ(2u, emitted);
    EXPECT_EQ(0, emit(emitter, "last"));
    EXPECT_EQ((std::map<std::string, unsigned>{{"t", 4}, {"last", 1}}), types());
}

TEST_F(EmitterTest, GoesOnWithTheNextProducer) {
    const Emitter emitter = open_emitter();

    EXPECT_EQ(0, emit(emitter, "first"));
    producer_.reset();
    EXPECT_EQ(-ENOSYS, emit(emitter, "none"));
    serve();
    EXPECT_EQ(0, emit(emitter, "next"));
    EXPECT_EQ((std::map<std::string, unsigned>{{"next", 1}}), types());
    serve();
    EXPECT_EQ(0, emit(emitter, "third"));
    EXPECT_EQ((std::map<std::string, unsigned>{{"third", 1}}), types());
}

TEST_F(EmitterTest, NeedsAProducerToOpen) {
    kmes_emitter* emitter = nullptr;

    producer_.reset();
    EXPECT_EQ(-ENOSYS, kmes_emitter_open(&emitter));
    EXPECT_EQ(nullptr, emitter);
    kmes_emitter_close(nullptr);
}

TEST_F(EmitterTest, ThreadsEmitByOne) {
    const Emitter emitter = open_emitter();
    std::vector<std::thread> threads;

    for (const char* type : {"a", "b", "c", "d"}) {
        threads.emplace_back([&emitter, type] {
            for (int i = 0; i < 100; i++) EXPECT_EQ(0, emit(emitter, type));
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ((std::map<std::string, unsigned>{{"a", 100}, {"b", 100}, {"c", 100}, {"d", 100}}),
              types());
}

// If the child took a reply, the parent would miss it. The fork comes while another thread emits.
TEST_F(EmitterTest, ParentAndChildGoOnAfterAFork) {
    const Emitter emitter = open_emitter();
    std::thread other([&emitter] {
        for (int i = 0; i < 200; i++) EXPECT_EQ(0, emit(emitter, "other"));
    });
    const pid_t child = fork();

    if (child == 0) {
        int error = 0;

        for (int i = 0; i < 100 && error == 0; i++) error = emit(emitter, "child");
        _exit(error == 0 ? 0 : 1);
    }
    for (int i = 0; i < 100; i++) EXPECT_EQ(0, emit(emitter, "parent"));
    int status = 0;

    waitpid(child, &status, 0);
    other.join();
    EXPECT_EQ(0, status);
    EXPECT_EQ((std::map<std::string, unsigned>{{"child", 100}, {"other", 200}, {"parent", 100}}),
              types());
}

TEST_F(EmitterTest, LeavesANumberAloneThatIsAnotherFile) {
    const int number = dup(0);

    close(number);
    const Emitter emitter = open_emitter();

    ASSERT_EQ(0, emit(emitter, "a"));
    close(number);
    ASSERT_EQ(number, open("/dev/null", O_RDWR | O_CLOEXEC));
    EXPECT_EQ(0, emit(emitter, "a"));
    EXPECT_EQ(1, write(number, "x", 1));
    close(number);
    EXPECT_EQ(0, emit(emitter, "a"));
    EXPECT_EQ((std::map<std::string, unsigned>{{"a", 3}}), types());
}

// Accepts connections one after the other, and closes each without a reply.
class EndingServer {
  public:
    // `reads`: it receives the request first.
    EndingServer(const std::string& name, bool reads) : name_(name) {
        struct sockaddr_un address;
        socklen_t length;

        EXPECT_EQ(0, kmes_socket_address(name.c_str(), &address, &length));
        listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        EXPECT_EQ(0, bind(listener_, reinterpret_cast<struct sockaddr*>(&address), length));
        EXPECT_EQ(0, listen(listener_, 8));
        thread_ = std::thread([this, reads] {
            char request[100];

            for (int fd; (fd = accept(listener_, nullptr, nullptr)) >= 0; accepted_++) {
                if (reads) recv(fd, request, sizeof(request), 0);
                close(fd);
            }
        });
    }
    ~EndingServer() { end(); }
    EndingServer(const EndingServer&) = delete;
    EndingServer& operator=(const EndingServer&) = delete;

    // Returns the number of connections.
    int end() {
        if (thread_.joinable()) {
            shutdown(listener_, SHUT_RDWR);
            thread_.join();
            close(listener_);
            unlink(name_.c_str());
        }
        return accepted_;
    }

  private:
    std::string name_;
    int listener_ = -1;
    int accepted_ = 0;
    std::thread thread_;
};

// The request was read, so the event may have been emitted.
TEST_F(EmitterTest, EndOfTheServerWithoutAReplyIsUnknown) {
    const std::string name = folder_.path("other");
    const struct kmes_emit_entry entry = {"t", 1, "p", 1};
    __u32 emitted = 99;
    EndingServer server(name, true);

    setenv("KMES_SOCKET", name.c_str(), 1);
    const Emitter emitter = open_emitter();

    EXPECT_EQ(-ECONNRESET, emit(emitter, "a"));
    EXPECT_EQ(-ECONNRESET, kmes_emitter_emit_batch(emitter.get(), &entry, 1, &emitted));
    EXPECT_EQ(0u, emitted);
    EXPECT_EQ(-1, kmes_emit("a", 1, nullptr, 0));
    EXPECT_EQ(ECONNRESET, errno);
    EXPECT_EQ(-1, kmes_emit_batch(&entry, 1, &emitted));
    EXPECT_EQ(ECONNRESET, errno);
    EXPECT_EQ(4, server.end());
    EXPECT_EQ(-ENOSYS, emit(emitter, "a"));
    address_ = name;
    serve();
    EXPECT_EQ(0, emit(emitter, "b"));
    EXPECT_EQ((std::map<std::string, unsigned>{{"b", 1}}), types());
}

// The request was not read, so nothing was emitted, and each call tries again.
TEST_F(EmitterTest, EndOfAConnectionBeforeTheRequestIsRead) {
    const std::string name = folder_.path("other");
    const struct kmes_emit_entry entry = {"t", 1, "p", 1};
    __u32 emitted = 99;
    EndingServer server(name, false);

    setenv("KMES_SOCKET", name.c_str(), 1);
    const Emitter emitter = open_emitter();

    EXPECT_EQ(-ENOSYS, emit(emitter, "a"));
    EXPECT_EQ(-1, kmes_emit("a", 1, nullptr, 0));
    EXPECT_EQ(ENOSYS, errno);
    EXPECT_EQ(-1, kmes_emit_batch(&entry, 1, &emitted));
    EXPECT_EQ(ENOSYS, errno);
    EXPECT_EQ(0u, emitted);
    EXPECT_GE(server.end(), 3 * KMES_SOCKET_ATTEMPTS);
}

// The server closes the connection that was idle longest, also while its client sends a request.
TEST_F(EmitterTest, MoreEmittersThanConnectionsLoseNothing) {
    constexpr unsigned kEmitters = SocketServer::kMaxConnections + 16;
    constexpr unsigned kEvents = 8;
    std::vector<std::thread> threads;
    std::atomic<unsigned> failed = 0;

    for (unsigned i = 0; i < kEmitters; i++) {
        threads.emplace_back([&failed] {
            const Emitter emitter = open_emitter();

            for (unsigned k = 0; k < kEvents; k++) failed += emit(emitter, "t") != 0;
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(0u, failed);
    EXPECT_EQ((std::map<std::string, unsigned>{{"t", kEmitters * kEvents}}), types());
}

}  // namespace
}  // namespace kmes
