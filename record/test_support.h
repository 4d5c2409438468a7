// SPDX-License-Identifier: MIT
//
// What the tests of record files share: events, files and what a reader says of them.
#ifndef KMES_RECORD_TEST_SUPPORT_H_
#define KMES_RECORD_TEST_SUPPORT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "record/reader.h"
#include "record/writer.h"

namespace kmes::record::testing {

// A whole event, as a producer writes it.
std::vector<std::byte> event_of(std::uint64_t sequence, std::uint16_t cpu, std::string_view type,
                                std::string_view payload);

std::vector<std::byte> bytes_of_file(const std::string& path);

// Removes a folder of its own, and the files in it, at its end.
class Folder {
  public:
    Folder();
    ~Folder();
    std::string path(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

// A file of `blocks` blocks. Block b has `per_block` events of CPU 0, each with `payload`; the
// sequence numbers go up from 1.
std::vector<std::byte> file_of(unsigned blocks, unsigned per_block, const std::string& payload);

// All that a reader says of a file.
struct Read {
    std::vector<std::uint64_t> sequences;
    std::vector<Loss> losses;
    std::vector<Session> sessions;
    std::vector<std::size_t> block_ends;  // offsets after each whole block
    std::string wrong;                    // of the damage or the header; empty: none
};
Read read_all(std::span<const std::byte> file, bool goes_on_after_damage = false);

}  // namespace kmes::record::testing

#endif  // KMES_RECORD_TEST_SUPPORT_H_
