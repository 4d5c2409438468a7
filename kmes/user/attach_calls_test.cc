// SPDX-License-Identifier: GPL-2.0-only OR MIT
// kmes_attach, kmes_map and a reader over a socket of this process: their errors, and the
// descriptors and mappings that they leave.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kmes/user/libkmes.h"
#include "kmes/user/libkmes_parts.h"
#include "kmes/user/libkmes_reader.h"
#include "kmes/user/socket_fixture.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

class AttachCallsTest : public SocketFixture {};

TEST_F(AttachCallsTest, ErrorsOfAttachAndMap) {
    auto producer = make(2);
    int fds[2];
    int count = 1;
    __u64 capacity = 0;
    void* base = nullptr;

    ASSERT_EQ(0, producer->start_without_registry());
    EXPECT_EQ(-1, kmes_attach(fds, nullptr, &capacity));
    EXPECT_EQ(EFAULT, errno);
    EXPECT_EQ(-1, kmes_attach(fds, &count, &capacity));
    EXPECT_EQ(ERANGE, errno);
    EXPECT_EQ(2, count);
    ASSERT_EQ(0, kmes_attach(fds, &count, &capacity));
    EXPECT_EQ(FD_CLOEXEC, fcntl(fds[0], F_GETFD));
    EXPECT_EQ(-1, kmes_map(fds[0], 2 * capacity, &base));
    EXPECT_EQ(EINVAL, errno);
    EXPECT_EQ(-1, kmes_map(fds[0], 0, &base));
    EXPECT_EQ(EINVAL, errno);
    EXPECT_EQ(-1, kmes_map(-1, capacity, &base));
    EXPECT_EQ(EBADF, errno);
    EXPECT_EQ(-1, kmes_map(fds[0], capacity, nullptr));
    EXPECT_EQ(EFAULT, errno);
    EXPECT_EQ(nullptr, base);
    close(fds[0]);
    close(fds[1]);
}

// A file like that of the kernel or the conformance runner: one file, one mmap, if it is long
// enough.
TEST_F(AttachCallsTest, FileOfItsOwnIsMappedWhole) {
    int fd = memfd_create("whole", MFD_CLOEXEC);
    void* base = nullptr;

    ASSERT_EQ(0, ftruncate(fd, 4096 + 2 * 4096 - 1));
    EXPECT_EQ(-1, kmes_map(fd, 4096, &base));
    EXPECT_EQ(EINVAL, errno);
    ASSERT_EQ(0, ftruncate(fd, 4096 + 2 * 4096));
    ASSERT_EQ(0, kmes_map(fd, 4096, &base));
    static_cast<uint8_t*>(base)[4096 + 2 * 4096 - 1] = 1;
    EXPECT_EQ(0, kmes_unmap(base, 4096));
    close(fd);
}

TEST_F(AttachCallsTest, TableOfDataDescriptorsForgetsWhatIsClosed) {
    auto producer = make(2);
    int fds[2], more[2];
    int count = 2;
    __u64 capacity = 0;
    void* base = nullptr;

    ASSERT_EQ(0, producer->start_without_registry());
    kmes_data_table_sweep();
    ASSERT_EQ(0u, kmes_data_table_entries());
    size_t before = open_descriptors();

    ASSERT_EQ(0, kmes_attach(fds, &count, &capacity));
    EXPECT_EQ(2u, kmes_data_table_entries());
    int copy = dup(fds[1]);

    ASSERT_EQ(0, kmes_map(copy, capacity, &base));
    close(copy);
    // The number is open again, as another file.
    int other = open("/dev/null", O_RDWR | O_CLOEXEC);

    ASSERT_EQ(fds[0], dup2(other, fds[0]));
    close(other);
    ASSERT_EQ(0, kmes_attach(more, &count, &capacity));
    EXPECT_EQ(3u, kmes_data_table_entries());
    for (int fd : {fds[0], fds[1], more[0], more[1]}) close(fd);
    EXPECT_EQ(0, memcmp(base, "KMESRING", 8));  // a mapping needs no descriptor
    EXPECT_EQ(0, kmes_unmap(base, capacity));
    EXPECT_EQ(0u, kmes_data_table_entries());
    EXPECT_TRUE(comes_true([before] { return open_descriptors() == before; }));
}

// Through the reader's own functions: no descriptor or mapping remains after 200 resizes.
TEST_F(AttachCallsTest, ReaderLeavesNothingBehind) {
    auto producer = make(1);
    struct kmes_reader_config config = {};
    struct kmes_reader reader;
    uint8_t copy[4096];
    struct kmes_event_view view;
    size_t descriptors = 0, mappings = 0;

    ASSERT_EQ(0, producer->start_without_registry());
    kmes_reader_by_libkmes(&config, 0);
    EXPECT_EQ(1, kmes_cpus_by_libkmes());
    ASSERT_EQ(0, kmes_reader_open(&reader, &config));
    for (int i = 0; i < 210; i++) {
        ASSERT_EQ(0, producer->resize(65536u << (i & 1)));
        ASSERT_EQ(KMES_READ_EMPTY, kmes_reader_next(&reader, copy, sizeof(copy), &view));
        ASSERT_EQ(static_cast<__u64>(i + 1), reader.statistics.switches);
        if (i == 9) {
            ASSERT_TRUE(comes_true([&] {
                const bool is_quiet = other_threads_sleep();  // has closed each connection
                size_t now = open_descriptors();

                return std::exchange(descriptors, now) == now && is_quiet;
            }));
            mappings = mappings_named("memfd:kmes-");
        }
    }
    EXPECT_TRUE(comes_true([&] { return open_descriptors() <= descriptors; }));
    EXPECT_EQ(mappings, mappings_named("memfd:kmes-"));
    kmes_reader_close(&reader);
    config.cpu_id = 1;
    EXPECT_EQ(-ENODEV, kmes_reader_open(&reader, &config));
    kmes_reader_by_system_call(&config, 0);
    EXPECT_EQ(-ENOSYS, kmes_reader_open(&reader, &config));
}

}  // namespace
}  // namespace kmes
