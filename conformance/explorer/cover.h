// SPDX-License-Identifier: MIT
//
// Schedules of two moves, chosen as the cells of a table. The columns are the two actions and the
// two kinds of access before which they happen. The first move is the prelude: an event that the
// second check finds, a lap, a new buffer, a spurious wake. The second access belongs to the course
// that the first move has changed. By default any two values of two columns meet in some cell
// (covering.h); `deep` plays the product. Knows no stage.
#ifndef KMES_CONFORMANCE_EXPLORER_COVER_H_
#define KMES_CONFORMANCE_EXPLORER_COVER_H_

#include <cstddef>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "conformance/explorer/covering.h"
#include "conformance/model/schedule.h"
#include "conformance/model/settings.h"

namespace kmes::conformance {

// A move, and the points of the course after it.
struct Branch {
    Move move;
    std::vector<AccessPoint> points;
};

// What the access of a point is about; an access to several fields counts as the first of them.
enum class Place { generation, write_pos, tail_pos, counter, need_wake, data, wait, sleep, other };
Place place_of(const AccessPoint& point);

class Cover {
  public:
    // `whole`: play the product. The object has the cells of `part`; each cell is in one part.
    explicit Cover(bool whole, const ExplorePart& part = {});

    // Whether the course after this move is still needed: no earlier course has its action at its
    // kind of access.
    bool needs(const Move& first) const;
    void add(const Branch& branch);

    // Returns the moves of the next cell; nullopt if no cell is left. Skips a cell if no course has
    // its first move, or if that course has no access of its second kind.
    std::optional<std::vector<Move>> next(std::mt19937_64& random);
    // The number of cells that next() has returned, and the number of all cells.
    std::size_t taken() const { return taken_; }
    std::size_t size() const { return cells_.size(); }

  private:
    using Key = std::pair<std::size_t, Place>;  // the first action, and its place
    static std::optional<Key> key_of(const Move& first);

    std::vector<Combination> cells_;
    std::size_t next_ = 0;
    std::size_t taken_ = 0;
    std::map<Key, Branch> branches_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_COVER_H_
