// SPDX-License-Identifier: MIT
//
// The reference reader (kmes/reader.h) on mappings whose bytes are all hostile and change between
// its accesses. The input determines the results of attaches, the content of mappings, the changes
// before accesses, the calls, and the results of sleeps.
//
// For any input, these must hold:
// - Each access is inside a mapping of the reader, and the only store is to need_wake.
// - Each call ends soon after the last change, and the read position never moves back.
// - A delivered event is in the caller's buffer, with valid lengths (E7) and a rising sequence
//   number (E21).
// - An error is one that the call's comment names.
#ifndef KMES_FUZZ_TARGETS_READER_H_
#define KMES_FUZZ_TARGETS_READER_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_reader(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_READER_H_
