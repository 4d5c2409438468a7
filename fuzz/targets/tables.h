// SPDX-License-Identifier: MIT
//
// What libkmes keeps for a program between its calls (tables and leases), under any order of calls
// and closes. A producer in a process of its own serves two CPUs (tables_producer.h).
//
// The input is what the program does, one byte or more for each action: attach, map, unmap, emit,
// readers, close, dup, dup2 over any number, files of its own, closing a range of numbers, a resize
// or a restart of the producer, a fork whose child goes on and exits.
//
// After each action the descriptors are compared with a model of the program's own, by device and
// inode. libkmes never closes nor replaces a descriptor of the program and never hands one out.
// Every other open descriptor is the connection of a lease, of which a successful attach adds at
// most one and every other call none. A refused call changes nothing. A buffer whose descriptor is
// open can be mapped, and its mapping is a ring. When the program has closed and unmapped
// everything, no descriptor, no entry of the table and no mapping of a buffer is left.
#ifndef KMES_FUZZ_TARGETS_TABLES_H_
#define KMES_FUZZ_TARGETS_TABLES_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_tables(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_TABLES_H_
