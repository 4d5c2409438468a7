// SPDX-License-Identifier: MIT
//
// The memory of a caller whose pointers may all be wild, made from a fuzzer's bytes: the existing
// addresses, their content, and its changes. Addresses are only numbers, which are never
// dereferenced. Knows no rules of the calls.
//
//   ascii     0x10000, 64 KiB     letters
//   text      0x20000             up to 255 bytes of the input
//   noise     0x30000, 64 KiB     any bytes
//   entries   0x50000, or ending at the end of the address space: up to 299 entries of 32
//             bytes, up to 15 of them different, the last one perhaps cut off
#ifndef KMES_FUZZ_TARGETS_BATCH_CALLER_H_
#define KMES_FUZZ_TARGETS_BATCH_CALLER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "fuzz/fuzzed_bytes.h"

namespace kmes::fuzz {

// A caller's description of one event.
struct Descriptor {
    std::uint64_t type = 0;
    std::uint64_t payload = 0;
    std::uint32_t payload_len = 0;
    std::uint16_t type_len = 0;
};

class Caller {
  public:
    // `limits`: sizes of events that are interesting on both sides.
    Caller(FuzzedBytes* bytes, const std::vector<std::uint64_t>& limits);

    // Returns false if there is nothing at the address.
    bool read(std::uint64_t address, std::uint8_t* byte) const;

    // Changes every byte there.
    void change(std::uint64_t address, std::uint64_t count);

    // Returns some descriptor of the table, for a direct call.
    Descriptor pick(FuzzedBytes* bytes) const;
    // Returns an address that may be that of entries.
    std::uint64_t pick_entries(FuzzedBytes* bytes) const;

  private:
    struct Change {
        std::uint64_t address;
        std::uint64_t count;
    };

    std::uint64_t pick_pointer(FuzzedBytes* bytes) const;
    Descriptor make(FuzzedBytes* bytes, const std::vector<std::uint64_t>& limits) const;
    std::uint8_t entry_byte(std::uint64_t offset) const;
    bool read_first(std::uint64_t address, std::uint8_t* byte) const;

    std::vector<Descriptor> patterns_;
    std::uint64_t entries_at_ = 0;
    std::uint64_t entries_bytes_ = 0;
    std::string_view text_;
    std::vector<Change> changes_;
};

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_BATCH_CALLER_H_
