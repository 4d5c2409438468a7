// SPDX-License-Identifier: MIT
//
// The command `selftest`: the suite tests itself. It plays each broken testee of the table in its
// case, and each correct one in a default run. Each has a process of this program. Knows no case,
// and not how a case is played.
#ifndef KMES_CONFORMANCE_MAIN_SELFTEST_H_
#define KMES_CONFORMANCE_MAIN_SELFTEST_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/main/program.h"
#include "conformance/model/stop_flag.h"

namespace kmes::conformance {

// A testee of the table.
struct SelftestEntry {
    bool broken = false;
    std::string name;
    std::string language;
    std::string case_id;  // the case that should fail it; "- reason": none can; correct: empty
    std::vector<std::string> program;  // relative to the folder of the runner
};

struct SelftestTable {
    std::vector<SelftestEntry> entries;
    std::string error;  // one line; if not empty, the table is invalid
};

// Parses one line for each testee, with tabs between the fields: broken|correct, name, language,
// case, program and arguments. Lines that begin with # are comments.
SelftestTable parse_selftest_table(std::string_view text);

// The result of one run of the suite on a testee.
struct SelftestRun {
    int status = 3;                    // exit status of the runner
    std::vector<std::string> failed;   // ids of the cases that failed
    std::string trouble;               // one line, if there is no report
    std::vector<std::string> in_part;  // ids of cases that passed, but were cut short by time
    bool interrupted = false;          // a signal ended the run before its end
};

// Runs the runner with `arguments`, which exclude its name. Tests replace it.
using SelftestRunner = std::function<SelftestRun(const std::vector<std::string>& arguments)>;

// `folder`: the runner's folder, which contains main/selftest.table and testees/.
Command selftest_command(std::string folder, SelftestRunner runner);

// Runs /proc/self/exe in a process of its own. If `stop` is set, passes its signal on to that
// process and waits for its end.
SelftestRun run_myself(const std::vector<std::string>& arguments, const StopFlag& stop);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SELFTEST_H_
