// SPDX-License-Identifier: MIT
//
// Another process's memory, through process_vm_readv and process_vm_writev. They obey page
// protections as the process's own accesses would. Knows no threads and no ptrace stops.

#include "conformance/tracer/memory.h"

#include <sys/uio.h>

#include <algorithm>

#include "conformance/tracer/limited_access.h"

namespace kmes::conformance::tracing {
namespace {

constexpr size_t kPage = 4096;

// A pointer of another process, in the form of the system calls.
iovec remote_span(uint64_t address, size_t size_bytes) {
    return {reinterpret_cast<void*>(address), size_bytes};
}

}  // namespace

bool read_memory(pid_t tid, uint64_t address, void* destination, size_t size_bytes) {
    const iovec local{destination, size_bytes};
    const iovec remote = remote_span(address, size_bytes);
    const LimitedAccess limited;
    return process_vm_readv(tid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size_bytes);
}

bool write_memory(pid_t tid, uint64_t address, const void* source, size_t size_bytes) {
    const iovec local{const_cast<void*>(source), size_bytes};
    const iovec remote = remote_span(address, size_bytes);
    const LimitedAccess limited;
    return process_vm_writev(tid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size_bytes);
}

size_t read_memory_prefix(pid_t tid, uint64_t address, void* destination, size_t size_bytes) {
    size_t done = 0;
    while (done < size_bytes) {
        const size_t to_page_end = kPage - (address + done) % kPage;
        const size_t piece = std::min(size_bytes - done, to_page_end);
        if (!read_memory(tid, address + done, static_cast<char*>(destination) + done, piece)) break;
        done += piece;
    }
    return done;
}

}  // namespace kmes::conformance::tracing
