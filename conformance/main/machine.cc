// SPDX-License-Identifier: MIT
//
// See machine.h.
#include "conformance/main/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace kmes::conformance {

std::string processor_name(const std::string& cpuinfo) {
    const std::size_t begin = cpuinfo.find("model name");
    if (begin == std::string::npos) return "";
    const std::size_t end = std::min(cpuinfo.find('\n', begin), cpuinfo.size());
    const std::size_t colon = cpuinfo.find(": ", begin);
    return colon < end ? cpuinfo.substr(colon + 2, end - colon - 2) : "";
}

Machine this_machine() {
    Machine machine;
    utsname names{};
    if (::uname(&names) == 0)
        machine.kernel = std::string(names.sysname) + " " + names.release + " " + names.machine;
    std::ifstream in("/proc/cpuinfo");
    machine.processor = processor_name({std::istreambuf_iterator<char>(in), {}});
    machine.processors = static_cast<std::uint32_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 0L));
    return machine;
}

}  // namespace kmes::conformance
