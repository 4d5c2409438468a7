// SPDX-License-Identifier: MIT
//
// The command `selftest`: the suite proves itself. Every broken testee of the table is put through
// the case that is meant for it, and every correct one through a default run; each in a process of
// this same program. Knows no case and how none is played.
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
    std::string case_id;               // meant to fail it; "- reason": none can; correct: empty
    std::vector<std::string> program;  // relative to the folder of the runner
};

struct SelftestTable {
    std::vector<SelftestEntry> entries;
    std::string error;  // one line; not empty: the table cannot be used
};

// A line for each testee, fields separated by tabs: broken|correct, name, language, case, program
// and its arguments. Lines that begin with # are comments.
SelftestTable parse_selftest_table(std::string_view text);

// What a run of the suite on one testee gave.
struct SelftestRun {
    int status = 3;                    // exit status of the runner
    std::vector<std::string> failed;   // ids of the cases that failed
    std::string trouble;               // one line, where there is no report
    std::vector<std::string> in_part;  // ids of those that passed, and were cut short by time
    bool interrupted = false;          // a signal ended the run before its end
};

// `arguments` of the runner, without its name. For tests another one.
using SelftestRunner = std::function<SelftestRun(const std::vector<std::string>& arguments)>;

// `folder`: of the runner, with main/selftest.table and testees/ in it.
Command selftest_command(std::string folder, SelftestRunner runner);

// Runs /proc/self/exe in a process of its own. Where `stop` is set, passes its signal on to that
// process and waits for its end.
SelftestRun run_myself(const std::vector<std::string>& arguments, const StopFlag& stop);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SELFTEST_H_
