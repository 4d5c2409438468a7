// SPDX-License-Identifier: MIT
//
// Reports a failure of a fuzz target: one line, then abort(), which every engine and the replay
// take for a crash. Knows no target.
#ifndef KMES_FUZZ_FAIL_H_
#define KMES_FUZZ_FAIL_H_

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace kmes::fuzz {

[[noreturn]] inline void fail(std::string_view message) {
    std::fprintf(stderr, "kmes fuzz: %.*s\n", static_cast<int>(message.size()), message.data());
    std::fflush(stderr);
    std::abort();
}

inline void expect(bool holds, std::string_view what_should_be) {
    if (!holds) fail(what_should_be);
}

// As expect, for two numbers, which are printed.
template <typename A, typename B>
void expect_equal(const A& found, const B& right, std::string_view what) {
    if (found == right) return;
    fail(std::string(what) + " is " + std::to_string(found) + ", should be " +
         std::to_string(right));
}

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_FAIL_H_
