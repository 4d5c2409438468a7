// SPDX-License-Identifier: MIT
//
// The rules for every list of cases. Knows no case.
#include <algorithm>
#include <set>

#include "conformance/model/case.h"
#include "conformance/model/layout.h"

namespace kmes::conformance {
namespace {

// `<clause>/<slug>`: letters, digits, dots and hyphens; then lower-case words with hyphens.
bool is_well_formed(std::string_view id) {
    const std::size_t slash = id.find('/');
    if (slash == std::string_view::npos || slash == 0 || slash + 1 == id.size()) return false;
    const auto is_lower = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    const auto in_slug = [&](char c) { return is_lower(c) || c == '-'; };
    const auto in_clause = [&](char c) {
        return is_lower(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '.';
    };
    const std::string_view clause = id.substr(0, slash);
    const std::string_view slug = id.substr(slash + 1);
    return std::all_of(clause.begin(), clause.end(), in_clause) &&
           std::all_of(slug.begin(), slug.end(), in_slug);
}

}  // namespace

const Case* find_case(const std::vector<Case>& cases, std::string_view id) {
    if (id.empty()) return nullptr;
    const auto found = std::find_if(cases.begin(), cases.end(), [id](const Case& each) {
        return each.id == id || each.former_id == id;
    });
    return found == cases.end() ? nullptr : &*found;
}

std::string check_cases(const std::vector<Case>& cases) {
    if (cases.empty()) return "it is empty";
    std::set<std::string_view> seen;
    for (const Case& each : cases) {
        const std::string id(each.id);
        if (!is_well_formed(each.id)) return "\"" + id + "\" is no id; expected <clause>/<slug>";
        if (!seen.insert(each.id).second) return id + " is in it twice";
        if (!each.former_id.empty() && !seen.insert(each.former_id).second)
            return std::string(each.former_id) + ", the former id of " + id + ", is in it twice";
        if (each.title.empty()) return id + " has no title";
        if (each.description.empty()) return id + " has no description";
        if (each.expectation.empty()) return id + " has no expectation";
        if (!each.run) return id + " has no function";
    }
    return {};
}

bool is_demanded(const Case& the_case, const StageSettings& settings) {
    switch (the_case.demand) {
        case Demand::always:
            return true;
        case Demand::explored:
            return settings.explore.on;
        case Demand::shared:
            return settings.shared;
        case Demand::soak:
            return settings.soak_seconds > 0;
        case Demand::stream:
            return !settings.stream.empty();
        case Demand::as_published:
            return settings.as_published;
        case Demand::holes:
            return layout().attach == AttachArguments::one_cpu_or_count;
    }
    return true;
}

}  // namespace kmes::conformance
