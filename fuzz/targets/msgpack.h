// SPDX-License-Identifier: MIT
//
// MessagePack as text (kmesctl/msgpack_text.h) against a second implementation, nlohmann-json: what
// it accepts is printed as the same value; whatever the bytes are, the text is bounded, nothing is
// read outside of them, and every form of the printer ends.
//
// The input: the bytes of a payload.
#ifndef KMES_FUZZ_TARGETS_MSGPACK_H_
#define KMES_FUZZ_TARGETS_MSGPACK_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_msgpack(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_MSGPACK_H_
