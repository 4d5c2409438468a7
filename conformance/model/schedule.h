// SPDX-License-Identifier: MIT
//
// A schedule: at which accesses of the testee the producer acts, and how. Plain data, so that a
// failure can be written to a file, run again and made smaller. Knows no testee and no way to run.
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
    std::uint32_t further = 0;         // on the CPU that is so many behind the point's
    Written written = Written::whole;  // reserve, write_over: until the event is published

    auto operator<=>(const Move&) const = default;
};

// `scenario` names the play into which the moves come (conformance/explorer/scenarios.h), or is
// "row": the moves say what of a row is played (conformance/play/row_schedule.h). A
// schedule that is drawn makes moves that follow from the seed, and not those that stand here.
struct Schedule {
    std::string scenario;
    std::uint64_t seed = 0;
    std::vector<Move> moves;  // in the order in which their points come
    bool drawn = false;

    bool operator==(const Schedule&) const = default;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_SCHEDULE_H_
