// SPDX-License-Identifier: MIT
//
// See telling.h.
#include "conformance/main/telling.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "conformance/main/attribution.h"

namespace kmes::conformance {

namespace {

// The least tells most. A fault that looks the same in every case needs no case that was made for
// it.
std::tuple<int, std::uint64_t> rank_of(const Failed& failed) {
    return {failed.cause.empty() ? distance(failed) : 0, failed.place};
}

// The clause of a symptom by itself.
std::string_view clause_of_symptom(std::string_view cause) {
    constexpr std::pair<std::string_view, std::string_view> kClauses[] = {
        {"a refusal", "contract-records"}, {"a record with another", "event-model"},
        {"exit status", "contract-4"},     {"signal", "contract"},
        {"a malformed buffer", "5.1.6.1"},
    };
    for (const auto& [symptom, clause] : kClauses) {
        if (cause.starts_with(symptom)) return clause;
    }
    return "contract-2";
}

// A symptom in the cases of this many clauses belongs to none of them.
constexpr std::size_t kManyClauses = 8;

// Where the clause is that of the case: the clauses of a group, with the number of their cases, and
// whether no case that was made for them passed.
struct CaseClauses {
    CaseClauses(const std::vector<std::size_t>& members, const std::vector<Failed>& failures,
                const std::set<std::string>& kept_clauses) {
        for (const std::size_t member : members) {
            const std::string& clause = failures[member].case_clause;
            ++(kept_clauses.contains(clause) ? kept : broken)[clause];
        }
        is_of_none =
            broken.size() >= kManyClauses || (broken.empty() && kept.size() >= kManyClauses);
        // A consumer that breaks most clauses breaks something that all cases need.
        if (is_of_none) broken.clear();
    }
    // The least says most: of a clause that is broken in all its cases, of which there are many.
    std::pair<bool, std::int64_t> rank_of(const Failed& failed) const {
        const auto found = broken.find(failed.case_clause);
        if (found == broken.end()) return {true, 0};
        return {false, -static_cast<std::int64_t>(found->second)};
    }

    std::map<std::string_view, std::size_t> kept;
    std::map<std::string_view, std::size_t> broken;
    bool is_of_none = false;
};

std::string clause_of(const Failed& best, const CaseClauses& clauses) {
    if (!best.is_assumed || !clauses.is_of_none) return best.finding_clause;
    return std::string(clause_of_symptom(best.cause));
}

// How much a failure says for its group: it names the clause itself, and a case that was made for
// the clause did; or the clause is no more than that of the case.
std::uint64_t weight_of(const Failed& failed) {
    constexpr std::uint64_t kMadeForIt = 4;
    constexpr std::uint64_t kNamed = 2;
    constexpr std::uint64_t kAssumed = 1;
    if (failed.is_assumed) return kAssumed;
    return std::get<0>(rank_of(failed)) == 0 ? kMadeForIt : kNamed;
}

}  // namespace

std::string group_key(const Failed& failed) {
    return failed.is_assumed ? "cause " + failed.cause : "clause " + failed.finding_clause;
}

bool is_better_evidence(const Failed& one, const Failed& other) {
    return rank_of(one) < rank_of(other);
}

std::vector<FailureGroup> group_failures(const std::vector<Failed>& found,
                                         const std::set<std::string>& kept_clauses) {
    std::vector<Failed> failures = found;
    attribute(failures, kept_clauses);
    struct Weighed {
        FailureGroup group;
        std::uint64_t weight = 0;
    };
    std::map<std::string, Weighed> by_reason;
    for (std::size_t i = 0; i < failures.size(); ++i) {
        Weighed& weighed = by_reason[group_key(failures[i])];
        weighed.group.members.push_back(i);
        weighed.weight += weight_of(failures[i]);
    }
    std::vector<Weighed> groups;
    for (auto& [reason, weighed] : by_reason) {
        // Of those that tell as much, the one that was seen first. (std::stable_sort of libstdc++
        // 12 uses what clang calls deprecated.)
        const CaseClauses clauses(weighed.group.members, failures, kept_clauses);
        const auto rank = [&](std::size_t index) {
            const Failed& failed = failures[index];
            const auto of_its_clause = clauses.rank_of(failed);
            return std::tuple(failed.is_assumed ? of_its_clause : std::pair<bool, std::int64_t>(),
                              rank_of(failed), index);
        };
        std::sort(weighed.group.members.begin(), weighed.group.members.end(),
                  [&](std::size_t one, std::size_t other) { return rank(one) < rank(other); });
        weighed.group.clause = clause_of(failures[weighed.group.members.front()], clauses);
        groups.push_back(std::move(weighed));
    }
    std::sort(groups.begin(), groups.end(), [&](const Weighed& one, const Weighed& other) {
        const std::size_t first = one.group.members.front();
        const std::size_t second = other.group.members.front();
        // Of groups that explain as much, the one with the simplest scenario.
        return std::tuple(other.weight, failures[first].place, first) <
               std::tuple(one.weight, failures[second].place, second);
    });
    std::vector<FailureGroup> sorted;
    for (Weighed& each : groups) sorted.push_back(std::move(each.group));
    return sorted;
}

std::vector<std::size_t> rank_failures(const std::vector<FailureGroup>& groups) {
    std::vector<std::size_t> order;
    for (std::size_t rank = 0;; ++rank) {
        const std::size_t before = order.size();
        for (const FailureGroup& group : groups)
            if (rank < group.members.size()) order.push_back(group.members[rank]);
        if (order.size() == before) return order;
    }
}

}  // namespace kmes::conformance
