// SPDX-License-Identifier: MIT
//
// All cases, in the order in which they run: from the first call to the most demanding.
#include "conformance/cases/registry.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "conformance/cases/former_ids.h"
#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

void add_former_ids(std::vector<Case>& cases) {
    for (const FormerId& each : former_ids()) {
        const auto found = std::ranges::find(cases, each.id, &Case::id);
        if (found == cases.end()) throw std::logic_error("no case " + std::string(each.id));
        found->former_id = each.former_id;
    }
}

}  // namespace

const std::vector<Case>& all_cases() {
    static const std::vector<Case> cases = [] {
        std::vector<Case> made;
        const auto add = [&made](const auto&... tables) {
            (made.insert(made.end(), tables.begin(), tables.end()), ...);
        };
        add(kAttachCases, kFirstEndCases, kFirstBufferCases, kEventCases, kPositionCases,
            kDrainCases);
        // Before all other cases with a resize, because the simplest of them names a mistake best.
        add(kFirstResizeCases, kManyFdCases, kNextBufferCases, kLapCases, kOvertakenCases,
            kOneByOneCases, kPendingCases, kThousandUnreadCases, kBacklogCases, kSleepCases,
            kStoreBufferCases, kResizeCases, kOvertakenScanCases, kSeveralChangeCases, kSwitchCases,
            kLaterAttachCases, kBurstCases, kPositionStepCases, kSeveralCpuCases, kOtherCpuCases,
            kOldPositionCases, kLargeHeaderCases, kGapOverSwapCases, kRecordCases,
            kSpuriousWakeCases, kOtherEndCases, kManyCpuCases, kThreeHundredCases, kMebibyteCases,
            kFullNextBufferCases, kZeroPositionCases, kLeftFlagCases, kSizeCases, kEndedCpuCases,
            kUnusualIterationCases, kIndependentCpuCases, kLoadCases, kExploredCases, kNumberCases,
            kMuchCases, kInterruptedAttachCases, kLeakCases, kIdleCases, kStreamCases, kSharedCases,
            kAsPublishedCases, kOneImageCases, kEventImageCases, kPageImageCases);
        add_former_ids(made);
        return made;
    }();
    return cases;
}

}  // namespace kmes::conformance
