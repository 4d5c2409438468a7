// SPDX-License-Identifier: MIT
//
// Where the published document of a form of the layout has a clause of section 5.1 or of the
// errata. A reader of that document finds the rule there (docs/layouts.md, Clauses).
#ifndef KMES_CONFORMANCE_MODEL_PUBLISHED_CLAUSE_H_
#define KMES_CONFORMANCE_MODEL_PUBLISHED_CLAUSE_H_

#include <string>
#include <string_view>

namespace kmes::conformance {

// "5.1.9.1 step 5" in forms B and C, "Consumer Protocol, Draining, step 5" in form D. `form` is the
// name of the form; empty: form A. Empty where the document has no such rule, or its place is not
// known, and in form A.
std::string published_clause(std::string_view clause, std::string_view form);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_PUBLISHED_CLAUSE_H_
