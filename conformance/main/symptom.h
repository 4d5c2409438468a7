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

// The causes that others compare, or the begin of each.
inline constexpr std::string_view kEventPassedOver = "an event that is passed over";
inline constexpr std::string_view kSleepOnOldEvent = "a sleep on an old event";
inline constexpr std::string_view kExitStatusPrefix = "exit status ";
inline constexpr std::string_view kSignalPrefix = "signal ";
inline constexpr std::string_view kRefusalPrefix = "a refusal: ";
inline constexpr std::string_view kOtherRecordPrefix = "a record with another ";
inline constexpr std::string_view kBufferKeptPrefix = "a malformed buffer kept: ";
inline constexpr std::string_view kStandstillPrefix = "a standstill: ";

Symptom symptom_of(const Finding& finding, std::string_view case_clause);

// Whether the fault looks the same in every case, so that any case shows it as well as another.
bool is_same_everywhere(std::string_view cause);

// The clause of a cause by itself, whatever the cases test.
std::string_view clause_of_cause(std::string_view cause);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SYMPTOM_H_
