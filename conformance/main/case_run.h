// SPDX-License-Identifier: MIT
//
// One run of selected cases: the preflight, the cases, their reports, and the exit status.
#ifndef KMES_CONFORMANCE_MAIN_CASE_RUN_H_
#define KMES_CONFORMANCE_MAIN_CASE_RUN_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "conformance/main/options.h"
#include "conformance/main/program.h"
#include "conformance/main/shard.h"
#include "conformance/model/case.h"
#include "conformance/model/settings.h"

namespace kmes::conformance {

// The level of a run without --level.
inline constexpr Level kDefaultLevel = Level::erratum;

// Returns the settings that the options give to each case.
StageSettings settings_of(const Options& options, const Surroundings& around);

// Returns the width of a column of ids.
std::size_t longest_id(const std::vector<const Case*>& cases);

// Runs the cases, or those of a shard, and writes every report. Returns the exit status.
int run_selected_cases(const Options& options, const Surroundings& around,
                       std::vector<const Case*> cases, std::optional<Shard> shard = std::nullopt);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_CASE_RUN_H_
