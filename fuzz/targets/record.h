// SPDX-License-Identifier: MIT
//
// The reader of record files (record/reader.h) against a second one, written from
// docs/record-format.md: both give the same blocks up to the same damage, in one line, and after
// the damage only whole blocks of the file. Nothing is read outside of the file.
//
// The input: the bytes of a file, or choices of a file with right checksums and of edits to it.
#ifndef KMES_FUZZ_TARGETS_RECORD_H_
#define KMES_FUZZ_TARGETS_RECORD_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_record(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_RECORD_H_
