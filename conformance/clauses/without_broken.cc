// SPDX-License-Identifier: MIT
//
// The cases that no broken testee is there for, each with its reason. One that is not needed any
// more fails the test.
#include "conformance/clauses/clauses.h"

namespace kmes::conformance {

const std::vector<CaseWithoutBroken>& cases_without_broken() {
    static const std::vector<CaseWithoutBroken> cases = {
        {"5.1.6.1/other-data-offset", "the level robust is being filled"},
        {"E7/event-size-29", "the level robust is being filled"},
        {"E7/event-size-beyond-write-pos", "the level robust is being filled"},
        {"E7/event-size-huge", "the level robust is being filled"},
        {"E7/event-size-one", "the level robust is being filled"},
        {"E7/event-size-zero", "the level robust is being filled"},
        {"E7/header-size-beyond-event", "the level robust is being filled"},
        {"E7/header-size-huge", "the level robust is being filled"},
        {"E7/tail-beyond-write-pos", "the level robust is being filled"},
        {"E7/type-beyond-header", "the level robust is being filled"},
        {"E7/type-empty", "the level robust is being filled"},
        {"E7/write-pos-far-ahead", "the level robust is being filled"},
        {"E4/data-before-second-look",
         "x86-64 keeps loads in order: what it would fail cannot go wrong on this machine"},
    };
    return cases;
}

}  // namespace kmes::conformance
