// SPDX-License-Identifier: MIT
//
// See cover.h.
#include "conformance/explorer/cover.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "conformance/oracle/layout.h"
#include "conformance/play/player.h"

namespace kmes::conformance {

namespace {

struct Choice {
    Action action;
    std::uint64_t parameter = 0;
    Written written = Written::whole;
};

// The actions that change the course of a consumer most.
constexpr Choice kFirst[] = {
    {Action::emit}, {Action::lap_part},   {Action::swap}, {Action::wake},
    {Action::lap},  {Action::swap_twice}, {Action::drop}, {Action::reserve, 2, Written::half},
};
constexpr Choice kSecond[] = {
    {Action::emit},          {Action::swap},
    {Action::lap_part},      {Action::lap},
    {Action::wake},          {Action::swap, 1},
    {Action::batch},         {Action::overtake},
    {Action::write_over, 6}, {Action::reserve, 2, Written::half},
    {Action::shrink},        {Action::swap_twice},
    {Action::grow},          {Action::burst},
    {Action::drop},          {Action::nudge},
};
// The places that consumers access. They ignore the rest of the metadata page.
constexpr Place kPlaces[] = {Place::generation, Place::write_pos, Place::tail_pos, Place::counter,
                             Place::need_wake,  Place::data,      Place::wait,     Place::sleep};

// The columns of a cell.
enum Column : std::size_t { kFirstAction, kFirstPlace, kSecondAction, kSecondPlace };

}  // namespace

Place place_of(const AccessPoint& point) {
    if (point.kind == PointKind::wait) return Place::wait;
    if (point.kind == PointKind::sleep) return Place::sleep;
    if (point.kind != PointKind::access) return Place::other;
    if (point.offset_bytes + point.size_bytes > kMetadataBytes) return Place::data;
    const std::pair<std::uint64_t, Place> kParts[] = {{kGenerationOffset, Place::generation},
                                                      {kWritePosOffset, Place::write_pos},
                                                      {kTailPosOffset, Place::tail_pos},
                                                      {kFutexCounterOffset, Place::counter},
                                                      {kNeedWakeOffset, Place::need_wake}};
    for (const auto& [offset, place] : kParts) {
        if (field_at(offset).overlaps(point.offset_bytes, point.size_bytes)) return place;
    }
    return Place::other;
}

Cover::Cover(bool whole, const ExplorePart& part) {
    const std::vector<std::size_t> sizes{std::size(kFirst), std::size(kPlaces), std::size(kSecond),
                                         std::size(kPlaces)};
    // All scenarios have the same sizes.
    static const std::vector<Combination> kPairwise = pairwise_cover(sizes);
    const std::vector<Combination> all = whole ? product_of(sizes) : kPairwise;
    for (std::size_t i = part.index; i < all.size(); i += part.total) cells_.push_back(all[i]);
}

std::optional<Cover::Key> Cover::key_of(const Move& first) {
    if (first.further != 0 || first.point.split_bytes != 0) return std::nullopt;
    const auto choice = std::ranges::find_if(kFirst, [&](const Choice& each) {
        return each.action == first.action && each.parameter == first.parameter &&
               each.written == first.written;
    });
    if (choice == std::end(kFirst)) return std::nullopt;
    return Key{static_cast<std::size_t>(choice - std::begin(kFirst)), place_of(first.point)};
}

bool Cover::needs(const Move& first) const {
    const std::optional<Key> key = key_of(first);
    return key && key->second != Place::other && !branches_.contains(*key);
}

void Cover::add(const Branch& branch) {
    const std::optional<Key> key = key_of(branch.move);
    if (key) branches_.emplace(*key, branch);
}

std::optional<std::vector<Move>> Cover::next(std::mt19937_64& random) {
    while (next_ < cells_.size()) {
        const Combination& cell = cells_[next_++];
        const auto branch = branches_.find({cell[kFirstAction], kPlaces[cell[kFirstPlace]]});
        if (branch == branches_.end()) continue;
        std::vector<AccessPoint> points;
        std::ranges::copy_if(branch->second.points, std::back_inserter(points),
                             [&](const AccessPoint& point) {
                                 return place_of(point) == kPlaces[cell[kSecondPlace]];
                             });
        if (points.empty()) continue;
        const Choice& second = kSecond[cell[kSecondAction]];
        ++taken_;
        return std::vector<Move>{branch->second.move,
                                 Move{points[random() % points.size()], second.action,
                                      second.parameter, 0, second.written}};
    }
    return std::nullopt;
}

}  // namespace kmes::conformance
