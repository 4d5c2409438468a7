// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Producer and consumer in two processes: the possible actions of a consumer on the files, attach
// and read through libkmes over resizes, and the end and return of a producer. This program is also
// the consumer (main, at the end).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "kmes/user/libkmes.h"
#include "kmes/user/libkmes_reader.h"
#include "kmes/user/socket_fixture.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/test_support.h"

namespace kmes {

// -- The child's roles ------------------------------------------------------------------------

// attack <metadata fd> <data fd> <capacity>: tries the actions of a hostile consumer. 0: all of
// them failed, and need_wake was set. Otherwise the number of the action that succeeded.
int attack(int metadata_fd, int data_fd, uint64_t capacity) {
    void* base = nullptr;
    char reopened[64];

    if (mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_SHARED, data_fd, 0) != MAP_FAILED)
        return 1;
    if (mmap(nullptr, capacity, PROT_WRITE, MAP_SHARED, data_fd, 0) != MAP_FAILED) return 2;
    if (kmes_double_map(metadata_fd, data_fd, capacity, false, &base) != 0) return 3;
    auto* page = static_cast<uint8_t*>(base);

    if (mprotect(page + 4096, capacity, PROT_READ | PROT_WRITE) == 0) return 4;
    if (mprotect(page + 4096 + capacity, capacity, PROT_READ | PROT_WRITE) == 0) return 5;
    if (ftruncate(data_fd, 0) == 0 || ftruncate(metadata_fd, 0) == 0) return 6;
    if (ftruncate(data_fd, 1 << 24) == 0 || ftruncate(metadata_fd, 1 << 24) == 0) return 7;
    if (pwrite(data_fd, "x", 1, 0) >= 0) return 8;
    if (fallocate(data_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0) return 9;
    if (madvise(page + 4096, capacity, MADV_REMOVE) == 0) return 10;
    // The same file, opened again by its name in /proc, is also sealed.
    snprintf(reopened, sizeof(reopened), "/proc/self/fd/%d", data_fd);
    int again = open(reopened, O_RDWR | O_CLOEXEC);

    if (again >= 0) {
        if (mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0) != MAP_FAILED)
            return 11;
        if (ftruncate(again, 0) == 0 || pwrite(again, "x", 1, 0) >= 0) return 12;
    }
    page[132] = 1;  // 5.1.6.3: the only byte that belongs to the consumer
    return 0;
}

// drain <cpu>: prints "<sequence> <lost before> <type> <payload>" for each event, until one of type
// "end"; prints "ready" after the attach. Sleeps while there is no event, and waits for a producer
// that does not exist yet (E25).
int drain(uint16_t cpu) {
    static uint8_t copy[1 << 20];
    struct kmes_reader_config config = {};
    struct kmes_reader reader;

    kmes_reader_by_libkmes(&config, cpu);
    if (int error = kmes_reader_open(&reader, &config)) return -error;
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        struct kmes_event_view view;
        int found = kmes_reader_next(&reader, copy, sizeof(copy), &view);

        if (found == KMES_READ_EVENT) {
            printf("%llu %llu %.*s %.*s\n", view.sequence, view.lost_before, view.type_len,
                   view.type, static_cast<int>(view.payload_len), view.payload);
            fflush(stdout);
            if (view.type_len == 3 && memcmp(view.type, "end", 3) == 0) break;
        } else if (found == KMES_READ_EMPTY) {
            kmes_reader_wait(&reader, KMES_NO_TIMEOUT);
        } else if (found == -ENOSYS || found == -ESHUTDOWN || found == -EAGAIN) {
            usleep(1000);
        } else {
            return -found;
        }
    }
    kmes_reader_close(&reader);
    return 0;
}

// attach: prints the results of the C functions.
int attach_by_calls() {
    int fds[8];
    int count = 0;
    __u64 capacity = 0;
    void* base = nullptr;

    if (kmes_attach(nullptr, &count, &capacity) == 0 || errno != ERANGE) return errno;
    if (count > 8 || kmes_attach(fds, &count, &capacity) != 0) return 100;
    for (int i = 0; i < count; i++) {
        if (kmes_map(fds[i], capacity, &base) != 0) return 101;
        if (memcmp(base, "KMESRING", 8) != 0) return 102;
        if (static_cast<uint8_t*>(base)[12] != i) return 103;  // cpu_id
        if (kmes_unmap(base, capacity) != 0) return 104;
    }
    printf("%d %llu\n", count, capacity);
    return 0;
}

// batch: prints the results of kmes_emit_batch.
int batch_by_call() {
    const struct kmes_emit_entry entries[2] = {{"t", 1, "p", 1}, {"", 0, nullptr, 0}};
    __u32 emitted = 99;
    int result = kmes_emit_batch(entries, 2, &emitted);

    printf("%d %d %u\n", result, errno, emitted);
    return 0;
}

// Like a container whose filter answers unknown calls with EPERM.
bool refuse_calls_with_eperm() {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, KMES_SYSCALL_EMIT, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, KMES_SYSCALL_EMIT_BATCH, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, KMES_SYSCALL_ATTACH, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int run_role(int argc, char** argv) {
    std::string role = argv[1];

    if (role == "filtered" && argc > 2) {
        if (!refuse_calls_with_eperm()) return 124;
        return run_role(argc - 1, argv + 1);
    }

    if (role == "attack" && argc == 5) return attack(atoi(argv[2]), atoi(argv[3]), atoll(argv[4]));
    if (role == "drain" && argc == 3) return drain(static_cast<uint16_t>(atoi(argv[2])));
    if (role == "attach") return attach_by_calls();
    if (role == "batch") return batch_by_call();
    return 125;
}

namespace {

class ProcessTest : public SocketFixture {};

// "<sequence> <lost> <type> <payload>" for n events from `first` on.
void expect_lines(Child* child, uint64_t first, int count) {
    for (int i = 0; i < count; i++) {
        std::string number = std::to_string(first + static_cast<uint64_t>(i));

        ASSERT_EQ(number + " 0 t " + number, child->line());
    }
}

void emit_numbers(Producer* producer, unsigned cpu, uint64_t first, int count) {
    for (int i = 0; i < count; i++) {
        std::string number = std::to_string(first + static_cast<uint64_t>(i));

        ASSERT_EQ(0, producer->emit(cpu, "t", bytes_of(number)));
    }
}

// E13. The consumer has only the two descriptors.
TEST_F(ProcessTest, ConsumerCannotHarmTheProducer) {
    BufferOptions options;

    options.capacity_bytes = 65536;
    BufferHandle memory = BufferMemory::create(options);
    int metadata_fd = dup(memory->metadata_fd());  // not close-on-exec
    int data_fd = dup(memory->data_fd());
    Child child({"attack", std::to_string(metadata_fd), std::to_string(data_fd), "65536"}, "",
                {metadata_fd, data_fd});

    EXPECT_EQ(0, child.finish());
    EXPECT_EQ(1, static_cast<uint8_t*>(memory->base())[132]);
    static_cast<uint8_t*>(memory->base())[4096] = 1;  // no SIGBUS
    close(metadata_fd);
    close(data_fd);
}

TEST_F(ProcessTest, CallsOfLibkmesAttachAndMap) {
    auto producer = make(4);

    ASSERT_EQ(0, producer->start_without_registry());
    Child child({"attach"}, address_);

    EXPECT_EQ("4 65536", child.line());
    EXPECT_EQ(0, child.finish());
}

TEST_F(ProcessTest, BootPhaseIsEagainAndHandOverIsSeen) {
    auto producer = make(1);

    emit_numbers(producer.get(), 0, 1, 5);
    Child early({"attach"}, address_);

    EXPECT_EQ(EAGAIN, early.finish());
    ASSERT_EQ(0, producer->registry_available(131072));
    Child child({"drain", "0"}, address_);

    EXPECT_EQ("ready", child.line());
    expect_lines(&child, 1, 5);
    ASSERT_EQ(0, producer->emit(0, "end"));
    EXPECT_EQ("6 0 end ", child.line());
    EXPECT_EQ(0, child.finish());
}

TEST_F(ProcessTest, NobodyThereIsEnosys) {
    Child child({"attach"}, address_);
    Child reader({"drain", "0"}, folder_.path("elsewhere"));

    EXPECT_EQ(ENOSYS, child.finish());
    EXPECT_EQ(ENOSYS, reader.finish());
}

// A filter that answers the system calls with EPERM does not keep a program from its configured
// socket. (ways_test.cc has the rest of the rule.)
TEST_F(ProcessTest, EpermOfAFilterLeadsToTheSocket) {
    Child alone({"filtered", "attach"}, address_);
    Child reader_alone({"filtered", "drain", "0"}, address_);
    Child batch_alone({"filtered", "batch"}, address_);

    EXPECT_EQ("-1 " + std::to_string(ENOSYS) + " 0", batch_alone.line());
    EXPECT_EQ(ENOSYS, alone.finish());
    EXPECT_EQ(ENOSYS, reader_alone.finish());
    auto producer = make(2);

    ASSERT_EQ(0, producer->start_without_registry());
    Child served({"filtered", "attach"}, address_);
    Child reader({"filtered", "drain", "1"}, address_);

    EXPECT_EQ("2 65536", served.line());
    EXPECT_EQ(0, served.finish());
    EXPECT_EQ("ready", reader.line());
    ASSERT_EQ(0, producer->emit(1, "end"));
    EXPECT_EQ("1 0 end ", reader.line());
    EXPECT_EQ(0, reader.finish());
    Child batch({"filtered", "batch"}, address_);

    EXPECT_EQ("-1 " + std::to_string(EINVAL) + " 1", batch.line());
    EXPECT_EQ(2u, producer->statistics().events);
    EXPECT_EQ(0, batch.finish());
}

// 5.1.8.3, across processes: every event once, over many resizes.
TEST_F(ProcessTest, ConsumerReadsOnOverResizes) {
    auto producer = make(2);

    ASSERT_EQ(0, producer->start_without_registry());
    Child child({"drain", "1"}, address_);
    uint64_t next = 1;

    ASSERT_EQ("ready", child.line());
    for (int round = 0; round < 30; round++) {
        emit_numbers(producer.get(), 1, next, 20);
        ASSERT_EQ(0, producer->resize(65536u << (round % 3)));
        emit_numbers(producer.get(), 1, next + 20, 5);
        if (round % 2) {
            ASSERT_EQ(0, producer->resize(65536));
        }
        expect_lines(&child, next, 25);
        next += 25;
    }
    ASSERT_EQ(0, producer->emit(1, "end"));
    EXPECT_EQ(std::to_string(next) + " 0 end ", child.line());
    EXPECT_EQ(0, child.finish());
}

// A shared futex (E17) across processes, repeatedly.
TEST_F(ProcessTest, SleepingConsumerIsWokenByEvents) {
    auto producer = make(1);

    ASSERT_EQ(0, producer->start_without_registry());
    Child child({"drain", "0"}, address_);

    ASSERT_EQ("ready", child.line());
    for (uint64_t i = 1; i <= 50; i++) {
        EXPECT_TRUE(comes_true([&] { return child.is_asleep(); }));
        emit_numbers(producer.get(), 0, i, 1);
        expect_lines(&child, i, 1);
    }
    EXPECT_LE(50u, producer->statistics().wakes);
    ASSERT_EQ(0, producer->emit(0, "end"));
    child.line();
    EXPECT_EQ(0, child.finish());
}

// E25: the consumer sleeps without a limit. The end wakes it, and it continues with the next
// producer: no number is repeated or missing.
TEST_F(ProcessTest, ConsumerOutlivesItsProducer) {
    auto producer = make(1);

    ASSERT_EQ(0, producer->start_without_registry());
    Child child({"drain", "0"}, address_);

    ASSERT_EQ("ready", child.line());
    emit_numbers(producer.get(), 0, 1, 10);
    expect_lines(&child, 1, 10);
    EXPECT_TRUE(comes_true([&] { return child.is_asleep(); }));
    std::string path = folder_.path("state");

    producer->retire().save(path);
    producer.reset();
    producer = make(1, ResumeState::take(path));
    ASSERT_EQ(0, producer->start_without_registry());
    emit_numbers(producer.get(), 0, 11, 10);
    expect_lines(&child, 11, 10);
    ASSERT_EQ(0, producer->emit(0, "end"));
    EXPECT_EQ("21 0 end ", child.line());
    EXPECT_EQ(0, child.finish());
}

// Without the state it is a new session: its numbers restart, and none is mistaken for an old one.
TEST_F(ProcessTest, NewSessionIsReadFromItsFirstEvent) {
    auto producer = make(1);

    ASSERT_EQ(0, producer->start_without_registry());
    Child child({"drain", "0"}, address_);

    ASSERT_EQ("ready", child.line());
    emit_numbers(producer.get(), 0, 1, 10);
    expect_lines(&child, 1, 10);
    producer.reset();
    producer = make(1);
    ASSERT_EQ(0, producer->start_without_registry());
    emit_numbers(producer.get(), 0, 1, 3);
    expect_lines(&child, 1, 3);
    ASSERT_EQ(0, producer->emit(0, "end"));
    EXPECT_EQ("4 0 end ", child.line());
    EXPECT_EQ(0, child.finish());
}

}  // namespace
}  // namespace kmes

int main(int argc, char** argv) {
    if (std::string(argv[0]) == "kmes_child") return kmes::run_role(argc, argv);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
