// SPDX-License-Identifier: MIT
//
// What a report says about the machine of the run.
#ifndef KMES_CONFORMANCE_MAIN_MACHINE_H_
#define KMES_CONFORMANCE_MAIN_MACHINE_H_

#include <string>

#include "conformance/report/run_report.h"

namespace kmes::conformance {

// Reads uname(2), /proc/cpuinfo and sysconf(3). A field that cannot be read stays empty.
Machine this_machine();

// Returns the first "model name" in a text from /proc/cpuinfo; empty if there is none.
std::string processor_name(const std::string& cpuinfo);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_MACHINE_H_
