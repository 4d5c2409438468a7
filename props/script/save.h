// SPDX-License-Identifier: MIT
//
// The text that a failed test prints about its script, with a command that repeats the failure.
#ifndef KMES_PROPS_SCRIPT_SAVE_H_
#define KMES_PROPS_SCRIPT_SAVE_H_

#include <string>
#include <string_view>

#include "props/script/script.h"

namespace kmes::props {

// Writes the script as NAME-HASH.kmes to the folder where Bazel keeps a test's files, one file for
// each script. That is $TEST_UNDECLARED_OUTPUTS_DIR; afterwards it is test.outputs in the test's
// log folder. Returns the path; "" if there is no such folder, or it cannot be written.
std::string save_failed_script(const Script& script, std::string_view name);

// Returns the text, followed by the line that says how to play it again. Saves the script.
std::string failed_script_text(const Script& script, std::string_view name);

}  // namespace kmes::props

#endif  // KMES_PROPS_SCRIPT_SAVE_H_
