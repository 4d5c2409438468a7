// SPDX-License-Identifier: MIT
//
// A model of a program's descriptors: which numbers belong to it, and the file of each, by device
// and inode. Knows no libkmes.
#ifndef KMES_FUZZ_TARGETS_TABLES_PROGRAM_H_
#define KMES_FUZZ_TARGETS_TABLES_PROGRAM_H_

#include <sys/types.h>

#include <array>
#include <bitset>
#include <cstdint>

#include "fuzz/targets/tables_producer.h"

namespace kmes::fuzz {

struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const Identity&) const = default;
};

// Returns {0, 0} if the number is closed.
Identity identity_of(int fd);

// By number. Those that were open before the input are not the program's.
using OpenNumbers = std::bitset<kFirstReserved>;

// Call it before each input: the engine keeps files that it opens between two inputs, such as the
// pipes to the symbolizer.
void note_foreign_numbers();
OpenNumbers open_numbers();

class ProgramFiles {
  public:
    // The meaning of a number for the program.
    struct File {
        bool is_open = false;
        bool was_attached = false;   // attach returned this number, and it was not closed since
        std::uint64_t capacity = 0;  // of a buffer; 0: a file of the program's own
        Identity identity;
    };

    // The program has opened a number. `capacity` 0: the file is no buffer.
    void add(int fd, std::uint64_t capacity, bool was_attached);
    const File& at(int fd) const { return files_.at(static_cast<std::size_t>(fd)); }
    // Returns the first open number from `from` on, cyclically; -1: there is none.
    int pick(std::uint64_t from) const;
    OpenNumbers numbers() const;

    void close(int fd);
    // Replaces whatever has the number `to`. Leaves a number alone that was open before the input.
    void copy_over(int from, int to);
    int copy(int from);
    int open_file();
    // As closefrom().
    void close_from(int first);
    static bool is_foreign(int fd);

    // Whether an open number of this buffer came from attach.
    bool has_attached(const Identity& identity) const;
    // Fails if a file is not the one that the program opened.
    void expect_untouched() const;

  private:
    std::array<File, kFirstReserved> files_;
};

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_TABLES_PROGRAM_H_
