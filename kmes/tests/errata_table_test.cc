// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * docs/errata.md cannot go stale: each test that it names exists, and each erratum has its row.
 */
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    EXPECT_TRUE(file) << path;
    return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> all_tests() {
    std::set<std::string> names;
    const std::regex head(R"(TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\))");
    for (const auto& entry : fs::directory_iterator("kmes/tests")) {
        if (!entry.path().filename().string().ends_with("_test.cc")) continue;
        const std::string text = text_of(entry.path());
        for (std::sregex_iterator at(text.begin(), text.end(), head), end; at != end; ++at)
            names.insert((*at)[1].str() + "." + (*at)[2].str());
    }
    return names;
}

/* The rows of the table, each from its number on. */
std::vector<std::string> rows() {
    std::vector<std::string> found;
    std::ifstream file("docs/errata.md");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("| E")) found.push_back(line);
    return found;
}

TEST(ErrataTable, HasARowForEveryErratumInOrder) {
    const std::vector<std::string> table = rows();
    ASSERT_EQ(table.size(), 26u);
    for (std::size_t i = 0; i < table.size(); i++)
        EXPECT_TRUE(table[i].starts_with("| E" + std::to_string(i + 1) + " |")) << table[i];
}

TEST(ErrataTable, NamesOnlyTestsThatAreThere) {
    const std::set<std::string> tests = all_tests();
    EXPECT_GT(tests.size(), 90u);
    const std::regex name(R"(`(\w+\.\w+)`)");
    std::size_t named = 0;
    for (const std::string& row : rows()) {
        for (std::sregex_iterator at(row.begin(), row.end(), name), end; at != end; ++at) {
            EXPECT_TRUE(tests.contains((*at)[1].str())) << "no such test: " << (*at)[1];
            named++;
        }
    }
    EXPECT_GT(named, 40u);
}

/* A cell is empty only if the remark gives the reason. */
TEST(ErrataTable, SaysWhyWhereThereIsNoTest) {
    for (const std::string& row : rows()) {
        if (row.find("| - |") == std::string::npos) continue;
        EXPECT_FALSE(row.ends_with("| |")) << row;
    }
}

/* Every literal protocol must be named, so that its demonstration can be found. */
TEST(ErrataTable, NamesEveryLiteralProtocol) {
    const std::string table = text_of("docs/errata.md");
    for (const std::string& test : all_tests()) {
        if (!test.starts_with("Literal")) continue;
        EXPECT_NE(table.find("`" + test + "`"), std::string::npos) << test;
    }
}

}  // namespace
