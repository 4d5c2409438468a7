// SPDX-License-Identifier: MIT
//
// See removals.h.

#include "conformance/tracer/removals.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "conformance/tracer/calls.h"
#include "conformance/tracer/mapping_table.h"

namespace kmes::conformance {

std::string Removal::describe() const {
    const std::vector<CodeFrame> frames = CallReader().frames(site.code, site.stack);
    const size_t index = AuthorsFrames().of_call(frames);
    return fmt::format("removed by thread {} with {}({:#x}, {}) at {}", tid, call, address,
                       length_bytes, frame_text(frames, index));
}

std::string BadPointer::describe() const {
    std::string text = fmt::format("the memory at {}, {:#x}, ", argument, address);
    text += is_mapped ? "is mapped, but may not be written" : "is not mapped";
    if (!is_mapped && removal) text += "; it was " + removal->describe();
    return text;
}

namespace tracing {

void Removals::add(Removal removal) {
    if (calls_.size() == kMost) calls_.pop_front();
    calls_.push_back(std::move(removal));
}

std::optional<Removal> Removals::last_of(uint64_t address) const {
    const auto found = std::find_if(calls_.rbegin(), calls_.rend(), [=](const Removal& call) {
        return address - call.address < whole_pages(call.length_bytes);
    });
    return found == calls_.rend() ? std::nullopt : std::optional(*found);
}

}  // namespace tracing
}  // namespace kmes::conformance
