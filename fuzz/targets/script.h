// SPDX-License-Identifier: MIT
//
// The text of a script (docs/script-format.md): parsed, printed and parsed again, and played on the
// core beside the model. Text that is no script must be answered with an error, and no more.
#ifndef KMES_FUZZ_TARGETS_SCRIPT_H_
#define KMES_FUZZ_TARGETS_SCRIPT_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_script(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_SCRIPT_H_
