// SPDX-License-Identifier: MIT
//
// The clause table for a person. Knows no terminal.

#include "conformance/cases/registry.h"
#include "conformance/clauses/clauses.h"
#include "conformance/clauses/parts.h"

namespace kmes::conformance {

namespace {

void print_case(std::ostream& out, std::string_view id) {
    const Case* found = find_case(all_cases(), id);
    out << "    " << id;
    if (found != nullptr) out << "  (" << level_name(found->level) << ")  " << found->title;
    out << "\n";
    bool any = false;
    for (const auto* table : {&all_broken_testees(), &broken_testees_also_failed()}) {
        for (const BrokenTestee& broken : *table) {
            if (broken.case_id != id) continue;
            out << "        fails " << broken.name << ": " << broken.wrong << "\n";
            any = true;
        }
    }
    if (any) return;
    for (const CaseWithoutBroken& without : cases_without_broken()) {
        if (without.case_id == id) out << "        no broken testee: " << without.reason << "\n";
    }
}

}  // namespace

const std::vector<Clause>& all_clauses() {
    static const std::vector<Clause> clauses = [] {
        std::vector<Clause> made;
        add_layout_clauses(made);
        add_protocol_clauses(made);
        add_event_clauses(made);
        add_erratum_clauses(made);
        add_contract_clauses(made);
        return made;
    }();
    return clauses;
}

void print_clauses(std::ostream& out) {
    for (const Clause& clause : all_clauses()) {
        out << clause.reference << "  " << clause.text << "\n";
        for (const std::string_view id : clause.cases) print_case(out, id);
        if (clause.cases.empty()) out << "    no case: " << clause.reason << "\n";
    }
    out << "\n"
        << all_clauses().size() << " clauses, " << all_cases().size() << " cases, "
        << all_broken_testees().size() << " broken testees\n";
}

}  // namespace kmes::conformance
