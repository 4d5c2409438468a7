// SPDX-License-Identifier: MIT
//
// Compares the reader of record files (record/reader.h) with a second one, written from
// docs/record-format.md. Both must return the same blocks up to the same damage, which is one line,
// and after the damage only whole blocks of the file. Nothing may be read outside of the file.
//
// The input: the bytes of a file, or choices for a file with correct checksums and for edits of it.
#ifndef KMES_FUZZ_TARGETS_RECORD_H_
#define KMES_FUZZ_TARGETS_RECORD_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_record(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_RECORD_H_
