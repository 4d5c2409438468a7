// SPDX-License-Identifier: MIT
//
// One shard of a run, by the environment that Bazel gives to the shards of a test.
#ifndef KMES_CONFORMANCE_MAIN_SHARD_H_
#define KMES_CONFORMANCE_MAIN_SHARD_H_

#include <optional>
#include <string>
#include <vector>

#include "conformance/model/case.h"
#include "conformance/model/settings.h"
#include "conformance/report/run_report.h"

namespace kmes::conformance {

// The values of TEST_TOTAL_SHARDS, TEST_SHARD_INDEX and TEST_SHARD_STATUS_FILE; empty: not set.
struct ShardEnvironment {
    std::string total;
    std::string index;
    std::string status_file;
};

struct ParsedShard {
    std::optional<Shard> shard;  // none: the run is no shard
    std::string error;           // one line; not empty: bad usage
};

// Creates the status file, which tells Bazel that this program knows shards.
ParsedShard parse_shard(const ShardEnvironment& environment);

// Whether every shard plays a part of this case. This holds for a soak, and for explored cases with
// `explore` (--explore) deep or SECONDS.
bool is_in_every_shard(const Case& each, const ExploreSettings& explore);

// Returns the variables of an environment, which ends with NULL, without those of a shard. The
// result ends with NULL, too.
std::vector<char*> without_shard(char** environment);

// Keeps the cases that every shard has and, of the others, every `total`-th one, starting with
// number `index`. Records the ids of all cases in the shard. Cases that explore take longest, so
// each shard gets an equal share of them.
void take_shard(Shard& shard, const ExploreSettings& explore, std::vector<const Case*>& cases);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SHARD_H_
