// SPDX-License-Identifier: MIT
//
// See program_code.h.

#include "conformance/tracer/program_code.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "conformance/tracer/types.h"

namespace kmes::conformance::tracing {

ProgramCode::~ProgramCode() {
    for (const auto& [path, file] : files_) {
        if (file >= 0) close(file);
    }
}

size_t ProgramCode::read(uint64_t address, uint8_t* to, size_t most) {
    size_t got = 0;
    while (got < most) {
        const std::vector<uint8_t>& bytes = page((address + got) / kPageBytes);
        const size_t offset = (address + got) % kPageBytes;
        if (offset >= bytes.size()) break;
        const size_t count = std::min(most - got, bytes.size() - offset);
        memcpy(to + got, bytes.data() + offset, count);
        got += count;
    }
    return got;
}

const std::vector<uint8_t>& ProgramCode::page(uint64_t number) {
    constexpr size_t kMostPages = 4096;
    if (pages_.size() >= kMostPages && !pages_.contains(number)) pages_.clear();
    const auto [found, is_new] = pages_.try_emplace(number);
    std::vector<uint8_t>& bytes = found->second;
    if (!is_new || !modules_) return bytes;
    const uint64_t address = number * kPageBytes;
    const MapsEntry* entry = modules_->find(address);
    if (entry == nullptr || !entry->executable || entry->writable || entry->file.inode == 0)
        return bytes;
    const int file = file_of(*entry);
    if (file < 0) return bytes;
    bytes.resize(kPageBytes);
    const uint64_t offset = address - entry->start + entry->offset_bytes;
    const ssize_t got = pread(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return bytes;
}

int ProgramCode::file_of(const MapsEntry& entry) {
    const auto [found, is_new] = files_.try_emplace(entry.path, -1);
    if (!is_new) return found->second;
    const std::string path = modules_->file_of(entry);
    if (!path.empty()) found->second = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return found->second;
}

}  // namespace kmes::conformance::tracing
