// SPDX-License-Identifier: MIT
//
// Writes a record file (docs/record-format.md). It holds one block in memory.
#ifndef KMES_RECORD_WRITER_H_
#define KMES_RECORD_WRITER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "record/format.h"

namespace kmes::record {

// At most one thread uses a writer at a time. A function of type int returns 0 or a negative error
// number.
//
// After an error of the file (-ENOSPC, -EFBIG, -EIO) the file ends with the last whole block. Every
// later call returns the same error.
class Writer {
  public:
    // The writer writes a block when its body has this size.
    static constexpr std::size_t kBodyBytes = std::size_t{256} << 10;

    Writer() = default;
    ~Writer();  // closes, and ignores errors
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    // Creates `path`, which must not exist (-EEXIST), with mode 0600 less the umask: recorded data
    // is as private as the rings. Writes the header, with a random file_id. -EINVAL: there are no
    // CPUs, or a file is open.
    int open(const std::string& path, FileHeader header);

    // Changes the number of CPUs in the header of the open file.
    int set_cpus(std::uint32_t cpus);

    // Adds a whole event. -EINVAL: the bytes are not an event.
    int add_event(std::span<const std::byte> event);
    int add_loss(const Loss& loss);
    int add_session(const Session& session);

    // Writes the added items as a block. Written blocks survive the end of this process.
    int flush();
    // Flushes, and waits until the disk has the data, which then survives a crash of the machine.
    int sync();
    // Syncs and closes. Returns 0 if no file is open.
    int close();

    bool is_open() const { return fd_ >= 0; }
    // Returns true if the open file has no name any more.
    bool is_removed() const;
    // Returns the number of events in the whole blocks of the open file, or of the last one.
    std::uint64_t written_events() const { return written_events_; }
    // Returns the size that the file will have after the current block.
    std::uint64_t file_bytes() const;

  private:
    int add(ItemKind kind, std::span<const std::byte> content);
    int write_whole(std::span<const std::byte> bytes);
    int fail(int error);

    int fd_ = -1;
    int error_ = 0;
    FileHeader header_;
    std::uint64_t written_bytes_ = 0;  // whole blocks and the header
    std::uint64_t index_ = 0;
    std::uint32_t items_ = 0;
    std::uint64_t written_events_ = 0;
    std::uint64_t block_events_ = 0;  // of items_
    std::vector<std::byte> block_;    // room for the header, then the body
};

}  // namespace kmes::record

#endif  // KMES_RECORD_WRITER_H_
