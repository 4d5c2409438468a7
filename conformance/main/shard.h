// SPDX-License-Identifier: MIT
//
// One shard of a run, by the environment that Bazel gives to the shards of a test.
#ifndef KMES_CONFORMANCE_MAIN_SHARD_H_
#define KMES_CONFORMANCE_MAIN_SHARD_H_

#include <optional>
#include <string>
#include <vector>

#include "conformance/model/case.h"
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

// Keeps every `total`-th case, starting with number `index`, and records the ids of all cases in
// the shard. Cases that explore take longest, so each shard gets an equal share of them.
void take_shard(Shard& shard, std::vector<const Case*>& cases);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SHARD_H_
