// SPDX-License-Identifier: MIT
//
// The descriptors that one end of a socket passes to the other. They are memory files of any length
// and with any seals, and files of all other kinds. They can be changed after they were passed.
// Knows no protocol.
#ifndef KMES_FUZZ_TARGETS_PASSED_FILES_H_
#define KMES_FUZZ_TARGETS_PASSED_FILES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kmes::fuzz {

class PassedFiles {
  public:
    enum class Kind : std::uint8_t {
        kMemory,
        kReadOnly,  // of a memory file
        kByPath,    // O_PATH, of a memory file
        kRegular,
        kFolder,
        kNull,
        kPipeRead,
        kPipeWrite,
        kSocket,
        kEvent,
        kPoll,
        kCount,
    };

    PassedFiles() = default;
    ~PassedFiles();
    PassedFiles(const PassedFiles&) = delete;
    PassedFiles& operator=(const PassedFiles&) = delete;

    // Makes a file, and returns its descriptor, which stays open until the end.
    int make(Kind kind);
    // Makes a memory file with `text`, then zeros up to `bytes`: with pages for them, or with
    // holes.
    int make_memory(std::string_view text, std::uint64_t bytes, bool has_pages, int seals);
    // Makes another descriptor of an open file.
    int keep_copy(int fd);

    // Does what the owner of the file can try: truncates it, makes a hole, extends it, or writes.
    static void change(int fd, std::uint64_t how);

  private:
    int keep(int fd);

    std::vector<int> fds_;
};

// The number of open descriptors of this process.
std::size_t count_open_descriptors();
// The number of mappings of this process whose name contains `name`.
std::size_t count_mappings(std::string_view name);

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_PASSED_FILES_H_
