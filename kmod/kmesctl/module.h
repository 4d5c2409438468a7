// SPDX-License-Identifier: GPL-2.0-only
//
// The commands that ask the kernel module by its ioctls.
#ifndef KMES_KMOD_KMESCTL_MODULE_H_
#define KMES_KMOD_KMESCTL_MODULE_H_

#include <string>
#include <vector>

namespace kmes::kmesctl {

// Parses and runs one command, the words of the command line without the name of the program. The
// exit status: 0; 1 the module refused, or is not there; 2 wrong usage.
int run_module_command(const std::vector<std::string>& words);

}  // namespace kmes::kmesctl

#endif  // KMES_KMOD_KMESCTL_MODULE_H_
