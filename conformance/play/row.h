// SPDX-License-Identifier: MIT
//
// A case as a row of a table, and the functions that play it.
#ifndef KMES_CONFORMANCE_PLAY_ROW_H_
#define KMES_CONFORMANCE_PLAY_ROW_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/model/case.h"
#include "conformance/play/steps.h"
#include "conformance/stage/rings.h"

namespace kmes::conformance {

// The end of a row: see Ending.
enum class RowEnd {
    drained,   // the testee must drain every CPU and exit
    tolerant,  // it may also rest on a tolerated CPU
    refused,   // it must refuse every buffer
};

// The rings and the environment of the testee.
struct Setup {
    std::uint32_t cpus = 0;  // 0: that of the command line
    Amount capacity = usual();
    std::function<void(RingsSetup&)> rings = {};  // changes the other settings of the rings
    std::optional<Amount> position = {};          // of CPU 0 at the start; none: 0 on all CPUs
    std::uint64_t position_step = 0;              // added to the position for each further CPU
    Steps before_start = {};                      // played before the testee starts
    std::int64_t wake_result = 0;                 // see Hooks::set_wake_result
    bool nudging = true;                          // see Nudges::set_on
    bool shortened_waits = false;                 // see ShortenedWaits
    RowEnd end = RowEnd::drained;
    bool failing_attach = false;   // for FailAttach; turns nudging off
    bool stops_at_writes = false;  // to the report: see Hooks::set_on_report_write
};
inline const Setup kOneCpu{.cpus = 1};

// The texts of a case: see Case. They are static.
struct CaseText {
    std::string_view id;
    Level level = Level::must;
    std::string_view title;
    std::string_view description;
    std::string_view expectation;
    std::string_view other_clause = {};
};

// One case. The suite sets up the rings, starts the testee, plays the steps, and ends with the end
// event on every CPU and the judge's verdict. A script does all of that itself.
struct Row {
    Row(const CaseText& case_text, Steps played, Setup surroundings = {},
        Demand asked_for = Demand::always)
        : text(case_text),
          steps(std::move(played)),
          setup(std::move(surroundings)),
          demand(asked_for) {}
    Row(const CaseText& case_text, CaseFunction whole, Demand asked_for = Demand::always)
        : text(case_text), script(std::move(whole)), demand(asked_for) {}

    CaseText text;
    Steps steps;
    Setup setup;
    CaseFunction script;
    Demand demand = Demand::always;
};

// The case of a row. The row must outlive it.
Case case_of(const Row& row);

// A case for each row. The rows must outlive the cases. A failure of a row that is no script has a
// schedule (row_schedule.h). If the one play that failed also fails alone, the schedule has only
// that play.
std::vector<Case> cases_of(std::span<const Row> rows);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_ROW_H_
