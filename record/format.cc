// SPDX-License-Identifier: MIT
#include "record/format.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "record/crc32c.h"

namespace kmes::record {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

constexpr char kMagic[8] = {'K', 'M', 'E', 'S', 'R', 'E', 'C', '\n'};
constexpr std::uint32_t kBlockMagic = 0x4b4c424b;  // "KBLK"
constexpr std::uint32_t kMostCpus = 65536;

template <typename T>
T get(std::span<const std::byte> bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
}

template <typename T>
void put(std::span<std::byte> bytes, std::size_t offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

bool checksum_is_right(std::span<const std::byte> header) {
    const std::size_t covered = header.size() - sizeof(std::uint32_t);
    return get<std::uint32_t>(header, covered) == crc32c(header.first(covered));
}

void put_checksum(std::span<std::byte> header) {
    const std::size_t covered = header.size() - sizeof(std::uint32_t);
    put(header, covered, crc32c(header.first(covered)));
}

}  // namespace

std::array<std::byte, kFileHeaderBytes> encode(const FileHeader& header) {
    std::array<std::byte, kFileHeaderBytes> bytes = {};
    std::memcpy(bytes.data(), kMagic, sizeof(kMagic));
    put(bytes, 8, kVersion);
    put(bytes, 12, static_cast<std::uint32_t>(kFileHeaderBytes));
    put(bytes, 16, header.file_id);
    put(bytes, 24, header.session);
    put(bytes, 32, header.capacity_bytes);
    put(bytes, 40, header.started_ns);
    put(bytes, 48, header.cpus);
    put(bytes, 52, header.file_number);
    put(bytes, 56, static_cast<std::uint32_t>(header.clock));
    put_checksum(bytes);
    return bytes;
}

std::array<std::byte, kBlockHeaderBytes> encode(const BlockHeader& header) {
    std::array<std::byte, kBlockHeaderBytes> bytes = {};
    put(bytes, 0, kBlockMagic);
    put(bytes, 4, header.body_bytes);
    put(bytes, 8, header.file_id);
    put(bytes, 16, header.index);
    put(bytes, 24, header.items);
    put(bytes, 28, header.body_crc);
    put_checksum(bytes);
    return bytes;
}

std::array<std::byte, kItemHeaderBytes> encode_item(ItemKind kind, std::uint32_t content_bytes) {
    std::array<std::byte, kItemHeaderBytes> bytes = {};
    put(bytes, 0, static_cast<std::uint32_t>(kind));
    put(bytes, 4, content_bytes);
    return bytes;
}

std::array<std::byte, kLossBytes> encode(const Loss& loss) {
    std::array<std::byte, kLossBytes> bytes = {};
    put(bytes, 0, loss.cpu);
    put(bytes, 8, loss.first_sequence);
    put(bytes, 16, loss.count);
    return bytes;
}

std::array<std::byte, kSessionBytes> encode(const Session& session) {
    std::array<std::byte, kSessionBytes> bytes = {};
    put(bytes, 0, session.cpu);
    put(bytes, 8, session.session);
    return bytes;
}

std::optional<FileHeader> decode_file_header(std::span<const std::byte> bytes, std::string* wrong) {
    if (bytes.size() < sizeof(kMagic) || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0) {
        *wrong = "it does not begin with \"KMESREC\": it is not a record file";
        return std::nullopt;
    }
    if (bytes.size() < kFileHeaderBytes) {
        *wrong = fmt::format("it has {} bytes; a record file has at least {}", bytes.size(),
                             kFileHeaderBytes);
        return std::nullopt;
    }
    bytes = bytes.first(kFileHeaderBytes);
    const auto version = get<std::uint32_t>(bytes, 8);
    if (version < kOldestVersion || version > kVersion) {
        *wrong =
            fmt::format("it has version {} of the format; this program reads versions {} to {}",
                        version, kOldestVersion, kVersion);
        return std::nullopt;
    }
    if (!checksum_is_right(bytes)) {
        *wrong = "the checksum of its header is wrong: the header is damaged";
        return std::nullopt;
    }
    FileHeader header;
    header.file_id = get<std::uint64_t>(bytes, 16);
    header.session = get<std::uint64_t>(bytes, 24);
    header.capacity_bytes = get<std::uint64_t>(bytes, 32);
    header.started_ns = get<std::uint64_t>(bytes, 40);
    header.cpus = get<std::uint32_t>(bytes, 48);
    header.file_number = get<std::uint32_t>(bytes, 52);
    header.clock = static_cast<Clock>(get<std::uint32_t>(bytes, 56));
    if (get<std::uint32_t>(bytes, 12) != kFileHeaderBytes || header.cpus == 0 ||
        header.cpus > kMostCpus || header.clock != Clock::kRealtime) {
        *wrong = fmt::format(
            "its header has {} bytes, {} CPUs and clock {}; expected {} bytes, 1 to {} CPUs and "
            "clock 1",
            get<std::uint32_t>(bytes, 12), header.cpus, static_cast<std::uint32_t>(header.clock),
            kFileHeaderBytes, kMostCpus);
        return std::nullopt;
    }
    return header;
}

std::optional<BlockHeader> decode_block_header(std::span<const std::byte> bytes,
                                               std::uint64_t file_id) {
    if (bytes.size() < kBlockHeaderBytes || get<std::uint32_t>(bytes, 0) != kBlockMagic)
        return std::nullopt;
    bytes = bytes.first(kBlockHeaderBytes);
    BlockHeader header;
    header.body_bytes = get<std::uint32_t>(bytes, 4);
    header.file_id = get<std::uint64_t>(bytes, 8);
    header.index = get<std::uint64_t>(bytes, 16);
    header.items = get<std::uint32_t>(bytes, 24);
    header.body_crc = get<std::uint32_t>(bytes, 28);
    if (header.file_id != file_id || header.body_bytes > kMaxBodyBytes || !checksum_is_right(bytes))
        return std::nullopt;
    return header;
}

bool is_event(std::span<const std::byte> bytes, kmes_event_view* view) {
    if (bytes.size() < KMES_EVENT_FIXED_BYTES || bytes.size() > kMaxEventBytes) return false;
    kmes_event_header header;
    kmes_event_header_load(&header, bytes.data());
    if (kmes_event_check(&header, bytes.size()) != KMES_EVENT_IS_SOUND ||
        header.event_size != bytes.size())
        return false;
    kmes_event_view_make(view, bytes.data());
    return true;
}

bool ItemCursor::next(Item* item) {
    while (!left_.empty()) {
        is_broken_ = left_.size() < kItemHeaderBytes ||
                     get<std::uint32_t>(left_, 4) > left_.size() - kItemHeaderBytes;
        if (is_broken_) return false;
        const auto kind = static_cast<ItemKind>(get<std::uint32_t>(left_, 0));
        const auto content = left_.subspan(kItemHeaderBytes, get<std::uint32_t>(left_, 4));
        if (kind == ItemKind::kEvent) {
            is_broken_ = !is_event(content, &item->event);
            item->event_bytes = content;
        } else if (kind == ItemKind::kLoss) {
            is_broken_ = content.size() != kLossBytes;
            if (!is_broken_)
                item->loss = {get<std::uint16_t>(content, 0), get<std::uint64_t>(content, 8),
                              get<std::uint64_t>(content, 16)};
        } else if (kind == ItemKind::kSession) {
            is_broken_ = content.size() != kSessionBytes;
            if (!is_broken_)
                item->session = {get<std::uint16_t>(content, 0), get<std::uint64_t>(content, 8)};
        }
        if (is_broken_) return false;
        left_ = left_.subspan(kItemHeaderBytes + content.size());
        ++passed_;
        item->kind = kind;
        if (kind == ItemKind::kEvent || kind == ItemKind::kLoss || kind == ItemKind::kSession)
            return true;
    }
    return false;
}

}  // namespace kmes::record
