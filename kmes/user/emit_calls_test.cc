// SPDX-License-Identifier: GPL-2.0-only OR MIT
// kmes_emit and kmes_emit_batch over a socket of this process.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "kmes/user/libkmes.h"
#include "kmes/user/socket_fixture.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

class EmitCallsTest : public SocketFixture {};

TEST_F(EmitCallsTest, EmitByTheSocket) {
    auto producer = make(1);
    std::string large(300000, 'x');

    ASSERT_EQ(0, producer->start_without_registry());
    ASSERT_EQ(0, producer->resize(1 << 20));
    ASSERT_EQ(0, producer->set_max_event_bytes(1 << 20));
    EXPECT_EQ(0, kmes_emit("t", 1, "payload", 7));
    EXPECT_EQ(0, kmes_emit("t", 1, nullptr, 0));
    EXPECT_EQ(0, kmes_emit("t", 1, large.data(), 300000));  // as a file
    EXPECT_EQ(-1, kmes_emit("t", 0, "payload", 7));
    EXPECT_EQ(EINVAL, errno);
    EXPECT_EQ(-1, kmes_emit("\xff", 1, "payload", 7));
    EXPECT_EQ(EINVAL, errno);
    EXPECT_EQ(-1, kmes_emit("t", 1, reinterpret_cast<void*>(8), 7));
    EXPECT_EQ(EFAULT, errno);
    EXPECT_EQ(-1, kmes_emit("t", 0, "", ~0u));
    EXPECT_EQ(EINVAL, errno);
    large.resize(600000);
    EXPECT_EQ(-1, kmes_emit("\xff", 1, large.data(), 600000));
    EXPECT_EQ(ENOSPC, errno) << "the size comes before the type, as in the kernel";
    EXPECT_EQ(-1, kmes_emit("t", 1, large.data(), 600000));
    EXPECT_EQ(ENOSPC, errno);
    EXPECT_EQ(-1, kmes_emit("t", 1, "", ~0u));
    EXPECT_EQ(ENOSPC, errno);

    std::vector<Delivered> events = InProcessReader(*producer, 0).drain();

    ASSERT_EQ(3u, events.size());
    EXPECT_EQ("payload", events[0].payload);
    EXPECT_EQ(KMES_ORIGIN_USERSPACE, events[0].origin);
    EXPECT_EQ("", events[1].payload);
    EXPECT_EQ(std::string(300000, 'x'), events[2].payload);
    producer->stop_serving();
    EXPECT_EQ(-1, kmes_emit("t", 1, nullptr, 0));
    EXPECT_EQ(ENOSYS, errno);
}

// Two pages, of which the second one does not exist.
class TornMemory {
  public:
    TornMemory() {
        void* base =
            mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        EXPECT_NE(MAP_FAILED, base);
        page_ = static_cast<char*>(base);
        mprotect(page_ + 4096, 4096, PROT_NONE);
    }
    ~TornMemory() { munmap(page_, 8192); }
    TornMemory(const TornMemory&) = delete;
    TornMemory& operator=(const TornMemory&) = delete;

    // Returns the address with `bytes` bytes left before the end.
    char* before_end(size_t bytes) { return page_ + 4096 - bytes; }

  private:
    char* page_;
};

TEST_F(EmitCallsTest, EmitBatchByTheSocket) {
    auto producer = make(1);
    const std::string large(200000, 'x');
    const struct kmes_emit_entry entries[] = {
        {"first", 5, "payload", 7}, {"t", 1, nullptr, 0}, {"t", 1, large.data(), 200000}};
    __u32 emitted = 99;

    ASSERT_EQ(0, producer->start_without_registry());
    ASSERT_EQ(0, producer->resize(1 << 20));
    ASSERT_EQ(0, producer->set_max_event_bytes(1 << 20));
    EXPECT_EQ(0, kmes_emit_batch(entries, 3, &emitted));
    EXPECT_EQ(3u, emitted);
    std::vector<Delivered> events = InProcessReader(*producer, 0).drain();

    ASSERT_EQ(3u, events.size());
    EXPECT_EQ("first", events[0].type);
    EXPECT_EQ("payload", events[0].payload);
    EXPECT_EQ(KMES_ORIGIN_USERSPACE, events[0].origin);
    EXPECT_EQ("", events[1].payload);
    EXPECT_EQ(large, events[2].payload);
    EXPECT_EQ(events[0].timestamp, events[2].timestamp);
    EXPECT_EQ(3u, events[2].sequence);

    std::vector<struct kmes_emit_entry> many(257, {"t", 1, "p", 1});

    EXPECT_EQ(0, kmes_emit_batch(many.data(), 256, &emitted));
    EXPECT_EQ(256u, emitted);
    for (__u32 count : {0u, 257u, ~0u}) {
        EXPECT_EQ(-1, kmes_emit_batch(many.data(), count, &emitted));
        EXPECT_EQ(EINVAL, errno);
        EXPECT_EQ(0u, emitted);
    }
    EXPECT_EQ(-1, kmes_emit_batch(many.data(), 256, nullptr));
    EXPECT_EQ(EFAULT, errno);
    EXPECT_EQ(259u, producer->statistics().events);
    producer->retire();
    emitted = 99;
    EXPECT_EQ(-1, kmes_emit_batch(many.data(), 2, &emitted));
    EXPECT_EQ(ENOSYS, errno);
    EXPECT_EQ(0u, emitted);
}

// The errors of kmes/call.h in their order, whether this process or the producer's finds them.
TEST_F(EmitCallsTest, EmitBatchStopsAtItsFirstBadEntry) {
    auto producer = make(1);
    TornMemory torn;
    char* const end = torn.before_end(3);
    char* const gone = torn.before_end(0);
    const struct {
        struct kmes_emit_entry bad;
        int error;
    } rows[] = {
        {{gone, 0, gone, ~0u}, EINVAL},   {{gone, 1, gone, ~0u}, ENOSPC},
        {{gone, 1, gone, 40000}, ENOSPC},  // over 50 %
        {{gone, 1, gone, 1}, EFAULT},     {{nullptr, 4, nullptr, 1}, EFAULT},
        {{end, 4, nullptr, 0}, EFAULT},  // three of four bytes
        {{"\xff", 1, gone, 1}, EINVAL},   {{"t", 1, gone, 1}, EFAULT},
        {{"t", 1, end, 4}, EFAULT},       {{"t", 1, nullptr, 1}, EFAULT},
    };

    ASSERT_EQ(0, producer->start_without_registry());
    memcpy(end, "end", 3);
    for (const auto& row : rows) {
        for (__u32 k = 0; k < 3; k++) {
            struct kmes_emit_entry entries[] = {
                {end, 3, end, 3}, {"t", 1, gone, 0}, {"t", 1, "p", 1}};
            const uint64_t before = producer->statistics().events;
            __u32 emitted = 99;

            entries[k] = row.bad;
            EXPECT_EQ(-1, kmes_emit_batch(entries, 3, &emitted));
            EXPECT_EQ(row.error, errno);
            EXPECT_EQ(k, emitted);
            EXPECT_EQ(before + k, producer->statistics().events);
        }
    }
    EXPECT_EQ("end", InProcessReader(*producer, 0).drain()[0].type);
    EXPECT_EQ("end", InProcessReader(*producer, 0).drain()[0].payload);
}

TEST_F(EmitCallsTest, EntriesThatAreNotThereAreAFault) {
    auto producer = make(1);
    TornMemory torn;
    const struct kmes_emit_entry sound = {"type", 4, "p", 1};

    ASSERT_EQ(0, producer->start_without_registry());
    for (size_t missing : {0u, 1u, 31u, 32u}) {
        // Two entries, of which the second one is truncated.
        char* const at = torn.before_end(64 - missing);
        __u32 emitted = 99;

        memcpy(at, &sound, sizeof(sound));
        memcpy(at + 32, &sound, sizeof(sound) - missing);
        const auto* entries = reinterpret_cast<const struct kmes_emit_entry*>(at);

        EXPECT_EQ(missing ? -1 : 0, kmes_emit_batch(entries, 2, &emitted));
        if (missing) {
            EXPECT_EQ(EFAULT, errno);
        }
        EXPECT_EQ(missing ? 1u : 2u, emitted);
        EXPECT_EQ(-1, kmes_emit_batch(entries + 1, 3, &emitted));
        EXPECT_EQ(EFAULT, errno);
        EXPECT_EQ(missing ? 0u : 1u, emitted);
    }
    for (uintptr_t address : {uintptr_t{0}, ~uintptr_t{31}, ~uintptr_t{0}}) {
        __u32 emitted = 99;

        EXPECT_EQ(-1, kmes_emit_batch(reinterpret_cast<const struct kmes_emit_entry*>(address), 2,
                                      &emitted));
        EXPECT_EQ(EFAULT, errno);
        EXPECT_EQ(0u, emitted);
    }
    for (const Delivered& event : InProcessReader(*producer, 0).drain()) {
        EXPECT_EQ("type", event.type);
        EXPECT_EQ("p", event.payload);
    }
}

// A producer whose replies are not credible.
TEST_F(EmitCallsTest, AnswersToABatchThatCannotBeAreRefused) {
    const struct {
        struct kmes_socket_reply reply;
        int error;
        __u32 emitted;
    } rows[] = {
        {{KMES_SOCKET_MAGIC, 0, 1, 0, 0, 2, 0, 0, 0, 0}, 0, 2},
        {{KMES_SOCKET_MAGIC, 0, 1, 0, 0, 1, 0, 0, 0, 0}, EPROTO, 0},
        {{KMES_SOCKET_MAGIC, 0, 1, 0, 0, 3, 0, 0, 0, 0}, EPROTO, 0},
        {{KMES_SOCKET_MAGIC, -EINVAL, 1, 0, 0, 0, 0, 0, 0, 0}, EINVAL, 0},
        {{KMES_SOCKET_MAGIC, -EINVAL, 1, 0, 0, 1, 0, 0, 0, 0}, EINVAL, 1},
        {{KMES_SOCKET_MAGIC, -EINVAL, 1, 0, 0, 2, 0, 0, 0, 0}, EPROTO, 0},
        {{KMES_SOCKET_MAGIC, 5, 1, 0, 0, 1, 0, 0, 0, 0}, EPROTO, 0},
        {{1, 0, 1, 0, 0, 2, 0, 0, 0, 0}, EPROTO, 0},
        {{1, -EPROTO, 1, 0, 0, 1, 0, 0, 0, 0}, EPROTO, 0},
    };
    const struct kmes_emit_entry entries[2] = {{"t", 1, nullptr, 0}, {"t", 1, nullptr, 0}};
    struct sockaddr_un name;
    socklen_t length;
    int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    ASSERT_EQ(0, kmes_socket_address(address_.c_str(), &name, &length));
    ASSERT_EQ(0, bind(listening, reinterpret_cast<struct sockaddr*>(&name), length));
    ASSERT_EQ(0, listen(listening, 1));
    std::thread liar([&] {
        char request[64];

        for (const auto& row : rows) {
            int fd = accept(listening, nullptr, nullptr);

            EXPECT_LT(0, recv(fd, request, sizeof(request), 0));
            EXPECT_LT(0, send(fd, &row.reply, sizeof(row.reply), MSG_NOSIGNAL));
            close(fd);
        }
        int fd = accept(listening, nullptr, nullptr);

        EXPECT_LT(0, recv(fd, request, sizeof(request), 0));
        close(fd);
    });

    for (const auto& row : rows) {
        __u32 emitted = 99;
        int result = kmes_emit_batch(entries, 2, &emitted);

        EXPECT_EQ(row.error ? -1 : 0, result);
        if (row.error) {
            EXPECT_EQ(row.error, errno);
        }
        EXPECT_EQ(row.emitted, emitted);
    }
    __u32 emitted = 99;

    EXPECT_EQ(-1, kmes_emit_batch(entries, 2, &emitted));
    EXPECT_EQ(ECONNRESET, errno);
    EXPECT_EQ(0u, emitted);
    liar.join();
    close(listening);
}

}  // namespace
}  // namespace kmes
