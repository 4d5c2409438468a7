// SPDX-License-Identifier: MIT
//
// The target that does nothing: it shows the best speed of an engine, for `tools/kmes fuzz` to
// compare with.
#ifndef KMES_FUZZ_TARGETS_EMPTY_H_
#define KMES_FUZZ_TARGETS_EMPTY_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_empty(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_EMPTY_H_
