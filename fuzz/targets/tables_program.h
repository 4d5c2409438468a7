// SPDX-License-Identifier: MIT
//
// A model of the descriptors of a program: which numbers are its own, and what each of them is, by
// device and inode. Knows no libkmes.
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

// {0, 0} where the number is closed.
Identity identity_of(int fd);

// By number; those that were open before the first input are nobody's.
using OpenNumbers = std::bitset<kFirstReserved>;
OpenNumbers open_numbers();

class ProgramFiles {
  public:
    // What a number is to the program.
    struct File {
        bool is_open = false;
        bool was_attached = false;   // attach gave this number, and it was not closed since
        std::uint64_t capacity = 0;  // of a buffer; 0: a file of the program's own
        Identity identity;
    };

    // The program has opened a number; 0: no buffer.
    void add(int fd, std::uint64_t capacity, bool was_attached);
    const File& at(int fd) const { return files_.at(static_cast<std::size_t>(fd)); }
    // The first open number from `from` on, around; -1: there is none.
    int pick(std::uint64_t from) const;
    OpenNumbers numbers() const;

    void close(int fd);
    // Over whatever has the number `to`. Not to a number that is open since before the first input.
    void copy_over(int from, int to);
    int copy(int from);
    int open_file();
    // As closefrom().
    void close_from(int first);
    static bool is_foreign(int fd);

    // An open number of this buffer that attach gave.
    bool has_attached(const Identity& identity) const;
    // Fails where a file is not what the program opened.
    void expect_untouched() const;

  private:
    std::array<File, kFirstReserved> files_;
};

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_TABLES_PROGRAM_H_
