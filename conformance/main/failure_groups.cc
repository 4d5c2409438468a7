// SPDX-License-Identifier: MIT
//
// See failure_groups.h.
#include "conformance/main/failure_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "conformance/main/attribution.h"
#include "conformance/main/symptom.h"

namespace kmes::conformance {

namespace {

// A shorter run is easier to read. A run above these limits comes after a shorter one that shows
// the same fault.
constexpr std::uint64_t kShortSteps = 128;
constexpr std::uint64_t kLongSteps = 1024;
constexpr std::uint64_t kEndlessSteps = 8192;

// The size of a scenario: 0 small, or not known. The steps before an exit are its only evidence, so
// a short run is better than one of usual length.
int size_of(const FailedCase& failed) {
    const bool is_usual = failed.cause.starts_with(kExitStatusPrefix) && failed.steps > kShortSteps;
    return (is_usual ? 1 : 0) + (failed.steps > kLongSteps ? 1 : 0) +
           (failed.steps > kEndlessSteps ? 1 : 0);
}

// The distance for a fault that looks the same everywhere. An exit is clearest in a case about the
// end.
int distance_of_the_same(const FailedCase& failed) {
    const bool is_of_the_end = failed.finding_clause == clause_of_cause(kExitStatusPrefix);
    return is_of_the_end && failed.cause.starts_with(kExitStatusPrefix) && distance(failed) > 0;
}

// The lowest rank is the best evidence. A fault that looks the same in every case needs no case
// made for it, and a trace that shows the reason is better than any that does not.
using Rank = std::tuple<bool, bool, bool, int, int, std::uint64_t>;
Rank rank_of(const FailedCase& failed) {
    const int far =
        is_same_everywhere(failed.cause) ? distance_of_the_same(failed) : distance(failed);
    return {failed.is_explored, failed.root.empty(), failed.steps > kEndlessSteps, far,
            size_of(failed),    failed.place};
}

// A symptom in cases of at least this many clauses belongs to none of them, under one condition: it
// is in most cases, or the consumer breaks all these clauses in all their cases.
constexpr std::size_t kManyClauses = 8;

// The counts of one clause, without cases that search interleavings.
struct ClauseCases {
    std::size_t ran = 0;
    std::size_t assumed = 0;  // failed, with an assumed clause (that of the case)
};
using RunCases = std::map<std::string, ClauseCases>;

RunCases count_cases(const std::vector<FailedCase>& failures, const PassedCases& passed) {
    RunCases cases;
    for (const auto& [clause, count] : passed) cases[clause].ran = count;
    for (const FailedCase& each : failures) {
        if (each.is_explored) continue;
        ClauseCases& of_clause = cases[each.case_clause];
        ++of_clause.ran;
        if (each.is_assumed) ++of_clause.assumed;
    }
    return cases;
}

// Chooses the clause of a group in which all clauses are assumed.
class AssumedClause {
  public:
    AssumedClause(const std::vector<std::size_t>& members, const std::vector<FailedCase>& failures,
                  const PassedCases& passed, const RunCases& cases)
        : cases_(cases) {
        std::size_t ran = 0;
        for (const auto& [clause, counts] : cases) ran += counts.ran;
        for (const std::size_t member : members) {
            if (failures[member].is_explored) continue;
            ++count_;
            ++failed_[failures[member].case_clause];
        }
        const auto is_broken = [&passed](const auto& each) { return !passed.contains(each.first); };
        // A consumer that breaks most clauses breaks something that all cases need.
        is_of_none_ =
            static_cast<std::size_t>(std::ranges::count_if(failed_, is_broken)) >= kManyClauses ||
            (failed_.size() >= kManyClauses && 2 * count_ > ran);
    }

    bool is_of_none() const { return is_of_none_; }

    // The lowest rank is best: the clause of nearly all cases of the group, then the clause that
    // the cause is about, and then the clause that is broken in the largest part of its cases. One
    // of several cases may fail by accident.
    std::tuple<bool, bool, bool, bool, double, std::int64_t> rank_of(
        const FailedCase& failed) const {
        if (is_of_none_ || failed.is_explored) return {failed.is_explored, true, true, true, 0, 0};
        const ClauseCases& cases = cases_.at(failed.case_clause);
        const bool is_of_nearly_all = 4 * failed_.at(failed.case_clause) > 3 * count_;
        const bool is_accident = cases.assumed < 2 && cases.assumed < cases.ran;
        const bool is_its_subject = failed_.at(failed.case_clause) > 1 &&
                                    failed.case_clause == subject_of_cause(failed.cause);
        const double part = static_cast<double>(cases.assumed) / static_cast<double>(cases.ran);
        return {false,       !is_of_nearly_all,
                is_accident, !is_its_subject,
                -part,       -static_cast<std::int64_t>(cases.assumed)};
    }

  private:
    const RunCases& cases_;
    std::map<std::string, std::size_t> failed_;  // of the group, by clause
    std::size_t count_ = 0;
    bool is_of_none_ = false;
};

std::string clause_of(const FailedCase& best, const AssumedClause& clauses) {
    if (!best.is_assumed || !clauses.is_of_none()) return best.finding_clause;
    return std::string(clause_of_cause(best.cause));
}

bool is_made_for_it(const FailedCase& failed) {
    return is_same_everywhere(failed.cause) || distance(failed) == 0;
}

// The weight of a failure in its group. It is high if the finding names the clause, and higher in a
// case made for it. It is low if the clause is assumed, or is the whole contract.
std::uint64_t weight_of(const FailedCase& failed) {
    constexpr std::uint64_t kMadeForIt = 4;
    constexpr std::uint64_t kNamed = 2;
    constexpr std::uint64_t kAssumed = 1;
    if (failed.is_explored) return 0;
    if (failed.is_assumed || failed.finding_clause == "contract") return kAssumed;
    return is_made_for_it(failed) ? kMadeForIt : kNamed;
}

using Failures = std::vector<FailedCase>;

// Whether the other findings of each failure name the clause, so that one mistake explains both.
bool is_named_beside(const FailureGroup& group, const std::string& clause,
                     const Failures& failures) {
    bool any = false;
    for (const std::size_t member : group.members) {
        const FailedCase& failed = failures[member];
        if (failed.is_explored) continue;
        any = true;
        if (std::ranges::find(failed.also, clause) == failed.also.end()) return false;
    }
    return any;
}

// Whether the few failures of `group` are a side effect of those of `larger`: they have the same
// causes, and the cases made for their clause pass.
bool is_side_effect(const FailureGroup& group, const FailureGroup& larger,
                    const Failures& failures) {
    constexpr std::size_t kTimesAsMany = 4;
    if (kTimesAsMany * group.members.size() > larger.members.size()) return false;
    std::set<std::string_view> causes;
    for (const std::size_t member : larger.members) causes.insert(failures[member].cause);
    return std::ranges::all_of(group.members, [&](std::size_t member) {
        const FailedCase& failed = failures[member];
        return !failed.cause.empty() && causes.contains(failed.cause) &&
               failed.case_clause != group.clause;
    });
}

// Whether a trace has shown the reason of `earlier`, and the clause of `group` is only assumed.
bool follows_from_the_reason(const FailureGroup& group, const FailureGroup& earlier,
                             const Failures& failures) {
    const auto has_reason = [&](std::size_t member) { return !failures[member].root.empty(); };
    return std::ranges::any_of(earlier.members, has_reason) &&
           std::ranges::all_of(group.members, [&](std::size_t member) {
               return failures[member].is_assumed || failures[member].is_explored;
           });
}

// Whether `earlier` has delivered torn events, and `group` are refusals and crashes with an assumed
// clause: a consumer that uses torn payloads uses torn sizes, too.
bool follows_from_torn_events(const FailureGroup& group, const FailureGroup& earlier,
                              const Failures& failures) {
    constexpr std::string_view kTornClause = "5.1.8.1-5";
    const bool has_torn = std::ranges::any_of(earlier.members, [&](std::size_t member) {
        return !failures[member].is_assumed && failures[member].finding_clause == kTornClause;
    });
    return has_torn && earlier.clause == kTornClause &&
           std::ranges::all_of(group.members, [&](std::size_t member) {
               const FailedCase& failed = failures[member];
               return failed.is_assumed && (failed.cause.starts_with(kRefusalPrefix) ||
                                            failed.cause.starts_with(kSignalPrefix));
           });
}

// Whether `group` are accesses to wrong addresses in functions in which `earlier` crashes by such
// an access. The case, and the place of the ring in memory, decide what the address hits.
bool is_the_same_access(const FailureGroup& group, const FailureGroup& earlier,
                        const Failures& failures) {
    std::set<std::string_view> places;
    for (const std::size_t member : earlier.members) {
        if (failures[member].cause.starts_with(kSignalPrefix))
            places.insert(place_of_access(failures[member].cause));
    }
    return std::ranges::all_of(group.members, [&](std::size_t member) {
        const FailedCase& failed = failures[member];
        const std::string_view place = place_of_access(failed.cause);
        const bool is_store = failed.cause.starts_with(kStorePrefix);
        return !place.empty() && (is_store || failed.is_assumed) && places.contains(place);
    });
}

// Joins the groups that the mistake of an earlier group explains.
std::vector<FailureGroup> join_explained(const std::vector<FailureGroup>& groups,
                                         const Failures& failures) {
    std::vector<FailureGroup> joined;
    for (const FailureGroup& group : groups) {
        const auto reason = std::ranges::find_if(joined, [&](const FailureGroup& earlier) {
            return is_named_beside(group, earlier.clause, failures) ||
                   is_side_effect(group, earlier, failures) ||
                   follows_from_the_reason(group, earlier, failures) ||
                   follows_from_torn_events(group, earlier, failures) ||
                   is_the_same_access(group, earlier, failures);
        });
        if (reason == joined.end())
            joined.push_back(group);
        else
            reason->members.insert(reason->members.end(), group.members.begin(),
                                   group.members.end());
    }
    return joined;
}

}  // namespace

std::string group_key(const FailedCase& failed) {
    return failed.is_assumed ? "cause " + failed.cause : "clause " + failed.finding_clause;
}

bool is_better_evidence(const FailedCase& one, const FailedCase& other) {
    return rank_of(one) < rank_of(other);
}

std::vector<FailureGroup> group_failures(const std::vector<FailedCase>& found,
                                         const PassedCases& passed) {
    std::vector<FailedCase> failures = found;
    attribute(failures, passed);
    const RunCases cases = count_cases(failures, passed);
    struct Weighed {
        FailureGroup group;
        std::uint64_t weight = 0;
        std::uint64_t made_for_it = 0;  // failures of cases that were made for the clause
    };
    std::map<std::string, Weighed> by_reason;
    for (std::size_t i = 0; i < failures.size(); ++i) {
        Weighed& weighed = by_reason[group_key(failures[i])];
        weighed.group.members.push_back(i);
        weighed.weight += weight_of(failures[i]);
        if (distance(failures[i]) == 0) ++weighed.made_for_it;
    }
    std::vector<Weighed> groups;
    for (auto& [reason, weighed] : by_reason) {
        // Of equal weights, the first one seen. (std::stable_sort of libstdc++ 12 uses what clang
        // calls deprecated.)
        const AssumedClause clauses(weighed.group.members, failures, passed, cases);
        const auto rank = [&](std::size_t index) {
            const FailedCase& failed = failures[index];
            using OfClause = decltype(clauses.rank_of(failed));
            return std::tuple(failed.is_assumed ? clauses.rank_of(failed) : OfClause(),
                              rank_of(failed), index);
        };
        std::sort(weighed.group.members.begin(), weighed.group.members.end(),
                  [&](std::size_t one, std::size_t other) { return rank(one) < rank(other); });
        weighed.group.clause = clause_of(failures[weighed.group.members.front()], clauses);
        groups.push_back(std::move(weighed));
    }
    std::sort(groups.begin(), groups.end(), [&](const Weighed& one, const Weighed& other) {
        const std::size_t first = one.group.members.front();
        const std::size_t second = other.group.members.front();
        // Of groups with equal weight, the one whose cases were made for it, and then the one with
        // the simplest scenario.
        return std::tuple(other.weight, other.made_for_it, failures[first].place, first) <
               std::tuple(one.weight, one.made_for_it, failures[second].place, second);
    });
    std::vector<FailureGroup> sorted;
    for (Weighed& each : groups) sorted.push_back(std::move(each.group));
    return join_explained(sorted, failures);
}

std::vector<std::size_t> rank_failures(const std::vector<FailureGroup>& groups) {
    std::vector<std::size_t> order;
    for (std::size_t rank = 0;; ++rank) {
        const std::size_t before = order.size();
        for (const FailureGroup& group : groups)
            if (rank < group.members.size()) order.push_back(group.members[rank]);
        if (order.size() == before) return order;
    }
}

}  // namespace kmes::conformance
