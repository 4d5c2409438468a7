// SPDX-License-Identifier: MIT
//
// What failures have in common that have one reason, whatever their cases test: a crash at one
// place, one wrong field. Read off the finding. Knows no case and no testee.
#ifndef KMES_CONFORMANCE_MAIN_SYMPTOM_H_
#define KMES_CONFORMANCE_MAIN_SYMPTOM_H_

#include <string>
#include <string_view>

#include "conformance/model/finding.h"

namespace kmes::conformance {

struct Symptom {
    std::string cause;  // "exit status 3"; empty: the clause says it
    bool is_assumed =
        false;  // the clause is that of the case, because the fault may have any reason
};

// Causes that another fault of the run can explain (attribution.h).
inline constexpr std::string_view kEventPassedOver = "an event that is passed over";
inline constexpr std::string_view kSleepOnOldEvent = "a sleep on an old event";
inline constexpr std::string_view kExitStatusPrefix = "exit status ";

Symptom symptom_of(const Finding& finding, std::string_view case_clause);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SYMPTOM_H_
