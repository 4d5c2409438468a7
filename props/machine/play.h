// SPDX-License-Identifier: MIT
//
// Plays a script on the hooked build of the core, where every shared access is a step. Also plays
// it on a plain model written from the specification. Checks every property after every operation
// and at every access. Properties, fuzzers, replay and mutation tests all call this one function.
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
    std::string message;        // the observation, and the expected one
    std::size_t operation = 0;  // index in Script::operations
};

struct PlayOptions {
    // Called after each operation with a few lines of text: its result, and the state.
    std::function<void(const Operation&, const std::string& state)> trace;
    // The limit of accesses of all flows: more is an endless loop. 0: more than any correct run of
    // the script has.
    std::uint64_t access_limit = 0;
};

// The number of occurrences of the events that a property is about. Without any, a test of the
// property has proven nothing.
struct Seen {
    std::uint64_t written = 0;          // events
    std::uint64_t dropped = 0;          // over 50 % of the capacity
    std::uint64_t nested = 0;           // turned away inside of a critical section
    std::uint64_t overwritten = 0;      // events that the tail has passed
    std::uint64_t left_behind = 0;      // events that did not fit into a smaller buffer
    std::uint64_t published_early = 0;  // parts of a batch, before the tail (E8)
    std::uint64_t crossed_end = 0;      // events across the end of the ring (5.1.4)
    std::uint64_t swaps = 0;
    std::uint64_t handovers = 0;
    std::uint64_t nudges = 0;
    std::uint64_t corrupt = 0;
    std::uint64_t pokes = 0;
    std::uint64_t asked = 0;    // loads of need_wake that found it set
    std::uint64_t unasked = 0;  // and those that did not
    std::uint64_t woken = 0;    // consumers
    std::uint64_t sizes = 0;    // most sizes read back in one emission
    std::uint64_t deliveries = 0;
    std::uint64_t lost = 0;
    std::uint64_t laps = 0;
    std::uint64_t torn = 0;
    std::uint64_t switches = 0;
    std::uint64_t sleeps = 0;

    Seen& operator+=(const Seen& other);
};

struct PlayResult {
    std::optional<Failure> failure;  // the first one
    std::uint64_t accesses = 0;
    std::uint64_t events = 0;      // written
    std::uint64_t deliveries = 0;  // by all consumers
    std::uint64_t skipped = 0;     // operations that did not apply in their place
    Seen seen;
    // A digest of the producer's state at the end: bytes, positions, numbers, and counters except
    // wakes.
    std::uint64_t producer_digest = 0;
};

PlayResult play(const Script& script, const PlayOptions& options = {});

// "publication (5.1.7 step 8): ...; operation 7: emit payload=70"
std::string describe(const Script& script, const Failure& failure);

}  // namespace kmes::props

#endif  // KMES_PROPS_MACHINE_PLAY_H_
