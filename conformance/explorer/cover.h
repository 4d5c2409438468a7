// SPDX-License-Identifier: MIT
//
// Schedules of two moves as cells of a table: what happens first, at which kind of access, what
// happens next, and at which kind of access of the course that the first has changed. The first
// move is the prelude: an event that the second check finds, a lap, a new buffer, a spurious wake.
// By default every two columns meet in all their values (covering.h); `deep` plays the product.
// Knows no stage.
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

namespace kmes::conformance {

// A move, and the points of the course after it.
struct Branch {
    Move move;
    std::vector<AccessPoint> points;
};

// What a point is about. An access to several fields has the first of them.
enum class Place { generation, write_pos, tail_pos, counter, need_wake, data, wait, sleep, other };
Place place_of(const AccessPoint& point);

class Cover {
  public:
    // `whole`: the product.
    explicit Cover(bool whole);

    // Whether the course after this move is still needed: it is the first one with its action at
    // its kind of access.
    bool needs(const Move& first) const;
    void add(const Branch& branch);

    // The moves of the next cell. A cell is left out if no course has its first move, or if that
    // course has no access of its second kind. nullopt: no cell is left.
    std::optional<std::vector<Move>> next(std::mt19937_64& random);
    // The cells that next() has returned, and all.
    std::size_t taken() const { return taken_; }
    std::size_t size() const { return cells_.size(); }

  private:
    using Key = std::pair<std::size_t, Place>;  // which first action, and where
    static std::optional<Key> key_of(const Move& first);

    std::vector<Combination> cells_;
    std::size_t next_ = 0;
    std::size_t taken_ = 0;
    std::map<Key, Branch> branches_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_COVER_H_
