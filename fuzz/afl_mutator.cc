// SPDX-License-Identifier: MIT
//
// The mutator of scripts for AFL++ (AFL_CUSTOM_MUTATOR_LIBRARY, its custom mutator interface).
// Built without instrumentation, because it runs inside of afl-fuzz.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fuzz/script_mutator.h"
#include "props/script/random.h"

namespace {

struct Mutator {
    kmes::props::Random random;
    std::vector<std::uint8_t> out;
};

}  // namespace

extern "C" {

void* afl_custom_init(void* /*afl*/, unsigned seed) {
    return new Mutator{kmes::props::Random(seed), {}};
}

std::size_t afl_custom_fuzz(void* data, std::uint8_t* buffer, std::size_t size, std::uint8_t** out,
                            std::uint8_t* other, std::size_t other_size, std::size_t most_bytes) {
    auto* mutator = static_cast<Mutator*>(data);
    mutator->out.assign(std::max(most_bytes, size), 0);
    std::copy_n(buffer, size, mutator->out.begin());
    *out = mutator->out.data();
    const std::uint64_t seed = mutator->random.next();
    if (other != nullptr && seed % 4 == 0) {
        const std::size_t crossed = kmes::fuzz::cross_scripts(
            buffer, size, other, other_size, mutator->out.data(), most_bytes, seed / 4);
        if (crossed != 0) return crossed;
        std::copy_n(buffer, size, mutator->out.begin());
    }
    return kmes::fuzz::mutate_script(mutator->out.data(), size, most_bytes, seed / 4);
}

void afl_custom_deinit(void* data) {
    delete static_cast<Mutator*>(data);
}

}  // extern "C"
