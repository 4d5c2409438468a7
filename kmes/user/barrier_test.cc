// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The asymmetric barrier. The tests cover the right to attach to a producer without a full fence,
// the promise of a reader, and a kernel without membarrier. props/threads/wake_race_test.cc and the
// models show that no wake is lost.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "kmes/user/libkmes.h"
#include "kmes/user/libkmes_reader.h"
#include "kmes/user/membarrier.h"
#include "kmes/user/producer.h"
#include "kmes/user/raw_client.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

constexpr uint32_t kLease = KMES_SOCKET_IS_LEASE;

ProducerOptions asymmetric_options(unsigned cpus = 1) {
    ProducerOptions options = test_options(cpus);

    options.barrier = Barrier::kAsymmetric;
    return options;
}

// A producer that serves, found by libkmes.
class Served {
  public:
    explicit Served(Barrier barrier) : producer_(options_of(barrier)) {
        EXPECT_EQ(0, producer_.start_without_registry());
        producer_.serve(address());
        setenv("KMES_SOCKET", address().c_str(), 1);
    }
    ~Served() { unsetenv("KMES_SOCKET"); }
    Served(const Served&) = delete;
    Served& operator=(const Served&) = delete;

    std::string address() const { return folder_.path("s"); }
    Producer* operator->() { return &producer_; }

  private:
    static ProducerOptions options_of(Barrier barrier) {
        ProducerOptions options = test_options(2);

        options.barrier = barrier;
        return options;
    }

    TemporaryFolder folder_;
    Producer producer_;
};

// The reply of the server: the descriptors, and the granted flags.
struct Answer {
    int error;
    size_t descriptors;
    uint32_t granted;
    bool operator==(const Answer&) const = default;
};

Answer ask(const Served& served, uint32_t operation, uint32_t cpu) {
    RawClient client(served.address());
    struct kmes_socket_reply reply = {};
    size_t descriptors = 0;

    EXPECT_TRUE(client.ask(operation, cpu));
    const int error = client.reply(&descriptors, &reply);

    return {error, descriptors, reply.emitted};
}

// Opens a libkmes reader of CPU 0. Returns 0 or the error.
int open_reader(struct kmes_reader* reader, bool promises) {
    struct kmes_reader_config config = {};

    kmes_reader_by_libkmes(&config, 0);
    const int error = promises ? kmes_reader_promise_membarrier(&config) : 0;

    EXPECT_EQ(0, error);
    return kmes_reader_open(reader, &config);
}

bool has_membarrier() {
    return kmes_membarrier() == 0;
}

TEST(BarrierTest, AProducerHasItsOwnFenceWithoutTheOption) {
    Producer producer(test_options());
    Attachment attachment;

    EXPECT_EQ(Barrier::kFull, producer.barrier());
    ASSERT_EQ(0, producer.start_without_registry());
    ASSERT_EQ(0, producer.attach(&attachment, Promise::kMembarrier));
    EXPECT_FALSE(attachment.needs_barrier);
}

TEST(BarrierTest, OnlyAConsumerThatPromisesTheBarrierAttaches) {
    if (!has_membarrier()) GTEST_SKIP() << "no membarrier here";
    Producer producer(asymmetric_options(2));
    Attachment attachment;

    EXPECT_EQ(Barrier::kAsymmetric, producer.barrier());
    EXPECT_EQ(-EAGAIN, producer.attach(&attachment)) << "the boot phase, first";
    ASSERT_EQ(0, producer.start_without_registry());
    EXPECT_EQ(-EOPNOTSUPP, producer.attach(&attachment));
    EXPECT_EQ(-EOPNOTSUPP, producer.attach(1, &attachment));
    EXPECT_EQ(-EOPNOTSUPP, producer.lease(&attachment));
    EXPECT_EQ(-EOPNOTSUPP, producer.lease(1, &attachment));
    EXPECT_TRUE(attachment.buffers.empty());
    EXPECT_EQ(0, producer.inspect(1, &attachment)) << "asks only which buffer it is";
    for (int round = 0; round < 2; round++) {
        Attachment all, one;

        ASSERT_EQ(0, producer.attach(&all, Promise::kMembarrier));
        ASSERT_EQ(0, producer.lease(1, &one, Promise::kMembarrier));
        EXPECT_TRUE(all.needs_barrier && one.needs_barrier);
        ASSERT_EQ(0, producer.resize(128 << 10)) << "and so of the buffers after it";
    }
}

TEST(BarrierTest, TheSocketAsksForThePromise) {
    if (!has_membarrier()) GTEST_SKIP() << "no membarrier here";
    Served served(Barrier::kAsymmetric);
    const Answer refused = {-EOPNOTSUPP, 0, 0};

    EXPECT_EQ(refused, ask(served, KMES_SOCKET_ATTACH, 0));
    EXPECT_EQ(refused, ask(served, KMES_SOCKET_ATTACH, KMES_SOCKET_ALL_CPUS));
    EXPECT_EQ(refused, ask(served, KMES_SOCKET_LEASE, 1));
    EXPECT_EQ(refused, ask(served, KMES_SOCKET_LEASE, KMES_SOCKET_ALL_CPUS));
    EXPECT_EQ((Answer{0, 2, kLease | KMES_SOCKET_NEEDS_BARRIER}),
              ask(served, KMES_SOCKET_LEASE_WITH_MEMBARRIER, 1));
    EXPECT_EQ((Answer{0, 4, kLease | KMES_SOCKET_NEEDS_BARRIER}),
              ask(served, KMES_SOCKET_LEASE_WITH_MEMBARRIER, KMES_SOCKET_ALL_CPUS));
    EXPECT_EQ(0, ask(served, KMES_SOCKET_IDENTIFY, 0).error);
}

TEST(BarrierTest, AnOrdinaryProducerAsksForNoBarrier) {
    if (!has_membarrier()) GTEST_SKIP() << "no membarrier here";
    Served served(Barrier::kFull);
    struct kmes_reader reader;

    EXPECT_EQ((Answer{0, 2, kLease}), ask(served, KMES_SOCKET_LEASE_WITH_MEMBARRIER, 0));
    ASSERT_EQ(0, open_reader(&reader, true));
    EXPECT_FALSE(reader.mapping.needs_barrier);
    kmes_reader_close(&reader);
}

TEST(BarrierTest, LibkmesAttachesOnlyWithThePromise) {
    if (!has_membarrier()) GTEST_SKIP() << "no membarrier here";
    Served served(Barrier::kAsymmetric);
    struct kmes_reader reader;
    int fds[2], count = 2;
    uint64_t capacity;

    EXPECT_EQ(-EOPNOTSUPP, open_reader(&reader, false));
    EXPECT_EQ(-1, kmes_attach(fds, &count, reinterpret_cast<__u64*>(&capacity)));
    EXPECT_EQ(EOPNOTSUPP, errno);
    ASSERT_EQ(0, open_reader(&reader, true));
    EXPECT_TRUE(reader.mapping.needs_barrier);
    kmes_reader_close(&reader);
}

// A reader that sleeps between events gets every event, also in the buffer after a resize.
TEST(BarrierTest, AReaderSleepsAndIsWoken) {
    if (!has_membarrier()) GTEST_SKIP() << "no membarrier here";
    Served served(Barrier::kAsymmetric);
    constexpr uint64_t kEvents = 400;
    struct kmes_reader reader;

    ASSERT_EQ(0, open_reader(&reader, true));
    std::thread reading([&reader] {
        uint8_t room[256];

        kmes_reader_run(
            &reader, room, sizeof(room),
            [](void* context, const kmes_event_view*) {
                return static_cast<kmes_reader*>(context)->statistics.delivered == kEvents ? 1 : 0;
            },
            &reader);
    });
    for (uint64_t i = 0; i < kEvents; i++) {
        EXPECT_EQ(0, served->emit(0, "t"));
        if (i % 50 == 49) {
            EXPECT_EQ(0, served->resize(i % 100 == 99 ? 64 << 10 : 128 << 10));
        }
        if (i % 7 == 0) std::this_thread::yield();
    }
    reading.join();
    EXPECT_EQ(0u, reader.statistics.lost);
    EXPECT_TRUE(reader.mapping.needs_barrier);
    kmes_reader_close(&reader);
}

// -- Without membarrier -----------------------------------------------------------------------

// From now on the system call fails with `error` in this process.
bool forbid_membarrier(unsigned error) {
    struct sock_filter filter[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_membarrier},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | error},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    struct sock_fprog program = {4, filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Returns 0, or the number of the failed check.
int run_without_membarrier(unsigned forbidden, int expected, const std::string& reason) {
    struct kmes_reader_config config = {};

    if (!forbid_membarrier(forbidden)) return 1;
    kmes_reader_by_libkmes(&config, 0);
    const auto attach = config.attach_functions.attach;

    if (kmes_reader_promise_membarrier(&config) != expected) return 2;
    if (config.attach_functions.attach != attach) return 3;
    Producer producer(asymmetric_options());
    Attachment attachment;

    if (producer.barrier() != Barrier::kFull) return 4;
    if (producer.start_without_registry() != 0) return 5;
    if (producer.attach(&attachment) != 0 || attachment.needs_barrier) return 6;
    InProcessReader reader(producer, 0);
    const std::vector<Delivered> events = reader.drain();

    if (events.size() != 1 || events[0].type != kConfigRefusedType) return 7;
    if (events[0].payload != "Barrier asymmetric: membarrier: " + reason + "; full stays") return 8;
    return 0;
}

int status_without_membarrier(unsigned forbidden, int expected, const std::string& reason) {
    const pid_t child = fork();
    int status = -1;

    if (child == 0) _exit(run_without_membarrier(forbidden, expected, reason));
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(BarrierTest, AProducerKeepsItsFenceWhereThereIsNoMembarrierAndSaysSo) {
    EXPECT_EQ(0, status_without_membarrier(ENOSYS, -ENOSYS, "Function not implemented"));
    EXPECT_EQ(0, status_without_membarrier(EINVAL, -ENOSYS, "Function not implemented"));
    EXPECT_EQ(0, status_without_membarrier(EPERM, -EPERM, "Operation not permitted"));
}

}  // namespace
}  // namespace kmes
