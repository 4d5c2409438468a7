// SPDX-License-Identifier: MIT
//
// An event as the driver emits it, and payloads from a seed. Knows no format.
#ifndef KMES_CONFORMANCE_MODEL_EVENT_SPEC_H_
#define KMES_CONFORMANCE_MODEL_EVENT_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kmes::conformance {

// An event that the driver emits. `extra_header` are bytes between the type and the payload. A
// later version of the format may have them; v0.20 has none.
struct EventSpec {
    std::string type;
    std::string payload;
    std::uint64_t timestamp = 0;  // CLOCK_REALTIME, ns
    std::uint8_t origin = 0;
    std::string extra_header;
    // Set if generate_payload() made the payload from this seed: the seed can then replace the
    // bytes.
    std::optional<std::uint64_t> payload_seed = std::nullopt;
};

// splitmix64: every seed is usable, and a run is the same on every machine. Advances `state`.
std::uint64_t next_random(std::uint64_t& state);

// Pseudo-random bytes, eight from each random number.
std::string generate_payload(std::uint64_t& state, std::size_t bytes);
// Whether generate_payload makes exactly this payload from `seed`.
bool is_generated(std::string_view payload, std::uint64_t seed);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_EVENT_SPEC_H_
