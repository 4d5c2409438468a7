// SPDX-License-Identifier: MIT
//
// Plays the steps of a row on a stage. Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_ROW_PLAYER_H_
#define KMES_CONFORMANCE_PLAY_ROW_PLAYER_H_

#include <cstdint>
#include <vector>

#include "conformance/model/finding.h"
#include "conformance/play/row.h"
#include "conformance/play/row_schedule.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {

// One play of a walk, and the progress of the run at its beginning.
struct RowPlay {
    AccessPoint point;
    std::uint64_t lines = 0;                    // of the report that were read
    std::vector<std::uint64_t> last_sequences;  // by CPU, of the published events; 0: none
};

// Returns the index of the play in which the oracle's finding arose, as far as its line and event
// tell; else the last index. `plays` is not empty.
std::size_t play_of(const Finding& finding, const std::vector<RowPlay>& plays);

// Sets up the rings, starts the testee, plays the chosen parts of the row, and finishes. `begun`
// gets each play when it begins, however the run ends. Throws Stop as the stage does.
CaseOutcome play_row(Stage& stage, const Setup& setup, const Steps& steps, const RowChoice& choice,
                     std::vector<RowPlay>& begun);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_ROW_PLAYER_H_
