// SPDX-License-Identifier: MIT
//
// See equivalence.h.
#include "conformance/explorer/equivalence.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "conformance/oracle/layout.h"

namespace kmes::conformance {

namespace {

// What an action stores in a buffer that the testee may have mapped. A new buffer of a swap does
// not count, because no consumer has mapped it yet.
struct Stores {
    bool generation = false;
    bool positions = false;  // write_pos, tail_pos
    bool counter = false;    // futex_counter
    bool data = false;
    bool on_all_cpus = false;
};

// nullopt: the action depends on more than memory.
std::optional<Stores> stores_of(Action action) {
    switch (action) {
        case Action::nothing:
        case Action::drop:
        case Action::wake:  // if the only thread makes an access, no thread waits
            return Stores{};
        case Action::emit:
        case Action::burst:
        case Action::batch:
        case Action::lap_part:
        case Action::lap:
        case Action::laps:
            return Stores{.positions = true, .counter = true, .data = true};
        case Action::grow:
        case Action::shrink:
        case Action::swap:
        case Action::swap_twice:
            return Stores{.generation = true, .counter = true, .on_all_cpus = true};
        case Action::nudge:  // E19: it increments the generation of the retired buffer, too
            return Stores{.generation = true, .counter = true, .on_all_cpus = true};
        case Action::reserve:
        case Action::tear:
        case Action::hold:
        case Action::overtake:
        case Action::write_over:
        case Action::yield:
            break;
    }
    return std::nullopt;
}

bool touches(const AccessPoint& access, std::uint64_t field) {
    return field_at(field).overlaps(access.offset_bytes, access.size_bytes);
}

// Equal for moves that differ only in their point.
auto action_of(const Move& move) {
    return std::make_tuple(move.action, move.parameter, move.further, move.written);
}

class Equivalence {
  public:
    Equivalence(const std::vector<TraceEntry>& trace, std::uint32_t cpus)
        : trace_(trace), cpus_(cpus) {
        for (std::size_t i = 0; i < trace.size(); ++i) place_.emplace(trace[i].point, i);
        for (const TraceEntry& entry : trace) {
            if (entry.thread == 0) continue;  // asleep
            threads_[entry.point.phase].insert(entry.thread);
            if (entry.point.phase > 0) later_threads_.insert(entry.thread);
        }
    }

    bool are_equal(const Move& move, const Move& later) const {
        const AccessPoint& point = move.point;
        const AccessPoint& next = later.point;
        if (point.kind != PointKind::access || next.kind != PointKind::access) return false;
        if (point.split_bytes != 0 || next.split_bytes != 0) return false;
        if (point.phase != next.phase || point.cpu != next.cpu) return false;
        if (!has_one_thread(point.phase)) return false;
        const auto from = place_.find(point);
        const auto to = place_.find(next);
        if (from == place_.end() || to == place_.end() || from->second >= to->second) return false;
        const std::uint32_t cpu = (point.cpu + move.further) % cpus_;
        for (std::size_t i = from->second; i < to->second; ++i) {
            const AccessPoint& access = trace_[i].point;
            if (access.kind != PointKind::access || trace_[i + 1].is_after_gap ||
                !commutes(move.action, access.cpu == cpu, access))
                return false;
        }
        return true;
    }

  private:
    // One thread attaches in phase 0, and often another reads then. Later phases must have one
    // thread.
    bool has_one_thread(std::uint32_t phase) const {
        const auto found = threads_.find(phase);
        return (found == threads_.end() || found->second.size() <= 1) && later_threads_.size() <= 1;
    }

    const std::vector<TraceEntry>& trace_;
    std::uint32_t cpus_;
    std::map<AccessPoint, std::size_t> place_;
    std::map<std::uint32_t, std::set<std::int32_t>> threads_;  // with accesses or waits, by phase
    std::set<std::int32_t> later_threads_;                     // after phase 0
};

}  // namespace

bool commutes(Action action, bool same_cpu, const AccessPoint& access) {
    const std::optional<Stores> stores = stores_of(action);
    // A producer loads what a consumer stores (need_wake), and the judge checks each store.
    if (!stores || access.is_write) return false;
    if (!same_cpu && !stores->on_all_cpus) return true;
    const bool meets = (stores->generation && touches(access, kGenerationOffset)) ||
                       (stores->positions && touches(access, kWritePosOffset)) ||
                       (stores->positions && touches(access, kTailPosOffset)) ||
                       (stores->counter && touches(access, kFutexCounterOffset)) ||
                       (stores->data && access.offset_bytes + access.size_bytes > kMetadataBytes);
    return !meets;
}

Distinct without_equivalent(const std::vector<Move>& moves, const std::vector<TraceEntry>& trace,
                            std::uint32_t cpus) {
    const Equivalence equivalence(trace, cpus);
    struct Next {
        std::size_t index;  // of the next move with the same action
        std::size_t kept;   // of the move that is played for it
    };
    std::map<decltype(action_of(moves.front())), Next> next_of;
    Distinct distinct;
    std::vector<bool> is_kept(moves.size(), true);
    for (std::size_t i = moves.size(); i-- > 0;) {
        const auto [found, is_last] = next_of.emplace(action_of(moves[i]), Next{i, i});
        if (is_last) continue;
        Next& next = found->second;
        is_kept[i] = !equivalence.are_equal(moves[i], moves[next.index]);
        if (is_kept[i])
            next.kept = i;
        else
            distinct.same_as.emplace(moves[i], moves[next.kept]);
        next.index = i;
    }
    for (std::size_t i = 0; i < moves.size(); ++i) {
        if (is_kept[i]) distinct.moves.push_back(moves[i]);
    }
    return distinct;
}

}  // namespace kmes::conformance
