// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// The memory of one ring buffer in userspace: two memory files, the producer's own double mapping
// of them, the boundary index and the core's `struct kmes_buffer`; and the mapping that a consumer
// makes of the two files. Knows no CPU, no emission and no socket.
//
//   metadata file   one page; may not shrink nor grow. Whoever may attach may write it: need_wake
//                   is there (E13, E25).
//   data file       capacity bytes; may not shrink nor grow, and nobody can map it writable nor
//                   write to it once the producer's own mapping is made (F_SEAL_FUTURE_WRITE).
//
// A process that forks hands its child the producer's mapping, writable: a forked child belongs to
// the producer. A program that it executes gets nothing (the descriptors are close-on-exec). A
// descriptor that is passed on grants what attaching grants, for as long as it exists.
#ifndef KMES_USER_MEMORY_H
#define KMES_USER_MEMORY_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kmes/ring.h"
#include "kmes/user/double_map.h"

namespace kmes {

// Page size of this machine, in bytes.
uint64_t system_page_bytes();

// Names the limit behind the error number of a system call that makes a buffer, as
// " (limit: ...)": EMFILE, ENFILE, EFBIG, ENOSPC and ENOMEM. Empty for another number.
std::string limit_text(int error);

// What a buffer's memory is made of.
struct BufferOptions {
    // A power of two from 4096 bytes to 2 GiB. Smaller ones, which the core takes, cannot be mapped
    // twice: a page is the least that can have a second address. A test that wants one puts the
    // core on plain memory and copies the bytes behind its capacity back itself.
    uint64_t capacity_bytes = KMES_CONFIG_CAPACITY_DEFAULT_BYTES;
    uint64_t generation = 1;      // 0: a boot buffer
    uint64_t start_position = 0;  // E11: any value
    uint16_t cpu_id = 0;
    // Length of the metadata file; only its first page is used. A multiple of 4096. More than one
    // page serves consumers that compare the length of the file behind the fd with their mapping.
    uint64_t metadata_file_bytes = KMES_METADATA_BYTES;
    // Gets every data page now, so that a lack of memory is an error here and not a fault in the
    // middle of an emission. Without it the file is sparse.
    bool allocate_pages = true;
    // E22: anything but 4096 is refused. For tests.
    uint64_t page_bytes = system_page_bytes();
};

class BufferMemory;

// Who holds one keeps the buffer: its producer, the list of retired buffers, an attach on its way.
using BufferHandle = std::shared_ptr<BufferMemory>;

// One buffer's memory. Stays where it is made, because the core keeps its address: what is passed
// around is the handle.
class BufferMemory {
  public:
    // Makes the files, maps and seals them and writes the metadata page (kmes_buffer_init).
    // std::system_error, whose text says what failed and for how many bytes: EINVAL for options out
    // of range, ENOTSUP for the page size (E22), or the error of the system call, with the limit
    // that was reached (limit_text). EFBIG: a file is larger than RLIMIT_FSIZE allows; no SIGXFSZ
    // is delivered. Nothing is left behind then.
    static BufferHandle create(const BufferOptions& options);

    ~BufferMemory();
    BufferMemory(const BufferMemory&) = delete;
    BufferMemory& operator=(const BufferMemory&) = delete;

    // A buffer has users: its producer until it is retired, and attachments, which get a handle
    // from add_user. When the last user has gone, both descriptors are closed and the producer's
    // mapping of the data and its index are freed; the metadata page stays for nudges (E19). What
    // consumers have mapped stays theirs. A fresh buffer has one user. add_user needs one that is
    // still there.
    static BufferHandle add_user(const BufferHandle& memory);
    void remove_user();

    // -1 after the last user.
    int metadata_fd() const { return metadata_fd_; }
    int data_fd() const { return data_fd_; }
    // The producer's mapping, laid out as 5.1.5 says; of one page after the last user.
    void* base() const { return base_; }
    uint64_t mapped_bytes() const { return kmes_mapping_bytes(KMES_VERSION_1, capacity_bytes_); }
    uint64_t capacity_bytes() const { return capacity_bytes_; }
    uint64_t metadata_file_bytes() const { return metadata_file_bytes_; }
    // Of the metadata file: its own for each buffer that exists (E19).
    uint64_t device() const { return device_; }
    uint64_t inode() const { return inode_; }

    struct kmes_buffer* buffer() { return &core_.buffer; }
    // The word that consumers sleep on.
    __u32* futex_word() const { return core_.buffer.shared.futex_counter; }

    // The memory to which a buffer of the core belongs, which must be one that was made here.
    static BufferMemory* of(struct kmes_buffer* buffer);

    // A wake that is queued pins its buffer until it is done (E16): who drops retired buffers
    // leaves those alone. Unlike the release of a handle both are safe in a signal handler.
    void pin() { pins_.fetch_add(1, std::memory_order_relaxed); }
    void unpin() { pins_.fetch_sub(1, std::memory_order_release); }
    bool is_pinned() const { return pins_.load(std::memory_order_acquire) != 0; }

  private:
    // The core's part, from whose address `of` finds the way back.
    struct Core {
        struct kmes_buffer buffer = {};
        BufferMemory* owner = nullptr;
    };

    BufferMemory() = default;
    void make_files(const BufferOptions& options);
    void map_and_seal(const BufferOptions& options);
    void initialise(const BufferOptions& options);
    void close_files();

    int metadata_fd_ = -1;
    int data_fd_ = -1;
    void* base_ = nullptr;
    uint64_t capacity_bytes_ = 0;
    uint64_t metadata_file_bytes_ = 0;
    uint64_t device_ = 0;
    uint64_t inode_ = 0;
    std::unique_ptr<struct kmes_boundary[]> index_;
    Core core_;
    std::atomic<unsigned> pins_{0};
    std::atomic<unsigned> users_{1};
    bool has_data_ = true;
};

// A consumer's mapping of the two files, its data read-only. Move-only; unmaps at its end. The
// descriptors stay the caller's, and may be closed at once.
class ConsumerMapping {
  public:
    ConsumerMapping() = default;
    // std::system_error as kmes_double_map says.
    ConsumerMapping(int metadata_fd, int data_fd, uint64_t capacity_bytes);
    ~ConsumerMapping();
    ConsumerMapping(ConsumerMapping&& other) noexcept;
    ConsumerMapping& operator=(ConsumerMapping&& other) noexcept;

    void* base() const { return base_; }
    uint64_t capacity_bytes() const { return capacity_bytes_; }
    uint64_t mapped_bytes() const {
        return base_ ? kmes_mapping_bytes(KMES_VERSION_1, capacity_bytes_) : 0;
    }

  private:
    void* base_ = nullptr;
    uint64_t capacity_bytes_ = 0;
};

}  // namespace kmes

#endif
