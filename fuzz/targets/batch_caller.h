// SPDX-License-Identifier: MIT
//
// The memory of a caller whose every pointer may be wild, made from a fuzzer's bytes: where there
// is something, what, and how it changes. Addresses are numbers that nobody can follow. Knows no
// rules of the calls.
//
//   ascii     0x10000, 64 KiB     letters
//   text      0x20000             up to 255 bytes of the input
//   noise     0x30000, 64 KiB     any bytes
//   entries   0x50000, or such that they end where the address space does: up to 299 entries of 32
//             bytes, up to 15 of them different, the last one perhaps not whole
#ifndef KMES_FUZZ_TARGETS_BATCH_CALLER_H_
#define KMES_FUZZ_TARGETS_BATCH_CALLER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "fuzz/fuzzed_bytes.h"

namespace kmes::fuzz {

// What a caller says of one event.
struct Descriptor {
    std::uint64_t type = 0;
    std::uint64_t payload = 0;
    std::uint32_t payload_len = 0;
    std::uint16_t type_len = 0;
};

class Caller {
  public:
    // `limits`: sizes of events that are worth a look at, on either side.
    Caller(FuzzedBytes* bytes, const std::vector<std::uint64_t>& limits);

    // False where there is nothing.
    bool read(std::uint64_t address, std::uint8_t* byte) const;

    // Every byte there becomes another one.
    void change(std::uint64_t address, std::uint64_t count);

    // Some descriptor of the table, to call with it directly.
    Descriptor pick(FuzzedBytes* bytes) const;
    // An address that may be that of entries.
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
