// SPDX-License-Identifier: MIT
//
// Decides which of many failed cases shows most clearly what is wrong. One mistake fails many
// cases, most of them indirectly and in a complicated scenario. Knows no case and no way to print.
#ifndef KMES_CONFORMANCE_MAIN_FAILURE_GROUPS_H_
#define KMES_CONFORMANCE_MAIN_FAILURE_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kmes::conformance {

// The known facts about a failed case.
struct FailedCase {
    std::string case_clause;     // what the case tests
    std::string finding_clause;  // the clause of the finding
    // Its index among the cases. The simplest scenarios come first.
    std::uint64_t place = 0;
    std::string cause = {};   // Symptom::cause
    bool is_assumed = false;  // finding_clause is the case's, because the fault may have any reason
    bool is_explored = false;  // the case searches interleavings, so it says little about a clause
    std::uint64_t steps = 0;   // of the run that failed; 0: not known
    std::string root = {};     // what its trace shows as the reason (root_of); empty: nothing
    std::vector<std::string> also = {};  // the clauses of its other findings
};

// The number of passed cases of each clause, without cases that search interleavings.
using PassedCases = std::map<std::string, std::size_t>;

// Failures that seem to have one reason: the same clause or, if the clause is assumed, the same
// cause. The first of them is the best evidence.
struct FailureGroup {
    // The clause of its best evidence; or of the symptom, if cases of many clauses show it.
    std::string clause;
    std::vector<std::size_t> members;  // indexes, the best evidence first
};

// Returns the groups, the one that explains most first.
std::vector<FailureGroup> group_failures(const std::vector<FailedCase>& found,
                                         const PassedCases& passed);

// A key that is equal for failures with one reason.
std::string group_key(const FailedCase& failed);

// Whether `one` is better evidence than `other` for a broken clause that both found. It is if its
// case was made for that clause or for a part of it (if the scenario matters), and then if its
// scenario is simpler.
bool is_better_evidence(const FailedCase& one, const FailedCase& other);

// Returns all indexes, the best evidence first: the best of each group, then the second of each
// group, and so on.
std::vector<std::size_t> rank_failures(const std::vector<FailureGroup>& groups);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_FAILURE_GROUPS_H_
