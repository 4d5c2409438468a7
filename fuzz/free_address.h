// SPDX-License-Identifier: MIT
//
// Names of sockets for targets. Knows no target.
#ifndef KMES_FUZZ_FREE_ADDRESS_H_
#define KMES_FUZZ_FREE_ADDRESS_H_

#include <sys/random.h>

#include <cstdint>
#include <string>

#include "fuzz/fail.h"

namespace kmes::fuzz {

// Returns an abstract address that no other process has: "@kmes-fuzz-WHAT-NUMBER". A process number
// is not enough: each sandbox counts its own, but all share the abstract names.
inline std::string free_address(const char* what) {
    std::uint64_t number = 0;
    expect(::getrandom(&number, sizeof number, 0) == sizeof number, "no random number");
    return std::string("@kmes-fuzz-") + what + "-" + std::to_string(number);
}

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_FREE_ADDRESS_H_
