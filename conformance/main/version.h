// SPDX-License-Identifier: MIT
//
// The lines that --version prints.
#ifndef KMES_CONFORMANCE_MAIN_VERSION_H_
#define KMES_CONFORMANCE_MAIN_VERSION_H_

#include <string>

#include "conformance/report/run_report.h"

namespace kmes::conformance {

// Returns one line each for the release (the file VERSION), the commit, and the versions of the
// ring format and of the testee contract. `tools/kmes package` compiles the commit in. Otherwise
// the commit is `commit_of_tree`; if that is empty, it is unknown.
std::string version_text(const std::string& commit_of_tree);

// The versions for reports.
SuiteVersion suite_version(const std::string& commit_of_tree);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_VERSION_H_
