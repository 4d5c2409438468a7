// SPDX-License-Identifier: MIT
//
// See points.h.
#include "conformance/explorer/points.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "conformance/play/moves.h"

namespace kmes::conformance {

namespace {

constexpr std::uint64_t kFirstOccurrences = 3;
constexpr std::uint64_t kLastOccurrences = 2;
// A run is a series of accesses to the data without an access to the metadata between. The explorer
// keeps these numbers of accesses from a long run: at its start, at its end, and from the rest at
// most.
constexpr std::size_t kDataFirst = 12;
constexpr std::size_t kDataLast = 4;
constexpr std::size_t kDataBetween = 8;

bool is_data(const AccessPoint& point) {
    return point.offset_bytes >= kMetadataBytes;
}

// A field that is written once before any attach. A move before such an access has the same effect
// before the next access.
bool is_static_field(const AccessPoint& point) {
    constexpr std::uint64_t kBytes = 32;
    return point.kind == PointKind::access && point.offset_bytes < kBytes &&
           point.size_bytes <= kBytes - point.offset_bytes;
}

AccessPoint without_occurrence(AccessPoint point) {
    point.occurrence = 0;
    return point;
}

void thin_out(std::vector<AccessPoint>& run, std::vector<AccessPoint>& into) {
    const std::size_t all = run.size();
    const std::size_t stride = all / kDataBetween + 1;
    for (std::size_t i = 0; i < all; ++i) {
        const bool is_kept = all <= kDataFirst + kDataLast + kDataBetween || i < kDataFirst ||
                             i + kDataLast >= all || (i - kDataFirst) % stride == 0;
        if (is_kept) into.push_back(run[i]);
    }
    run.clear();
}

struct PointAction {
    Action action;
    std::uint64_t parameter;
    bool at_data;  // also before an access to the data
    Written written = Written::whole;
};
constexpr Written kHalf = Written::half;
constexpr Written kHeader = Written::header;
constexpr Written kNothing = Written::nothing;
// The actions most likely to find a fault come first. An event in flight is played in each state
// that a reader can distinguish. There is no overwrite of the event that is being read without a
// written byte: it would change nothing in that event.
constexpr PointAction kChoices[] = {
    {Action::emit, 0, false},
    {Action::lap_part, 0, true},
    {Action::swap, 0, false},
    {Action::swap, 1, false},
    {Action::overtake, 0, true},
    {Action::overtake, 1, true},
    {Action::lap, 0, true},
    {Action::write_over, 6, true},
    {Action::reserve, 2, true, kHalf},
    {Action::shrink, 0, true},
    {Action::batch, 0, false},
    {Action::wake, 0, false},
    {Action::swap_twice, 0, false},
    {Action::reserve, 6, true, kHeader},
    {Action::grow, 0, false},
    {Action::laps, 0, true},
    {Action::burst, 0, false},
    {Action::drop, 0, false},
    {Action::nudge, 0, false},
    {Action::reserve, 0, false},
    {Action::shrink, 2, false},
    {Action::write_over, 6, true, kHalf},
    {Action::reserve, 6, false, kNothing},
    {Action::reserve, 2, true},
    {Action::write_over, 6, true, kHeader},
    {Action::reserve, 2, false, kHeader},
    {Action::reserve, 2, false, kNothing},
    {Action::reserve, 6, false, kHalf},
    {Action::reserve, 6, true},
};

// Every 8-byte word of a wider read is a tearing point of its own.
void add_words(const AccessPoint& point, std::vector<AccessPoint>& into) {
    constexpr std::uint32_t kWord = 8;
    into.push_back(point);
    if (point.is_write) return;
    const auto first = static_cast<std::uint32_t>(kWord - point.offset_bytes % kWord);
    for (std::uint32_t split = first; split < point.size_bytes; split += kWord) {
        into.push_back(point);
        into.back().split_bytes = split;
    }
}

std::vector<Move> tears_at(const std::vector<AccessPoint>& points) {
    std::vector<AccessPoint> words;
    for (const AccessPoint& point : points) add_words(point, words);
    std::vector<Move> moves;
    // One kind after the other, so that every word is torn before any is torn in another way.
    for (std::uint64_t kind = 0; kind < kTornKinds; ++kind) {
        for (const AccessPoint& point : words) {
            if (is_data(point)) moves.push_back({point, Action::tear, kind});
        }
    }
    return moves;
}

}  // namespace

std::vector<AccessPoint> points_of(const std::vector<TraceEntry>& trace, std::uint32_t first_phase,
                                   Density density) {
    std::map<AccessPoint, std::uint64_t> count;
    for (const TraceEntry& entry : trace) ++count[without_occurrence(entry.point)];
    std::vector<AccessPoint> points;
    std::vector<AccessPoint> run_of_data;
    for (const TraceEntry& entry : trace) {
        const AccessPoint& point = entry.point;
        if (point.phase < first_phase || is_static_field(point)) continue;
        const bool is_kept = density == Density::all || point.occurrence <= kFirstOccurrences ||
                             point.occurrence + kLastOccurrences > count[without_occurrence(point)];
        if (!is_kept) continue;
        if (is_data(point) && density == Density::thinned) {
            run_of_data.push_back(point);
            continue;
        }
        thin_out(run_of_data, points);
        points.push_back(point);
    }
    thin_out(run_of_data, points);
    return points;
}

// With several CPUs: actions on another CPU than that of the access.
constexpr PointAction kElsewhere[] = {{Action::emit, 0, true}, {Action::lap_part, 0, true}};

std::vector<Move> moves_at(const std::vector<AccessPoint>& points, const Scenario& scenario,
                           bool has_several_threads, bool everywhere) {
    if (scenario.tears) return tears_at(points);
    std::vector<Move> moves;
    const auto add = [&](const PointAction& choice, std::uint32_t further) {
        for (const AccessPoint& point : points) {
            if (!is_data(point) || choice.at_data || everywhere)
                moves.push_back({point, choice.action, choice.parameter, further, choice.written});
        }
    };
    const auto hold_everywhere = [&] {
        for (const AccessPoint& point : points) {
            if (point.kind != PointKind::sleep)
                moves.push_back({point, Action::hold, scenario.holds_with_bytes});
        }
    };
    if (has_several_threads && scenario.cpus > 1) hold_everywhere();
    if (scenario.holds_with_bytes > 0) return moves;
    if (scenario.cpus > 1) {
        for (const PointAction& choice : kElsewhere) add(choice, 1);
    }
    for (const PointAction& choice : kChoices) add(choice, 0);
    if (has_several_threads && scenario.cpus == 1) hold_everywhere();
    return moves;
}

Move random_move(const std::vector<AccessPoint>& points, std::uint32_t cpus,
                 bool has_several_threads, std::mt19937_64& random) {
    Move move;
    move.point = points[random() % points.size()];
    if (has_several_threads && move.point.kind != PointKind::sleep && random() % 4 == 0) {
        move.action = Action::hold;
        return move;
    }
    const PointAction& choice = kChoices[random() % std::size(kChoices)];
    move.action = choice.action;
    move.parameter = choice.action == Action::reserve ? random() % 12 : choice.parameter;
    move.written = choice.written;
    if (cpus > 1 && choice.action == Action::emit)
        move.further = static_cast<std::uint32_t>(random() % cpus);
    return move;
}

}  // namespace kmes::conformance
