// SPDX-License-Identifier: MIT
//
// The words of a result: levels, verdicts, what one case gave. Knows no case and no way to print.
#ifndef KMES_CONFORMANCE_MODEL_VERDICT_H_
#define KMES_CONFORMANCE_MODEL_VERDICT_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kmes::conformance {

// In the order of `--level`: "up to".
enum class Level { must, should, erratum, robust };
inline constexpr std::array kLevels{Level::must, Level::should, Level::erratum, Level::robust};

enum class Verdict {
    pass,
    fail,
    inconclusive,  // this run lacked a means: it could not have shown the fault
    unsupported,   // this machine or testee cannot have it
    suite_error,   // the suite or its set-up failed; says nothing about the testee
};
inline constexpr std::array kVerdicts{Verdict::pass, Verdict::fail, Verdict::inconclusive,
                                      Verdict::unsupported, Verdict::suite_error};

// "must", "should", "erratum", "robust".
std::string_view level_name(Level level);
std::optional<Level> level_from_name(std::string_view name);

// "pass", "fail", "inconclusive", "unsupported", "suite_error".
std::string_view verdict_name(Verdict verdict);
std::optional<Verdict> verdict_from_name(std::string_view name);

struct RunRecord;

// How much an explored case has played.
struct Explored {
    std::uint64_t schedules = 0;
    double seconds = 0;
    bool whole = false;  // every point of its scenarios, and not only what the time allowed
    // Not played: the same as another one, by the equivalence of neighbouring accesses.
    std::uint64_t saved = 0;
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

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_VERDICT_H_
