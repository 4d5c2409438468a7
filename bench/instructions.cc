// SPDX-License-Identifier: MIT
//
// kmes-instructions FILE: runs each path of the tables under callgrind, which makes a dump for
// each. Writes a line for each dump to FILE: name, payload bytes, events. bench/instructions.py
// reads both.
//
// Unlike the times of kmes-bench, these counts do not depend on the load of the machine, but they
// do not show the cost of memory accesses. The clock is a constant, because the code of the real
// clock depends on the machine and on the time.
#include <valgrind/callgrind.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "bench/rows.h"

namespace kmes::bench {
namespace {

constexpr std::uint64_t kCountedPayloadBytes[] = {16, 256, 4096};

std::uint64_t constant_ns(void*) {
    return 1'800'000'000'000'000'000;
}

// Skips the floor, which is not our code, and first passes over a mapping, which are kernel work.
void count(const Table& table, std::uint64_t payload_bytes, std::FILE* list) {
    for (std::size_t i = 1; i < table.variants.size(); i++) {
        const Variant& variant = table.variants[i];
        const std::string name = table.name + ": " + variant.name;

        if (variant.warm_up_operations > 0) variant.run(variant.warm_up_operations);
        CALLGRIND_ZERO_STATS;
        variant.run(variant.sample_operations);
        CALLGRIND_DUMP_STATS_AT(name.c_str());
        std::fprintf(list, "%s\t%llu\t%llu\n", name.c_str(),
                     static_cast<unsigned long long>(payload_bytes),
                     static_cast<unsigned long long>(variant.sample_operations));
    }
}

int main_checked(const char* path) {
    std::FILE* list = std::fopen(path, "w");
    Effort effort;

    if (list == nullptr) {
        std::perror(path);
        return 3;
    }
    effort.warm_up_laps = 1;
    effort.clock.now_ns = constant_ns;
    for (std::uint64_t payload_bytes : kCountedPayloadBytes) {
        for (const Table& table : producer_tables(payload_bytes, effort))
            count(table, payload_bytes, list);
        count(reader_tables(payload_bytes, effort)[0], payload_bytes, list);
    }
    return std::fclose(list) == 0 ? 0 : 3;
}

}  // namespace
}  // namespace kmes::bench

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: valgrind --tool=callgrind kmes-instructions FILE\n");
        return 2;
    }
    try {
        return kmes::bench::main_checked(argv[1]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "kmes-instructions: %s\n", error.what());
        return 3;
    }
}
