// SPDX-License-Identifier: MIT
//
// Failures that a project knows and has not mended yet (--known-failures): a list that fails the
// run when it is stale, and is rewritten on demand.
#ifndef KMES_CONFORMANCE_MAIN_KNOWN_FAILURES_H_
#define KMES_CONFORMANCE_MAIN_KNOWN_FAILURES_H_

#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/case.h"
#include "conformance/report/run_report.h"

namespace kmes::conformance {

// A line of the file: a case id, a space, the clause in brackets, a space, the message. Lines that
// begin with '#' and empty ones are comments. The clause is that of the finding: it does not depend
// on the other failures of the run.
class KnownFailures {
  public:
    // Empty, or one line that says what is wrong. A file that is missing is an error, unless
    // `may_be_missing`.
    std::string read(const std::string& path, bool may_be_missing);

    // Marks the failures of the report that are listed with their message. A line for each
    // difference: a listed case that passed, that failed with another message, or that `cases` does
    // not have. A listed case that did not run, or that is not decided, is no difference.
    std::vector<std::string> compare(const std::vector<Case>& cases, RunReport& report) const;

    // The text of the file that fits the run: comments stay, and so do the lines of cases that did
    // not run or are not decided. New failures follow at the end.
    std::string fixed(const std::vector<Case>& cases, const RunReport& report) const;

  private:
    struct Line {
        std::string id;    // empty: a comment
        std::string rest;  // of a comment the whole line
    };
    const Line* find(std::string_view id) const;

    std::string path_;
    std::vector<Line> lines_;
};

// The message of a failure with '#' for each number. Numbers may differ from run to run: positions,
// sequence numbers, processes.
std::string without_numbers(std::string_view text);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_KNOWN_FAILURES_H_
