// SPDX-License-Identifier: MIT
//
// The two lists of a run, --known-failures and --expect-unsupported: reads them before the run, and
// compares the report with them after it. Knows no form of a report.
#ifndef KMES_CONFORMANCE_MAIN_CASE_LISTS_H_
#define KMES_CONFORMANCE_MAIN_CASE_LISTS_H_

#include <string>
#include <vector>

#include "conformance/main/expected.h"
#include "conformance/main/known_failures.h"
#include "conformance/main/options.h"
#include "conformance/main/program.h"
#include "conformance/report/output_file.h"
#include "conformance/report/run_report.h"

namespace kmes::conformance {

class CaseLists {
  public:
    CaseLists(const Options& options, const Surroundings& around)
        : options_(options), around_(around) {}

    // Checks before the run that the lists can be read and, if necessary, written. Returns 0, or
    // says what is wrong and returns the exit status.
    int open(bool is_shard);

    // Call it after the run: marks the known failures, and fills in the differences. An interrupted
    // run reports none. A list is fixed only if the run is whole and `may_fix` is true. Returns why
    // it could not be written, or an empty string.
    std::string settle(RunReport& report, bool may_fix);

  private:
    int open_known_failures(bool is_shard);
    std::vector<ListDifference> settle_known_failures(RunReport& report, bool may_fix,
                                                      std::string& trouble);
    void set_parts_aside(RunReport& report) const;

    const Options& options_;
    const Surroundings& around_;
    KnownFailures known_;
    CaseList expected_;
    OutputFile known_file_{"known-failures file"};
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_CASE_LISTS_H_
