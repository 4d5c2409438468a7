// SPDX-License-Identifier: GPL-2.0-only
//
// Hostile consumers, in an instance of a test build and on the real rings (runs.h).
//
//   hostile [SEED [EVENTS [TIMES [CPU]]]]
//
// EVENTS: the minimum of events on each CPU. TIMES: the minimum of each kind of attack. CPU:
// changes one byte of data of this CPU of the instance. The run must then fail.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "kmod/hostile/runs.h"

namespace kmes::hostile {

void Failures::add(const std::string& what) {
    constexpr unsigned kMostLines = 20;
    const std::lock_guard guard(lock_);
    if (count_++ < kMostLines) std::printf("FAILED %s\n", what.c_str());
}

}  // namespace kmes::hostile

int main(int count, char** words) {
    kmes::hostile::Options options;
    if (count > 1) options.seed = std::strtoull(words[1], nullptr, 0);
    if (count > 2) options.events = static_cast<unsigned>(std::strtoul(words[2], nullptr, 0));
    if (count > 3) options.times = std::strtoull(words[3], nullptr, 0);
    if (count > 4) options.planted_cpu = std::atoi(words[4]);
    try {
        const bool is_good = kmes::hostile::play_instance(options);
        return kmes::hostile::play_real(options) && is_good ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "hostile: %s\n", error.what());
        return 1;
    }
}
