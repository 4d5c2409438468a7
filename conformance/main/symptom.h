// SPDX-License-Identifier: MIT
//
// What failures with one reason have in common, whatever their cases test: a crash at one place,
// one wrong field. It is derived from the finding. Knows no case and no testee.
#ifndef KMES_CONFORMANCE_MAIN_SYMPTOM_H_
#define KMES_CONFORMANCE_MAIN_SYMPTOM_H_

#include <string>
#include <string_view>

#include "conformance/model/finding.h"

namespace kmes::conformance {

struct Symptom {
    std::string cause;  // "exit status 3"; empty: the clause identifies it
    // The clause is that of the case, because the fault may have any reason.
    bool is_assumed = false;
};

// The causes that other files compare, or the beginning of each.
inline constexpr std::string_view kEventPassedOver = "an event that is passed over";
inline constexpr std::string_view kSleepOnOldEvent = "a sleep on an old event";
inline constexpr std::string_view kExitStatusPrefix = "exit status ";
inline constexpr std::string_view kSignalPrefix = "signal ";
inline constexpr std::string_view kStorePrefix = "write-outside ";
inline constexpr std::string_view kRefusalPrefix = "a refusal: ";
inline constexpr std::string_view kOtherRecordPrefix = "a record with another ";
inline constexpr std::string_view kBufferKeptPrefix = "a malformed buffer kept: ";
inline constexpr std::string_view kStandstillPrefix = "a standstill: ";

// The reasons that a trace can show.
inline constexpr std::string_view kCapacityOfAnotherBuffer = "the capacity of another buffer";

Symptom symptom_of(const Finding& finding, std::string_view case_clause);

// The reason that a message names after its cause, where the trace of the run has shown it; empty:
// it names none.
std::string_view root_of(std::string_view message);

// The clause that a reason breaks.
std::string_view clause_of_root(std::string_view root);

// Whether the fault looks the same in every case, so that any case shows it equally well.
bool is_same_everywhere(std::string_view cause);

// The clause that a cause is about, if a case of that clause shows it; empty: there is none.
std::string_view subject_of_cause(std::string_view cause);

// The function, or else the instruction, of a cause that is an access to a wrong address: a
// SIGSEGV, a SIGBUS, or a store that the contract forbids. Without the variation of the case in
// which it happened. Empty: the cause is another, or the place is not known.
std::string_view place_of_access(std::string_view cause);

// The clause that a cause implies, whatever the cases test.
std::string_view clause_of_cause(std::string_view cause);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SYMPTOM_H_
