// SPDX-License-Identifier: MIT
//
// The functions that every engine calls (libFuzzer, AFL++ by its driver, OSS-Fuzz), for the target
// that KMES_FUZZ_TARGET names. If KMES_FUZZ_SCRIPTS says that the input is a script, the mutator of
// scripts is included. Knows no engine.
#include <cstddef>
#include <cstdint>

// clang-format off
#define KMES_FUZZ_TEXT(text) #text
#define KMES_FUZZ_EXPANDED_TEXT(text) KMES_FUZZ_TEXT(text)
#include KMES_FUZZ_EXPANDED_TEXT(fuzz/targets/KMES_FUZZ_TARGET.h)
// clang-format on

#define KMES_FUZZ_JOIN(a, b) a##b
#define KMES_FUZZ_EXPANDED_JOIN(a, b) KMES_FUZZ_JOIN(a, b)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return KMES_FUZZ_EXPANDED_JOIN(kmes_fuzz_, KMES_FUZZ_TARGET)(data, size);
}

#ifdef KMES_FUZZ_SCRIPTS
#include "fuzz/script_mutator.h"

extern "C" {

std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                    unsigned seed) {
    // The parser also gets bytes that are no script.
    if (seed % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
    return kmes::fuzz::mutate_script(data, size, max_size, seed);
}

std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* one, std::size_t one_size,
                                      const std::uint8_t* other, std::size_t other_size,
                                      std::uint8_t* out, std::size_t max_size, unsigned seed) {
    return kmes::fuzz::cross_scripts(one, one_size, other, other_size, out, max_size, seed);
}

}  // extern "C"
#endif
