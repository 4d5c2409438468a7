// SPDX-License-Identifier: MIT
// Reads a record file (docs/record-format.md), block by block. The file is hostile. A reader holds
// one block in memory. No block is larger than kMaxBodyBytes or than the file.
#ifndef KMES_RECORD_READER_H_
#define KMES_RECORD_READER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "record/format.h"

namespace kmes::record {

// The source of the bytes of a record.
class Source {
  public:
    virtual ~Source() = default;
    virtual std::uint64_t size() const = 0;
    // Fills `to` from `offset`. Returns false if the bytes do not exist or cannot be read.
    virtual bool read(std::uint64_t offset, std::span<std::byte> to) = 0;
};

// Opens a file. Returns nullptr, with one line in *wrong, if it cannot be opened or is not regular.
std::unique_ptr<Source> open_file(const std::string& path, std::string* wrong);

// Reads from bytes that the caller keeps.
std::unique_ptr<Source> source_of(std::span<const std::byte> bytes);

struct Block {
    std::uint64_t index = 0;
    std::uint32_t items = 0;
    std::span<const std::byte> body{};  // valid until the next call of the reader
};

enum class ReadResult {
    kBlock,
    kEnd,     // the file ends after a whole block
    kDamage,  // damage() describes it
};

// The damage of a file, and the data after it.
struct Damage {
    std::uint64_t offset_bytes = 0;  // of the first byte that belongs to no whole block
    std::string what;                // one line, without the name of the file
};

class Reader {
  public:
    // Reads the header. Returns false after an error, with one line in `*wrong`.
    bool open(std::unique_ptr<Source> source, std::string* wrong);

    const FileHeader& header() const { return header_; }

    // Returns the next block. After kDamage and kEnd it returns the same result again.
    ReadResult next(Block* block);
    const Damage& damage() const { return damage_; }

    // Call it after kDamage. Searches the next whole block after the damage, which next() then
    // returns. Returns false if there is none.
    bool skip_damage();

  private:
    bool read_block(std::uint64_t offset, BlockHeader* header, std::string* wrong);
    ReadResult report(std::string what);

    std::unique_ptr<Source> source_;
    FileHeader header_;
    Damage damage_;
    std::vector<std::byte> body_;
    std::uint64_t offset_ = 0;
    std::uint64_t least_index_ = 0;
    std::uint64_t search_from_ = 0;   // where skip_damage begins
    std::uint64_t search_bytes_ = 0;  // remaining cost of the candidates of skip_damage
    bool is_damaged_ = false;
    bool may_skip_blocks_ = false;
};

}  // namespace kmes::record

#endif  // KMES_RECORD_READER_H_
