// SPDX-License-Identifier: MIT
//
// Checks each write to the report file before it happens: does it contain whole lines? (The file
// itself cannot tell: a check may come between two writes, or after both.) Knows no records.

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/memory.h"

namespace kmes::conformance {
namespace {

constexpr size_t kMostParts = 1024;  // IOV_MAX

// The buffers of a write or writev, without empty ones.
std::vector<iovec> parts_of(pid_t tid, long number, const uint64_t (&arguments)[6]) {
    std::vector<iovec> parts;
    const auto add = [&parts](const iovec& part) {
        if (part.iov_len != 0) parts.push_back(part);
    };
    if (number == SYS_write || number == SYS_pwrite64) {
        add({reinterpret_cast<void*>(arguments[1]), arguments[2]});
        return parts;
    }
    for (size_t i = 0; i < std::min<uint64_t>(arguments[2], kMostParts); ++i) {
        const auto part = read_value<iovec>(tid, arguments[1] + i * sizeof(iovec));
        if (!part) break;
        add(*part);
    }
    return parts;
}

uint64_t address_of(const iovec& part) {
    return reinterpret_cast<uint64_t>(part.iov_base);
}

// The first bytes of all buffers together, enough for a line or two.
std::string begin_of(pid_t tid, const std::vector<iovec>& parts) {
    std::string text;
    for (const iovec& part : parts) {
        const size_t before = text.size();
        const size_t wanted = std::min(part.iov_len, ReportWrite::kBeginBytes - before);
        text.resize(before + wanted);
        const size_t got = read_memory_prefix(tid, address_of(part), &text[before], wanted);
        text.resize(before + got);
        if (got < wanted || text.size() == ReportWrite::kBeginBytes) break;
    }
    return text;
}

}  // namespace

void Tracer::Engine::watch_report_write(Thread& thread, long number,
                                        const uint64_t (&arguments)[6]) {
    switch (number) {
        case SYS_write:
        case SYS_pwrite64:
        case SYS_writev:
        case SYS_pwritev:
        case SYS_pwritev2:
            break;
        default:
            return;
    }
    const auto identity = identity_of_fd(thread.tid, static_cast<int>(arguments[0]));
    if (!identity || !output_.is_report(*identity)) return;
    const std::vector<iovec> parts = parts_of(thread.tid, number, arguments);
    if (parts.empty()) return;
    const iovec& last = parts.back();
    const auto byte = read_value<char>(thread.tid, address_of(last) + last.iov_len - 1);
    if (!byte) return;
    uint64_t bytes = 0;
    for (const iovec& part : parts) bytes += part.iov_len;
    handlers_.report_write({thread.tid, bytes, *byte == '\n', begin_of(thread.tid, parts)});
}

}  // namespace kmes::conformance
