// SPDX-License-Identifier: MIT
//
// See empty.h.
#include "fuzz/targets/empty.h"

int kmes_fuzz_empty(const std::uint8_t*, std::size_t) {
    return 0;
}
