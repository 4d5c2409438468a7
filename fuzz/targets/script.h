// SPDX-License-Identifier: MIT
//
// The text of a script (docs/script-format.md): parsed, printed and parsed again, and played on the
// core and the model. Text that is no script must only give an error.
#ifndef KMES_FUZZ_TARGETS_SCRIPT_H_
#define KMES_FUZZ_TARGETS_SCRIPT_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_script(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_SCRIPT_H_
