// SPDX-License-Identifier: MIT
//
// Makes the events of a run. The payloads are pseudo-random and depend on the seed only. The
// timestamps come from the stage's clock, which advances with each event. Knows no ring and no
// producer.
#ifndef KMES_CONFORMANCE_STAGE_EVENT_MAKER_H_
#define KMES_CONFORMANCE_STAGE_EVENT_MAKER_H_

#include <cstdint>
#include <string>

#include "conformance/model/event_spec.h"

namespace kmes::conformance {

class EventMaker {
  public:
    // -- Bytes --
    void set_seed(std::uint64_t seed) { random_ = seed; }
    std::uint64_t random() { return next_random(random_); }
    // Makes an event of exactly `event_bytes` bytes, at least 29 + the length of `type` +
    // `extra_header_bytes`. No other event of the run has its pseudo-random payload. If the form
    // has a longer header that does not fit, the event is longer by the difference. If the headers
    // of the form cannot grow, the payload gets the extra bytes.
    EventSpec make(std::uint64_t event_bytes, std::string type = "t",
                   std::uint64_t extra_header_bytes = 0);
    // Makes the end event of the contract, which has no payload.
    EventSpec make_end();

    // -- Timestamps --
    void set_clock(std::uint64_t ns) { clock_ns_ = ns; }
    std::uint64_t clock() const { return clock_ns_; }
    // After this call, a timestamp of 0 in a spec means 0 and not the time of the clock.
    void take_timestamps_as_given() { timestamps_as_given_ = true; }
    // Sets the timestamp of an event that has none to the time of the clock.
    void stamp(EventSpec& spec);
    // Returns the time of the clock, and advances the clock.
    std::uint64_t next_timestamp();

  private:
    std::uint64_t random_ = 1;
    std::uint64_t clock_ns_ = 1'700'000'000'000'000'000;
    bool timestamps_as_given_ = false;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_EVENT_MAKER_H_
