// SPDX-License-Identifier: MIT
//
// Compares MessagePack as text (kmesctl/msgpack_text.h) with a second implementation,
// nlohmann-json: a payload that nlohmann-json accepts must be printed as the same value. For any
// bytes, the text is bounded, nothing is read outside of them, and every form of the printer ends.
//
// The input: the bytes of a payload.
#ifndef KMES_FUZZ_TARGETS_MSGPACK_H_
#define KMES_FUZZ_TARGETS_MSGPACK_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_msgpack(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_MSGPACK_H_
