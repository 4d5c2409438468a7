// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/fuzz/input.h"

#include <algorithm>

namespace kmes::fuzz {

std::uint64_t Bytes::word(unsigned bytes) {
    std::uint64_t word = 0;
    for (unsigned i = 0; i < bytes; i++) word |= static_cast<std::uint64_t>(byte()) << (8 * i);
    return word;
}

std::uint64_t Bytes::number() {
    const std::uint8_t kind = byte();
    if (kind < 100) return kind % 8;
    if (kind < 130) return word(1);
    if (kind < 150) return word(2);
    if (kind < 170) return word(4);
    if (kind < 185) return word(8);
    // 2^n - 1, 2^n, 2^n + 1.
    return (1ull << (byte() & 63)) + kind % 3 - 1;
}

Input random_input(props::Random& random) {
    Input input(random.between(16, kMostBytes / 2));
    for (std::uint8_t& byte : input) byte = static_cast<std::uint8_t>(random.next());
    return input;
}

Input mutate(Input input, const Input& other, props::Random& random) {
    if (input.empty()) return random_input(random);
    for (std::uint64_t rounds = random.between(1, 4); rounds > 0 && !input.empty(); rounds--) {
        const std::size_t at = random.below(input.size());
        const auto byte = static_cast<std::uint8_t>(random.next());
        const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
        switch (random.below(7)) {
            case 0:
                *place = byte;
                break;
            case 1:
                *place = static_cast<std::uint8_t>(*place + random.between(0, 16) - 8);
                break;
            case 2:
                *place ^= static_cast<std::uint8_t>(1u << random.below(8));
                break;
            case 3:
                input.insert(place, random.between(1, 8), byte);
                break;
            case 4:
                input.erase(place, place + static_cast<std::ptrdiff_t>(std::min<std::size_t>(
                                               input.size() - at, random.between(1, 8))));
                break;
            case 5:  // replace the rest by that of another input
                if (at < other.size()) {
                    input.resize(at);
                    input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(at),
                                 other.end());
                }
                break;
            default:  // append another input
                input.insert(input.end(), other.begin(), other.end());
        }
    }
    if (input.size() > kMostBytes) input.resize(kMostBytes);
    return input;
}

}  // namespace kmes::fuzz
