// SPDX-License-Identifier: MIT
//
// The commands on JSON reports: merge and verify. They run nothing. What they read is hostile.
#ifndef KMES_CONFORMANCE_MAIN_REPORT_COMMANDS_H_
#define KMES_CONFORMANCE_MAIN_REPORT_COMMANDS_H_

#include <string>
#include <vector>

#include "conformance/main/program.h"
#include "conformance/report/run_report.h"

namespace kmes::conformance {

std::vector<Command> report_commands();

struct Merged {
    RunReport report;
    std::vector<std::string> missing;  // lines about shards and cases that no file has
    std::string error;                 // one line; not empty: the files do not belong together
};

// The report of the whole run from those of its shards. `names` are the files, for the lines.
// Cases are in the order of the whole run; those that no shard has are in not_run.
Merged merge_shards(const std::vector<RunReport>& shards, const std::vector<std::string>& names);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_REPORT_COMMANDS_H_
