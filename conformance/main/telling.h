// SPDX-License-Identifier: MIT
//
// Which of many failed cases says most plainly what is wrong. One mistake fails many cases, most of
// them by accident and after thousands of steps; what was made for it shows it in a few. Knows no
// case and no way to print.
#ifndef KMES_CONFORMANCE_MAIN_TELLING_H_
#define KMES_CONFORMANCE_MAIN_TELLING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kmes::conformance {

// What is known of a failed case.
struct Failed {
    std::string case_clause;     // what the case tests
    std::string finding_clause;  // what it found broken
    std::uint64_t steps = 0;     // of its timeline
};

// Whether `one` shows what it found better than `other`, which found the same clause broken: it was
// made for it, or for a part of it; and in fewer steps.
bool is_better_evidence(const Failed& one, const Failed& other);

// The indexes of all of them, the most telling first: the best of each clause that was found
// broken, beginning with the clause that most of the cases that were made for theirs found; then
// the next best of each, and so on.
std::vector<std::size_t> rank_failures(const std::vector<Failed>& failures);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_TELLING_H_
