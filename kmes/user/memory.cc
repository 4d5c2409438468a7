// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Construction and destruction of the memory of a buffer. See memory.h.
#include "kmes/user/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>
#include <utility>

#include "kmes/user/file_size_signal.h"
#include "kmes/user/uncancelled.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U  // Linux 6.3; older C libraries do not name it
#endif

namespace kmes {
namespace {

[[noreturn]] void fail_memory(int error, const std::string& what) {
    throw std::system_error(error, std::generic_category(),
                            "KMES buffer: " + what + limit_text(error));
}

std::string bytes_text(uint64_t bytes) {
    return std::to_string(bytes) + " bytes";
}

void check_options(const BufferOptions& options) {
    if (options.page_bytes != KMES_PAGE_BYTES) {
        fail_memory(ENOTSUP, "pages of " + bytes_text(options.page_bytes) +
                                 " cannot carry ring format version 1, whose data begins at byte " +
                                 std::to_string(KMES_METADATA_BYTES) +
                                 " (E22); a machine with pages of 4096 bytes can");
    }
    if (!kmes_double_map_capacity_is_valid(options.capacity_bytes)) {
        fail_memory(EINVAL, "a capacity of " + bytes_text(options.capacity_bytes) +
                                " cannot be mapped twice; a power of two from " +
                                std::to_string(KMES_USER_CAPACITY_MIN_BYTES) + " to " +
                                std::to_string(KMES_CAPACITY_MAX_BYTES) + " can");
    }
    if (options.metadata_file_bytes < KMES_METADATA_BYTES ||
        options.metadata_file_bytes % KMES_PAGE_BYTES != 0) {
        fail_memory(EINVAL, "a metadata file of " + bytes_text(options.metadata_file_bytes) +
                                " is not allowed; a multiple of 4096 bytes is, and not 0");
    }
}

// Makes an empty memory file that can be sealed. Kernels before 6.3 do not know MFD_NOEXEC_SEAL.
int make_memory_file(const char* name, uint64_t bytes) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

    if (fd < 0 && errno == EINVAL) fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) fail_memory(errno, std::string("cannot make the memory file ") + name);
    if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
        int error = errno;

        close(fd);
        fail_memory(error, std::string("cannot give the memory file ") + name + " its " +
                               bytes_text(bytes));
    }
    return fd;
}

// A sparse file gets its pages at the first access, where a lack of memory is a signal.
void allocate(int fd, const char* name, uint64_t bytes) {
    while (fallocate(fd, 0, 0, static_cast<off_t>(bytes)) != 0) {
        if (errno == EINTR) continue;
        fail_memory(errno, std::string("no memory for ") + bytes_text(bytes) + " of " + name);
    }
}

void seal(int fd, const char* name, int seals) {
    if (fcntl(fd, F_ADD_SEALS, seals) != 0)
        fail_memory(errno, std::string("cannot seal the memory file ") + name +
                               " (F_SEAL_FUTURE_WRITE needs Linux 5.1)");
}

}  // namespace

uint64_t system_page_bytes() {
    return static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string limit_text(int error) {
    switch (error) {
        case EMFILE:
            return " (limit: the descriptors of this process, RLIMIT_NOFILE)";
        case ENFILE:
            return " (limit: the open files of this system, fs.file-max)";
        case EFBIG:
            return " (limit: the size of a file of this process, RLIMIT_FSIZE)";
        case ENOSPC:
            return " (limit: the shared memory of this system)";
        case ENOMEM:
            return " (limit: the memory of this system or control group, the address space "
                   "(RLIMIT_AS) or the number of mappings (vm.max_map_count))";
        default:
            return "";
    }
}

BufferHandle BufferMemory::create(const BufferOptions& options) {
    const Uncancelled uncancelled;
    FileSizeSignalBlocked blocked;

    check_options(options);
    BufferHandle memory(new BufferMemory());

    memory->make_files(options);
    memory->map_and_seal(options);
    memory->initialise(options);
    return memory;
}

void BufferMemory::make_files(const BufferOptions& options) {
    capacity_bytes_ = options.capacity_bytes;
    metadata_file_bytes_ = options.metadata_file_bytes;
    metadata_fd_ = KeptFd(make_memory_file("kmes-metadata", options.metadata_file_bytes));
    data_fd_ = KeptFd(make_memory_file("kmes-data", options.capacity_bytes));
    allocate(metadata_fd_.number(), "metadata", KMES_METADATA_BYTES);
    if (options.allocate_pages) allocate(data_fd_.number(), "data", options.capacity_bytes);

    struct stat status = {};

    if (fstat(metadata_fd_.number(), &status) != 0)
        fail_memory(errno, "cannot identify the metadata file");
    device_ = status.st_dev;
    inode_ = status.st_ino;
}

void BufferMemory::map_and_seal(const BufferOptions& options) {
    // The producer's mapping first: after F_SEAL_FUTURE_WRITE no other writable mapping is
    // possible.
    int error = kmes_double_map(metadata_fd_.number(), data_fd_.number(), options.capacity_bytes,
                                true, &base_);

    if (error) {
        fail_memory(-error, "cannot map " + bytes_text(kmes_mapping_bytes(KMES_VERSION_1,
                                                                          options.capacity_bytes)));
    }
    // E13: if a consumer could truncate the file, the producer would get SIGBUS.
    seal(metadata_fd_.number(), "kmes-metadata", F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    seal(data_fd_.number(), "kmes-data",
         F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

void BufferMemory::initialise(const BufferOptions& options) {
    struct kmes_buffer_setup setup = {};

    index_ = std::make_unique<struct kmes_boundary[]>(kmes_index_entries(options.capacity_bytes));
    setup.mapping = base_;
    setup.index = index_.get();
    setup.capacity_bytes = options.capacity_bytes;
    setup.generation = options.generation;
    setup.start_pos = options.start_position;
    setup.version = KMES_VERSION_1;
    setup.cpu_id = options.cpu_id;

    int error = kmes_buffer_init(&core_.buffer, &setup);

    if (error) fail_memory(-error, "the core refuses " + bytes_text(options.capacity_bytes));
    core_.owner = this;
}

BufferHandle BufferMemory::add_user(const BufferHandle& memory) {
    memory->users_.fetch_add(1, std::memory_order_relaxed);
    return BufferHandle(memory.get(), [memory](BufferMemory* user) { user->remove_user(); });
}

void BufferMemory::remove_user() {
    if (users_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    close_files();
    kmes_double_unmap_data(base_, capacity_bytes_);
    index_.reset();
    has_data_ = false;
}

void BufferMemory::close_files() {
    const Uncancelled uncancelled;

    data_fd_.close();
    metadata_fd_.close();
}

BufferMemory::~BufferMemory() {
    if (base_ && has_data_) kmes_double_unmap(base_, capacity_bytes_);
    if (base_ && !has_data_) munmap(base_, KMES_METADATA_BYTES);
    close_files();
}

BufferMemory* BufferMemory::of(struct kmes_buffer* buffer) {
    static_assert(offsetof(Core, buffer) == 0, "of() goes by the address of the first member");

    return reinterpret_cast<Core*>(buffer)->owner;
}

ConsumerMapping::ConsumerMapping(int metadata_fd, int data_fd, uint64_t capacity_bytes)
    : capacity_bytes_(capacity_bytes) {
    int error = kmes_double_map(metadata_fd, data_fd, capacity_bytes, false, &base_);

    if (error) {
        fail_memory(-error, "a consumer cannot map a capacity of " + bytes_text(capacity_bytes) +
                                " from these two files");
    }
}

ConsumerMapping::~ConsumerMapping() {
    if (base_) kmes_double_unmap(base_, capacity_bytes_);
}

ConsumerMapping::ConsumerMapping(ConsumerMapping&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), capacity_bytes_(other.capacity_bytes_) {}

ConsumerMapping& ConsumerMapping::operator=(ConsumerMapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(capacity_bytes_, other.capacity_bytes_);
    return *this;
}

}  // namespace kmes
