// SPDX-License-Identifier: MIT
//
// See published_clause.h. The sections of v0.20 and v0.22 have titles and no numbers, so they are
// counted as those of section 5.1. The chapter of form D is quoted by its titles.
#include "conformance/model/published_clause.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "conformance/model/layout.h"

namespace kmes::conformance {
namespace {

constexpr int kSteps = 7;

// The number of a step in the document, by its number here; 0: there is none.
using StepNumbers = int[kSteps + 1];

struct Section {
    std::string_view ours;
    std::string_view numbered;  // forms B and C
    std::string_view titled;    // form D; empty: the chapter is for consumers, and leaves it out
    StepNumbers numbered_steps = {0, 1, 2, 3, 4, 5, 6, 7};
    StepNumbers titled_steps = {0, 1, 2, 3, 4, 5, 6, 7};
};

constexpr Section kSections[] = {
    {"5.1.1", "5.1.1", "Attaching and Mapping, Attaching"},
    {"5.1.2", "5.1.2", ""},
    {"5.1.3", "5.1.3", "Attaching and Mapping, Mapping"},
    {"5.1.4", "5.1.4", "Attaching and Mapping, The double mapping"},
    {"5.1.5", "5.1.5", "Attaching and Mapping, Mapping"},
    {"5.1.6.1", "5.1.6.1", "Attaching and Mapping, Bytes 0-63: identification"},
    {"5.1.6.2", "5.1.6.2", "Attaching and Mapping, Bytes 64-127: positions"},
    // need_wake has a page and a section of its own.
    {"5.1.6.3", "5.1.6.3 and 5.1.7",
     "Attaching and Mapping, Bytes 128-191: notification, and Consumer metadata page"},
    {"5.1.7", "5.1.8", ""},
    {"5.1.8", "5.1.9", "Consumer Protocol"},
    // Step 6 of these documents is the check of E7.
    {"5.1.8.1",
     "5.1.9.1",
     "Consumer Protocol, Draining",
     {0, 1, 2, 3, 4, 5, 7, 0},
     {0, 1, 2, 3, 4, 5, 7, 0}},
    {"5.1.8.2", "5.1.9.2", "Consumer Protocol, Notification wait"},
    // Step 2 of form D drains the old buffer, and step 3 attaches and maps.
    {"5.1.8.3",
     "5.1.9.3",
     "Consumer Protocol, Buffer replacement",
     {0, 1, 2, 3, 4, 5, 6, 7},
     {0, 1, 3, 3, 4, 5, 6, 7}},
    {"5.1.8.4", "5.1.9.4", ""},
    {"5.1.9", "5.1.10", "Consumer Protocol, Detecting loss"},
    {"5.1.10", "5.1.11", "Consumer Protocol, Memory ordering"},
    {"event-model", "2.1", "Event Format"},
    // Errata whose rule the document has.
    {"E7", "5.1.9.1 step 6", "Consumer Protocol, Draining, step 6"},
    {"E9", "", "Attaching and Mapping, Bytes 0-63: identification"},
    {"E10", "5.1.9.3", "Consumer Protocol, Buffer replacement, step 2"},
    {"E11", "5.1.9.3 step 5", "Consumer Protocol, Buffer replacement, step 5"},
    {"E15", "5.1.9.3", "Consumer Protocol, Buffer replacement"},
    {"E17", "", "Consumer Protocol, Notification wait"},
};

struct Parts {
    std::string_view section;
    int step = 0;  // 0: the clause names none
};

// "5.1.8.1-5", or a section alone.
Parts parts_of(std::string_view clause) {
    const std::size_t hyphen = clause.rfind('-');
    if (!clause.starts_with("5.1") || hyphen == std::string_view::npos) return {clause};
    const std::string_view digits = clause.substr(hyphen + 1);
    Parts parts{clause.substr(0, hyphen)};
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), parts.step);
    const bool is_step = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
    return is_step ? parts : Parts{clause};
}

// Returns nullptr for form A, and for an unknown form.
const Layout* published_layout(std::string_view form) {
    const Layout* layout = form.empty() ? nullptr : find_layout(form);
    return layout == &all_layouts().front() ? nullptr : layout;
}

}  // namespace

std::string published_clause(std::string_view clause, std::string_view form) {
    const Layout* layout = published_layout(form);
    if (layout == nullptr) return {};
    const Parts parts = parts_of(clause);
    const auto* section = std::ranges::find(kSections, parts.section, &Section::ours);
    if (section == std::end(kSections)) return {};
    const bool is_titled = layout->attach == AttachArguments::one_cpu_or_count;
    std::string place(is_titled ? section->titled : section->numbered);
    if (place.empty() || parts.step == 0) return place;
    if (parts.step > kSteps) return place;
    const int step = (is_titled ? section->titled_steps : section->numbered_steps)[parts.step];
    if (step == 0) return place;
    return place + (is_titled ? ", step " : " step ") + std::to_string(step);
}

std::string published_place(std::string_view clause, std::string_view form) {
    const bool is_of_the_contract = clause == "contract" || clause.starts_with("contract-");
    if (is_of_the_contract && published_layout(form) != nullptr)
        return "none; the published documents have no contract for testees";
    return published_clause(clause, form);
}

}  // namespace kmes::conformance
