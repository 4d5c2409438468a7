// SPDX-License-Identifier: MIT
//
// What the suite demands of a consumer, clause by clause. Clauses are every sentence of section 5.1
// that a consumer can break, every erratum that is not only about the producer, and every row of
// the testee contract. Each clause lists the cases that test it, and each case the broken testees
// that it should fail. Knows the ids of cases, but not how they are played.
#ifndef KMES_CONFORMANCE_CLAUSES_CLAUSES_H_
#define KMES_CONFORMANCE_CLAUSES_CLAUSES_H_

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/case.h"

namespace kmes::conformance {

// One clause, paraphrased.
struct Clause {
    std::string_view reference;  // "5.1.8.1 step 5", "E7", "contract 3", "contract record L"
    std::string_view text;
    std::vector<std::string_view> cases;  // ids
    // Why no case can show it (yet); only if `cases` is empty.
    std::string_view reason = {};
};

// In the order of the documents: section 5.1, event model, errata, contract.
const std::vector<Clause>& all_clauses();

// An entry of the table of broken testees: the testee's fault, and the case that should fail it.
struct BrokenTestee {
    std::string_view name;
    std::string_view case_id;
    std::string_view wrong;
};
const std::vector<BrokenTestee>& all_broken_testees();
// Further cases that fail a broken testee in every run, with one entry for each pair.
const std::vector<BrokenTestee>& broken_testees_also_failed();

// A case that no broken testee is made for, and the reason.
struct CaseWithoutBroken {
    std::string_view case_id;
    std::string_view reason;
};
const std::vector<CaseWithoutBroken>& cases_without_broken();

// Says in a sentence why no case can show this clause; empty: a case shows it, or there is no such
// clause.
std::string why_no_case(std::string_view clause);

// Prints the output of `kmes-conformance clauses`: each clause with its cases, and each case with
// its broken testees, or the reason why there are none.
void print_clauses(std::ostream& out);

// Returns what is wrong with the tables, one line for each fault:
// - a clause without a case and without a reason;
// - a case in no clause, or an unknown case;
// - a case without a broken testee and without a reason, or with a reason that is no longer needed.
//
// `failed_elsewhere` has the cases that are known to fail a broken testee of another case.
std::vector<std::string> find_faults(const std::vector<Clause>& clauses,
                                     const std::vector<Case>& cases,
                                     const std::vector<BrokenTestee>& broken,
                                     const std::vector<CaseWithoutBroken>& without,
                                     const std::vector<std::string>& failed_elsewhere);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_CLAUSES_CLAUSES_H_
