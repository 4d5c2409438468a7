// SPDX-License-Identifier: MIT
//
// Which of many failed cases says most plainly what is wrong. One mistake fails many cases, most of
// them by accident and in an intricate scenario. Knows no case and no way to print.
#ifndef KMES_CONFORMANCE_MAIN_TELLING_H_
#define KMES_CONFORMANCE_MAIN_TELLING_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kmes::conformance {

// What is known of a failed case.
struct Failed {
    std::string case_clause;     // what the case tests
    std::string finding_clause;  // what it found broken
    // Its place among the cases, which begin with the simplest scenarios.
    std::uint64_t place = 0;
    std::string cause = {};   // Symptom::cause
    bool is_assumed = false;  // finding_clause is the case's, because the fault may have any reason
    bool is_explored = false;  // the case searches interleavings, so it says little about a clause
};

// How many cases of each clause passed, without those that search interleavings.
using PassedCases = std::map<std::string, std::size_t>;

// Failures that have one reason, as far as one can see: the same clause, or the same cause where
// the clause is assumed. The best evidence is the first of them.
struct FailureGroup {
    // Of its best evidence; or of the symptom, where cases of many clauses show it.
    std::string clause;
    std::vector<std::size_t> members;  // indexes, the most telling first
};

// Beginning with the group that explains most.
std::vector<FailureGroup> group_failures(const std::vector<Failed>& found,
                                         const PassedCases& passed);

// The same for failures that have one reason.
std::string group_key(const Failed& failed);

// Whether `one` shows what it found better than `other`, which found the same clause broken: it was
// made for it, or for a part of it, if the scenario matters; and in a simpler scenario.
bool is_better_evidence(const Failed& one, const Failed& other);

// The indexes of all of them, the most telling first: the best of each group, then the next best of
// each, and so on.
std::vector<std::size_t> rank_failures(const std::vector<FailureGroup>& groups);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_TELLING_H_
