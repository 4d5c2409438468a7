// SPDX-License-Identifier: MIT
//
// Looks at each write to the report file before it is done: does it hold whole lines? (A look at
// the file cannot tell: it may come between two writes, or behind both.) Knows no records.

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/memory.h"

namespace kmes::conformance {
namespace {

constexpr size_t kMostParts = 1024;  // IOV_MAX

struct LastPart {
    uint64_t bytes = 0;         // of all parts together
    uint64_t last_address = 0;  // of the last byte
};

// What a write or writev is about to write.
LastPart last_part(pid_t tid, long number, const uint64_t (&arguments)[6]) {
    if (number == SYS_write || number == SYS_pwrite64) {
        return {arguments[2], arguments[1] + arguments[2] - 1};
    }
    LastPart last;
    for (size_t i = 0; i < std::min<uint64_t>(arguments[2], kMostParts); ++i) {
        const auto part = read_value<iovec>(tid, arguments[1] + i * sizeof(iovec));
        if (!part) break;
        if (part->iov_len == 0) continue;
        last.bytes += part->iov_len;
        last.last_address = reinterpret_cast<uint64_t>(part->iov_base) + part->iov_len - 1;
    }
    return last;
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
    if (!identity || !report_->is(*identity)) return;
    const LastPart last = last_part(thread.tid, number, arguments);
    if (last.bytes == 0) return;
    const auto byte = read_value<char>(thread.tid, last.last_address);
    if (byte) report_write_handler_({thread.tid, last.bytes, *byte == '\n'});
}

}  // namespace kmes::conformance
