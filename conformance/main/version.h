// SPDX-License-Identifier: MIT
//
// The lines that --version prints.
#ifndef KMES_CONFORMANCE_MAIN_VERSION_H_
#define KMES_CONFORMANCE_MAIN_VERSION_H_

#include <string>

#include "conformance/report/run_report.h"

namespace kmes::conformance {

// The release (the file VERSION), the commit, and the versions of the ring format and of the testee
// contract, each line with a newline. `tools/kmes package` compiles the commit in. Without that,
// `commit_of_tree` is the commit, and an empty one is unknown.
std::string version_text(const std::string& commit_of_tree);

// The same for reports.
SuiteVersion suite_version(const std::string& commit_of_tree);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_VERSION_H_
