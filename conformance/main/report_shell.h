// SPDX-License-Identifier: MIT
//
// For tests of reports, lists of failures and shards: a program whose cases fail as the test says.
#ifndef KMES_CONFORMANCE_MAIN_REPORT_SHELL_H_
#define KMES_CONFORMANCE_MAIN_REPORT_SHELL_H_

#include <map>
#include <string>

#include "conformance/main/report_commands.h"
#include "conformance/main/shell.h"

namespace kmes::conformance {

class ReportShell : public Shell {
  public:
    ReportShell() {
        cases = {case_of("5.1.5/a", Level::must), case_of("5.1.6/b", Level::must),
                 case_of("E2/c", Level::erratum, Demand::explored), case_of("E3/d", Level::erratum),
                 case_of("E9/e", Level::erratum)};
        commands = report_commands();
        act = [this](const Case& the_case) {
            const auto found = failures.find(std::string(the_case.id));
            if (found == failures.end()) return CaseOutcome{Verdict::pass, "", "", ""};
            return CaseOutcome{verdict, "E9", found->second, ""};
        };
    }

    std::map<std::string, std::string> failures;  // id and message
    Verdict verdict = Verdict::fail;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_REPORT_SHELL_H_
