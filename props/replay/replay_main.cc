// SPDX-License-Identifier: MIT
//
// kmes-replay: plays scripts on the hooked build of the core (replay.h).
#include <signal.h>

#include <iostream>

#include "props/replay/replay.h"

int main(int count, char** words) {
    // A write beyond the limit of file sizes fails, and is reported.
    ::signal(SIGXFSZ, SIG_IGN);
    const std::vector<std::string> arguments(words + 1, words + count);
    const int status =
        kmes::props::replay(arguments, kmes::props::play, std::cin, std::cout, std::cerr);
    std::cout.flush();
    if (std::cout.good()) return status;
    std::cerr << "kmes-replay: cannot write to standard output\n";
    return kmes::props::kReplayUnreadable;
}
