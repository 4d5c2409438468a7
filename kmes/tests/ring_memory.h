/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The memory of one buffer of a test: the metadata page and the data twice (5.1.5). The pages after
 * it fault, so an access outside of the mapping ends the test. Knows no core.
 *
 * With a capacity of at least one page, the double mapping is a real one. A page is the smallest
 * unit that can be mapped twice, so smaller buffers have two separate halves. hooks.h copies each
 * word that the core writes to the other half before anything else happens. Only the hooked build
 * of the core permits that, so tests of the plain core use capacities of at least one page.
 */
#ifndef KMES_TESTS_RING_MEMORY_H
#define KMES_TESTS_RING_MEMORY_H

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kmes/abi.h"

namespace kmes::tests {

class RingMemory {
  public:
    explicit RingMemory(std::uint64_t capacity_bytes) : capacity_(capacity_bytes) {
        if (is_mirrored())
            map_once();
        else
            map_twice();
    }

    ~RingMemory() { munmap(range_, range_bytes_); }

    RingMemory(const RingMemory&) = delete;
    RingMemory& operator=(const RingMemory&) = delete;

    std::uint8_t* base() const { return base_; }
    std::uint8_t* data() const { return base_ + KMES_METADATA_BYTES; }
    std::uint64_t capacity_bytes() const { return capacity_; }
    std::uint64_t mapped_bytes() const { return KMES_METADATA_BYTES + 2 * capacity_; }

    /* Whether hooks.h keeps the two halves equal, instead of the machine. */
    bool is_mirrored() const { return capacity_ < KMES_PAGE_BYTES; }

    bool contains(const void* address) const {
        const auto* byte = static_cast<const std::uint8_t*>(address);
        return byte >= base_ && byte < base_ + mapped_bytes();
    }

    /* Copies the bytes at `address`, in either half, to the other half. */
    void mirror(const void* address, std::uint64_t bytes) {
        const std::uint64_t from = static_cast<const std::uint8_t*>(address) - data();
        for (std::uint64_t at = from; at < from + bytes; at++) {
            data()[at < capacity_ ? at + capacity_ : at - capacity_] = data()[at];
        }
    }

    std::vector<std::uint8_t> page_bytes() const { return {base_, base_ + KMES_METADATA_BYTES}; }

    /* `bytes` bytes of the data at position `pos`. */
    std::vector<std::uint8_t> data_bytes(std::uint64_t pos, std::uint64_t bytes) const {
        const std::uint8_t* from = data() + (pos & (capacity_ - 1));
        return {from, from + bytes};
    }

  private:
    static std::uint64_t up_to_pages(std::uint64_t bytes) {
        return (bytes + KMES_PAGE_BYTES - 1) / KMES_PAGE_BYTES * KMES_PAGE_BYTES;
    }

    void reserve_range() {
        range_bytes_ = up_to_pages(mapped_bytes()) + KMES_PAGE_BYTES;
        void* range = mmap(nullptr, range_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (range == MAP_FAILED) std::abort();
        range_ = static_cast<std::uint8_t*>(range);
    }

    /* The last byte of the mapping is directly before the page that faults. */
    void map_once() {
        reserve_range();
        const std::uint64_t usable_bytes = range_bytes_ - KMES_PAGE_BYTES;
        if (mprotect(range_, usable_bytes, PROT_READ | PROT_WRITE) != 0) std::abort();
        base_ = range_ + usable_bytes - mapped_bytes();
    }

    void map_twice() {
        reserve_range();
        base_ = range_;
        const int file = memfd_create("kmes-test-ring", 0);
        if (file < 0) std::abort();
        if (ftruncate(file, static_cast<off_t>(KMES_METADATA_BYTES + capacity_)) != 0) std::abort();
        map_at(base_, KMES_METADATA_BYTES + capacity_, file, 0);
        map_at(base_ + KMES_METADATA_BYTES + capacity_, capacity_, file, KMES_METADATA_BYTES);
        close(file);
    }

    static void map_at(std::uint8_t* where, std::uint64_t bytes, int file, off_t offset) {
        if (mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, offset) !=
            where)
            std::abort();
    }

    std::uint64_t capacity_;
    std::uint64_t range_bytes_ = 0;
    std::uint8_t* range_ = nullptr;
    std::uint8_t* base_ = nullptr;
};

}  // namespace kmes::tests

#endif
