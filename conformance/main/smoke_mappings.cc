// SPDX-License-Identifier: MIT
//
// See smoke_mappings.h.
#include "conformance/main/smoke_mappings.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "conformance/stage/state_text.h"

namespace kmes::conformance {

void SmokeMappings::add(std::uint32_t cpu) {
    refused_.erase(cpu);
    ++count_of_cpu_[cpu];
}

void SmokeMappings::refuse(std::uint32_t cpu, const std::vector<std::string>& mistakes) {
    refused_.try_emplace(cpu, mistakes);
}

std::string SmokeMappings::missing_text() const {
    std::vector<std::uint32_t> unmapped;
    for (std::uint32_t cpu = 0; cpu < cpus_; ++cpu) {
        if (!count_of_cpu_.contains(cpu)) unmapped.push_back(cpu);
    }
    const bool is_one = unmapped.size() == 1;
    std::string text =
        fmt::format("the program did not map the {} {}",
                    is_one ? "buffer of CPU" : "buffers of CPUs", ranges_text(unmapped));
    std::string_view link = "; it mapped ";
    for (const auto& [cpu, count] : count_of_cpu_) {
        if (count < 2) continue;
        text += fmt::format("{}that of CPU {} {} times", std::exchange(link, ", "), cpu, count);
    }
    return text;
}

}  // namespace kmes::conformance
