// SPDX-License-Identifier: MIT
//
// The rules of the clause table. Takes all tables as arguments, so that a test can plant faults.
#include <algorithm>
#include <set>

#include "conformance/clauses/clauses.h"

namespace kmes::conformance {

namespace {

using Faults = std::vector<std::string>;

void check_each_clause(const std::vector<Clause>& clauses, const std::set<std::string_view>& ids,
                       Faults& faults) {
    std::set<std::string_view> references;
    for (const Clause& clause : clauses) {
        const std::string name(clause.reference);
        if (clause.reference.empty() || clause.text.empty())
            faults.push_back("a clause without a reference or a text: " + name);
        if (!references.insert(name.empty() ? clause.text : clause.reference).second)
            faults.push_back(name + " is in the table twice");
        if (clause.cases.empty() && clause.reason.empty())
            faults.push_back(name + " has neither a case nor a reason");
        if (!clause.cases.empty() && !clause.reason.empty())
            faults.push_back(name + " has cases, and a reason why it has none");
        for (const std::string_view id : clause.cases) {
            if (!ids.contains(id))
                faults.push_back(name + " names " + std::string(id) + ", which is no case");
            if (std::count(clause.cases.begin(), clause.cases.end(), id) > 1)
                faults.push_back(name + " names " + std::string(id) + " twice");
        }
    }
}

void check_broken(const std::set<std::string_view>& ids, const std::vector<BrokenTestee>& broken,
                  const std::vector<CaseWithoutBroken>& without,
                  const std::vector<std::string>& failed_elsewhere, Faults& faults) {
    std::set<std::string_view> failing(failed_elsewhere.begin(), failed_elsewhere.end());
    for (const BrokenTestee& each : broken) {
        if (each.case_id.starts_with("-"))
            continue;  // no case catches it yet, for the given reason
        failing.insert(each.case_id);
        if (!ids.contains(each.case_id))
            faults.push_back("the broken testee " + std::string(each.name) + " is meant for " +
                             std::string(each.case_id) + ", which is no case");
    }
    std::set<std::string_view> excused;
    for (const CaseWithoutBroken& each : without) {
        const std::string id(each.case_id);
        if (!excused.insert(each.case_id).second) faults.push_back(id + " has two reasons");
        if (each.reason.empty()) faults.push_back(id + " has an empty reason");
        if (!ids.contains(each.case_id))
            faults.push_back(id + " has a reason and is no case");
        else if (failing.contains(each.case_id))
            faults.push_back(id + " fails a broken testee, and has a reason why it fails none");
    }
    for (const std::string_view id : ids) {
        if (!failing.contains(id) && !excused.contains(id))
            faults.push_back(std::string(id) + " fails no broken testee, and has no reason");
    }
}

}  // namespace

std::vector<std::string> find_faults(const std::vector<Clause>& clauses,
                                     const std::vector<Case>& cases,
                                     const std::vector<BrokenTestee>& broken,
                                     const std::vector<CaseWithoutBroken>& without,
                                     const std::vector<std::string>& failed_elsewhere) {
    Faults faults;
    std::set<std::string_view> ids;
    for (const Case& each : cases) ids.insert(each.id);
    check_each_clause(clauses, ids, faults);
    std::set<std::string_view> covered;
    for (const Clause& clause : clauses) covered.insert(clause.cases.begin(), clause.cases.end());
    for (const std::string_view id : ids) {
        if (!covered.contains(id)) faults.push_back(std::string(id) + " is in no clause");
    }
    check_broken(ids, broken, without, failed_elsewhere, faults);
    return faults;
}

}  // namespace kmes::conformance
