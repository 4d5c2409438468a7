// SPDX-License-Identifier: MIT
//
// For each mistake of a table, the clause and the case that a person should read first. The input
// is the recorded failures of a run of all cases on a consumer with that mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "conformance/cases/registry.h"
#include "conformance/clauses/clauses.h"
#include "conformance/main/failure_groups.h"
#include "conformance/main/symptom.h"

namespace kmes::conformance {
namespace {

using ::testing::Contains;

constexpr const char* kTable = "conformance/testees/broken/read-first.txt";
constexpr const char* kRecord = "conformance/testees/broken/recorded-failures.txt";
constexpr std::size_t kLeastRows = 60;
constexpr std::size_t kColumns = 5;
constexpr const char* kNotMet = "not met: ";
constexpr const char* kPreflight = "preflight";

struct Row {
    std::string name;
    std::vector<std::string> clauses;
    std::vector<std::string> cases;
    std::vector<std::string> options;  // "-", "robust", "shared"
    bool is_met = true;                // false: the table has a reason
};

std::vector<std::string> parts_of(const std::string& text, const std::string& separator) {
    std::vector<std::string> parts;
    std::size_t begin = 0;
    for (std::size_t end = 0; end != std::string::npos; begin = end + separator.size()) {
        end = text.find(separator, begin);
        parts.push_back(text.substr(begin, end - begin));
    }
    return parts;
}

std::vector<std::string> lines_of(const char* path) {
    std::vector<std::string> lines;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
        if (!line.empty() && line.front() != '#') lines.push_back(line);
    }
    return lines;
}

std::vector<Row> read_table() {
    std::vector<Row> rows;
    for (const std::string& line : lines_of(kTable)) {
        const std::vector<std::string> columns = parts_of(line, " | ");
        const bool is_met = columns.size() == kColumns;
        const bool has_reason =
            columns.size() == kColumns + 1 && columns[kColumns].starts_with(kNotMet);
        EXPECT_TRUE(is_met || has_reason) << line;
        if (is_met || has_reason)
            rows.push_back({columns[0], parts_of(columns[2], ", "), parts_of(columns[3], ", "),
                            parts_of(columns[4], ", "), is_met});
    }
    return rows;
}

struct Recorded {
    std::vector<std::string> cases;  // the failed cases
    std::vector<FailedCase> failures;
    std::set<std::string> undecided;
};

// Takes "NAME=VALUE" from the begin of the rest of a line; empty: the rest begins otherwise.
std::string take_fact(std::istringstream& in, const std::string& name) {
    const std::streampos before = in.tellg();
    std::string word;
    if (before >= 0 && in >> word && word.starts_with(name + "="))
        return word.substr(name.size() + 1);
    in.clear();
    if (before >= 0) in.seekg(before);
    return "";
}

// "  case clause facts cause". The clause may be "=" or "=CLAUSE" (assumed), or "-" (not decided).
void add_failure(const std::string& line, Recorded& recorded) {
    std::istringstream in(line);
    std::string id, clause, cause;
    in >> id >> clause;
    const std::string steps = take_fact(in, "steps");
    const std::string also = take_fact(in, "also");
    const bool has_root = !take_fact(in, "root").empty();
    in >> std::ws;
    std::getline(in, cause);
    if (clause == "-") {
        recorded.undecided.insert(id);
        return;
    }
    recorded.cases.push_back(id);
    if (id == kPreflight) return;
    const Case* const found = find_case(all_cases(), id);
    ASSERT_NE(found, nullptr) << line;
    const bool is_assumed = clause.starts_with('=');
    if (is_assumed) clause.erase(0, 1);
    const std::string case_clause(found->clause());
    recorded.failures.push_back({case_clause, clause.empty() ? case_clause : clause,
                                 static_cast<std::uint64_t>(found - all_cases().data()), cause,
                                 is_assumed, found->demand == Demand::explored,
                                 steps.empty() ? 0 : std::stoull(steps),
                                 has_root ? std::string(kCapacityOfAnotherBuffer) : "",
                                 also.empty() ? std::vector<std::string>() : parts_of(also, ",")});
}

std::map<std::string, Recorded> read_record() {
    std::map<std::string, Recorded> record;
    std::string name;
    for (const std::string& line : lines_of(kRecord)) {
        if (line.front() != ' ')
            name = line;
        else
            add_failure(line, record[name]);
    }
    return record;
}

// The record lists the cases that did not pass.
PassedCases passed_cases(const Row& row, const Recorded& recorded) {
    const auto has = [&row](const char* option) {
        return std::ranges::find(row.options, option) != row.options.end();
    };
    PassedCases passed;
    for (const Case& each : all_cases()) {
        if (each.demand == Demand::soak || each.demand == Demand::explored) continue;
        if (each.level == Level::robust && !has("robust")) continue;
        if (each.demand == Demand::shared && !has("shared")) continue;
        const bool has_failed = std::ranges::find(recorded.cases, each.id) != recorded.cases.end();
        if (!has_failed && !recorded.undecided.contains(std::string(each.id)))
            ++passed[std::string(each.clause())];
    }
    return passed;
}

bool has(const std::vector<std::string>& all, const std::string& one) {
    return std::ranges::find(all, one) != all.end();
}

TEST(ReadFirst, EachMistakeIsShownByTheCaseToReadFirst) {
    const std::map<std::string, Recorded> record = read_record();
    for (const Row& row : read_table()) {
        SCOPED_TRACE(row.name);
        const auto found = record.find(row.name);
        EXPECT_NE(found, record.end()) << "no record: read_first.py record makes it";
        if (found == record.end()) continue;
        const Recorded& recorded = found->second;
        if (recorded.failures.empty()) {
            EXPECT_THAT(row.cases, Contains(recorded.cases.at(0)));
            continue;
        }
        const std::vector<FailureGroup> groups =
            group_failures(recorded.failures, passed_cases(row, recorded));
        const std::string& clause = groups.at(0).clause;
        const std::string& first = recorded.cases.at(rank_failures(groups).at(0));
        if (row.is_met) {
            EXPECT_THAT(row.clauses, Contains(clause));
            EXPECT_THAT(row.cases, Contains(first));
        } else {
            EXPECT_FALSE(has(row.clauses, clause) && has(row.cases, first))
                << "the row is met: remove its last column";
        }
    }
}

TEST(ReadFirst, TheTableNamesMistakesAndCasesThatExist) {
    std::set<std::string> names;
    std::set<std::string> known;
    for (const BrokenTestee& each : all_broken_testees()) known.emplace(each.name);
    for (const Row& row : read_table()) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name << " is there twice";
        EXPECT_THAT(known, Contains(row.name));
        for (const std::string& id : row.cases)
            EXPECT_TRUE(id == kPreflight || find_case(all_cases(), id) != nullptr) << id;
    }
    EXPECT_GE(names.size(), kLeastRows);
}

}  // namespace
}  // namespace kmes::conformance
