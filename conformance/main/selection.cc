// SPDX-License-Identifier: MIT
//
// Selects cases.
#include "conformance/main/selection.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <random>
#include <utility>

#include "conformance/main/nearest.h"
#include "conformance/model/case_id.h"
#include "conformance/report/text.h"

namespace kmes::conformance {

std::string_view asks_for(Demand demand) {
    switch (demand) {
        case Demand::explored:
            return "--explore quick";
        case Demand::shared:
            return "--shared";
        case Demand::soak:
            return "--soak SECONDS";
        case Demand::stream:
            return "--stream FILE";
        case Demand::as_published:
            return "--producer as-published";
        case Demand::holes:
            return "--layout D";
        case Demand::always:
            break;
    }
    return "";
}

namespace {

// `*` matches a slash too: an id is a name, not a path.
bool matches(const std::string& pattern, const Case& the_case) {
    const auto matches_id = [&pattern](std::string_view id) {
        return !id.empty() && ::fnmatch(pattern.c_str(), std::string(id).c_str(), 0) == 0;
    };
    return matches_id(the_case.id) || matches_id(the_case.former_id);
}

// " (nearest: ...)"; or, for the name of a clause, the pattern of its cases. Empty: nothing is
// near.
std::string meant_by(const std::vector<Case>& cases, const std::string& pattern) {
    if (const std::string all = pattern_of_clause(cases, pattern); !all.empty())
        return fmt::format(" ({} is a clause: '{}' matches its cases)", printable(pattern),
                           printable(all));
    const std::vector<std::string_view> nearest = nearest_ids(cases, pattern);
    return nearest.empty() ? "" : fmt::format(" (nearest: {})", list_names(nearest));
}

std::string no_match(const std::vector<Case>& cases, const std::string& pattern, Level level) {
    for (const Case& other : cases) {
        if (!matches(pattern, other)) continue;
        if (other.level <= level) {
            return fmt::format(
                "--filter \"{}\" matches only cases that need another option; add {}",
                printable(pattern), asks_for(other.demand));
        }
        return fmt::format(
            "--filter \"{}\" matches only cases above the level {}; --level {} includes them",
            printable(pattern), level_name(level), level_name(other.level));
    }
    return fmt::format("--filter \"{}\" matches no case; --list prints them all{}",
                       printable(pattern), meant_by(cases, pattern));
}

std::string leaves_out_none(const std::vector<Case>& cases, const std::string& pattern) {
    const bool is_known =
        std::ranges::any_of(cases, [&](const Case& each) { return matches(pattern, each); });
    if (is_known)
        return fmt::format("--without \"{}\" matches only cases that would not run anyway",
                           printable(pattern));
    return fmt::format("--without \"{}\" matches no case; --list prints them all{}",
                       printable(pattern), meant_by(cases, pattern));
}

// Several patterns, and which of them have matched something.
class Matcher {
  public:
    explicit Matcher(const std::vector<std::string>& patterns)
        : patterns_(patterns), used_(patterns.size(), false) {}

    bool matches(const Case& the_case) {
        bool any = false;
        for (std::size_t i = 0; i < patterns_.size(); ++i) {
            if (!conformance::matches(patterns_[i], the_case)) continue;
            used_[i] = true;
            any = true;
        }
        return any;
    }

    // The first pattern that has matched nothing; nullptr: all have matched.
    const std::string* unused() const {
        const auto found = std::find(used_.begin(), used_.end(), false);
        return found == used_.end() ? nullptr
                                    : &patterns_[static_cast<std::size_t>(found - used_.begin())];
    }

  private:
    const std::vector<std::string>& patterns_;
    std::vector<bool> used_;
};

bool asks(const StageSettings& settings, Demand demand) {
    return (demand == Demand::soak && settings.soak_seconds > 0) ||
           (demand == Demand::stream && !settings.stream.empty()) ||
           (demand == Demand::shared && settings.shared) ||
           (demand == Demand::as_published && settings.as_published);
}

// Finds an option that includes cases of which none is left: because of the level or, for an option
// with a time, because of the filters.
std::string contradiction(const std::vector<Case>& cases, const Selection& selection,
                          const StageSettings& settings, Level level) {
    for (const Demand demand :
         {Demand::shared, Demand::soak, Demand::stream, Demand::as_published}) {
        const auto is_meant = [=](const Case& each) { return each.demand == demand; };
        if (!asks(settings, demand) ||
            std::ranges::any_of(selection.cases, [&](const Case* each) { return is_meant(*each); }))
            continue;
        const Case* lowest = nullptr;
        for (const Case& each : cases) {
            if (is_meant(each) && (lowest == nullptr || each.level < lowest->level)) lowest = &each;
        }
        if (lowest == nullptr) continue;
        if (lowest->level > level)
            return fmt::format("{} adds cases of the level {}, which --level {} excludes",
                               asks_for(demand), level_name(lowest->level), level_name(level));
        if (demand == Demand::shared || demand == Demand::as_published) continue;
        return fmt::format("{} adds cases that no --filter includes; --filter \"{}\" does",
                           asks_for(demand), lowest->id);
    }
    return "";
}

}  // namespace

Selection select_cases(const std::vector<Case>& cases, const CasePatterns& patterns, Level level,
                       const StageSettings* settings) {
    Selection selection;
    Matcher only(patterns.only);
    Matcher without(patterns.without);
    for (const Case& candidate : cases) {
        if (candidate.level > level) continue;
        if (settings != nullptr && !is_demanded(candidate, *settings)) continue;
        if (!only.matches(candidate) && !patterns.only.empty()) continue;
        if (!without.matches(candidate)) selection.cases.push_back(&candidate);
    }
    if (const std::string* unused = only.unused())
        selection.error = no_match(cases, *unused, level);
    else if (const std::string* leaves_none_out = without.unused())
        selection.error = leaves_out_none(cases, *leaves_none_out);
    else if (selection.cases.empty() && !patterns.without.empty())
        selection.error = "--without leaves no case to run";
    if (selection.error.empty() && settings != nullptr)
        selection.error = contradiction(cases, selection, *settings, level);
    return selection;
}

void shuffle_cases(std::vector<const Case*>& cases, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    // Not std::shuffle, whose result differs between libraries.
    for (std::size_t left = cases.size(); left > 1; --left) {
        std::swap(cases[left - 1], cases[random() % left]);
    }
}

bool is_of_clause(std::string_view name, std::string_view clause) {
    if (!name.starts_with(clause)) return false;
    const std::string_view rest = name.substr(clause.size());
    return rest.empty() || rest[0] == '-' || rest[0] == '.';
}

std::string pattern_of_clause(const std::vector<Case>& cases, std::string_view clause) {
    bool has_own = false;
    bool has_parts = false;
    for (const Case& each : cases) {
        const std::string_view name = clause_of_id(each.id);
        has_own = has_own || name == clause;
        has_parts = has_parts || (name != clause && is_of_clause(name, clause));
    }
    if (clause.empty() || (!has_own && !has_parts)) return "";
    return std::string(clause) + (has_parts ? "*" : "/*");
}

std::vector<std::string_view> nearest_ids(const std::vector<Case>& cases, std::string_view id,
                                          std::size_t count) {
    std::vector<std::string_view> ids;
    for (const Case& each : cases) ids.push_back(each.id);
    return nearest_names(ids, id, count);
}

}  // namespace kmes::conformance
