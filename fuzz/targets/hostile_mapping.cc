// SPDX-License-Identifier: MIT
//
// See hostile_mapping.h.
#include "fuzz/targets/hostile_mapping.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <vector>

namespace kmes::fuzz {
namespace {

constexpr std::uint64_t kPage = KMES_PAGE_BYTES;

}  // namespace

// Exists once in the process: memory between two pages that fault.
HostileMapping::HostileMapping() {
    void* range =
        mmap(nullptr, kMostBytes + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (range == MAP_FAILED) std::abort();
    arena_ = static_cast<std::uint8_t*>(range) + kPage;
    if (mprotect(arena_, kMostBytes, PROT_READ | PROT_WRITE) != 0) std::abort();
    place(kMostBytes);
}

// The last byte is directly before the page that faults, as far as alignment permits.
void HostileMapping::place(std::uint64_t mapped_bytes) {
    mapped_bytes_ = mapped_bytes;
    base_ = arena_ + (kMostBytes - mapped_bytes) / 8 * 8;
}

bool HostileMapping::contains(const void* address, std::uint64_t bytes) const {
    const auto* byte = static_cast<const std::uint8_t*>(address);
    return byte >= base_ && bytes <= mapped_bytes_ &&
           static_cast<std::uint64_t>(byte - base_) <= mapped_bytes_ - bytes;
}

void HostileMapping::draw(FuzzedBytes& bytes, std::uint64_t inode) {
    const std::uint64_t starts[] = {0, 1, 249, 0xfffffff1, 0x7ffffffffffffff3};
    std::memset(arena_, 0, kMostBytes);
    inode_ = inode;
    capacity_ = std::uint64_t{256} << bytes.below(5);
    const std::uint64_t size_kind = bytes.below(32);
    place(size_kind == 31 ? bytes.below(kMostBytes + 1) : KMES_METADATA_BYTES + 2 * capacity_);
    const std::uint64_t start = bytes.below(6);
    write_pos_ = start < 5 ? starts[start] : bytes.take<std::uint64_t>();
    sequence_ = bytes.below(4);
    boundaries_.clear();
    for (std::uint64_t left = bytes.below(32); left > 0; --left) append(bytes);
    if (mapped_bytes_ < sizeof(KmesPage)) return;
    const std::uint8_t magic[] = KMES_MAGIC_INITIALIZER;
    std::memcpy(page()->magic, magic, sizeof(magic));
    page()->version = KMES_VERSION_1;
    page()->capacity = capacity_;
    page()->data_offset = KMES_METADATA_BYTES;
    page()->generation = bytes.below(4);
    publish();
    draw_faults(bytes);
}

void HostileMapping::draw_faults(FuzzedBytes& bytes) {
    const std::uint64_t fault = bytes.below(64);
    if (fault == 63) page()->magic[bytes.below(8)] = bytes.take<std::uint8_t>();
    if (fault == 62) page()->version = bytes.take<std::uint32_t>();
    if (fault == 61) page()->capacity = bytes.take<std::uint64_t>();
    if (fault == 60) page()->data_offset = bytes.take<std::uint64_t>();
    if (fault == 59) page()->capacity = std::uint64_t{1} << bytes.below(64);
    if (fault < 48) return;
    for (std::uint64_t left = fault % 4; left > 0; --left) spoil(bytes);
}

void HostileMapping::put_byte(std::uint64_t position, std::uint8_t value) {
    std::uint8_t* at = base_ + KMES_METADATA_BYTES + (position & (capacity_ - 1));
    if (contains(at, 1)) *at = value;
    if (contains(at + capacity_, 1)) at[capacity_] = value;  // the other half of the mapping
}

void HostileMapping::put(std::uint64_t position, const void* from, std::uint64_t bytes) {
    for (std::uint64_t i = 0; i < bytes; ++i)
        put_byte(position + i, static_cast<const std::uint8_t*>(from)[i]);
}

// Appends as a producer does (5.1.7), with any valid lengths.
void HostileMapping::append(FuzzedBytes& bytes) {
    const std::uint64_t kind = bytes.below(256);
    const std::uint64_t most = capacity_ / 2;
    std::uint64_t event_bytes = KMES_EVENT_MIN_BYTES + kind % 64;
    if (kind >= 192) event_bytes = KMES_EVENT_MIN_BYTES + bytes.below(most - 29);
    if (event_bytes > most) event_bytes = most;
    if (write_pos_ + event_bytes < write_pos_) return;  // positions never cross 2^64
    kmes_event_header header{};
    header.event_size = static_cast<std::uint32_t>(event_bytes);
    header.type_len = static_cast<std::uint16_t>(1 + kind % (event_bytes - 29));
    header.header_size = static_cast<std::uint32_t>(
        29 + header.type_len + (kind >= 128 ? kind % (event_bytes - 28 - header.type_len) : 0));
    sequence_ += kind % 32 == 31 ? 3 : 1;
    header.sequence = sequence_;
    boundaries_.push_back(write_pos_);
    while (write_pos_ + event_bytes - boundaries_.front() > capacity_) boundaries_.pop_front();
    const std::vector<std::uint8_t> body(event_bytes - sizeof(header),
                                         static_cast<std::uint8_t>(sequence_));
    put(write_pos_, &header, sizeof(header));
    put(write_pos_ + sizeof(header), body.data(), body.size());
    write_pos_ += event_bytes;
}

void HostileMapping::publish() {
    store_u64(&KmesPage::tail_pos, boundaries_.empty() ? write_pos_ : boundaries_.front());
    store_u64(&KmesPage::write_pos, write_pos_);
}

// Returns a position near the producer's, or any other.
std::uint64_t HostileMapping::near(FuzzedBytes& bytes) const {
    const std::uint64_t kind = bytes.below(8);
    if (kind == 0) return bytes.take<std::uint64_t>();
    if (kind == 1) return write_pos_ + (std::uint64_t{1} << bytes.below(64));
    if (kind <= 4) return write_pos_ - bytes.below(2 * capacity_);
    return write_pos_ + bytes.below(2 * capacity_);
}

void HostileMapping::spoil(FuzzedBytes& bytes) {
    const std::uint64_t what = bytes.below(8);
    if (what == 0) store_u64(&KmesPage::write_pos, near(bytes));
    if (what == 1) store_u64(&KmesPage::tail_pos, near(bytes));
    if (what == 2) store_u64(&KmesPage::generation, bytes.below(256));
    if (what == 3) put_byte(bytes.below(capacity_), bytes.take<std::uint8_t>());
    if (what == 4 || what == 5) {
        if (boundaries_.empty()) return;
        const std::uint64_t event = boundaries_[bytes.below(boundaries_.size())];
        const auto value = bytes.take<std::uint32_t>();
        put(event + (what == 4 ? 0 : bytes.below(8) * 4), &value, sizeof(value));
    }
    if (what == 6 || what == 7) {
        std::uint8_t* at = base_ + bytes.below(KMES_METADATA_BYTES);
        if (what == 7) at = base_ + bytes.below(136);
        const auto value = bytes.take<std::uint8_t>();
        if (contains(at, 1)) *at = value;
    }
}

void HostileMapping::change(FuzzedBytes& bytes) {
    const std::uint64_t what = bytes.below(16);
    if (what >= 10) return spoil(bytes);
    for (std::uint64_t left = 1 + (what >= 8 ? bytes.below(16) : what % 2); left > 0; --left)
        append(bytes);
    publish();
}

}  // namespace kmes::fuzz
