// SPDX-License-Identifier: MIT
//
// See case_lists.h.
#include "conformance/main/case_lists.h"

#include <algorithm>
#include <iterator>

#include "conformance/main/shard.h"
#include "conformance/report/result.h"

namespace kmes::conformance {

int CaseLists::open(bool is_shard) {
    if (!options_.expect_unsupported.empty()) {
        expected_ = read_case_list(options_.expect_unsupported, around_.cases);
        if (!expected_.error.empty()) return say(around_, kExitUsage, expected_.error);
    }
    return open_known_failures(is_shard);
}

int CaseLists::open_known_failures(bool is_shard) {
    if (options_.known_failures.empty()) return 0;
    const bool is_fixed = options_.fix_known_failures;
    const std::string error = known_.read(around_.cases, options_.known_failures, is_fixed);
    if (!error.empty()) return say(around_, kExitUsage, error);
    if (!is_fixed) return 0;
    if (is_shard)
        return say(around_, kExitUsage,
                   "--fix-known-failures excludes TEST_TOTAL_SHARDS: each shard would write "
                   "the file");
    const OutputFile::Status status = known_file_.open(options_.known_failures, &around_.stop);
    if (status == OutputFile::Status::ok) return 0;
    return say(around_, status == OutputFile::Status::bad_path ? kExitUsage : kExitSuite,
               known_file_.error());
}

// Marks the known failures, and returns the differences. A fixed list has none. An interrupted run
// fixes nothing.
std::vector<ListDifference> CaseLists::settle_known_failures(RunReport& report, bool may_fix,
                                                             std::string& trouble) {
    if (options_.known_failures.empty()) return {};
    const std::vector<ListDifference> lines = known_.compare(around_.cases, report);
    if (!options_.fix_known_failures || report.interrupted || !may_fix) return lines;
    if (!known_file_.commit(known_.updated_text(around_.cases, report))) {
        trouble = known_file_.error();
        return lines;
    }
    for (CaseResult& result : report.results) result.is_known = result.verdict == Verdict::fail;
    return {};
}

std::string CaseLists::settle(RunReport& report, bool may_fix) {
    std::string trouble;
    const std::vector<ListDifference> stale = settle_known_failures(report, may_fix, trouble);
    if (report.interrupted) return trouble;
    if (!options_.expect_unsupported.empty())
        report.differences = differences(report, expected_.ids);
    report.differences.insert(report.differences.end(), stale.begin(), stale.end());
    set_parts_aside(report);
    return trouble;
}

// A shard that plays a part of a case does not know whether the other parts pass.
void CaseLists::set_parts_aside(RunReport& report) const {
    if (!report.shard) return;
    const auto is_of_part = [this](const ListDifference& difference) {
        const Case* const found = find_case(around_.cases, difference.case_id);
        return found != nullptr && is_in_every_shard(*found, options_.explore);
    };
    std::ranges::copy_if(report.differences, std::back_inserter(report.part_differences),
                         is_of_part);
    std::erase_if(report.differences, is_of_part);
}

}  // namespace kmes::conformance
