// SPDX-License-Identifier: MIT
// Shared parts of the tests of record files: events, files and the results of a reader.
#ifndef KMES_RECORD_TEST_SUPPORT_H_
#define KMES_RECORD_TEST_SUPPORT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "record/reader.h"
#include "record/writer.h"

namespace kmes::record::testing {

// Returns a whole event, in the form that a producer writes.
std::vector<std::byte> event_of(std::uint64_t sequence, std::uint16_t cpu, std::string_view type,
                                std::string_view payload);

std::vector<std::byte> bytes_of_file(const std::string& path);

// Returns whether this program, and so the others of the build, has a sanitizer.
bool is_sanitized();

// Makes a folder, and removes it with its files at the end.
class Folder {
  public:
    Folder();
    ~Folder();
    std::string path(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

// Makes a file of `blocks` blocks. Block b has `per_block` events of CPU 0, each with `payload`.
// The sequence numbers ascend from 1.
std::vector<std::byte> file_of(unsigned blocks, unsigned per_block, const std::string& payload);

// All results of a reader for one file.
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
