// SPDX-License-Identifier: MIT
//
// Counts a consumer's descriptors, mappings and memory, and detects growth from count to count. For
// the monitor of resources, and for cases that count by themselves.
#ifndef KMES_CONFORMANCE_MONITORS_RESOURCES_H_
#define KMES_CONFORMANCE_MONITORS_RESOURCES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kmes::conformance {

class Stage;

// Returns in bytes the figure in KiB after `name` in a file of /proc.
std::uint64_t read_kib(const std::string& path, const std::string& name);

struct Holdings {
    std::uint64_t fds = 0;
    std::map<std::string, std::uint64_t> files;  // the number of fds for each target
    std::uint64_t ring_mappings = 0;
    std::uint64_t regions = 0;     // lines of /proc/PID/maps
    std::uint64_t data_bytes = 0;  // VmData: writable private memory
};

Holdings count_holdings(Stage& stage);

// A count that must not grow by more than `least` in each interval.
struct Figure {
    std::uint64_t Holdings::* count;
    std::uint64_t least;
    std::string_view what;
};

// The private memory that a runtime may add in an interval: its own heap grows now and then.
inline constexpr std::uint64_t kOwnGrowthBytes = 3 << 20;

// The figures for counts between which a buffer changes `changes` times. Memory is counted only for
// large buffers: copies of small ones are no larger than the growth of a runtime's own memory.
std::vector<Figure> figures_of(std::uint64_t changes, bool counts_memory);

// Whether the count grows by more than `least` in each interval, so something is never released. A
// consumer that grows once, or frees late, does not grow in each.
bool grows(const std::vector<Holdings>& counts, std::uint64_t Holdings::* figure,
           std::uint64_t least);

// "14, 28, 42".
std::string text_of(const std::vector<Holdings>& counts, std::uint64_t Holdings::* figure);

// Repeats the last count for at most two seconds, so that the consumer can release resources late.
void count_again(Stage& stage, std::vector<Holdings>& counts,
                 const std::function<bool()>& is_worse);

// Counts again, and blames each figure that still grows (5.1.8.3-6).
void blame_growth(Stage& stage, std::vector<Holdings> counts, const std::vector<Figure>& figures,
                  std::uint64_t changes);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MONITORS_RESOURCES_H_
