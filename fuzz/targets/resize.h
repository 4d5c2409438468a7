// SPDX-License-Identifier: MIT
//
// Chains of resizes in pieces, with emissions, nudges and readers in between. Each two or three
// bytes are one operation of a script (resize.cc has the table), which is then played.
#ifndef KMES_FUZZ_TARGETS_RESIZE_H_
#define KMES_FUZZ_TARGETS_RESIZE_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_resize(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_RESIZE_H_
