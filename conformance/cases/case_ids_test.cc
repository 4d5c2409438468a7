// SPDX-License-Identifier: MIT
//
// The list of cases obeys its rules, and its ids are those of case-ids.txt. Known-failures lists
// and reports of other projects contain the ids, so an id never changes and is never used again.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "conformance/cases/registry.h"
#include "conformance/model/case.h"

namespace kmes::conformance {
namespace {

constexpr const char* kPinnedIds = "conformance/cases/case-ids.txt";

std::set<std::string> pinned_ids() {
    std::ifstream in(kPinnedIds);
    EXPECT_TRUE(in) << kPinnedIds << " cannot be read";
    std::set<std::string> ids;
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#') continue;
        EXPECT_TRUE(ids.insert(line).second) << line << " stands in " << kPinnedIds << " twice";
    }
    return ids;
}

TEST(AllCases, KeepTheRulesOfTheList) {
    EXPECT_EQ(check_cases(all_cases()), "");
}

TEST(AllCases, HaveThePinnedIds) {
    const std::set<std::string> pinned = pinned_ids();
    std::set<std::string> present;
    for (const Case& each : all_cases()) present.emplace(each.id);
    for (const std::string& id : present) {
        EXPECT_EQ(pinned.count(id), 1u) << id << " is new: add it to " << kPinnedIds;
    }
    for (const std::string& id : pinned) {
        EXPECT_EQ(present.count(id), 1u) << id << " was given once and is stable for ever";
    }
}

}  // namespace
}  // namespace kmes::conformance
