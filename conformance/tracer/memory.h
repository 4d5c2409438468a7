// SPDX-License-Identifier: MIT
//
// Reading and writing another process's memory without faulting on bad addresses. Knows no threads
// and no ptrace stops.

#ifndef CONFORMANCE_TRACER_MEMORY_H_
#define CONFORMANCE_TRACER_MEMORY_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace kmes::conformance::tracing {

// Copies exactly `size_bytes`; false if any of it cannot be read (written). `tid` may be any live
// thread of the process: a leader that has ended has no memory any more.
bool read_memory(pid_t tid, uint64_t address, void* destination, size_t size_bytes);
bool write_memory(pid_t tid, uint64_t address, const void* source, size_t size_bytes);

// Copies the bytes that can be read from `address` on, at most `size_bytes`, and returns their
// number. For instructions at the end of a mapping.
size_t read_memory_prefix(pid_t tid, uint64_t address, void* destination, size_t size_bytes);

template <typename T>
std::optional<T> read_value(pid_t tid, uint64_t address) {
    T value{};
    if (!read_memory(tid, address, &value, sizeof value)) return std::nullopt;
    return value;
}

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_MEMORY_H_
