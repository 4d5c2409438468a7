// SPDX-License-Identifier: MIT
//
// See access_places.h.
#include "conformance/stage/access_places.h"

#include <set>
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
    std::map<std::string, std::set<std::string>> fields_of;
    for (const auto& [step, place] : places_) {
        std::vector<CodeFrame>& found = frames[step] = reader.frames(place.code, place.stack);
        for (const CodeFrame& frame : found) {
            if (!place.field.empty()) fields_of[frame.id].insert(place.field);
        }
    }
    const auto is_of_several_places = [&](const std::string& id) {
        const auto fields = fields_of.find(id);
        return fields != fields_of.end() && fields->second.size() > 1;
    };
    for (const auto& [number, place] : places_) {
        TimelineStep* step = timeline.find(number);
        if (step == nullptr) continue;
        const std::vector<CodeFrame>& found = frames[number];
        const std::size_t index = authors_frame(found, is_of_several_places);
        if (place.is_call && found[index].is_library) continue;
        step->instruction = place.code.resolved().text;
        step->source = frame_text(found, index);
    }
}

}  // namespace kmes::conformance
