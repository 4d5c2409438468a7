// SPDX-License-Identifier: MIT
//
// The mappings of the reader target: memory between pages that fault, filled as by a producer, then
// corrupted, and changed while it is read. Knows the format (kmes/abi.h) and no reader.
#ifndef KMES_FUZZ_TARGETS_HOSTILE_MAPPING_H_
#define KMES_FUZZ_TARGETS_HOSTILE_MAPPING_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "fuzz/fuzzed_bytes.h"
#include "kmes/abi.h"

namespace kmes::fuzz {

class HostileMapping {
  public:
    static constexpr std::uint64_t kMostCapacity = 4096;
    static constexpr std::uint64_t kMostBytes = KMES_METADATA_BYTES + 2 * kMostCapacity;

    HostileMapping();
    HostileMapping(const HostileMapping&) = delete;
    HostileMapping& operator=(const HostileMapping&) = delete;

    // Makes a new buffer, whose content `bytes` determine.
    void draw(FuzzedBytes& bytes, std::uint64_t inode);
    // Makes one change, which `bytes` determine.
    void change(FuzzedBytes& bytes);
    void retire() { store_u64(&KmesPage::generation, page()->generation + 1); }

    std::uint8_t* base() const { return base_; }
    std::uint64_t mapped_bytes() const { return mapped_bytes_; }
    std::uint64_t inode() const { return inode_; }
    std::uint64_t capacity() const { return capacity_; }
    bool contains(const void* address, std::uint64_t bytes) const;
    const void* need_wake() const { return &page()->need_wake; }
    const void* futex_counter() const { return &page()->futex_counter; }

    bool is_attached = false;
    std::uint64_t session = 0;

  private:
    using KmesPage = kmes_metadata_v1;

    KmesPage* page() const { return reinterpret_cast<KmesPage*>(base_); }
    // Stores whole fields, so that this code itself never shows the reader half of a word.
    void store_u64(__u64 KmesPage::* field, std::uint64_t value) {
        if (contains(&(page()->*field), sizeof(value))) page()->*field = value;
    }
    void place(std::uint64_t mapped_bytes);
    void draw_faults(FuzzedBytes& bytes);
    void append(FuzzedBytes& bytes);
    void put(std::uint64_t position, const void* from, std::uint64_t bytes);
    void put_byte(std::uint64_t position, std::uint8_t value);
    void publish();
    std::uint64_t near(FuzzedBytes& bytes) const;
    void spoil(FuzzedBytes& bytes);

    std::uint8_t* arena_ = nullptr;
    std::uint8_t* base_ = nullptr;
    std::uint64_t mapped_bytes_ = 0;
    std::uint64_t capacity_ = 256;
    std::uint64_t inode_ = 0;
    // The position of an honest producer of this buffer.
    std::uint64_t write_pos_ = 0;
    std::uint64_t sequence_ = 0;
    std::deque<std::uint64_t> boundaries_;  // of the surviving events; the first is the tail
};

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_HOSTILE_MAPPING_H_
