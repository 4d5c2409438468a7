// SPDX-License-Identifier: MIT
//
// What the suite holds a consumer to, clause by clause: every sentence of section 5.1 that a
// consumer can break, every erratum that is not the producer's alone, every row of the testee
// contract, each with the cases that test it; and for each case the broken testees that it is meant
// to fail. Knows cases by their ids, and how none of them is played.
#ifndef KMES_CONFORMANCE_CLAUSES_CLAUSES_H_
#define KMES_CONFORMANCE_CLAUSES_CLAUSES_H_

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/case.h"

namespace kmes::conformance {

// One clause, in our own words.
struct Clause {
    std::string_view reference;  // "5.1.8.1 step 5", "E7", "contract 3", "contract record L"
    std::string_view text;
    std::vector<std::string_view> cases;  // ids
    // Why no case can show it (as yet); only where `cases` is empty.
    std::string_view reason = {};
};

// In the order of the documents: section 5.1, event model, errata, contract.
const std::vector<Clause>& all_clauses();

// An entry of the table of broken testees: what it does wrong, and the case meant to fail it.
struct BrokenTestee {
    std::string_view name;
    std::string_view case_id;
    std::string_view wrong;
};
const std::vector<BrokenTestee>& all_broken_testees();
// More cases that fail one of them in every run: a testee stands here once for each.
const std::vector<BrokenTestee>& broken_testees_also_failed();

// A case for which no testee of its own is broken, and why.
struct CaseWithoutBroken {
    std::string_view case_id;
    std::string_view reason;
};
const std::vector<CaseWithoutBroken>& cases_without_broken();

// For the command `kmes-conformance clauses`: each clause with its cases, each case with the broken
// testees that are meant for it, or the reason why there are none.
void print_clauses(std::ostream& out);

// What is wrong with the tables, a line each: a clause without a case and without a reason, a case
// in no clause, a case that is not there, a case that nobody broken is meant for without a reason,
// a reason that is no longer needed. `failed_elsewhere` has the cases that are known to fail some
// broken testee that another case is meant for.
std::vector<std::string> find_faults(const std::vector<Clause>& clauses,
                                     const std::vector<Case>& cases,
                                     const std::vector<BrokenTestee>& broken,
                                     const std::vector<CaseWithoutBroken>& without,
                                     const std::vector<std::string>& failed_elsewhere);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_CLAUSES_CLAUSES_H_
