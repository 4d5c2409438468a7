// SPDX-License-Identifier: MIT
//
// See served_files.h.

#include "conformance/tracer/served_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>

namespace kmes::conformance::tracing {
namespace {

constexpr int kLowestServedFd = 10;  // above the numbers that the child sets up
constexpr size_t kValueBytes = 8;

int duplicate(int fd) {
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, kLowestServedFd);
    if (copy < 0)
        throw std::system_error(errno, std::generic_category(), "a descriptor of a served buffer");
    return copy;
}

}  // namespace

ServedFiles::~ServedFiles() {
    for (const ServedFile& file : files_) {
        close(file.metadata_fd);
        if (file.data_fd >= 0) close(file.data_fd);
        if (file.view != nullptr) munmap(file.view, file.layout_bytes());
    }
}

BufferId ServedFiles::add(const ServedBuffer& buffer) {
    if (buffer.capacity_bytes == 0 || buffer.capacity_bytes % kPageBytes != 0) {
        throw std::invalid_argument(
            "add_buffer: capacity_bytes must be a multiple of 4096 and not 0, not " +
            std::to_string(buffer.capacity_bytes));
    }
    const uint64_t expected = buffer.expected_mapping_bytes != 0
                                  ? buffer.expected_mapping_bytes
                                  : buffer.metadata_bytes + 2 * buffer.capacity_bytes;
    struct stat metadata{};
    struct stat data{};
    const bool has_data_file = !buffer.is_kernel_buffer;
    if (fstat(buffer.metadata_fd, &metadata) != 0 ||
        (has_data_file && fstat(buffer.data_fd, &data) != 0)) {
        throw std::system_error(errno, std::generic_category(), "add_buffer: fstat of its files");
    }
    if (static_cast<uint64_t>(metadata.st_size) < expected ||
        (has_data_file && static_cast<uint64_t>(data.st_size) < buffer.capacity_bytes)) {
        throw std::invalid_argument("add_buffer: metadata_fd must be at least " +
                                    std::to_string(expected) + " bytes long and data_fd " +
                                    std::to_string(buffer.capacity_bytes));
    }
    ServedFile file;
    file.metadata_bytes = buffer.metadata_bytes;
    file.capacity_bytes = buffer.capacity_bytes;
    file.expected_mapping_bytes = expected;
    file.takes_only_whole_mapping = buffer.takes_only_whole_mapping;
    file.identity = {metadata.st_dev, metadata.st_ino};
    file.metadata_fd = duplicate(buffer.metadata_fd);
    try {
        if (has_data_file) file.data_fd = duplicate(buffer.data_fd);
    } catch (...) {
        close(file.metadata_fd);
        throw;
    }
    files_.push_back(file);
    return files_.size() - 1;
}

std::optional<BufferId> ServedFiles::find(const FileIdentity& identity) const {
    for (size_t id = 0; id < files_.size(); ++id) {
        if (files_[id].identity == identity) return id;
    }
    return std::nullopt;
}

uint8_t* ServedFiles::view_of(BufferId id) {
    ServedFile& file = files_[id];
    if (file.view != nullptr) return file.view;
    const uint64_t length = file.layout_bytes();
    if (file.data_fd < 0) {
        void* kernels =
            mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file.metadata_fd, 0);
        if (kernels != MAP_FAILED) file.view = static_cast<uint8_t*>(kernels);
        return file.view;
    }
    void* whole =
        mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole == MAP_FAILED) return nullptr;
    auto* at = static_cast<uint8_t*>(whole);
    const auto place = [](void* where, uint64_t bytes, int protection, int fd) {
        return mmap(where, bytes, protection, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
    };
    uint8_t* data = at + file.metadata_bytes;
    if (!place(at, file.metadata_bytes, PROT_READ | PROT_WRITE, file.metadata_fd) ||
        !place(data, file.capacity_bytes, PROT_READ, file.data_fd) ||
        !place(data + file.capacity_bytes, file.capacity_bytes, PROT_READ, file.data_fd)) {
        munmap(whole, length);
        return nullptr;
    }
    file.view = at;
    return at;
}

uint8_t* ServedFiles::bytes_at(BufferId id, uint64_t layout_offset, uint64_t size_bytes) {
    const uint64_t layout_bytes = files_.at(id).layout_bytes();
    if (layout_offset >= layout_bytes || size_bytes > layout_bytes - layout_offset) return nullptr;
    uint8_t* view = view_of(id);
    return view == nullptr ? nullptr : view + layout_offset;
}

uint64_t ServedFiles::value_of(const BufferAccess& access) {
    const uint64_t layout_bytes = files_[access.place.buffer].layout_bytes();
    const uint64_t offset = access.place.offset_bytes;
    const uint8_t* view = view_of(access.place.buffer);
    if (view == nullptr || offset >= layout_bytes) return 0;
    const size_t size_bytes =
        std::min<uint64_t>({access.size_bytes, kValueBytes, layout_bytes - offset});
    uint64_t value = 0;
    memcpy(&value, view + offset, size_bytes);
    return value;
}

}  // namespace kmes::conformance::tracing
