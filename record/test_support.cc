// SPDX-License-Identifier: MIT
#include "record/test_support.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace kmes::record::testing {

std::vector<std::byte> event_of(std::uint64_t sequence, std::uint16_t cpu, std::string_view type,
                                std::string_view payload) {
    kmes_event_input input = {};
    input.type = reinterpret_cast<const __u8*>(type.data());
    input.type_len = static_cast<__u16>(type.size());
    input.payload = reinterpret_cast<const __u8*>(payload.data());
    input.payload_len = static_cast<__u32>(payload.size());
    kmes_event_header header;
    kmes_event_header_build(&header, &input, 1'000'000'000 + sequence, sequence, cpu);
    std::vector<std::byte> bytes(header.event_size);
    std::memcpy(bytes.data(), &header, KMES_EVENT_FIXED_BYTES);
    std::memcpy(bytes.data() + KMES_EVENT_FIXED_BYTES, type.data(), type.size());
    if (!payload.empty())
        std::memcpy(bytes.data() + header.header_size, payload.data(), payload.size());
    return bytes;
}

bool is_sanitized() {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    return true;
#endif
#endif
    return false;
}

std::vector<std::byte> bytes_of_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

Folder::Folder() {
    std::string path = ::testing::TempDir() + "/record.XXXXXX";
    if (mkdtemp(path.data()) == nullptr) ADD_FAILURE() << "no folder for files";
    path_ = path;
}

Folder::~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::vector<std::byte> file_of(unsigned blocks, unsigned per_block, const std::string& payload) {
    const Folder folder;
    Writer writer;
    FileHeader header;
    header.cpus = 2;
    EXPECT_EQ(writer.open(folder.path("file"), header), 0);
    std::uint64_t sequence = 0;
    for (unsigned block = 0; block < blocks; ++block) {
        for (unsigned i = 0; i < per_block; ++i)
            EXPECT_EQ(writer.add_event(event_of(++sequence, 0, "test", payload)), 0);
        EXPECT_EQ(writer.flush(), 0);
    }
    EXPECT_EQ(writer.close(), 0);
    return bytes_of_file(folder.path("file"));
}

Read read_all(std::span<const std::byte> file, bool goes_on_after_damage) {
    Read read;
    Reader reader;
    if (!reader.open(source_of(file), &read.wrong)) return read;
    std::size_t end = kFileHeaderBytes;
    while (true) {
        Block block;
        const ReadResult result = reader.next(&block);
        if (result == ReadResult::kEnd) return read;
        if (result == ReadResult::kDamage) {
            read.wrong = reader.damage().what;
            if (goes_on_after_damage && reader.skip_damage()) continue;
            return read;
        }
        end += kBlockHeaderBytes + block.body.size();
        read.block_ends.push_back(end);
        ItemCursor items(block.body);
        Item item;
        while (items.next(&item)) {
            if (item.kind == ItemKind::kEvent) read.sequences.push_back(item.event.sequence);
            if (item.kind == ItemKind::kLoss) read.losses.push_back(item.loss);
            if (item.kind == ItemKind::kSession) read.sessions.push_back(item.session);
        }
    }
}

}  // namespace kmes::record::testing
