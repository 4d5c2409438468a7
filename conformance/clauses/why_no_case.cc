// SPDX-License-Identifier: MIT
//
// Why a documented clause has no case of its own.
#include <algorithm>
#include <iterator>
#include <string>

#include "conformance/clauses/clauses.h"

namespace kmes::conformance {

namespace {

constexpr std::string_view kOnlyOfTheProducer[] = {"E5", "E13", "E16", "E18", "E22", "E23"};

// Whether the clause of the table is a part of this one: "E7 torn" of "E7".
bool is_part_of(std::string_view reference, std::string_view clause) {
    if (clause == "contract-records") return reference.starts_with("contract record");
    return reference == clause ||
           (reference.starts_with(clause) && reference[clause.size()] == ' ');
}

std::string list_text(const std::vector<std::string_view>& ids) {
    constexpr std::size_t kNamed = 4;
    std::string text;
    for (std::size_t i = 0; i < std::min(ids.size(), kNamed); ++i)
        text += (i == 0 ? "" : ", ") + std::string(ids[i]);
    if (ids.size() > kNamed)
        text += ", and " + std::to_string(ids.size() - kNamed) +
                " more (the command clauses prints them)";
    return text;
}

}  // namespace

std::string why_no_case(std::string_view clause) {
    const std::string name(clause);
    if (std::ranges::find(kOnlyOfTheProducer, clause) != std::end(kOnlyOfTheProducer))
        return name + " concerns only the producer, so no case can show it";
    if (clause == "E25")
        return "E25 has no case, because the producer of the suite does not end before its "
               "consumers";
    if (clause == "contract-5")
        return name +
               " has no case: it allows several ways to wait, and a mistake in one breaks "
               "another clause";
    std::vector<std::string_view> ids;
    std::string reason;
    for (const Clause& each : all_clauses()) {
        if (clause.empty() || !is_part_of(each.reference, clause)) continue;
        if (!each.reason.empty()) reason = each.reason;
        for (const std::string_view id : each.cases) {
            if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
        }
    }
    if (!ids.empty()) return name + " has no case of its own; these show it: " + list_text(ids);
    return reason.empty() ? "" : name + " has no case: " + reason;
}

}  // namespace kmes::conformance
