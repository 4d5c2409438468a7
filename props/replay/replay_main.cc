// SPDX-License-Identifier: MIT
//
// kmes-replay: scripts on the core as it ships (replay.h).
#include <iostream>

#include "props/replay/replay.h"

int main(int count, char** words) {
    const std::vector<std::string> arguments(words + 1, words + count);
    return kmes::props::replay(arguments, kmes::props::play, std::cin, std::cout, std::cerr);
}
