// SPDX-License-Identifier: MIT
//
// The commands on JSON reports: merge and verify. They run nothing, and treat their input as
// hostile.
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
    std::string error;                 // one line; if not empty, the files do not belong together
};

// Makes the report of the whole run from those of its shards. `names` are the files, for messages.
// Cases keep the order of the whole run. not_run has those that no shard contains.
Merged merge_shards(const std::vector<RunReport>& shards, const std::vector<std::string>& names);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_REPORT_COMMANDS_H_
