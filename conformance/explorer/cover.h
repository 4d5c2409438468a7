// SPDX-License-Identifier: MIT
//
// Schedules of two moves, chosen as the cells of a table. The columns are the two actions and the
// two kinds of access before which they happen. The first move is the prelude: an event that the
// second check finds, a lap, a new buffer, a spurious wake. The second access belongs to the course
// that the first move has changed. By default any two values of two columns meet in some cell that
// is played, if the consumer makes the accesses. `deep` plays the product. Knows no stage.
#ifndef KMES_CONFORMANCE_EXPLORER_COVER_H_
#define KMES_CONFORMANCE_EXPLORER_COVER_H_

#include <cstddef>
#include <optional>
#include <random>
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
    // Otherwise the object has the pairs of `part`, and each pair is in one part. Several parts may
    // then play a cell.
    explicit Cover(bool whole, const ExplorePart& part = {});

    // Whether the course after this move is still needed: no earlier course has its action at its
    // kind of access.
    bool needs(const Move& first) const;
    // Returns a move for each first action at each place that the points have and `singles` lacks.
    // The single moves alone leave gaps, which would take their pairs out of the cover.
    std::vector<Move> preludes(const std::vector<AccessPoint>& points,
                               const std::vector<Move>& singles) const;
    void add(const Branch& branch);

    struct Cell {
        std::size_t index = 0;
        std::vector<Move> moves;
    };
    // Returns the next cell; nullopt if no cell is left that a known course has accesses for.
    // Another course may come later.
    std::optional<Cell> next(std::mt19937_64& random);
    // Call it after the play of a cell. `is_shown`: both moves took place, and the play has a
    // verdict. Otherwise the pairs of the cell are still wanted, and other cells may have them.
    void note(std::size_t cell, bool is_shown);

    // What is covered: cells of the product, or pairs of two values.
    struct Tally {
        std::size_t cells_taken = 0;  // that next() has returned
        std::size_t all = 0;
        std::size_t shown = 0;
        std::size_t without_access = 0;  // no course has the accesses
    };
    Tally tally() const;

  private:
    // A move and, by place, the points of the course after it.
    struct Course {
        Move move;
        std::vector<std::vector<AccessPoint>> points;
    };

    static std::optional<std::size_t> key_of(const Move& first);
    const Course* course_of(const Combination& cell) const;
    bool is_playable(const Combination& cell) const;
    std::optional<std::size_t> next_cell();

    bool is_whole_;
    std::vector<Combination> cells_;
    std::vector<bool> is_taken_;  // by cell
    std::size_t shown_cells_ = 0;
    Pairs of_part_;
    Pairs wanted_;  // no cell with them is shown or is being played
    Pairs shown_;
    static constexpr std::size_t kPairsOfACell = 6;
    std::size_t new_pairs_at_most_ = kPairsOfACell;  // in a cell that is left
    std::vector<std::optional<Course>> courses_;     // by first action and place: see key_of
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_COVER_H_
