// SPDX-License-Identifier: MIT
//
// Failures that a project knows and has not fixed yet (--known-failures): a list that fails the run
// when it is stale, and can be rewritten on demand.
#ifndef KMES_CONFORMANCE_MAIN_KNOWN_FAILURES_H_
#define KMES_CONFORMANCE_MAIN_KNOWN_FAILURES_H_

#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/case.h"
#include "conformance/report/run_report.h"

namespace kmes::conformance {

// A line of the file has a case id, a space, the clause in brackets, a space and the message. Empty
// lines and lines that begin with '#' are comments. A line may end with CR LF. Clause and message
// are those of the first run of the case, without its evidence. They do not depend on the other
// failures of the run, on its shards, or on the form of its reports.
class KnownFailures {
  public:
    // Returns an empty string, or one line that says what is wrong. A missing file is an error
    // unless `may_be_missing`.
    std::string read(const std::vector<Case>& cases, const std::string& path, bool may_be_missing);

    // Marks the failures of the report that are listed with their message. Returns one line for
    // each listed case that passed, that failed with another message, or that `cases` does not
    // contain. A listed case that did not run or is undecided is no difference.
    std::vector<ListDifference> compare(const std::vector<Case>& cases, RunReport& report) const;

    // Returns the text of a file that fits the run. It keeps comments, and the lines of cases that
    // did not run or are undecided. New failures are appended.
    std::string updated_text(const std::vector<Case>& cases, const RunReport& report) const;

  private:
    struct Line {
        std::string id;    // empty: a comment
        std::string rest;  // for a comment, the whole line
        std::string end;   // "\n" or "\r\n"
    };
    const Line* find(std::string_view id) const;

    std::string path_;
    std::string beginning_;        // a byte order mark, or nothing
    std::string line_end_ = "\n";  // that of the last line, and of new ones
    std::vector<Line> lines_;
};

// The message of a failure with '#' for each number. Numbers may differ from run to run: positions,
// sequence numbers, processes.
std::string without_numbers(std::string_view text);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_KNOWN_FAILURES_H_
