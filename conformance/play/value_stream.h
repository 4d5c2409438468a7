// SPDX-License-Identifier: MIT
//
// Events with chosen values, as steps of a row (steps.h): types, headers, origins, timestamps,
// payloads and sizes. Steps emit on the current CPU if nothing else is said.
#ifndef KMES_CONFORMANCE_PLAY_VALUE_STREAM_H_
#define KMES_CONFORMANCE_PLAY_VALUE_STREAM_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "conformance/stage/stage.h"

namespace kmes::conformance {

// Emits one event.
struct EmitEvent {
    std::string type = "t";
    std::uint64_t payload_bytes = 20;         // pseudo-random; more if the header cannot grow
    std::uint64_t extra_header_bytes = 0;     // as a later version may have them
    std::optional<std::string> payload = {};  // instead of `payload_bytes`
    std::uint8_t origin = 0;
    std::uint64_t timestamp = 0;  // 0: see EventMaker::stamp
    // Gives the event identities that no other event has, if the form has identities. The testee
    // must be stopped.
    bool has_own_identities = false;

    void operator()(Stage& stage, std::uint32_t cpu) const;
};

// Emits one event of each type. The types are made only when the step is played.
struct EmitTypes {
    std::vector<std::string> (*types)();

    void operator()(Stage& stage, std::uint32_t cpu) const;
};

// Emits one event of each size on the CPUs in turn. Waits whenever half of a buffer may be
// undelivered. `sizes` gets the capacity.
struct EmitSizes {
    std::set<std::uint64_t> (*sizes)(std::uint64_t capacity_bytes);

    void operator()(Stage& stage) const;
};

// Returns 2^k - 1, 2^k and 2^k + 1 from `least` to `most`, in order.
std::vector<std::uint64_t> around_powers_of_two(std::uint64_t least, std::uint64_t most);

// Returns the bytes of a valid event of CPU 0 with this sequence number and this size, at least
// kLeastEventBytes. A payload that contains a log has such bytes.
std::string image_of_event(std::uint64_t bytes, std::uint64_t sequence);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_VALUE_STREAM_H_
