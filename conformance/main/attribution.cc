// SPDX-License-Identifier: MIT
//
// See attribution.h.
#include "conformance/main/attribution.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "conformance/main/symptom.h"

namespace kmes::conformance {
namespace {

// Whether `part` is a part of `whole`: "5.1.8.1-5" is of "5.1.8.1", but "E10" is not of "E1".
bool is_part_of(std::string_view part, std::string_view whole) {
    return part.size() > whole.size() && part.starts_with(whole) &&
           (part[whole.size()] == '-' || part[whole.size()] == '.');
}

// The clause that more than half of the cases were made for, without cases that search
// interleavings: these were made for no scenario. Empty: none.
std::string clause_of_most(const std::vector<const FailedCase*>& group) {
    std::size_t made_for_one = 0;
    std::map<std::string_view, std::size_t> counts;
    for (const FailedCase* each : group) {
        if (each->is_explored) continue;
        ++made_for_one;
        ++counts[each->case_clause];
    }
    for (const auto& [clause, count] : counts) {
        if (2 * count > made_for_one) return std::string(clause);
    }
    return "";
}

// A consumer may keep a clause in the cases made for it, and break it only in the scenarios of
// other cases. These failures then get the clause that most of those other cases were made for.
void attribute_to_scenarios(std::vector<FailedCase>& failures, const PassedCases& passed) {
    std::map<std::string, std::vector<const FailedCase*>> by_clause;
    for (const FailedCase& each : failures) {
        if (!each.is_assumed) by_clause[each.finding_clause].push_back(&each);
    }
    std::map<std::string, std::string> moved;
    for (const auto& [clause, group] : by_clause) {
        const bool is_far =
            std::ranges::all_of(group, [](const FailedCase* each) { return distance(*each) > 1; });
        if (passed.contains(clause) && is_far) moved[clause] = clause_of_most(group);
    }
    for (FailedCase& each : failures) {
        const auto found = each.is_assumed ? moved.end() : moved.find(each.finding_clause);
        if (found != moved.end() && !found->second.empty()) each.finding_clause = found->second;
    }
}

using CauseOfClause = std::pair<std::string, std::string>;

// A finding can name a clause that the consumer keeps in all cases made for it. If cases of other
// clauses fail with the same cause, the finding gets their clause.
void attribute_to_cases(std::vector<FailedCase>& failures, const PassedCases& passed) {
    std::set<std::string> assumed;
    std::set<CauseOfClause> seen_near;
    for (const FailedCase& each : failures) {
        if (each.is_assumed) assumed.insert(each.cause);
        if (distance(each) <= 1) seen_near.emplace(each.cause, each.finding_clause);
    }
    for (FailedCase& each : failures) {
        const bool is_kept = passed.contains(each.finding_clause) &&
                             !seen_near.contains({each.cause, each.finding_clause});
        if (each.is_assumed || each.cause.empty() || !assumed.contains(each.cause) || !is_kept)
            continue;
        each.is_assumed = true;
        each.finding_clause = each.case_clause;
    }
}

// A fault that names its clause in cases of other clauses gets that clause in all cases.
void attribute_to_names(std::vector<FailedCase>& failures) {
    std::set<CauseOfClause> named;
    for (const FailedCase& each : failures) {
        if (!each.is_assumed && !each.cause.empty()) named.emplace(each.cause, each.finding_clause);
    }
    for (FailedCase& each : failures) {
        if (named.contains({each.cause, each.finding_clause})) each.is_assumed = false;
    }
}

bool names_no_more_than_the_contract(const FailedCase& failed) {
    return failed.finding_clause.starts_with("contract");
}

// Exits with the same status at a wrong time have one reason. A case that has seen the reason gives
// its clause to the others.
void attribute_to_causes(std::vector<FailedCase>& failures) {
    std::map<std::string, std::string> clauses;
    for (const FailedCase& each : failures) {
        if (each.cause.starts_with(kExitStatusPrefix) && !each.is_assumed &&
            !names_no_more_than_the_contract(each))
            clauses.emplace(each.cause, each.finding_clause);
    }
    for (FailedCase& each : failures) {
        const auto found = clauses.find(each.cause);
        if (found == clauses.end() || each.is_assumed || !names_no_more_than_the_contract(each))
            continue;
        each.finding_clause = found->second;
    }
}

// A trace has shown the reason of some failures. It is the reason of all failures with their
// symptoms, too.
void attribute_to_roots(std::vector<FailedCase>& failures) {
    std::map<std::string, std::string> roots;
    for (const FailedCase& each : failures) {
        if (!each.root.empty() && !each.cause.empty()) roots.emplace(each.cause, each.root);
    }
    for (FailedCase& each : failures) {
        const auto found = roots.find(each.cause);
        const std::string& root = found != roots.end() ? found->second : each.root;
        if (root.empty()) continue;
        each.finding_clause = clause_of_root(root);
        each.is_assumed = false;
    }
}

// The failures that name one clause, and how many of them are of the cases of each clause.
struct NamedClause {
    std::vector<FailedCase*> failures;
    std::map<std::string, std::size_t> of_cases;
};

// Where an event is passed over, or slept on, follows from the event, and not from the mistake.
// If most cases of the named clause pass, and all cases of another clause fail with this symptom,
// the other clause is the broken one.
void attribute_to_the_most_broken(std::vector<FailedCase>& failures, const PassedCases& passed) {
    constexpr std::size_t kLeastCases = 3;
    std::map<std::string, NamedClause> named;
    for (FailedCase& each : failures) {
        if (each.is_explored || each.cause.empty() || is_same_everywhere(each.cause)) continue;
        NamedClause& clause = named[each.finding_clause];
        clause.failures.push_back(&each);
        ++clause.of_cases[each.case_clause];
    }
    for (auto& [clause, group] : named) {
        const auto own = passed.find(clause);
        if (own == passed.end() || own->second <= group.of_cases[clause]) continue;
        const auto most = std::ranges::max_element(
            group.of_cases, [](const auto& a, const auto& b) { return a.second < b.second; });
        if (most->second < kLeastCases || passed.contains(most->first)) continue;
        std::set<std::string> causes;
        for (FailedCase* each : group.failures) {
            causes.insert(each->cause);
            each->finding_clause = most->first;
        }
        for (FailedCase& each : failures) {
            if (each.finding_clause == most->first && causes.contains(each.cause))
                each.is_assumed = false;
        }
    }
}

}  // namespace

int distance(const FailedCase& failed) {
    if (failed.case_clause == failed.finding_clause) return 0;
    const bool is_near = is_part_of(failed.case_clause, failed.finding_clause) ||
                         is_part_of(failed.finding_clause, failed.case_clause);
    return is_near ? 1 : 2;
}

void attribute(std::vector<FailedCase>& failures, const PassedCases& passed) {
    attribute_to_cases(failures, passed);
    attribute_to_names(failures);
    attribute_to_causes(failures);
    attribute_to_the_most_broken(failures, passed);
    attribute_to_scenarios(failures, passed);
    attribute_to_roots(failures);
}

}  // namespace kmes::conformance
