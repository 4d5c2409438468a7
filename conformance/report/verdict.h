// SPDX-License-Identifier: MIT
//
// The words of a result: levels, verdicts, what one case gave. Knows no case and no way to print.
#ifndef KMES_CONFORMANCE_REPORT_VERDICT_H_
#define KMES_CONFORMANCE_REPORT_VERDICT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kmes::conformance {

// In the order of `--level`: "up to".
enum class Level { must, should, erratum, robust };

enum class Verdict {
    pass,
    fail,
    inconclusive,  // this run lacked a means: it could not have shown the fault
    unsupported,   // this machine or testee cannot have it
    suite_error,   // the suite or its set-up failed; says nothing about the testee
};

// "must", "should", "erratum", "robust".
std::string_view level_name(Level level);
std::optional<Level> level_from_name(std::string_view name);

// "pass", "fail", "inconclusive", "unsupported", "suite_error".
std::string_view verdict_name(Verdict verdict);

struct RunRecord;  // conformance/failure

// How much an explored case has played.
struct Explored {
    std::uint64_t schedules = 0;
    double seconds = 0;
    bool whole = false;  // every point of its scenarios, and not only what the time allowed
};

// Begins the message of a pass of which something was not played, and says what.
inline constexpr std::string_view kInPart = "in part: ";

// What a case says about its run. `clause` and `message` may be empty for a pass.
struct CaseOutcome {
    Verdict verdict = Verdict::suite_error;
    std::string clause;   // of the finding: may be another than the case's
    std::string message;  // one line
    std::string details;  // many lines, shown with -v and for what is not a pass: history excerpt,
                          // stderr of the testee
    std::shared_ptr<const RunRecord> record = nullptr;  // of a failure: for --save and the picture
    std::optional<Explored> explored = std::nullopt;    // of a case that explores
    bool has_hung = false;  // it failed by a limit of time: nothing came in it
};

// An outcome with what the run adds.
struct CaseResult {
    std::string id;
    Level level = Level::must;
    Verdict verdict = Verdict::suite_error;
    std::string clause;
    std::string message;
    // Of a failure: what the case does, and what a right testee does then.
    std::string what_is_done;
    std::string what_is_right;
    double seconds = 0;
    std::string replay;  // the command that runs this case alone, the same way
    std::string details;
    std::string picture;  // of a failure, for a person: many lines, or one that says how to see it
    std::optional<Explored> explored;
    std::string saved;  // the file of this failure (--save); empty: none
};

struct Summary {
    std::uint64_t pass = 0;
    std::uint64_t fail = 0;
    std::uint64_t inconclusive = 0;
    std::uint64_t unsupported = 0;
    std::uint64_t suite_error = 0;
};

Summary summarise(const std::vector<CaseResult>& results);

// Exit status of a whole run.
inline constexpr int kExitClean = 0;         // nothing failed and nothing inconclusive
inline constexpr int kExitFailed = 1;        // some failed
inline constexpr int kExitUsage = 2;         // bad usage
inline constexpr int kExitSuite = 3;         // the suite or its set-up failed: outranks the others
inline constexpr int kExitInconclusive = 4;  // inconclusive only

int exit_status(const Summary& summary);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_VERDICT_H_
