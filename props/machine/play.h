// SPDX-License-Identifier: MIT
//
// Plays a script on the core as it ships (the hooked build, so that every shared access is a step),
// beside a plain model that is written from the specification, and checks every property after
// every operation and at every access. The one function that properties, fuzzers, replay and
// mutation tests call.
#ifndef KMES_PROPS_MACHINE_PLAY_H_
#define KMES_PROPS_MACHINE_PLAY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "props/script/script.h"

namespace kmes::props {

struct Failure {
    std::string property;       // its name: "publication", "exact-loss", ...
    std::string clause;         // "5.1.7 step 8, E5"
    std::string message;        // what was found, what should be
    std::size_t operation = 0;  // index in Script::operations
};

struct PlayOptions {
    // Called after each operation with a few lines of text: what it returned, the state.
    std::function<void(const Operation&, const std::string& state)> trace;
    // Accesses of all together, and of a consumer between two sleeps; more is an endless loop.
    std::uint64_t access_limit = 2000000;
};

struct PlayResult {
    std::optional<Failure> failure;  // the first one
    std::uint64_t accesses = 0;
    std::uint64_t events = 0;      // written
    std::uint64_t deliveries = 0;  // by all consumers
    std::uint64_t skipped = 0;     // operations that did not apply where they stood
};

PlayResult play(const Script& script, const PlayOptions& options = {});

// "publication (5.1.7 step 8): ...; operation 7: emit payload=70"
std::string describe(const Script& script, const Failure& failure);

}  // namespace kmes::props

#endif  // KMES_PROPS_MACHINE_PLAY_H_
