// SPDX-License-Identifier: MIT
//
// The buffers that the consumer of a smoke run has mapped, and the CPUs without a mapping.
#ifndef KMES_CONFORMANCE_MAIN_SMOKE_MAPPINGS_H_
#define KMES_CONFORMANCE_MAIN_SMOKE_MAPPINGS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kmes::conformance {

class SmokeMappings {
  public:
    explicit SmokeMappings(std::uint32_t cpus) : cpus_(cpus) {}

    void add(std::uint32_t cpu);
    // An mmap failed because of these mistakes. The first ones of a CPU stay until it is mapped.
    void refuse(std::uint32_t cpu, const std::vector<std::string>& mistakes);
    // The number of CPUs that were mapped.
    std::size_t cpus() const { return count_of_cpu_.size(); }
    bool is_one_missing() const { return cpus() < cpus_; }
    // Names the CPUs without a mapping, and those that were mapped more than once instead.
    std::string missing_text() const;
    // The mistakes of the CPUs that were refused, and not mapped since.
    const std::map<std::uint32_t, std::vector<std::string>>& refused() const { return refused_; }

  private:
    const std::uint32_t cpus_;
    std::map<std::uint32_t, std::uint64_t> count_of_cpu_;
    std::map<std::uint32_t, std::vector<std::string>> refused_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SMOKE_MAPPINGS_H_
