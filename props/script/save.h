// SPDX-License-Identifier: MIT
//
// What a failed test says of its script: the text, and how to see it fail again.
#ifndef KMES_PROPS_SCRIPT_SAVE_H_
#define KMES_PROPS_SCRIPT_SAVE_H_

#include <string>
#include <string_view>

#include "props/script/script.h"

namespace kmes::props {

// Writes the script where Bazel keeps a test's files ($TEST_UNDECLARED_OUTPUTS_DIR; afterwards in
// test.outputs of the test's log folder) as NAME-HASH.kmes, one file for each script. Its path; ""
// where there is no such folder, or it cannot be written.
std::string save_failed_script(const Script& script, std::string_view name);

// The text, and below it the line that says how to play it again; the script is saved.
std::string failed_script_text(const Script& script, std::string_view name);

}  // namespace kmes::props

#endif  // KMES_PROPS_SCRIPT_SAVE_H_
