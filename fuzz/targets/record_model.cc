// SPDX-License-Identifier: MIT
//
// See record_model.h.
#include "fuzz/targets/record_model.h"

#include <cstring>

namespace kmes::fuzz {
namespace {

constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kBlockBytes = 40;
constexpr std::size_t kItemBytes = 8;
constexpr std::size_t kEventBytes = 29;
constexpr std::uint32_t kMostBodyBytes = (128u << 20) + 4096;

template <typename T>
T number_at(std::string_view bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
}

bool is_sealed(std::string_view header) {
    const std::size_t covered = header.size() - 4;
    return number_at<std::uint32_t>(header, covered) == model_crc32c(header.substr(0, covered));
}

// event-model.md: event_size, header_size, 19 bytes, type_len, the type.
bool is_whole_event(std::string_view bytes) {
    if (bytes.size() <= kEventBytes) return false;
    const auto event_bytes = number_at<std::uint32_t>(bytes, 0);
    const auto header_bytes = number_at<std::uint32_t>(bytes, 4);
    const auto type_bytes = number_at<std::uint16_t>(bytes, 27);
    return type_bytes != 0 && kEventBytes + type_bytes <= header_bytes &&
           header_bytes <= event_bytes && event_bytes == bytes.size();
}

bool is_right(const ModelItem& item) {
    switch (item.kind) {
        case 1:
            return is_whole_event(item.content);
        case 2:
            return item.content.size() == 24;
        case 3:
            return item.content.size() == 16;
        default:
            return true;
    }
}

// Returns false if the body is not `count` items.
bool take_items(std::string_view body, std::uint32_t count, std::vector<ModelItem>* items) {
    for (; !body.empty(); --count) {
        if (count == 0 || body.size() < kItemBytes) return false;
        const auto bytes = number_at<std::uint32_t>(body, 4);
        if (bytes > body.size() - kItemBytes) return false;
        const ModelItem item = {number_at<std::uint32_t>(body, 0),
                                std::string(body.substr(kItemBytes, bytes))};
        if (!is_right(item)) return false;
        if (item.kind >= 1 && item.kind <= 3) items->push_back(item);
        body.remove_prefix(kItemBytes + bytes);
    }
    return count == 0;
}

bool has_header(std::string_view file) {
    if (file.size() < kHeaderBytes || file.substr(0, 8) != "KMESREC\n") return false;
    const auto version = number_at<std::uint32_t>(file, 8);
    const auto cpus = number_at<std::uint32_t>(file, 48);
    return is_sealed(file.substr(0, kHeaderBytes)) && (version == 1 || version == 2) &&
           number_at<std::uint32_t>(file, 12) == kHeaderBytes && cpus >= 1 && cpus <= 65536 &&
           number_at<std::uint32_t>(file, 56) == 1;
}

}  // namespace

std::uint32_t model_crc32c(std::string_view bytes) {
    std::uint32_t rest = 0xffffffff;
    for (const char byte : bytes) {
        rest ^= static_cast<unsigned char>(byte);
        for (int bit = 0; bit < 8; ++bit) rest = rest % 2 == 1 ? rest / 2 ^ 0x82f63b78 : rest / 2;
    }
    return ~rest;
}

std::optional<ModelBlock> model_block(std::string_view file, std::size_t offset,
                                      std::uint64_t file_id) {
    if (offset > file.size() || file.size() - offset < kBlockBytes) return std::nullopt;
    const std::string_view header = file.substr(offset, kBlockBytes);
    const auto bytes = number_at<std::uint32_t>(header, 4);
    const std::string_view rest = file.substr(offset + kBlockBytes);
    if (header.substr(0, 4) != "KBLK" || number_at<std::uint64_t>(header, 8) != file_id ||
        !is_sealed(header) || bytes > kMostBodyBytes || bytes > rest.size())
        return std::nullopt;
    ModelBlock block;
    block.index = number_at<std::uint64_t>(header, 16);
    block.end = offset + kBlockBytes + bytes;
    block.body = rest.substr(0, bytes);
    if (model_crc32c(block.body) != number_at<std::uint32_t>(header, 28) ||
        !take_items(block.body, number_at<std::uint32_t>(header, 24), &block.items))
        return std::nullopt;
    return block;
}

ModelFile model_file(std::string_view file) {
    ModelFile model;
    model.has_header = has_header(file);
    if (!model.has_header) return model;
    model.file_id = number_at<std::uint64_t>(file, 16);
    for (std::size_t offset = kHeaderBytes; offset != file.size();) {
        auto block = model_block(file, offset, model.file_id);
        if (!block || block->index != model.blocks.size()) {
            model.damaged_at = offset;
            break;
        }
        offset = block->end;
        model.blocks.push_back(std::move(*block));
    }
    return model;
}

}  // namespace kmes::fuzz
