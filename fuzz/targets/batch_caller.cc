// SPDX-License-Identifier: MIT
//
// See batch_caller.h.
#include "fuzz/targets/batch_caller.h"

namespace kmes::fuzz {
namespace {

constexpr std::uint64_t kAscii = 0x10000;
constexpr std::uint64_t kText = 0x20000;
constexpr std::uint64_t kNoise = 0x30000;
constexpr std::uint64_t kEntries = 0x50000;
constexpr std::uint64_t kRegionBytes = 0x10000;
constexpr std::uint64_t kEntryBytes = 32;

}  // namespace

Caller::Caller(FuzzedBytes* bytes, const std::vector<std::uint64_t>& limits) {
    const std::size_t text_bytes = bytes->take<std::uint8_t>();
    const std::uint64_t entries = bytes->below(300);
    const std::uint64_t missing = bytes->below(kEntryBytes + 1);
    const std::uint8_t shape = bytes->take<std::uint8_t>();

    text_ = bytes->piece(text_bytes);
    entries_bytes_ = entries * kEntryBytes;
    entries_bytes_ -= missing < entries_bytes_ ? missing : entries_bytes_;
    entries_at_ = (shape & 0x80) != 0 ? 0 - entries * kEntryBytes : kEntries;
    for (int i = 0; i < (shape & 15); ++i) patterns_.push_back(make(bytes, limits));
}

std::uint64_t Caller::pick_pointer(FuzzedBytes* bytes) const {
    switch (bytes->below(8)) {
        case 0:
            return kText;
        case 1:
            return kAscii + bytes->take<std::uint8_t>();
        case 2:
            return kText + bytes->take<std::uint8_t>();
        case 3:
            return kNoise + bytes->take<std::uint16_t>();
        case 4:  // so that the region ends in the middle
            return kAscii + kRegionBytes - bytes->take<std::uint8_t>();
        case 5:
            return entries_at_ + bytes->take<std::uint8_t>();
        case 6:
            return 0;
        default:
            return bytes->take<std::uint64_t>();
    }
}

Descriptor Caller::make(FuzzedBytes* bytes, const std::vector<std::uint64_t>& limits) const {
    Descriptor made;

    made.type = pick_pointer(bytes);
    made.type_len = bytes->take<std::uint8_t>();
    if (made.type_len == 0xFF) made.type_len = bytes->take<std::uint16_t>();
    made.payload = pick_pointer(bytes);
    const std::uint8_t kind = bytes->take<std::uint8_t>();

    if (kind < 0xC0) {
        made.payload_len = kind;
    } else if (kind < 0xE0) {
        // An event of one of the limits, or up to 3 bytes more or 4 less.
        const std::uint64_t limit = limits[kind % limits.size()];

        made.payload_len =
            static_cast<std::uint32_t>(limit - 29 - made.type_len + bytes->below(8) - 4);
    } else if (kind < 0xF0) {
        made.payload_len = bytes->take<std::uint16_t>();
    } else {
        made.payload_len = bytes->take<std::uint32_t>();
    }
    return made;
}

// event-model.md, Calls: type @0, type_len @8, payload @16, payload_len @24. The other bytes are
// undefined.
std::uint8_t Caller::entry_byte(std::uint64_t offset) const {
    const Descriptor entry =
        patterns_.empty() ? Descriptor() : patterns_[offset / kEntryBytes % patterns_.size()];
    const std::uint64_t at = offset % kEntryBytes;

    if (at < 8) return static_cast<std::uint8_t>(entry.type >> 8 * at);
    if (at < 10) return static_cast<std::uint8_t>(entry.type_len >> 8 * (at - 8));
    if (at >= 16 && at < 24) return static_cast<std::uint8_t>(entry.payload >> 8 * (at - 16));
    if (at >= 24 && at < 28) return static_cast<std::uint8_t>(entry.payload_len >> 8 * (at - 24));
    return 0xEE;
}

bool Caller::read_first(std::uint64_t address, std::uint8_t* byte) const {
    if (address - kAscii < kRegionBytes) {
        *byte = static_cast<std::uint8_t>('a' + address % 26);
        return true;
    }
    if (address - kText < text_.size()) {
        *byte = static_cast<std::uint8_t>(text_[address - kText]);
        return true;
    }
    if (address - kNoise < kRegionBytes) {
        *byte = static_cast<std::uint8_t>((address * 0x9E3779B97F4A7C15u) >> 56);
        return true;
    }
    if (address - entries_at_ < entries_bytes_) {
        *byte = entry_byte(address - entries_at_);
        return true;
    }
    return false;
}

bool Caller::read(std::uint64_t address, std::uint8_t* byte) const {
    if (!read_first(address, byte)) return false;
    for (const Change& change : changes_)
        if (address - change.address < change.count) *byte ^= 0x95;
    return true;
}

void Caller::change(std::uint64_t address, std::uint64_t count) {
    if (changes_.size() < 64) changes_.push_back({address, count});
}

Descriptor Caller::pick(FuzzedBytes* bytes) const {
    const std::uint64_t i = bytes->below(16);

    return i < patterns_.size() ? patterns_[i] : make(bytes, {0});
}

std::uint64_t Caller::pick_entries(FuzzedBytes* bytes) const {
    switch (bytes->below(4)) {
        case 0:
            return entries_at_;
        case 1:
            return entries_at_ + kEntryBytes * bytes->take<std::uint8_t>();
        case 2:
            return entries_at_ + bytes->take<std::uint8_t>();
        default:
            return bytes->take<std::uint64_t>();
    }
}

}  // namespace kmes::fuzz
