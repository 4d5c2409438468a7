// SPDX-License-Identifier: GPL-2.0-only
//
// The module's answers as text, for people and for programs.
#ifndef KMES_KMOD_KMESCTL_TEXT_H_
#define KMES_KMOD_KMESCTL_TEXT_H_

#include <linux/kmes.h>

#include <string>
#include <string_view>
#include <vector>

#include "kmod/kmesctl/command.h"

namespace kmes::kmesctl {

// A row a CPU, with a line of headings; or a JSON array of objects with the names of the fields.
std::string statistics_text(const std::vector<kmes_ioctl_statistics>& all);
std::string statistics_json(const std::vector<kmes_ioctl_statistics>& all);

// As statistics_text, for buffers.
std::string buffers_text(const std::vector<kmes_buffer_info>& all);
std::string buffers_json(const std::vector<kmes_buffer_info>& all);

// Writes "kmesctl: LINE" and a newline to standard error. If that cannot be written, the line is
// lost: nobody can be told of it.
void write_error_line(std::string_view line);

// Explains an errno value after this command, without a newline.
std::string explain_error(Verb verb, int error);

}  // namespace kmes::kmesctl

#endif  // KMES_KMOD_KMESCTL_TEXT_H_
