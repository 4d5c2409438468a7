// SPDX-License-Identifier: MIT
//
// The list of cases keeps its rules, and its ids are those of case-ids.txt: known-failures lists
// and reports of other projects name them, so an id that was once given is never changed or taken
// again.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "conformance/cases/registry.h"

namespace kmes::conformance {
namespace {

constexpr const char* kPinnedIds = "conformance/cases/case-ids.txt";

std::vector<std::string> pinned_ids() {
    std::ifstream in(kPinnedIds);
    EXPECT_TRUE(in) << kPinnedIds << " cannot be read";
    std::vector<std::string> ids;
    for (std::string line; std::getline(in, line);) {
        if (!line.empty() && line[0] != '#') ids.push_back(line);
    }
    return ids;
}

TEST(AllCases, KeepTheRulesOfTheList) {
    EXPECT_EQ(check_cases(all_cases()), "");
}

TEST(AllCases, HaveThePinnedIdsInTheirOrder) {
    std::vector<std::string> ids;
    for (const Case& each : all_cases()) ids.emplace_back(each.id);
    EXPECT_EQ(ids, pinned_ids()) << "A new case is added to " << kPinnedIds
                                 << "; an id that stands there is neither changed nor removed.";
}

}  // namespace
}  // namespace kmes::conformance
