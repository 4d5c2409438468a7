// SPDX-License-Identifier: MIT
//
// A schedule: the accesses of the testee before which the producer acts, and its actions. Plain
// data, so that a failure can be written to a file, repeated and made smaller. Knows no testee and
// no way to run.
#ifndef KMES_CONFORMANCE_MODEL_SCHEDULE_H_
#define KMES_CONFORMANCE_MODEL_SCHEDULE_H_

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/model/access_point.h"
#include "conformance/model/action.h"
#include "conformance/model/operations.h"

namespace kmes::conformance {

struct Move {
    AccessPoint point;
    Action action = Action::nothing;
    std::uint64_t parameter = 0;
    std::uint32_t further = 0;         // act on the CPU this many numbers after the point's
    Written written = Written::whole;  // for reserve and write_over: until the event is published

    auto operator<=>(const Move&) const = default;
};

// `scenario` names the play that the moves belong to (conformance/explorer/scenarios.h). "row"
// means that the moves say which parts of a row are played (conformance/play/row_schedule.h). A
// drawn schedule derives its moves from the seed and ignores `moves`.
struct Schedule {
    std::string scenario;
    std::uint64_t seed = 0;
    std::vector<Move> moves;  // in the order of their points
    bool drawn = false;
    // The number of moves after `moves` that a failure file did not keep. If not 0, it cannot be
    // played.
    std::uint64_t left_out = 0;

    bool operator==(const Schedule&) const = default;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_SCHEDULE_H_
