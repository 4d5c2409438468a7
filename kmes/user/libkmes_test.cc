// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// libkmes in programs that close all their descriptors, fork at any moment, or have limits.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kmes/user/libkmes.h"
#include "kmes/user/libkmes_parts.h"
#include "kmes/user/libkmes_reader.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/test_support.h"

namespace kmes {

// daemon: attaches, closes all its descriptors as daemons do, opens its own, and continues. 0: none
// of these was closed or mapped, and the attached buffers still work.
int be_a_daemon() {
    int fds[2], again[2], count = 2;
    __u64 capacity;
    void *base, *copy_base;
    struct stat before[16], after;

    if (kmes_attach(fds, &count, &capacity) != 0) return 1;
    int copy = fcntl(fds[1], F_DUPFD_CLOEXEC, 900);

    if (copy < 0 || kmes_map(fds[0], capacity, &base) != 0) return 2;
    for (int fd = 3; fd < 900; fd++) close(fd);
    if (kmes_map(fds[0], capacity, &copy_base) == 0 || errno != EBADF) return 3;
    for (auto& status : before) fstat(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &status);
    if (kmes_map(copy, capacity, &copy_base) != 0) return 4;
    if (memcmp(copy_base, "KMESRING", 8) != 0) return 5;
    if (static_cast<uint8_t*>(copy_base)[12] != 1) return 6;  // cpu_id
    if (kmes_unmap(base, capacity) != 0 || kmes_unmap(copy_base, capacity) != 0) return 7;
    for (int i = 0; i < 16; i++) {
        if (fstat(3 + i, &after) != 0 || after.st_ino != before[i].st_ino) return 10 + i;
    }
    if (kmes_attach(again, &count, &capacity) != 0) return 8;
    if (kmes_map(again[0], capacity, &base) != 0 || kmes_unmap(base, capacity) != 0) return 9;
    return 0;
}

// limited <bytes>: emits a small and a large event and a batch, with RLIMIT_FSIZE. Prints their
// errors.
int emit_with_limit(rlim_t bytes) {
    const struct rlimit limit = {bytes, bytes};
    const std::string large(200000, 'x');
    const struct kmes_emit_entry entries[2] = {{"t", 1, "p", 1}, {"t", 1, large.data(), 200000}};
    __u32 emitted = 99;

    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    printf("%d ", kmes_emit("t", 1, "p", 1) == 0 ? 0 : errno);
    printf("%d ", kmes_emit("t", 1, large.data(), 200000) == 0 ? 0 : errno);
    printf("%d ", kmes_emit_batch(entries, 2, &emitted) == 0 ? 0 : errno);
    printf("%u\n", emitted);
    return 0;
}

int run_role(int argc, char** argv) {
    const std::string role = argv[1];

    if (role == "daemon") return be_a_daemon();
    if (role == "limited" && argc == 3) return emit_with_limit(static_cast<rlim_t>(atoll(argv[2])));
    return 125;
}

namespace {

class LibkmesTest : public testing::Test {
  protected:
    void SetUp() override {
        ProducerOptions options = test_options(2);

        setenv("KMES_SOCKET", address_.c_str(), 1);
        options.capacity_bytes = 1 << 20;
        options.max_event_bytes = 1 << 19;
        producer_ = std::make_unique<Producer>(options);
        ASSERT_EQ(0, producer_->start_without_registry());
        producer_->serve(address_);
    }
    void TearDown() override { unsetenv("KMES_SOCKET"); }

    TemporaryFolder folder_;
    std::string address_ = folder_.path("socket");
    std::unique_ptr<Producer> producer_;
};

TEST_F(LibkmesTest, DescriptorsOfAProgramThatClosedAllAreLeftAlone) {
    Child child({"daemon"}, address_);

    EXPECT_EQ(0, child.finish());
}

// A producer that does not answer. Each signal interrupts the wait for it.
TEST_F(LibkmesTest, SignalsDoNotExtendATimeLimit) {
    const struct itimerval often = {{0, 20000}, {0, 20000}}, never = {};
    const std::string silent = folder_.path("silent");
    struct kmes_socket_identity identity;
    struct sockaddr_un address;
    socklen_t length;
    struct sigaction action = {}, before;

    ASSERT_EQ(0, kmes_socket_address(silent.c_str(), &address, &length));
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ASSERT_EQ(0, bind(listener, reinterpret_cast<struct sockaddr*>(&address), length));
    ASSERT_EQ(0, listen(listener, 8));
    setenv("KMES_SOCKET", silent.c_str(), 1);
    action.sa_handler = [](int) {};
    ASSERT_EQ(0, sigaction(SIGALRM, &action, &before));
    ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, nullptr));
    EXPECT_EQ(-ETIMEDOUT, kmes_socket_identify(0, 200, &identity));
    ASSERT_EQ(0, setitimer(ITIMER_REAL, &never, nullptr));
    ASSERT_EQ(0, sigaction(SIGALRM, &before, nullptr));
    close(listener);
}

TEST_F(LibkmesTest, RefusedUnmapLeavesTheMapping) {
    int fds[2];
    int count = 2;
    __u64 capacity;
    void* base;

    ASSERT_EQ(0, kmes_attach(fds, &count, &capacity));
    ASSERT_EQ(0, kmes_map(fds[0], capacity, &base));
    const size_t open_before = open_descriptors();

    EXPECT_EQ(-1, kmes_unmap(base, capacity + 1));
    EXPECT_EQ(EINVAL, errno);
    EXPECT_EQ(open_before, open_descriptors());
    EXPECT_EQ(0, kmes_unmap(base, capacity));
    for (int fd : fds) close(fd);
}

TEST_F(LibkmesTest, FileSizeLimitIsAnError) {
    Child none({"limited", "0"}, address_);

    EXPECT_EQ("0 27 27 0", none.line());  // EFBIG
    EXPECT_EQ(0, none.finish());
    Child some({"limited", "100000"}, address_);

    EXPECT_EQ("0 27 27 0", some.line());
    EXPECT_EQ(0, some.finish());
    EXPECT_EQ(2u, producer_->statistics().events);
    Child enough({"limited", "300000"}, address_);

    EXPECT_EQ("0 0 0 2", enough.line());
    EXPECT_EQ(0, enough.finish());
    EXPECT_EQ(6u, producer_->statistics().events);
}

// Takes the lock of the table.
void unmap_nothing() {
    kmes_unmap(nullptr, 4096);
}

// Another thread is inside libkmes at the fork. The child may nevertheless call libkmes.
TEST_F(LibkmesTest, ChildOfAForkFindsNoLockTaken) {
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;

    for (int i = 0; i < 2; i++) {
        threads.emplace_back([&stop] {
            while (!stop) unmap_nothing();
        });
    }
    int unfinished = 0;

    for (int i = 0; i < 300 && unfinished == 0; i++) {
        pid_t child = fork();

        if (child == 0) {
            alarm(static_cast<unsigned>(patience_ns() / 1000000000));
            unmap_nothing();
            _exit(0);
        }
        int status = 0;

        ASSERT_LT(0, child);
        ASSERT_EQ(child, waitpid(child, &status, 0));
        if (status != 0) unfinished++;
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(0, unfinished);
}

std::atomic<int> forked_in_handler = 0;

// A signal handler that forks never interrupts its own thread while the table is locked.
TEST_F(LibkmesTest, HandlerMayForkInTheMiddleOfACall) {
    struct sigaction action = {}, before;
    std::atomic<bool> stop{false};

    forked_in_handler = 0;
    action.sa_handler = [](int) {
        pid_t child = fork();

        if (child == 0) _exit(0);
        if (child > 0) forked_in_handler += waitpid(child, nullptr, 0) == child;
    };
    ASSERT_EQ(0, sigaction(SIGUSR1, &action, &before));
    pthread_t self = pthread_self();
    std::thread sender([&] {
        // The thread advances between two signals, although a fork takes long under a sanitizer.
        while (!stop) {
            const int before_it = forked_in_handler;

            pthread_kill(self, SIGUSR1);
            while (!stop && forked_in_handler == before_it) usleep(100);
            usleep(100);
        }
    });

    EXPECT_TRUE(comes_true([] {
        for (int i = 0; i < 1000 && forked_in_handler <= 100; i++) unmap_nothing();
        return forked_in_handler > 100;
    }));
    stop = true;
    sender.join();
    sigaction(SIGUSR1, &before, nullptr);
}

// A child has the attached buffers of its parent. A descriptor that the child closes remains open
// in the parent.
TEST_F(LibkmesTest, ChildOfAForkHasWhatItsParentHas) {
    struct kmes_reader_config config = {};
    struct kmes_reader reader;
    int fds[2], count = 2;
    __u64 capacity;
    uint8_t copy[4096];
    struct kmes_event_view view;

    config.sharing = KMES_SHARED;
    kmes_reader_by_libkmes(&config, 0);
    ASSERT_EQ(0, kmes_attach(fds, &count, &capacity));
    ASSERT_EQ(0, kmes_reader_open(&reader, &config));
    ASSERT_EQ(0, producer_->emit(0, "t"));
    pid_t child = fork();

    if (child == 0) {
        void* base;

        if (kmes_map(fds[1], capacity, &base) != 0) _exit(1);
        if (kmes_reader_next(&reader, copy, sizeof(copy), &view) != KMES_READ_EVENT) _exit(2);
        close(fds[0]);
        close(fds[1]);
        if (kmes_unmap(base, capacity) != 0) _exit(3);
        kmes_reader_close(&reader);
        _exit(0);
    }
    int status = -1;
    void* base;

    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    EXPECT_EQ(KMES_READ_EVENT, kmes_reader_next(&reader, copy, sizeof(copy), &view));
    kmes_reader_close(&reader);
    ASSERT_EQ(0, kmes_map(fds[1], capacity, &base));
    EXPECT_EQ(0, kmes_unmap(base, capacity));
    close(fds[0]);
    close(fds[1]);
}

}  // namespace
}  // namespace kmes

int main(int argc, char** argv) {
    if (std::string(argv[0]) == "kmes_child") return kmes::run_role(argc, argv);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
