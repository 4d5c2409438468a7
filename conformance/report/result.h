// SPDX-License-Identifier: MIT
//
// The result of a case, the summary of a run, and its exit status. Knows no way to print.
#ifndef KMES_CONFORMANCE_REPORT_RESULT_H_
#define KMES_CONFORMANCE_REPORT_RESULT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/model/finding.h"
#include "conformance/model/verdict.h"
#include "conformance/report/trace.h"

namespace kmes::conformance {

// Longer texts of a report are cut: a reader refuses very long ones.
inline constexpr std::size_t kTextBytesInAReport = 16384;

// An outcome with what the run adds to it.
struct CaseResult {
    std::string id;
    std::string title;
    Level level = Level::must;
    Verdict verdict = Verdict::suite_error;
    std::string clause;
    // The clause of the finding itself; `clause` takes the other failures into account.
    std::string found_clause;
    // The clause and the message of the first run of a failure, for --known-failures. A second run,
    // which only some reports need, does not change them.
    std::string listed_clause;
    std::string listed_message;
    std::string message;
    // For a failure: what the case does, and what a correct testee then does.
    std::string what_is_done;
    std::string what_is_right;
    double seconds = 0;
    std::string replay;  // the command that repeats this case alone
    std::string details;
    // For a person: the trace of a failure, or one line that says how to get it.
    std::string drawing;
    std::optional<Explored> explored;
    // What a failure has in common with others, whatever their cases test.
    std::string cause;
    bool is_clause_assumed = false;
    // How many steps the first run of a failure had, without those that its trace adds: the size of
    // its scenario. 0: not known.
    std::uint64_t steps = 0;
    std::string saved;      // the failure file (--save); empty: none
    bool is_known = false;  // a failure that --known-failures lists with its message
    // The evidence of a failure, for reports that other programs read.
    std::vector<Finding> findings;  // in order of weight: the first is the verdict
    std::string history;            // of the CPU of the first finding: a line for each event
    std::string standard_error;     // of the testee: its end
    // After an exit or a crash, the first and the last line of the standard error, with dots
    // between; empty: nothing was written.
    std::string last_words;
    Trace trace;
};

struct Summary {
    std::uint64_t pass = 0;
    std::uint64_t fail = 0;
    std::uint64_t known = 0;  // of these, the failures that --known-failures lists
    std::uint64_t inconclusive = 0;
    std::uint64_t unsupported = 0;
    std::uint64_t suite_error = 0;
};

Summary summarise(const std::vector<CaseResult>& results);

// The exit statuses of a whole run.
inline constexpr int kExitClean = 0;   // nothing failed and nothing inconclusive
inline constexpr int kExitFailed = 1;  // some failures are not known
inline constexpr int kExitUsage = 2;   // bad usage
inline constexpr int kExitSuite =
    3;  // the suite or its set-up failed: takes precedence over the others
inline constexpr int kExitInconclusive = 4;  // no failure, but an inconclusive case

int exit_status(const Summary& summary);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_RESULT_H_
