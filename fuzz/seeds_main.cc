// SPDX-License-Identifier: MIT
//
// Makes seeds for the targets whose input is the text of a script: scripts as the properties draw
// them.
//
//   make_seeds FOLDER COUNT FIRST_SEED OPERATIONS PROFILE
//
// PROFILE is a number of kmes::props::Profile; any other number means all of them in turn.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "props/script/generate.h"

int main(int argc, char** argv) {
    using namespace kmes::props;
    if (argc != 6) {
        std::fprintf(stderr, "usage: make_seeds FOLDER COUNT FIRST_SEED OPERATIONS PROFILE\n");
        return 2;
    }
    const std::uint64_t count = std::strtoull(argv[2], nullptr, 10);
    const std::uint64_t first = std::strtoull(argv[3], nullptr, 10);
    const std::uint64_t operations = std::strtoull(argv[4], nullptr, 10);
    const std::uint64_t profile = std::strtoull(argv[5], nullptr, 10);
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        const std::uint64_t which = profile < kProfileCount ? profile : seed % kProfileCount;
        const std::string file = std::string(argv[1]) + "/seed-" + std::to_string(seed);
        std::ofstream stream(file, std::ios::binary);
        stream << print_script(generate(seed, operations, static_cast<Profile>(which)));
        if (!stream.flush()) {
            std::fprintf(stderr, "make_seeds: %s cannot be written\n", file.c_str());
            return 3;
        }
    }
    return 0;
}
