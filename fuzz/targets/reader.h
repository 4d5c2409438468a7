// SPDX-License-Identifier: MIT
//
// The reference reader (kmes/reader.h) over mappings whose every byte is hostile and changes
// between its accesses. The bytes say what each attach answers, what stands in the mapping, what is
// changed before which access, which calls are made, and what a sleep answers.
//
// Whatever they say: each access lies in a mapping that the reader holds; the only store is to
// need_wake; each call ends soon after the last change; the read position never moves back; what is
// delivered lies in the caller's buffer, with lengths that hold (E7) and rising sequence numbers
// (E21); an error is one that the call's comment names.
#ifndef KMES_FUZZ_TARGETS_READER_H_
#define KMES_FUZZ_TARGETS_READER_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_reader(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_READER_H_
