// SPDX-License-Identifier: MIT
//
// The failure file (--save DIR, docs/failure-files.md): case, seed, schedule and both histories, as
// JSON. With it a run can be repeated, judged again and made smaller. Knows no stage and runs
// nothing. Treats what it reads as hostile.
#ifndef KMES_CONFORMANCE_FAILURE_FAILURE_FILE_H_
#define KMES_CONFORMANCE_FAILURE_FAILURE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/case.h"
#include "conformance/model/run_record.h"
#include "conformance/model/settings.h"

namespace kmes::conformance {

inline constexpr std::uint32_t kFailureFormat = 2;
// The limit for reading and writing. The writer leaves out what exceeds it.
inline constexpr std::size_t kMaximumFailureFileBytes = std::size_t{128} << 20;
inline constexpr std::size_t kMaximumFailureFileValues = 10'000'000;

struct FailureFile {
    std::string suite;  // kSuiteName of the suite that wrote it
    std::string case_id;
    Level level = Level::must;
    std::string clause;   // of the finding that is the verdict
    std::string message;  // of the same finding
    // The settings that a repetition of the run needs. `stop`, `verbose` and the like are not kept;
    // settings.schedule is record.schedule.
    StageSettings settings;
    std::string stepper;  // how the suite stopped at single accesses; empty: not known
    RunRecord record;
    // Only in a file written by `shrink`: the nearest schedule with which the case passes.
    std::optional<Schedule> nearest_passing;
};

// Makes the file of a failed outcome. An outcome without a record (a case with a verdict but no
// stage) gives a file that can be run again but not judged again.
FailureFile make_failure_file(const Case& the_case, const StageSettings& settings,
                              const CaseOutcome& outcome, std::string stepper = "");

// Returns valid JSON in valid UTF-8, at most kMaximumFailureFileBytes long.
std::string to_json(const FailureFile& file);

struct ReadFailure {
    FailureFile file;
    // One line: the field, what is wrong with it, and what would be correct. If not empty, `file`
    // is invalid.
    std::string error;
};
ReadFailure failure_from_json(std::string_view text);
// Reads the file at `path`; `error` names it.
ReadFailure read_failure_file(const std::string& path);

// "5.1.8.2/lost-wake-up" -> "5.1.8.2-lost-wake-up.json".
std::string failure_file_name(std::string_view case_id);

// Writes the whole file or nothing. Returns an empty string, or one line that says what is wrong.
std::string write_failure_file(const FailureFile& file, const std::string& path);

// The folder of --save. No file in it is ever overwritten: a second failure of a case becomes
// "NAME.2.json".
class FailureFolder {
  public:
    FailureFolder() = default;
    // Removes the folders that open() has created, if nothing was saved.
    ~FailureFolder();
    FailureFolder(const FailureFolder&) = delete;
    FailureFolder& operator=(const FailureFolder&) = delete;

    // Creates the folder if necessary, and checks that files can be written there, so that an error
    // is known before the run. Returns an empty string, or one line that says what is wrong.
    std::string open(const std::string& folder);

    struct Saved {
        std::string path;
        std::string error;  // one line; not empty: nothing was written
    };
    Saved save(const FailureFile& file) const;

  private:
    std::string folder_;
    std::vector<std::string> created_;  // the outer folder first
};

// Compare findings, histories and settings as a file contains them. If two differ, so do their
// files.
bool same_finding(const Finding& a, const Finding& b);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_FAILURE_FAILURE_FILE_H_
