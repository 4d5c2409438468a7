// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The memory of a buffer: its layout, its seals, and the options that it rejects. process_test.cc
// tests the actions of another process on it.
#include "kmes/user/memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace kmes {
namespace {

constexpr int kMetadata = KMES_METADATA_BYTES;

BufferOptions small_options() {
    BufferOptions options;

    options.capacity_bytes = 4096;
    return options;
}

// Returns the error number and the text with which `options` are rejected; 0 if they are accepted.
int refusal(const BufferOptions& options, std::string* text) {
    try {
        BufferMemory::create(options);
    } catch (const std::system_error& error) {
        *text = error.what();
        return error.code().value();
    }
    return 0;
}

// 5.1.6: every byte of a fresh page, written by hand from the specification.
TEST(BufferMemoryTest, FreshMetadataPageHasTheBytesOfTheSpecification) {
    BufferOptions options = small_options();

    options.capacity_bytes = 65536;
    options.generation = 3;
    options.start_position = 0x1122334455667788;
    options.cpu_id = 258;

    BufferHandle memory = BufferMemory::create(options);
    std::vector<uint8_t> expected(kMetadata, 0);
    // clang-format off
    const uint8_t line_0[40] = {
        'K', 'M', 'E', 'S', 'R', 'I', 'N', 'G',  // magic
        1, 0, 0, 0,                              // version
        2, 1,                                    // cpu_id 258
        0, 0,                                    // reserved0
        0, 0, 1, 0, 0, 0, 0, 0,                  // capacity 65536
        0, kMetadata >> 8, 0, 0, 0, 0, 0, 0,     // data_offset
        3, 0, 0, 0, 0, 0, 0, 0,                  // generation
    };
    // clang-format on
    const uint8_t position[8] = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};

    std::memcpy(expected.data(), line_0, sizeof(line_0));
    std::memcpy(expected.data() + 64, position, sizeof(position));  // write_pos
    std::memcpy(expected.data() + 72, position, sizeof(position));  // tail_pos
    EXPECT_EQ(0, std::memcmp(memory->base(), expected.data(), expected.size()));
    EXPECT_EQ(kMetadata + 2u * 65536u, memory->mapped_bytes());
}

// 5.1.4: the second half is an alias of the first.
TEST(BufferMemoryTest, DataIsMappedTwice) {
    BufferHandle memory = BufferMemory::create(small_options());
    auto* data = static_cast<uint8_t*>(memory->base()) + kMetadata;

    std::memcpy(data + 4090, "twelve bytes", 12);
    EXPECT_EQ(0, std::memcmp(data, " bytes", 6));
    EXPECT_EQ(0, std::memcmp(data + 4096 + 4090, "twelve", 6));
    data[0] = 'x';
    EXPECT_EQ('x', data[4096]);
}

TEST(BufferMemoryTest, ConsumerMappingShowsTheSameBytes) {
    BufferHandle memory = BufferMemory::create(small_options());
    ConsumerMapping mapping(memory->metadata_fd(), memory->data_fd(), 4096);
    auto* producer = static_cast<uint8_t*>(memory->base());
    auto* consumer = static_cast<uint8_t*>(mapping.base());

    producer[kMetadata + 5] = 'p';
    consumer[KMES_NEED_WAKE_OFFSET] = 1;
    EXPECT_EQ('p', consumer[kMetadata + 5]);
    EXPECT_EQ('p', consumer[kMetadata + 4096 + 5]);
    EXPECT_EQ(1, producer[KMES_NEED_WAKE_OFFSET]);
    EXPECT_EQ(kMetadata + 8192u, mapping.mapped_bytes());
}

TEST(BufferMemoryTest, ConsumerMappingMoves) {
    BufferHandle memory = BufferMemory::create(small_options());
    ConsumerMapping first(memory->metadata_fd(), memory->data_fd(), 4096);
    void* base = first.base();
    ConsumerMapping second(std::move(first));

    EXPECT_EQ(base, second.base());
    EXPECT_EQ(0u, first.mapped_bytes());
    first = std::move(second);
    EXPECT_EQ(base, first.base());
    EXPECT_EQ(0, std::memcmp(first.base(), "KMESRING", 8));
}

// E19: fstat distinguishes buffers.
TEST(BufferMemoryTest, EachBufferHasAnInodeOfItsOwn) {
    std::set<std::pair<uint64_t, uint64_t>> seen;
    std::vector<BufferHandle> all;

    for (int i = 0; i < 50; i++) {
        all.push_back(BufferMemory::create(small_options()));
        struct stat status = {};

        ASSERT_EQ(0, fstat(all.back()->metadata_fd(), &status));
        EXPECT_EQ(status.st_ino, all.back()->inode());
        EXPECT_EQ(status.st_dev, all.back()->device());
        EXPECT_TRUE(seen.emplace(all.back()->device(), all.back()->inode()).second);
    }
}

// E13: also in the producer's own process.
TEST(BufferMemoryTest, FilesAreSealed) {
    BufferHandle memory = BufferMemory::create(small_options());

    EXPECT_EQ(MAP_FAILED,
              mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory->data_fd(), 0));
    EXPECT_EQ(EPERM, errno);
    for (int fd : {memory->metadata_fd(), memory->data_fd()}) {
        EXPECT_EQ(-1, ftruncate(fd, 0));
        EXPECT_EQ(EPERM, errno);
        EXPECT_EQ(-1, ftruncate(fd, 1 << 20));
        EXPECT_EQ(EPERM, errno);
        EXPECT_EQ(-1, fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
        EXPECT_EQ(EPERM, errno);
        EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
    }
    EXPECT_EQ(-1, pwrite(memory->data_fd(), "x", 1, 0));
    EXPECT_EQ(EPERM, errno);
    EXPECT_EQ(-1,
              fallocate(memory->data_fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
    EXPECT_EQ(EPERM, errno);
}

TEST(BufferMemoryTest, MetadataFileMayBeAsLongAsTheMapping) {
    BufferOptions options = small_options();

    options.metadata_file_bytes = kMetadata + 2 * options.capacity_bytes;

    BufferHandle memory = BufferMemory::create(options);
    struct stat status = {};

    ASSERT_EQ(0, fstat(memory->metadata_fd(), &status));
    EXPECT_EQ(kMetadata + 2 * 4096, status.st_size);
    EXPECT_EQ(kMetadata / 512, status.st_blocks);  // of 512 bytes; the rest is sparse
    EXPECT_EQ(0, std::memcmp(memory->base(), "KMESRING", 8));
}

TEST(BufferMemoryTest, OddCapacitiesAreRefusedWithTheReason) {
    std::string text;

    for (uint64_t capacity :
         {0ull, 1ull, 256ull, 2048ull, 4095ull, 4097ull, 12288ull, 1ull << 32}) {
        BufferOptions options = small_options();

        options.capacity_bytes = capacity;
        EXPECT_EQ(EINVAL, refusal(options, &text)) << capacity;
        EXPECT_NE(std::string::npos, text.find(std::to_string(capacity))) << text;
        EXPECT_NE(std::string::npos, text.find("power of two")) << text;
    }
}

// E22
TEST(BufferMemoryTest, OtherPageSizesAreRefusedWithTheReason) {
    std::string text;

    for (uint64_t page_bytes : {16384ull, 65536ull}) {
        BufferOptions options;

        options.page_bytes = page_bytes;
        EXPECT_EQ(ENOTSUP, refusal(options, &text));
        EXPECT_NE(std::string::npos, text.find(std::to_string(page_bytes))) << text;
        EXPECT_NE(std::string::npos, text.find("E22")) << text;
    }
}

TEST(BufferMemoryTest, OddMetadataFilesAreRefused) {
    std::string text;

    for (uint64_t bytes : {0ull, 1ull, 4095ull, 5000ull}) {
        BufferOptions options = small_options();

        options.metadata_file_bytes = bytes;
        EXPECT_EQ(EINVAL, refusal(options, &text)) << bytes;
    }
}

TEST(BufferMemoryTest, ConsumerMappingRefusesWhatDoesNotFit) {
    BufferHandle memory = BufferMemory::create(small_options());

    EXPECT_THROW(ConsumerMapping(memory->metadata_fd(), memory->data_fd(), 8192),
                 std::system_error);
    EXPECT_THROW(ConsumerMapping(memory->metadata_fd(), memory->data_fd(), 0), std::system_error);
    EXPECT_THROW(ConsumerMapping(-1, memory->data_fd(), 4096), std::system_error);
}

TEST(BufferMemoryTest, TheWayBackFromTheCoresBuffer) {
    BufferHandle memory = BufferMemory::create(small_options());

    EXPECT_EQ(memory.get(), BufferMemory::of(memory->buffer()));
    EXPECT_FALSE(memory->is_pinned());
    memory->pin();
    EXPECT_TRUE(memory->is_pinned());
    memory->unpin();
    EXPECT_FALSE(memory->is_pinned());
}

}  // namespace
}  // namespace kmes
