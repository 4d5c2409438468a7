// SPDX-License-Identifier: MIT
//
// The file of a failure (--save DIR, docs/failure-files.md): case, seed, schedule and both
// histories, as JSON, so that the run can be done again, judged again and made smaller. Knows no
// stage and runs nothing. What it reads is hostile.
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
// A longer file is not read, and none is written: what is too long is left out of it.
inline constexpr std::size_t kMaximumFailureFileBytes = std::size_t{128} << 20;

struct FailureFile {
    std::string suite;  // kSuiteName of the suite that wrote it
    std::string case_id;
    Level level = Level::must;
    std::string clause;   // of the finding that is the verdict
    std::string message;  // likewise
    // Of the settings, what a run can be done again with. `stop`, `verbose` and the like are not
    // kept; settings.schedule is record.schedule.
    StageSettings settings;
    std::string stepper;  // how single accesses were stopped at; empty: not known
    RunRecord record;
    // In a file that `shrink` wrote: the schedule nearest to this one with which the case passes.
    std::optional<Schedule> nearest_passing;
};

// The file of a failed outcome. An outcome without a record (a case that came to its verdict
// without a stage) gives a file that can be run again and not judged again.
FailureFile make_failure_file(const Case& the_case, const StageSettings& settings,
                              const CaseOutcome& outcome, std::string stepper = "");

// Always valid JSON in valid UTF-8, at most kMaximumFailureFileBytes long.
std::string to_json(const FailureFile& file);

struct ReadFailure {
    FailureFile file;
    // One line: the field, what is wrong with it and what would be right. Not empty: `file` is not
    // to be used.
    std::string error;
};
ReadFailure failure_from_json(std::string_view text);
// The same from a path; `error` names the file.
ReadFailure read_failure_file(const std::string& path);

// "5.1.8.2/lost-wake-up" -> "5.1.8.2-lost-wake-up.json".
std::string failure_file_name(std::string_view case_id);

// Writes the whole file or none. Empty, or one line that says what is wrong.
std::string write_failure_file(const FailureFile& file, const std::string& path);

// The folder of --save. No file in it is ever written over: a second failure of a case becomes
// "NAME.2.json".
class FailureFolder {
  public:
    // Makes the folder where it is missing, and makes sure that files can be written there, so that
    // it is known before the run. Empty, or one line that says what is wrong.
    std::string open(const std::string& folder);

    struct Saved {
        std::string path;
        std::string error;  // one line; not empty: nothing was written
    };
    Saved save(const FailureFile& file) const;

  private:
    std::string folder_;
};

// Findings, histories and settings as the file has them; what differs is no longer the same file.
bool same_finding(const Finding& a, const Finding& b);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_FAILURE_FAILURE_FILE_H_
