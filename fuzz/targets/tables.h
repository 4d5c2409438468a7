// SPDX-License-Identifier: MIT
//
// The state that libkmes keeps for a program between its calls (tables and leases), for any order
// of calls and closes. A producer in a process of its own serves two CPUs (tables_producer.h).
//
// The input is the program's actions, one byte or more each. Actions are attach, map, unmap, emit,
// readers, close, dup, dup2 over any number, files of its own, and closing a range of numbers.
// Others are a resize or a restart of the producer, and a fork whose child continues and exits.
//
// After each action the descriptors are compared with a model of the program's own, by device and
// inode. libkmes never closes, replaces or returns a descriptor of the program. Every other open
// descriptor is the connection of a lease. A successful attach adds at most one, every other call
// none. A refused call changes nothing. A buffer with an open descriptor can be mapped, and its
// mapping is a ring. After the program has closed and unmapped everything, no descriptor, table
// entry or mapping of a buffer is left.
#ifndef KMES_FUZZ_TARGETS_TABLES_H_
#define KMES_FUZZ_TARGETS_TABLES_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_tables(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_TABLES_H_
