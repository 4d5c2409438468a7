// SPDX-License-Identifier: MIT
//
// What a report says of the machine that a run was made on.
#ifndef KMES_CONFORMANCE_MAIN_MACHINE_H_
#define KMES_CONFORMANCE_MAIN_MACHINE_H_

#include <string>

#include "conformance/report/run_report.h"

namespace kmes::conformance {

// From uname(2), /proc/cpuinfo and sysconf(3). What cannot be read is empty.
Machine this_machine();

// The first "model name" of the text of /proc/cpuinfo; empty: there is none.
std::string processor_name(const std::string& cpuinfo);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_MACHINE_H_
