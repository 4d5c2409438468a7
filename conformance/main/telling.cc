// SPDX-License-Identifier: MIT
//
// See telling.h.
#include "conformance/main/telling.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace kmes::conformance {

namespace {

// "5.1.8.1" has "5.1.8.1-5" in it, "E1" has not "E10".
bool is_part_of(std::string_view part, std::string_view whole) {
    return part.size() > whole.size() && part.starts_with(whole) &&
           (part[whole.size()] == '-' || part[whole.size()] == '.');
}

// 0: the case was made for what it found; 1: for a part of it, or for more; 2: for something else.
int distance(const Failed& failed) {
    if (failed.case_clause == failed.finding_clause) return 0;
    const bool is_near = is_part_of(failed.case_clause, failed.finding_clause) ||
                         is_part_of(failed.finding_clause, failed.case_clause);
    return is_near ? 1 : 2;
}

// The least tells most.
std::tuple<int, std::uint64_t> rank_of(const Failed& failed) {
    return {distance(failed), failed.steps};
}

}  // namespace

bool is_better_evidence(const Failed& one, const Failed& other) {
    return rank_of(one) < rank_of(other);
}

std::vector<std::size_t> rank_failures(const std::vector<Failed>& failures) {
    struct Group {
        std::vector<std::size_t> members;
        std::size_t made_for_it = 0;
    };
    std::map<std::string_view, Group> by_clause;
    for (std::size_t i = 0; i < failures.size(); ++i) {
        Group& group = by_clause[failures[i].finding_clause];
        group.members.push_back(i);
        if (distance(failures[i]) == 0) ++group.made_for_it;
    }
    std::vector<Group> groups;
    for (auto& [clause, group] : by_clause) {
        // Of those that tell as much, the one that was seen first. (std::stable_sort of libstdc++
        // 12 uses what clang calls deprecated.)
        std::sort(group.members.begin(), group.members.end(),
                  [&](std::size_t one, std::size_t other) {
                      return std::tuple(rank_of(failures[one]), one) <
                             std::tuple(rank_of(failures[other]), other);
                  });
        groups.push_back(std::move(group));
    }
    std::sort(groups.begin(), groups.end(), [](const Group& one, const Group& other) {
        // Of the clauses that are as well shown, the one that was seen first.
        return std::tuple(other.made_for_it, other.members.size(), one.members.front()) <
               std::tuple(one.made_for_it, one.members.size(), other.members.front());
    });
    std::vector<std::size_t> order;
    for (std::size_t rank = 0; order.size() < failures.size(); ++rank) {
        for (const Group& group : groups)
            if (rank < group.members.size()) order.push_back(group.members[rank]);
    }
    return order;
}

}  // namespace kmes::conformance
