// SPDX-License-Identifier: GPL-2.0-only
//
// Prints the results of the module's ioctls, as tables for people and as JSON for programs.
#ifndef KMES_KMOD_KMESCTL_TEXT_H_
#define KMES_KMOD_KMESCTL_TEXT_H_

#include <linux/kmes.h>

#include <string>
#include <string_view>
#include <vector>

#include "kmod/kmesctl/command.h"

namespace kmes::kmesctl {

// Returns a table with a row for each CPU, or a JSON array with an object for each.
std::string statistics_text(const std::vector<kmes_ioctl_statistics>& all);
std::string statistics_json(const std::vector<kmes_ioctl_statistics>& all);

// Returns the same for buffers.
std::string buffers_text(const std::vector<kmes_buffer_info>& all);
std::string buffers_json(const std::vector<kmes_buffer_info>& all);

// Writes "kmesctl: LINE" and a newline to standard error. Ignores errors.
void write_error_line(std::string_view line);

// Returns the meaning of an errno value after this command, without a newline.
std::string explain_error(Verb verb, int error);

}  // namespace kmes::kmesctl

#endif  // KMES_KMOD_KMESCTL_TEXT_H_
