// SPDX-License-Identifier: GPL-2.0-only OR MIT
// More CPUs than one packet has descriptors for: the kernel passes at most 253 at a time, and a CPU
// needs two.
#include <gtest/gtest.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "kmes/user/libkmes.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

TEST(ManyCpusTest, AttachGivesAllOfThemInOrder) {
    TemporaryFolder folder;
    Producer producer(test_options(130));
    std::vector<int> fds(200);
    int count = 0;
    __u64 capacity = 0;

    ASSERT_EQ(0, producer.start_without_registry());
    producer.serve(folder.path("socket"));
    setenv("KMES_SOCKET", folder.path("socket").c_str(), 1);
    EXPECT_EQ(-1, kmes_attach(nullptr, &count, &capacity));
    EXPECT_EQ(ERANGE, errno);
    EXPECT_EQ(130, count);
    count = 200;
    ASSERT_EQ(0, kmes_attach(fds.data(), &count, &capacity));
    ASSERT_EQ(130, count);
    for (int i = 0; i < count; i++) {
        void* base = nullptr;

        ASSERT_EQ(0, kmes_map(fds[i], capacity, &base));
        EXPECT_EQ(0, std::memcmp(base, "KMESRING", 8));
        EXPECT_EQ(i, static_cast<uint8_t*>(base)[12]);  // cpu_id
        EXPECT_EQ(0, kmes_unmap(base, capacity));
        close(fds[i]);
    }
}

// The memory besides the data region. It consists of the metadata page, the producer's state of a
// CPU, and the index of event boundaries, 16 bytes for each 4 KiB of data (E13). Both sizes of ring
// are written completely, so that their pages exist.
TEST(ManyCpusTest, TakeLittleMemoryBesideTheirRings) {
    constexpr uint64_t kCpus = 32, kMost = 32 << 10;
    const std::vector<std::byte> payload(16 << 10);

    for (const uint64_t capacity_bytes : {uint64_t{64} << 10, uint64_t{2} << 20}) {
        ProducerOptions options = test_options(kCpus);
        const size_t heap_before = mallinfo2().uordblks + mallinfo2().hblkhd;
        uint64_t file_bytes = 0;

        options.capacity_bytes = capacity_bytes;
        Producer producer(options);
        ASSERT_EQ(0, producer.start_without_registry());
        for (unsigned cpu = 0; cpu < kCpus; cpu++) {
            for (uint64_t done = 0; done <= capacity_bytes; done += payload.size())
                ASSERT_EQ(0, producer.emit(cpu, "memory.test", payload));
        }
        const size_t heap = mallinfo2().uordblks + mallinfo2().hblkhd - heap_before;
        Attachment attachment;

        ASSERT_EQ(0, producer.attach(&attachment));
        for (const BufferHandle& buffer : attachment.buffers) {
            for (const int fd : {buffer->metadata_fd(), buffer->data_fd()}) {
                struct stat status = {};

                ASSERT_EQ(0, fstat(fd, &status));
                file_bytes += static_cast<uint64_t>(status.st_blocks) * 512;
            }
        }
        EXPECT_GE(file_bytes, kCpus * capacity_bytes);
        EXPECT_LE(file_bytes + heap, kCpus * (capacity_bytes + capacity_bytes / 256 + kMost))
            << capacity_bytes;
    }
}

// A process with too few free descriptors gets none of them.
TEST(ManyCpusTest, AllOrNone) {
    const struct rlimit limit = {2000, 2000};

    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
    TemporaryFolder folder;
    Producer producer(test_options(130));
    std::vector<int> fds(130, -7);
    std::vector<int> fillers;
    int count = 130;
    __u64 capacity = 0;

    ASSERT_EQ(0, producer.start_without_registry());
    producer.serve(folder.path("socket"));
    setenv("KMES_SOCKET", folder.path("socket").c_str(), 1);
    ASSERT_EQ(0, kmes_attach(fds.data(), &count, &capacity));
    for (int fd : fds) close(fd);
    kmes_unmap(nullptr, 0);  // sweeps
    fds.assign(130, -7);
    // Leaves room for the first packet and not for the second.
    for (int fd; (fd = dup(0)) >= 0;) fillers.push_back(fd);
    for (int i = 0; i < 256 && !fillers.empty(); i++) {
        close(fillers.back());
        fillers.pop_back();
    }
    size_t before = open_descriptors();

    EXPECT_EQ(-1, kmes_attach(fds.data(), &count, &capacity));
    EXPECT_EQ(EMFILE, errno);
    for (int fd : fds) EXPECT_EQ(-7, fd);
    EXPECT_TRUE(comes_true([before] { return open_descriptors() <= before; }));
    for (int fd : fillers) close(fd);
}

}  // namespace
}  // namespace kmes
