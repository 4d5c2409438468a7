// SPDX-License-Identifier: MIT
//
// The parts of the clause table, one for each document.
#ifndef KMES_CONFORMANCE_CLAUSES_PARTS_H_
#define KMES_CONFORMANCE_CLAUSES_PARTS_H_

#include <vector>

#include "conformance/clauses/clauses.h"

namespace kmes::conformance {

void add_layout_clauses(std::vector<Clause>& clauses);    // 5.1.1 to 5.1.6
void add_protocol_clauses(std::vector<Clause>& clauses);  // 5.1.7 to 5.1.10
void add_event_clauses(std::vector<Clause>& clauses);     // the event model
void add_erratum_clauses(std::vector<Clause>& clauses);
void add_contract_clauses(std::vector<Clause>& clauses);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_CLAUSES_PARTS_H_
