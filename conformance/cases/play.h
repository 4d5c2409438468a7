// SPDX-License-Identifier: MIT
//
// Shared by several files of cases: the texts, and the functions that add the cases of each file.
#ifndef KMES_CONFORMANCE_CASES_PLAY_H_
#define KMES_CONFORMANCE_CASES_PLAY_H_

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/model/case.h"
#include "conformance/play/play.h"
#include "conformance/play/row.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {

// Keeps a text until the program ends, because the texts of cases are static.
std::string_view kept_text(std::string text);

// A text of a case with the numbers of the current form of the layout.
template <typename... Numbers>
std::string_view in_layout(fmt::format_string<Numbers...> text, Numbers&&... numbers) {
    return kept_text(fmt::format(text, std::forward<Numbers>(numbers)...));
}

// The name of the error that kmes_attach returns in the boot phase: "EAGAIN".
std::string_view name_of_error_before_rings();

// Ends a case that makes no sense in this form of the layout: unsupported, with the reason.
[[noreturn]] void stop_not_applicable(std::string_view why);
// A step that stops a case which has no meaning where header_size is exactly the header and the
// type.
struct RequireLongerHeaders {
    void operator()(Stage& stage) const;
};

// Formats a number as "139,810".
std::string grouped(std::uint64_t number);

// The columns that several rows have in common. Each row is a call with the other columns.
struct Common {
    Level level;
    std::string_view description;
    std::string_view expectation;
    std::string_view other_clause = {};

    CaseText operator()(std::string_view id, std::string_view title) const {
        return {id, level, title, description, expectation, other_clause};
    }
};

// Tables of cases.
extern const std::vector<Case> kAttachCases, kFirstEndCases, kFirstBufferCases, kEventCases,
    kPositionCases, kNextBufferCases, kLaterAttachCases, kPositionStepCases, kOldPositionCases,
    kLargeHeaderCases, kRecordCases, kOtherEndCases, kManyCpuCases, kThreeHundredCases,
    kMebibyteCases, kZeroPositionCases, kSizeCases, kEndedCpuCases, kLoadCases, kExploredCases,
    kNumberCases, kMuchCases, kInterruptedAttachCases, kLeakCases, kSharedCases, kAsPublishedCases,
    kOneImageCases, kEventImageCases, kPageImageCases, kSeveralCpuCases, kOtherCpuCases,
    kBacklogCases, kDrainCases, kBurstCases, kLapCases, kOvertakenCases, kOvertakenScanCases,
    kPendingCases, kSleepCases, kLeftFlagCases, kSpuriousWakeCases, kUnusualIterationCases,
    kFirstResizeCases, kResizeCases, kSeveralChangeCases, kGapOverSwapCases, kThousandUnreadCases,
    kFullNextBufferCases, kStreamCases, kManyFdCases, kOneByOneCases, kStoreBufferCases,
    kSwitchCases, kIndependentCpuCases, kIdleCases;

// Expectations of cases in several files.
inline constexpr std::string_view kDelivers =
    "The consumer delivers every event and never sleeps on an unread one.";
inline constexpr std::string_view kFollows =
    "The consumer moves to each new buffer and never sleeps on an old one.";
inline constexpr std::string_view kEachOnce = "The consumer delivers every event once, in order.";
inline constexpr std::string_view kOwnBytes =
    "The consumer delivers every event once, in order, with its own bytes.";
inline constexpr std::string_view kDeliversWhole = "The consumer delivers each event whole.";
inline constexpr std::string_view kReadsNothingLater =
    "The consumer reads nothing of an event after its last load of tail_pos.";
inline constexpr std::string_view kContinuesAtTail = "The consumer continues at tail_pos.";
inline constexpr std::string_view kFindsPlace =
    "The consumer begins at tail_pos and finds its place by sequence number.";

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_CASES_PLAY_H_
