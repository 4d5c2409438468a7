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

constexpr std::size_t kPlaceCount = std::size(kPlaces);

// The columns of a cell.
enum Column : std::size_t { kFirstAction, kFirstPlace, kSecondAction, kSecondPlace };

std::vector<std::size_t> sizes_of_columns() {
    return {std::size(kFirst), kPlaceCount, std::size(kSecond), kPlaceCount};
}

// The index of a place in kPlaces; kPlaceCount for Place::other.
std::size_t index_of(Place place) {
    return static_cast<std::size_t>(std::ranges::find(kPlaces, place) - std::begin(kPlaces));
}

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

Cover::Cover(bool whole, const ExplorePart& part)
    : is_whole_(whole),
      of_part_(sizes_of_columns()),
      wanted_(of_part_),
      shown_(of_part_),
      courses_(std::size(kFirst) * kPlaceCount) {
    std::vector<Combination> all = product_of(sizes_of_columns());
    if (!whole) {
        cells_ = std::move(all);
        for (std::size_t pair = part.index; pair < of_part_.possible(); pair += part.total)
            of_part_.add(pair);
        wanted_ = of_part_;
    } else {
        for (std::size_t i = part.index; i < all.size(); i += part.total)
            cells_.push_back(std::move(all[i]));
    }
    is_taken_.assign(cells_.size(), false);
}

// nullopt: no cell begins with this move.
std::optional<std::size_t> Cover::key_of(const Move& first) {
    if (first.further != 0 || first.point.split_bytes != 0) return std::nullopt;
    const auto choice = std::ranges::find_if(kFirst, [&](const Choice& each) {
        return each.action == first.action && each.parameter == first.parameter &&
               each.written == first.written;
    });
    const std::size_t place = index_of(place_of(first.point));
    if (choice == std::end(kFirst) || place == kPlaceCount) return std::nullopt;
    return static_cast<std::size_t>(choice - std::begin(kFirst)) * kPlaceCount + place;
}

bool Cover::needs(const Move& first) const {
    const std::optional<std::size_t> key = key_of(first);
    return key && !courses_[*key];
}

std::vector<Move> Cover::preludes(const std::vector<AccessPoint>& points,
                                  const std::vector<Move>& singles) const {
    std::vector<bool> is_there(courses_.size());
    for (const Move& single : singles) {
        if (const auto key = key_of(single)) is_there[*key] = true;
    }
    std::vector<Move> preludes;
    for (const Choice& choice : kFirst) {
        for (const AccessPoint& point : points) {
            const Move move{point, choice.action, choice.parameter, 0, choice.written};
            const auto key = key_of(move);
            if (!key || is_there[*key]) continue;
            is_there[*key] = true;
            preludes.push_back(move);
        }
    }
    return preludes;
}

void Cover::add(const Branch& branch) {
    if (!needs(branch.move)) return;
    Course course{branch.move, std::vector<std::vector<AccessPoint>>(kPlaceCount)};
    for (const AccessPoint& point : branch.points) {
        const std::size_t place = index_of(place_of(point));
        if (place < kPlaceCount) course.points[place].push_back(point);
    }
    courses_[*key_of(branch.move)] = std::move(course);
    new_pairs_at_most_ = kPairsOfACell;
}

const Cover::Course* Cover::course_of(const Combination& cell) const {
    const auto& course = courses_[cell[kFirstAction] * kPlaceCount + cell[kFirstPlace]];
    return course ? &*course : nullptr;
}

bool Cover::is_playable(const Combination& cell) const {
    const Course* course = course_of(cell);
    return course != nullptr && !course->points[cell[kSecondPlace]].empty();
}

// Of the pairwise cover, the first of the cells with the most new pairs. A search that runs out of
// time has then played most pairs, and the order is the same on each machine.
std::optional<std::size_t> Cover::next_cell() {
    std::optional<std::size_t> best;
    std::size_t new_pairs = 0;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
        if (is_taken_[i] || !is_playable(cells_[i])) continue;
        if (is_whole_) return i;
        const std::size_t count = wanted_.count(cells_[i]);
        if (count <= new_pairs) continue;
        best = i;
        new_pairs = count;
        if (count >= new_pairs_at_most_) return best;
    }
    new_pairs_at_most_ = new_pairs;
    return best;
}

std::optional<Cover::Cell> Cover::next(std::mt19937_64& random) {
    const std::optional<std::size_t> index = next_cell();
    if (!index) return std::nullopt;
    const Combination& cell = cells_[*index];
    is_taken_[*index] = true;
    for (const std::size_t pair : wanted_.of(cell)) wanted_.remove(pair);
    const Course& course = *course_of(cell);
    const std::vector<AccessPoint>& points = course.points[cell[kSecondPlace]];
    const Choice& second = kSecond[cell[kSecondAction]];
    return Cell{*index,
                {course.move, Move{points[random() % points.size()], second.action,
                                   second.parameter, 0, second.written}}};
}

void Cover::note(std::size_t cell, bool is_shown) {
    shown_cells_ += is_shown ? 1 : 0;
    for (const std::size_t pair : of_part_.of(cells_[cell])) {
        if (!of_part_.contains(pair)) continue;
        if (is_shown) shown_.add(pair);
        if (shown_.contains(pair))
            wanted_.remove(pair);
        else
            wanted_.add(pair);
    }
    if (!is_shown) new_pairs_at_most_ = kPairsOfACell;
}

Cover::Tally Cover::tally() const {
    Tally tally;
    tally.cells_taken = static_cast<std::size_t>(std::ranges::count(is_taken_, true));
    Pairs without_access = of_part_;
    std::size_t cells_without_access = 0;
    for (const Combination& cell : cells_) {
        if (!is_playable(cell)) {
            ++cells_without_access;
            continue;
        }
        for (const std::size_t pair : without_access.of(cell)) without_access.remove(pair);
    }
    tally.all = is_whole_ ? cells_.size() : of_part_.size();
    tally.shown = is_whole_ ? shown_cells_ : shown_.size();
    tally.without_access = is_whole_ ? cells_without_access : without_access.size();
    return tally;
}

}  // namespace kmes::conformance
