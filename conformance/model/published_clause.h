// SPDX-License-Identifier: MIT
//
// The place of a clause of section 5.1 or of the errata in the published document of a form of the
// layout. A reader of that document finds the rule there (docs/layouts.md, Clauses).
#ifndef KMES_CONFORMANCE_MODEL_PUBLISHED_CLAUSE_H_
#define KMES_CONFORMANCE_MODEL_PUBLISHED_CLAUSE_H_

#include <string>
#include <string_view>

namespace kmes::conformance {

// "5.1.9.1 step 5" in forms B and C, "Consumer Protocol, Draining, step 5" in form D. `form` is the
// name of the form; empty: form A. Returns an empty text if the document has no such rule, if its
// place is not known, and in form A.
std::string published_clause(std::string_view clause, std::string_view form);

// The same for a person: if the clause is one of the contract, the text says that the published
// documents have none.
std::string published_place(std::string_view clause, std::string_view form);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_PUBLISHED_CLAUSE_H_
