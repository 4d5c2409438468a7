// SPDX-License-Identifier: MIT
//
// See shard.h.
#include "conformance/main/shard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "conformance/main/options.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

// Returns an empty string, or the reason of the failure.
std::string touch(const std::string& path) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return fmt::format("TEST_SHARD_STATUS_FILE: {}: {}", printable(path), std::strerror(errno));
    ::close(fd);
    return "";
}

}  // namespace

ParsedShard parse_shard(const ShardEnvironment& environment) {
    ParsedShard parsed;
    if (environment.total.empty()) return parsed;
    const auto total = parse_decimal(environment.total);
    if (!total || *total > kMostShards) {
        parsed.error = wrong_value("TEST_TOTAL_SHARDS", environment.total,
                                   fmt::format("a number of at most {}", kMostShards));
        return parsed;
    }
    // Bazel sets 0, or nothing, for a test without shards.
    if (*total == 0) return parsed;
    const auto index = parse_decimal(environment.index);
    if (!index || *index >= *total) {
        parsed.error = wrong_value("TEST_SHARD_INDEX", environment.index,
                                   fmt::format("a number from 0 to {}", *total - 1));
        return parsed;
    }
    if (!environment.status_file.empty()) parsed.error = touch(environment.status_file);
    Shard shard;
    shard.total = static_cast<std::uint32_t>(*total);
    shard.index = static_cast<std::uint32_t>(*index);
    parsed.shard = shard;
    return parsed;
}

bool is_in_every_shard(const Case& each, const ExploreSettings& explore) {
    return each.demand == Demand::soak ||
           (each.demand == Demand::explored && (explore.deep || explore.to_the_limit));
}

std::vector<char*> without_shard(char** environment) {
    constexpr std::string_view kVariables[] = {
        "TEST_TOTAL_SHARDS=", "TEST_SHARD_INDEX=", "TEST_SHARD_STATUS_FILE="};
    std::vector<char*> all;
    for (char** each = environment; *each != nullptr; ++each) {
        const std::string_view variable(*each);
        if (std::ranges::none_of(kVariables, [variable](std::string_view name) {
                return variable.starts_with(name);
            }))
            all.push_back(*each);
    }
    all.push_back(nullptr);
    return all;
}

void take_shard(Shard& shard, const ExploreSettings& explore, std::vector<const Case*>& cases) {
    // The explored cases come first, so each shard gets its share of them.
    std::vector<const Case*> order;
    for (const bool explored : {true, false}) {
        for (const Case* each : cases) {
            if (is_in_every_shard(*each, explore)) continue;
            if ((each->demand == Demand::explored) == explored) order.push_back(each);
        }
    }
    std::vector<const Case*> mine;
    for (const Case* each : cases) {
        shard.cases.emplace_back(each->id);
        const auto place = std::ranges::find(order, each) - order.begin();
        if (is_in_every_shard(*each, explore) ||
            static_cast<std::size_t>(place) % shard.total == shard.index)
            mine.push_back(each);
    }
    cases = std::move(mine);
}

}  // namespace kmes::conformance
