// SPDX-License-Identifier: MIT
// Record files: the reader returns what the writer wrote, and a full disk leaves whole blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "record/crc32c.h"
#include "record/test_support.h"

namespace kmes::record {
namespace {

using testing::bytes_of_file;
using ::testing::ElementsAre;
using testing::event_of;
using testing::file_of;
using testing::Folder;
using ::testing::HasSubstr;
using testing::Read;
using testing::read_all;

FileHeader header_of(std::uint32_t cpus) {
    FileHeader header;
    header.cpus = cpus;
    header.capacity_bytes = 65536;
    header.session = 77;
    header.started_ns = 123;
    return header;
}

// The check values of RFC 3720, B.4.
TEST(Crc32c, HasTheValuesOfTheRfc) {
    EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0})), 0x8a9136aau);
    EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43u);
    EXPECT_EQ(crc32c(std::as_bytes(std::span("123456789", 9))), 0xe3069283u);
    EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, IsTheSameByInstructionAndByTable) {
    std::vector<std::byte> bytes(300);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i + i / 7);
    for (std::size_t from = 0; from < 9; ++from) {
        for (std::size_t length = 0; from + length <= bytes.size(); ++length) {
            const auto part = std::span(bytes).subspan(from, length);
            ASSERT_EQ(crc32c(part), crc32c_by_table(part)) << from << ", " << length;
        }
    }
}

TEST(Record, ReadsBackWhatWasWritten) {
    const Folder folder;
    Writer writer;
    ASSERT_EQ(writer.open(folder.path("f"), header_of(3)), 0);
    const auto event = event_of(5, 2, "a.type", "payload");
    ASSERT_EQ(writer.add_event(event), 0);
    ASSERT_EQ(writer.add_loss({2, 6, 4}), 0);
    ASSERT_EQ(writer.add_event(event_of(10, 2, "b", "")), 0);
    ASSERT_EQ(writer.add_session({2, 78}), 0);
    ASSERT_EQ(writer.close(), 0);

    const auto bytes = bytes_of_file(folder.path("f"));
    Reader reader;
    std::string wrong;
    ASSERT_TRUE(reader.open(source_of(bytes), &wrong)) << wrong;
    EXPECT_EQ(reader.header().cpus, 3u);
    EXPECT_EQ(reader.header().capacity_bytes, 65536u);
    EXPECT_EQ(reader.header().session, 77u);
    EXPECT_EQ(reader.header().started_ns, 123u);
    Block block;
    ASSERT_EQ(reader.next(&block), ReadResult::kBlock);
    EXPECT_EQ(block.items, 4u);
    ItemCursor items(block.body);
    Item item;
    ASSERT_TRUE(items.next(&item));
    EXPECT_EQ(std::vector(item.event_bytes.begin(), item.event_bytes.end()), event);
    ASSERT_TRUE(items.next(&item));
    EXPECT_EQ(item.loss, (Loss{2, 6, 4}));
    ASSERT_TRUE(items.next(&item));
    EXPECT_EQ(item.event.sequence, 10u);
    ASSERT_TRUE(items.next(&item));
    EXPECT_EQ(item.kind, ItemKind::kSession);
    EXPECT_EQ(item.session, (Session{2, 78}));
    EXPECT_FALSE(items.next(&item));
    EXPECT_FALSE(items.is_broken());
    EXPECT_EQ(reader.next(&block), ReadResult::kEnd);
}

// Written by hand from docs/record-format.md.
TEST(Record, ReadsAFileOfVersion1) {
    const std::vector<std::uint8_t> file = {
        0x4b, 0x4d, 0x45, 0x53, 0x52, 0x45, 0x43, 0x0a, 0x01, 0x00, 0x00, 0x00, 0x40, 0x00,
        0x00, 0x00, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x4d, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x7b, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
        0x01, 0x00, 0x00, 0x00, 0x91, 0x74, 0x13, 0xd6, 0x4b, 0x42, 0x4c, 0x4b, 0x20, 0x00,
        0x00, 0x00, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0xe5, 0x3a, 0x50, 0x81, 0x00, 0x00,
        0x00, 0x00, 0x3c, 0x59, 0x63, 0x6c, 0x02, 0x00, 0x00, 0x00, 0x18, 0x00, 0x00, 0x00,
        0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
    const Read read = read_all(std::as_bytes(std::span(file)));
    EXPECT_EQ(read.wrong, "");
    EXPECT_THAT(read.losses, ElementsAre(Loss{2, 6, 4}));
    EXPECT_THAT(read.sessions, ::testing::IsEmpty());
}

TEST(Record, IsPrivateAndReplacesNoFile) {
    const Folder folder;
    Writer writer;
    ASSERT_EQ(writer.open(folder.path("f"), header_of(1)), 0);
    struct stat status = {};
    ASSERT_EQ(stat(folder.path("f").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 077, 0u);
    Writer second;
    EXPECT_EQ(second.open(folder.path("f"), header_of(1)), -EEXIST);
}

TEST(Record, RefusesBytesThatAreNoEvent) {
    const Folder folder;
    Writer writer;
    ASSERT_EQ(writer.open(folder.path("f"), header_of(1)), 0);
    auto event = event_of(1, 0, "t", "p");
    event.pop_back();
    EXPECT_EQ(writer.add_event(event), -EINVAL);
    EXPECT_EQ(writer.add_event({}), -EINVAL);
    ASSERT_EQ(writer.close(), 0);
    EXPECT_EQ(bytes_of_file(folder.path("f")).size(), kFileHeaderBytes);
}

TEST(Record, WritesLargeEventsAsBlocksOfTheirOwn) {
    const std::string large(3 * Writer::kBodyBytes, 'x');
    const Read read = read_all(file_of(1, 3, large));
    EXPECT_THAT(read.sequences, ElementsAre(1, 2, 3));
    EXPECT_EQ(read.block_ends.size(), 3u);
}

// Flushed data survives the end of the writing process, because no buffer of it has the data.
TEST(Record, HasWhatWasFlushedWhileTheWriterLives) {
    const Folder folder;
    Writer writer;
    ASSERT_EQ(writer.open(folder.path("f"), header_of(1)), 0);
    ASSERT_EQ(writer.add_event(event_of(1, 0, "t", "")), 0);
    ASSERT_EQ(writer.flush(), 0);
    ASSERT_EQ(writer.add_event(event_of(2, 0, "t", "")), 0);
    const Read read = read_all(bytes_of_file(folder.path("f")));
    EXPECT_EQ(read.wrong, "");
    EXPECT_THAT(read.sequences, ElementsAre(1));
}

// A limit of the file size cuts a write in the middle, like a full disk.
TEST(Record, EndsWithAWholeBlockWhereTheFileMayNotGrow) {
    const Folder folder;
    rlimit before = {};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = signal(SIGXFSZ, SIG_IGN);
    Writer writer;
    ASSERT_EQ(writer.open(folder.path("f"), header_of(1)), 0);
    ASSERT_EQ(writer.add_event(event_of(1, 0, "t", "")), 0);
    ASSERT_EQ(writer.flush(), 0);
    const rlimit limit = {writer.file_bytes() + 100, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_EQ(writer.add_event(event_of(2, 0, "t", std::string(1000, 'x'))), 0);
    EXPECT_EQ(writer.flush(), -EFBIG);
    EXPECT_EQ(writer.add_event(event_of(3, 0, "t", "")), -EFBIG);
    EXPECT_EQ(writer.close(), -EFBIG);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);

    const Read read = read_all(bytes_of_file(folder.path("f")));
    EXPECT_EQ(read.wrong, "");
    EXPECT_THAT(read.sequences, ElementsAre(1));
}

TEST(Record, SaysWhatIsWrongWithAHeader) {
    const auto file = file_of(1, 1, "");
    EXPECT_THAT(read_all({}).wrong, HasSubstr("not a record file"));
    EXPECT_THAT(read_all(std::span(file).first(20)).wrong, HasSubstr("at least 64"));
    auto other = file;
    other[8] = std::byte{9};
    EXPECT_THAT(read_all(other).wrong, HasSubstr("version 9 of the format"));
    other = file;
    other[30] ^= std::byte{1};
    EXPECT_THAT(read_all(other).wrong, HasSubstr("the header is damaged"));
}

TEST(Record, RefusesWhatIsNoPlainFile) {
    std::string wrong;
    EXPECT_EQ(open_file("/dev/null", &wrong), nullptr);
    EXPECT_THAT(wrong, HasSubstr("not a regular file"));
    EXPECT_EQ(open_file("/nonexistent/file", &wrong), nullptr);
    EXPECT_EQ(wrong, std::strerror(ENOENT));
}

TEST(Record, GoesOnWithTheBlockAfterOneThatIsMissing) {
    auto file = file_of(3, 1, "");
    const auto block_bytes = static_cast<std::ptrdiff_t>((file.size() - kFileHeaderBytes) / 3);
    const auto second = file.begin() + kFileHeaderBytes + block_bytes;
    file.erase(second, second + block_bytes);
    EXPECT_THAT(read_all(file).wrong, HasSubstr("found block 2; expected block 1"));
    EXPECT_THAT(read_all(file).sequences, ElementsAre(1));
    EXPECT_THAT(read_all(file, true).sequences, ElementsAre(1, 3));
}

// The search must not return a block of another file that is in a payload.
TEST(Record, TakesNoBlockOfAnotherFileAfterDamage) {
    const auto other = file_of(4, 1, "");
    const std::string_view whole(reinterpret_cast<const char*>(other.data()), other.size());
    auto file = file_of(1, 1, std::string(whole));
    file[kFileHeaderBytes + kBlockHeaderBytes] ^= std::byte{1};
    const Read read = read_all(file, true);
    EXPECT_TRUE(read.sequences.empty());
    EXPECT_THAT(read.wrong, HasSubstr("damaged at byte 64: the checksum of the block is wrong"));
}

}  // namespace
}  // namespace kmes::record
