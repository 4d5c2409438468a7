// SPDX-License-Identifier: MIT
//
// See growth.h.
#include "conformance/play/growth.h"

#include <fmt/format.h>

#include <vector>

#include "conformance/monitors/resources.h"
#include "conformance/play/many_files.h"

namespace kmes::conformance {

namespace {

// Calls `play` so many times before each count. Returns nothing if the consumer has refused or
// ended every CPU: the judge decides whether that was correct.
std::vector<Holdings> count_between(Stage& stage, std::uint64_t counts, std::uint64_t plays,
                                    const std::function<void()>& play) {
    std::vector<Holdings> counted;
    for (std::uint64_t i = 1; i <= counts * plays; ++i) {
        play();
        if (stage.testee().progress().all_ended()) return {};
        if (i % plays == 0) counted.push_back(count_holdings(stage));
    }
    return counted;
}

}  // namespace

Step without_growth(std::uint64_t changes, Resources counted, const Steps& change) {
    constexpr std::uint64_t kCounts = 4;
    const auto play_counted = [=](Stage& stage, const std::function<void()>& play) {
        const ManyFiles files(8 * stage.cpus() * (kCounts * changes + 20));
        const std::vector<Holdings> counts = count_between(stage, kCounts, changes, play);
        if (!counts.empty())
            blame_growth(stage, counts, figures_of(changes, counted == Resources::memory_too),
                         changes);
    };
    return Around{play_counted, change};
}

Step without_growth_of_memory(std::uint64_t reads, std::uint64_t event_bytes, const Steps& read) {
    constexpr std::uint64_t kCounts = 5;
    const auto play_counted = [=](Stage& stage, const std::function<void()>& play) {
        std::vector<Holdings> counts = count_between(stage, kCounts, reads, play);
        if (counts.empty()) return;
        const auto is_growing = [&] {
            return grows(counts, &Holdings::data_bytes, kOwnGrowthBytes);
        };
        count_again(stage, counts, is_growing);
        if (!is_growing()) return;
        stage.findings().blame(
            "5.1.8.1-5",
            fmt::format("the consumer has {2} bytes of private memory after every {0} "
                        "discarded events of {1} bytes; expected no growth. Evidence: the "
                        "memory of discarded events is not given back",
                        reads, event_bytes, text_of(counts, &Holdings::data_bytes)));
    };
    return Around{play_counted, read};
}

}  // namespace kmes::conformance
