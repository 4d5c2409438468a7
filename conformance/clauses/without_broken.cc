// SPDX-License-Identifier: MIT
//
// The cases without a broken testee, each with its reason. An entry that is no longer needed fails
// the test.
#include "conformance/clauses/clauses.h"

namespace kmes::conformance {

namespace {

constexpr std::string_view kOwnFile =
    "the events are those of a file of the user; the broken testees are meant for fixed events";

constexpr std::string_view kNobody = "it shows what no consumer can prevent";

}  // namespace

const std::vector<CaseWithoutBroken>& cases_without_broken() {
    static const std::vector<CaseWithoutBroken> cases = {
        {"5.1.8.1-2/lapped-in-part-between-two-loads",
         "the broken testees are meant for the case of a whole lap"},
        {"E4/data-before-the-second-load",
         "x86-64 keeps loads in order: what it would fail cannot go wrong on this machine"},
        {"contract-1/hole-in-the-cpus",
         "form D alone has holes, and these testees are of form A; a test has a broken twin"},
        {"published/tail-after-the-data", kNobody},
        {"published/wake-without-a-fence", kNobody},
        {"published/swap-without-a-nudge", kNobody},
        {"published/swap-without-a-fence", kNobody},
        {"stream/every-event", kOwnFile},
        {"stream/as-fast-as-possible", kOwnFile},
        {"stream/with-a-resize", kOwnFile},
        {"stream/between-sleeps", kOwnFile},
    };
    return cases;
}

}  // namespace kmes::conformance
