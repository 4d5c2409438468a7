// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The memory of one ring buffer in userspace: two memory files, the producer's double mapping of
// them, the boundary index and the core's `struct kmes_buffer`. Also a consumer's mapping of the
// two files. This file uses no CPU, no emission and no socket.
//
//   metadata file   one page; sealed against shrinking and growing. Any process that may attach may
//                   write it, because it contains need_wake (E13, E25).
//   data file       capacity bytes; sealed against shrinking and growing. After the producer's own
//                   mapping no process can map it writable or write to it (F_SEAL_FUTURE_WRITE).
//
// A fork gives the child the producer's writable mapping: a forked child belongs to the producer. A
// program that it executes gets nothing (the descriptors are close-on-exec). A passed descriptor
// grants the rights of an attach for as long as it exists.
#ifndef KMES_USER_MEMORY_H
#define KMES_USER_MEMORY_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kmes/ring.h"
#include "kmes/user/double_map.h"
#include "kmes/user/kept_fd.h"

namespace kmes {

// Returns the page size of this machine, in bytes.
uint64_t system_page_bytes();

// Returns the limit for the error number of a system call that makes a buffer, as " (limit: ...)":
// EMFILE, ENFILE, EFBIG, ENOSPC and ENOMEM. Empty for another number.
std::string limit_text(int error);

// The parameters of a buffer's memory.
struct BufferOptions {
    // A power of two from 4096 bytes to 2 GiB. The core accepts smaller ones, but they cannot be
    // mapped twice: a page is the smallest unit that can have a second address. A test of a smaller
    // capacity uses the core on plain memory, and itself copies the bytes past the capacity back.
    uint64_t capacity_bytes = KMES_CONFIG_CAPACITY_DEFAULT_BYTES;
    uint64_t generation = 1;      // 0: a boot buffer
    uint64_t start_position = 0;  // E11: any value
    uint16_t cpu_id = 0;
    // Length of the metadata file, a multiple of 4096. Only its first page is used. More than one
    // page serves consumers that compare the length of the file of the fd with their mapping.
    uint64_t metadata_file_bytes = KMES_METADATA_BYTES;
    // Allocates every data page now, so that a lack of memory is an error here and not a fault
    // during an emission. Without it the file is sparse.
    bool allocate_pages = true;
    // E22: any value but 4096 is rejected. For tests.
    uint64_t page_bytes = system_page_bytes();
};

class BufferMemory;

// A handle keeps its buffer. Its producer, the list of retired buffers, and attaches in progress
// hold handles.
using BufferHandle = std::shared_ptr<BufferMemory>;

// One buffer's memory. Not movable, because the core keeps its address; users pass the handle.
class BufferMemory {
  public:
    // Makes the files, maps and seals them and writes the metadata page (kmes_buffer_init). Throws
    // std::system_error, whose text names the failed step and the number of bytes. EINVAL: an
    // option is out of range. ENOTSUP: the page size (E22). Otherwise the error of the system call,
    // with the limit that was reached (limit_text). EFBIG: a file is larger than RLIMIT_FSIZE
    // allows; no SIGXFSZ is delivered. After an exception nothing remains.
    static BufferHandle create(const BufferOptions& options);

    ~BufferMemory();
    BufferMemory(const BufferMemory&) = delete;
    BufferMemory& operator=(const BufferMemory&) = delete;

    // A buffer has users: its producer until it is retired, and attachments, which get a handle
    // from add_user. After the last user, both descriptors are closed, and the producer's mapping
    // of the data and its index are freed. The metadata page remains for nudges (E19). Mappings of
    // consumers remain. A fresh buffer has one user. add_user requires that a user still exists.
    static BufferHandle add_user(const BufferHandle& memory);
    void remove_user();

    // -1 after the last user.
    int metadata_fd() const { return metadata_fd_.get(); }
    int data_fd() const { return data_fd_.get(); }
    // The producer's mapping, with the layout of 5.1.5; one page after the last user.
    void* base() const { return base_; }
    uint64_t mapped_bytes() const { return kmes_mapping_bytes(KMES_VERSION_1, capacity_bytes_); }
    uint64_t capacity_bytes() const { return capacity_bytes_; }
    uint64_t metadata_file_bytes() const { return metadata_file_bytes_; }
    // Device of the metadata file, which is unique for each existing buffer (E19).
    uint64_t device() const { return device_; }
    uint64_t inode() const { return inode_; }

    struct kmes_buffer* buffer() { return &core_.buffer; }
    // The word on which consumers sleep.
    __u32* futex_word() const { return core_.buffer.shared.futex_counter; }

    // Returns the memory of a core buffer that was made here.
    static BufferMemory* of(struct kmes_buffer* buffer);

    // A queued wake pins its buffer until it is done (E16), and retired buffers that are pinned are
    // not dropped. Unlike the release of a handle, both functions are safe in a signal handler.
    void pin() { pins_.fetch_add(1, std::memory_order_relaxed); }
    void unpin() { pins_.fetch_sub(1, std::memory_order_release); }
    bool is_pinned() const { return pins_.load(std::memory_order_acquire) != 0; }

  private:
    // The core's part. `of` computes the object from its address.
    struct Core {
        struct kmes_buffer buffer = {};
        BufferMemory* owner = nullptr;
    };

    BufferMemory() = default;
    void make_files(const BufferOptions& options);
    void map_and_seal(const BufferOptions& options);
    void initialise(const BufferOptions& options);
    void close_files();

    KeptFd metadata_fd_;
    KeptFd data_fd_;
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

// A consumer's mapping of the two files, with read-only data. Move-only; the destructor unmaps. The
// descriptors belong to the caller, who may close them at once.
class ConsumerMapping {
  public:
    ConsumerMapping() = default;
    // Throws std::system_error with the errors of kmes_double_map.
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
