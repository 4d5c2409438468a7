// SPDX-License-Identifier: MIT
//
// The levels, the verdicts, and the outcome of one case. Knows no case and no way to print.
#ifndef KMES_CONFORMANCE_MODEL_VERDICT_H_
#define KMES_CONFORMANCE_MODEL_VERDICT_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kmes::conformance {

// The order is that of `--level`, which includes all levels up to the given one.
enum class Level { must, should, erratum, robust };
inline constexpr std::array kLevels{Level::must, Level::should, Level::erratum, Level::robust};

enum class Verdict {
    pass,
    fail,
    inconclusive,  // this run lacked something: it could not have shown the fault
    unsupported,   // this machine or testee does not permit the case
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

// The extent of an explored case's plays.
struct Explored {
    std::uint64_t schedules = 0;
    double seconds = 0;
    bool whole = false;  // every point of its scenarios, not only those for which there was time
    // Plays left out, because an equivalent one was played (equivalence of neighbouring accesses).
    std::uint64_t saved = 0;
};

// The beginning of the message of a pass that has left something out. The rest of the message names
// it.
inline constexpr std::string_view kInPart = "in part: ";

// The outcome of one run of a case. `clause` and `message` may be empty for a pass.
struct CaseOutcome {
    Verdict verdict = Verdict::suite_error;
    std::string clause;   // of the finding: may differ from the case's
    std::string message;  // one line
    // Many lines, shown with -v and without a pass: history excerpt, standard error.
    std::string details;
    std::shared_ptr<const RunRecord> record = nullptr;  // of a failure: for --save and the trace
    std::optional<Explored> explored = std::nullopt;    // of a case that explores
    bool has_hung = false;  // it failed by a time limit without any progress
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_VERDICT_H_
