// SPDX-License-Identifier: GPL-2.0-only
//
// The commands that use the kernel module's ioctls.
#ifndef KMES_KMOD_KMESCTL_MODULE_H_
#define KMES_KMOD_KMESCTL_MODULE_H_

#include <string>
#include <vector>

namespace kmes::kmesctl {

// Parses and runs one command. `words` exclude the name of the program. Returns the exit status: 0;
// 1 after an error of the module, or if it is not loaded; 2 for bad usage.
int run_module_command(const std::vector<std::string>& words);

}  // namespace kmes::kmesctl

#endif  // KMES_KMOD_KMESCTL_MODULE_H_
