// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Leases (E12): a consumer that is killed in its sleep leaves need_wake set. The producer clears it
// when no consumer can be asleep any more. This program is also the consumers (main, at the end).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "kmes/user/futex.h"
#include "kmes/user/libkmes.h"
#include "kmes/user/libkmes_reader.h"
#include "kmes/user/raw_client.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/test_support.h"

namespace kmes {

// read: sleeps for the next event of CPU 0, without end, and writes a line for each. With
// `closes_all` it has closed its lease and all other descriptors.
int read_for_ever(bool closes_all) {
    struct kmes_reader_config config = {};
    struct kmes_reader reader;
    uint8_t copy[4096];
    struct kmes_event_view view;

    kmes_reader_by_libkmes(&config, 0);
    if (kmes_reader_open(&reader, &config) != 0) return 1;
    if (closes_all) closefrom(STDERR_FILENO + 1);
    for (;;) {
        while (kmes_reader_next(&reader, copy, sizeof(copy), &view) == KMES_READ_EVENT) {
            printf("%llu\n", view.sequence);
            fflush(stdout);
        }
        kmes_reader_wait(&reader, KMES_NO_TIMEOUT);
    }
}

// sleep: sleeps on CPU 0 without end, by the calls of libkmes, with only the mapping.
int sleep_for_ever() {
    int fds[2], count = 2;
    __u64 capacity;
    void* base;

    if (kmes_attach(fds, &count, &capacity) != 0) return 1;
    if (kmes_map(fds[0], capacity, &base) != 0) return 2;
    close(fds[0]);
    close(fds[1]);
    kmes_unmap(nullptr, 0);
    auto* page = static_cast<uint8_t*>(base);

    for (;;) {
        page[132] = 1;
        kmes_futex_wait(reinterpret_cast<uint32_t*>(page + 128),
                        *reinterpret_cast<uint32_t*>(page + 128), KMES_NO_TIMEOUT);
    }
}

int run_role(int argc, char** argv) {
    const std::string role = argc > 1 ? argv[1] : "";

    if (role == "read") return read_for_ever(false);
    if (role == "read-without-files") return read_for_ever(true);
    if (role == "sleep") return sleep_for_ever();
    return 125;
}

namespace {

class LeaseTest : public testing::Test {
  protected:
    void SetUp() override {
        setenv("KMES_SOCKET", address_.c_str(), 1);
        producer_ = std::make_unique<Producer>(test_options(2));
        ASSERT_EQ(0, producer_->start_without_registry());
        producer_->serve(address_);
    }
    void TearDown() override { unsetenv("KMES_SOCKET"); }

    // True if a consumer has asked for a wake: an event then wakes.
    bool event_wakes(unsigned cpu = 0) {
        const uint64_t before = producer_->statistics(cpu).wakes;

        EXPECT_EQ(0, producer_->emit(cpu, "t"));
        return producer_->statistics(cpu).wakes != before;
    }

    void expect_cleared() {
        EXPECT_TRUE(comes_true([this] { return !event_wakes(); }));
    }

    static void kill_asleep(Child* child) {
        EXPECT_TRUE(comes_true([child] { return child->is_asleep(); }));
        ASSERT_EQ(0, kill(child->pid(), SIGKILL));
        ASSERT_EQ(-1 - SIGKILL, child->finish());
    }

    TemporaryFolder folder_;
    std::string address_ = folder_.path("socket");
    std::unique_ptr<Producer> producer_;
};

TEST_F(LeaseTest, FlagOfAConsumerThatWasKilledAsleepIsCleared) {
    for (const char* role : {"read", "sleep"}) {
        for (int i = 0; i < 3; i++) {
            Child child({role}, address_);

            kill_asleep(&child);
            expect_cleared();
        }
    }
}

TEST_F(LeaseTest, FlagStaysForWhoeverIsLeft) {
    Child left({"read"}, address_);

    EXPECT_TRUE(comes_true([&] { return left.is_asleep(); }));
    for (int i = 0; i < 3; i++) {
        Child child({"sleep"}, address_);

        kill_asleep(&child);
        ASSERT_EQ(0, producer_->emit(0, "t"));
        EXPECT_EQ(std::to_string(i + 1), left.line());
        EXPECT_TRUE(comes_true([&] { return left.is_asleep(); }));
    }
    kill_asleep(&left);
    expect_cleared();
}

// Its lease has ended long before it is killed.
TEST_F(LeaseTest, FlagOfAConsumerThatHasClosedItsLeaseIsCleared) {
    for (int i = 0; i < 3; i++) {
        Child child({"read-without-files"}, address_);
        std::string line;

        for (int event = 0; event < 5; event++) {
            EXPECT_TRUE(comes_true([&] { return child.is_asleep(); }));
            ASSERT_EQ(0, producer_->emit(0, "t"));
            const std::string next = child.line();

            EXPECT_TRUE(line.empty() || std::stoi(line) + 1 == std::stoi(next)) << line;
            line = next;
        }
        kill_asleep(&child);
        expect_cleared();
    }
}

// A reader switches to another buffer with a lease of that buffer.
TEST_F(LeaseTest, EachBufferHasLeasesOfItsOwn) {
    Child child({"read"}, address_);

    for (int i = 1; i <= 3; i++) {
        EXPECT_TRUE(comes_true([&] { return child.is_asleep(); }));
        ASSERT_EQ(0, producer_->resize(65536u << (i & 1)));
        ASSERT_EQ(0, producer_->emit(0, "t"));
        EXPECT_EQ(std::to_string(i), child.line());
    }
    kill_asleep(&child);
    expect_cleared();
}

// The end of a lease waits for no emitter. Neither does an attach after it.
TEST(Attended, IsARingWhileItHasAConsumer) {
    ProducerOptions options = test_options(2);
    Producer producer(options);
    Attachment attachment;

    ASSERT_EQ(0, producer.start_without_registry());
    EXPECT_FALSE(producer.is_attended(0));
    ASSERT_EQ(0, producer.lease(0, &attachment));
    EXPECT_TRUE(producer.is_attended(0));
    EXPECT_FALSE(producer.is_attended(1));
    EXPECT_FALSE(producer.is_attended(2));
    producer.end_lease(0, attachment.buffers[0]->inode());
    EXPECT_FALSE(producer.is_attended(0));
    ASSERT_EQ(0, producer.attach(1, &attachment));
    EXPECT_TRUE(producer.is_attended(1));
}

TEST_F(LeaseTest, FlagIsClearedAfterAnOpenReservation) {
    Child child({"read"}, address_);
    RawClient client(address_);
    Reservation reservation;

    EXPECT_TRUE(comes_true([&] { return child.is_asleep(); }));
    ASSERT_EQ(0, producer_->reserve(0, "t", 0, &reservation));
    kill_asleep(&child);
    for (int i = 0; i < 3; i++) {
        ASSERT_TRUE(client.ask(KMES_SOCKET_IDENTIFY, 0));
        ASSERT_EQ(0, client.reply());
    }
    reservation.abandon();
    expect_cleared();
}

// The producer does not notice the end of a consumer that attached without a lease.
TEST_F(LeaseTest, FlagStaysWhereSomebodyIsUnknown) {
    InProcessReader unknown(*producer_, 0);

    kmes_reader_wait(&unknown.core(), 0);
    {
        Child child({"read"}, address_);

        kill_asleep(&child);
    }
    *unknown.core().shared.need_wake = 1;
    for (int i = 0; i < 20; i++) {
        EXPECT_TRUE(event_wakes());
        usleep(1000);
    }
}

TEST_F(LeaseTest, LeaseEndsWithTheLastDescriptorAndMapping) {
    const size_t before = open_descriptors();
    int fds[2], count = 2;
    __u64 capacity;
    void* base;

    ASSERT_EQ(0, kmes_attach(fds, &count, &capacity));
    ASSERT_EQ(0, kmes_map(fds[0], capacity, &base));
    static_cast<uint8_t*>(base)[132] = 1;
    close(fds[0]);
    close(fds[1]);
    EXPECT_EQ(-1, kmes_unmap(nullptr, 0));
    usleep(10000);
    EXPECT_TRUE(event_wakes()) << "it is mapped";
    EXPECT_EQ(0, kmes_unmap(base, capacity));
    expect_cleared();
    EXPECT_TRUE(comes_true([before] { return open_descriptors() == before; }));
}

// The reader notices that its lease is gone, and takes another one.
TEST_F(LeaseTest, ReaderRenewsALeaseThatWasClosed) {
    struct kmes_reader_config config = {};
    struct kmes_reader reader;

    kmes_reader_by_libkmes(&config, 0);
    ASSERT_EQ(0, kmes_reader_open(&reader, &config));
    void* first = reader.mapping.owner;

    ASSERT_NE(nullptr, first);
    producer_->stop_serving();
    EXPECT_EQ(-ETIMEDOUT, kmes_reader_wait(&reader, 60000000));
    EXPECT_EQ(-ENOSYS, reader.producer_error);
    producer_->serve(address_);
    // On a busy machine the answer comes later, and until then the last one holds.
    EXPECT_TRUE(comes_true([&reader] {
        EXPECT_EQ(-ETIMEDOUT, kmes_reader_wait(&reader, 60000000));
        return reader.producer_error == 0;
    }));
    EXPECT_EQ(0u, reader.statistics.switches);
    kmes_reader_close(&reader);
}

// The limit: an attach continues without a lease, and the descriptors are not exhausted.
TEST_F(LeaseTest, AttachGoesOnWithoutALeaseWhereThereAreTooMany) {
    struct rlimit limit;
    std::vector<std::unique_ptr<struct kmes_reader>> readers;
    struct kmes_reader_config config = {};

    producer_->stop_serving();
    ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
    const struct rlimit small = {64, limit.rlim_max};

    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &small));
    producer_->serve(address_);
    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
    kmes_reader_by_libkmes(&config, 0);
    int without = 0;

    for (int i = 0; i < 20; i++) {
        readers.push_back(std::make_unique<struct kmes_reader>());
        ASSERT_EQ(0, kmes_reader_open(readers.back().get(), &config));
        without += readers.back()->mapping.owner == nullptr;
    }
    EXPECT_EQ(4, without);
    for (auto& reader : readers) kmes_reader_close(reader.get());
}

}  // namespace
}  // namespace kmes

int main(int argc, char** argv) {
    if (std::string(argv[0]) == "kmes_child") return kmes::run_role(argc, argv);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
