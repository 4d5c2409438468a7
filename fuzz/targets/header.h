// SPDX-License-Identifier: MIT
//
// Compares kmes/event.h with a second implementation, written from the event model. It covers the
// check and the view of a header of any bytes (E7), and the header built for any input. It also
// covers UTF-8 (RFC 3629), and the metadata page of a fresh buffer (5.1.6).
//
// The input: 29 bytes of a header, 8 of `available`. For the built header: 2 of type_len, 4 of
// payload_len, 4 of header extra, 1 of origin, 8 of timestamp, 8 of sequence, 2 of cpu. Then the
// setup of a buffer; the rest is a text, and the bytes after the header in memory.
#ifndef KMES_FUZZ_TARGETS_HEADER_H_
#define KMES_FUZZ_TARGETS_HEADER_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_header(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_HEADER_H_
