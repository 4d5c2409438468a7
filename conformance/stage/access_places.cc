// SPDX-License-Identifier: MIT
//
// See access_places.h.
#include "conformance/stage/access_places.h"

#include <utility>
#include <vector>

#include "conformance/tracer/calls.h"

namespace kmes::conformance {

void AccessPlaces::add(const Timeline& timeline, const CodePlace& code,
                       std::shared_ptr<const tracing::StackSnapshot> stack, std::string field) {
    put(timeline, {code, std::move(stack), std::move(field)});
}

void AccessPlaces::add_call(const Timeline& timeline, const CallSite& site) {
    if (site.stack) put(timeline, {site.code, site.stack, "", true});
}

void AccessPlaces::put(const Timeline& timeline, Place place) {
    if (std::exchange(left_out_, timeline.left_out()) != timeline.left_out())
        places_.erase(places_.upper_bound(Timeline::kFirst),
                      places_.upper_bound(Timeline::kFirst + timeline.left_out()));
    places_[timeline.last_number()] = std::move(place);
}

void AccessPlaces::put_into(Timeline& timeline) const {
    CallReader reader;
    std::map<std::uint64_t, std::vector<CodeFrame>> frames;
    AuthorsFrames authors;
    for (const auto& [step, place] : places_) {
        frames[step] = reader.frames(place.code, place.stack);
        if (!place.is_call) authors.add_access(frames[step], place.field);
    }
    for (const auto& [number, place] : places_) {
        TimelineStep* step = timeline.find(number);
        if (step == nullptr) continue;
        const std::vector<CodeFrame>& found = frames[number];
        const std::size_t index = place.is_call ? authors.of_call(found) : authors.of_access(found);
        if (place.is_call && found[index].is_library) continue;
        step->instruction = place.code.resolved().text;
        step->source = frame_text(found, index);
    }
}

}  // namespace kmes::conformance
