/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See share.h. */
#include "kmes/tests/share.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace kmes::tests {
namespace {

constexpr std::uint64_t kMostShares = 1000;
constexpr std::time_t kSecondsOfADay = 24 * 60 * 60;

}  // namespace

Share share_of_today() {
    const char* text = std::getenv("KMES_SHARE");
    if (text == nullptr) return {};
    const char* end = text + std::strlen(text);
    std::uint64_t shares = 0;
    const auto [rest, error] = std::from_chars(text, end, shares);

    if (error != std::errc() || rest != end || shares == 0 || shares > kMostShares) {
        std::fprintf(stderr, "KMES_SHARE is a number from 1 to 1000, not '%s'\n", text);
        std::exit(2);
    }
    const auto day = static_cast<std::uint64_t>(std::time(nullptr) / kSecondsOfADay);

    return {day % shares, shares};
}

}  // namespace kmes::tests
