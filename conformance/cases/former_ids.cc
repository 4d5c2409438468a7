// SPDX-License-Identifier: MIT
//
// See former_ids.h.
#include "conformance/cases/former_ids.h"

namespace kmes::conformance {

const std::vector<FormerId>& former_ids() {
    static const std::vector<FormerId> ids{
        {"5.1.8.1-2/lapped-between-two-looks", "5.1.8.1-2/lapped-between-two-loads"},
        {"5.1.8.1-2/lapped-in-part-between-two-looks",
         "5.1.8.1-2/lapped-in-part-between-two-loads"},
        {"5.1.8.1-5/end-lapped-at-every-look", "5.1.8.1-5/end-lapped-at-every-load"},
        {"5.1.8.1-5/explored-tear", "5.1.8.1-5/explored-overwrite"},
        {"5.1.8.1-5/lapped-at-every-look", "5.1.8.1-5/lapped-at-every-load"},
        {"5.1.8.1-5/large-event-lapped-behind-every-look",
         "5.1.8.1-5/large-event-lapped-after-every-load"},
        {"5.1.8.1-5/long-type-lapped-behind-every-look",
         "5.1.8.1-5/long-type-lapped-after-every-load"},
        {"5.1.8.1-5/without-payload-lapped-behind-every-look",
         "5.1.8.1-5/without-payload-lapped-after-every-load"},
        {"5.1.8.1-5/torn-by-what-is-not-published", "5.1.8.1-5/torn-by-an-unpublished-event"},
        {"5.1.8.1-5/torn-wherever-it-lies", "5.1.8.1-5/torn-at-the-end-of-the-region"},
        {"5.1.8.1-5/torn-reads-leave-nothing", "5.1.8.1-5/torn-reads-are-released"},
        {"5.1.8.2-6/event-after-a-wake-for-nothing", "5.1.8.2-6/event-after-a-spurious-wake"},
        {"5.1.8.2-6/event-after-many-wakes-for-nothing",
         "5.1.8.2-6/event-after-many-spurious-wakes"},
        {"5.1.8.3-5/nothing-twice", "5.1.8.3-5/no-event-twice"},
        {"5.1.8.3-6/closes-what-it-leaves", "5.1.8.3-6/closes-retired-buffers"},
        {"E1/full-barrier-after-unusual-rounds", "E1/full-barrier-after-unusual-iterations"},
        {"E15/nudged-between-two-looks", "E15/nudged-between-two-loads"},
        {"E19/swap-behind-the-mmap", "E19/swap-after-the-mmap"},
        {"E19/swap-with-events-behind-the-mmap", "E19/swap-with-events-after-the-mmap"},
        {"E2/event-at-every-step-after-unusual-rounds",
         "E2/event-at-every-step-after-unusual-iterations"},
        {"E2/no-limit-instead-of-a-second-look", "E2/no-limit-instead-of-a-second-load"},
        {"E21/event-behind-swaps-without-events", "E21/event-after-swaps-without-events"},
        {"E24/full-of-the-smallest-as-it-looks", "E24/full-ring-at-its-load-of-generation"},
        {"E24/swap-at-every-step-after-unusual-rounds",
         "E24/swap-at-every-step-after-unusual-iterations"},
        {"E24/swap-at-every-step-of-an-empty-round",
         "E24/swap-at-every-step-of-an-empty-iteration"},
        {"E3/swap-after-a-wake-for-nothing", "E3/swap-after-a-spurious-wake"},
        {"E3/swap-after-many-wakes-for-nothing", "E3/swap-after-many-spurious-wakes"},
        {"E3/swap-at-every-step-after-unusual-rounds",
         "E3/swap-at-every-step-after-unusual-iterations"},
        {"E4/data-before-second-look", "E4/data-before-the-second-load"},
        {"E7/forged-in-what-is-left-to-drain", "E7/forged-in-a-replaced-buffer"},
        {"contract-3/a-change-is-told-before-it-sleeps",
         "contract-3/a-change-is-reported-before-it-sleeps"},
        {"contract-4/exits-behind-its-last-record", "contract-4/exits-after-its-last-record"},
    };
    return ids;
}

}  // namespace kmes::conformance
