// SPDX-License-Identifier: MIT
//
// The list of cases obeys its rules, and its ids are those of case-ids.txt. Known-failures lists
// and reports of other projects contain the ids, so an id works forever, also if it is a former
// one.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "conformance/cases/former_ids.h"
#include "conformance/cases/registry.h"
#include "conformance/model/case.h"
#include "conformance/model/case_id.h"

namespace kmes::conformance {
namespace {

constexpr const char* kPinnedIds = "conformance/cases/case-ids.txt";

std::set<std::string> pinned_ids() {
    std::ifstream in(kPinnedIds);
    EXPECT_TRUE(in) << kPinnedIds << " cannot be read";
    std::set<std::string> ids;
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#') continue;
        EXPECT_TRUE(ids.insert(line).second) << line << " is in " << kPinnedIds << " twice";
    }
    return ids;
}

TEST(AllCases, KeepTheRulesOfTheList) {
    EXPECT_EQ(check_cases(all_cases()), "");
}

TEST(AllCases, HaveThePinnedIds) {
    const std::set<std::string> pinned = pinned_ids();
    std::set<std::string> present;
    for (const Case& each : all_cases()) {
        present.emplace(each.id);
        if (!each.former_id.empty()) present.emplace(each.former_id);
    }
    for (const std::string& id : present) {
        EXPECT_EQ(pinned.count(id), 1u) << id << " is new: add it to " << kPinnedIds;
    }
    for (const std::string& id : pinned) {
        EXPECT_EQ(present.count(id), 1u)
            << id << " works forever: add it to conformance/cases/former_ids.cc";
    }
}

TEST(AllCases, AreFoundByTheirFormerIds) {
    for (const FormerId& each : former_ids()) {
        const Case* const found = find_case(all_cases(), each.former_id);
        ASSERT_NE(found, nullptr) << each.former_id;
        EXPECT_EQ(found->id, each.id);
        // Files name the clause of a case by its id.
        EXPECT_EQ(clause_of_id(each.id), clause_of_id(each.former_id));
    }
}

}  // namespace
}  // namespace kmes::conformance
