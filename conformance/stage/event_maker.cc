// SPDX-License-Identifier: MIT
//
// See event_maker.h.
#include "conformance/stage/event_maker.h"

#include <fmt/format.h>

#include <utility>

#include "conformance/model/layout.h"
#include "conformance/oracle/event.h"
#include "conformance/stage/ring_backend.h"

namespace kmes::conformance {

namespace {

constexpr std::uint64_t kHeaderBytesOfFormA = 29;
constexpr std::uint64_t kEventClockStepNs = 1000;

}  // namespace

EventSpec EventMaker::make(std::uint64_t event_bytes, std::string type,
                           std::uint64_t extra_header_bytes) {
    // If no header may be longer than its type requires, the payload gets these bytes.
    if (!layout().header_may_grow) extra_header_bytes = 0;
    const std::uint64_t header = kHeaderBytesBeforeType + type.size() + extra_header_bytes;
    // Cases give the sizes for form A. If the header of another form does not fit, the event is
    // longer by the difference.
    if (event_bytes < header) event_bytes += kHeaderBytesBeforeType - kHeaderBytesOfFormA;
    if (type.empty() || event_bytes < header)
        throw SuiteError(
            fmt::format("no event of {} bytes with a header of {}", event_bytes, header));
    EventSpec spec;
    spec.type = std::move(type);
    spec.extra_header.assign(extra_header_bytes, '\0');
    spec.payload_seed = random_;
    spec.payload = generate_payload(random_, event_bytes - header);
    return spec;
}

EventSpec EventMaker::make_end() {
    return make(kHeaderBytesBeforeType + kEndEventType.size(), std::string(kEndEventType));
}

void EventMaker::stamp(EventSpec& spec) {
    if (spec.timestamp == 0 && !timestamps_as_given_) spec.timestamp = next_timestamp();
}

std::uint64_t EventMaker::next_timestamp() {
    const std::uint64_t timestamp = clock_ns_;
    clock_ns_ += kEventClockStepNs;
    return timestamp;
}

}  // namespace kmes::conformance
