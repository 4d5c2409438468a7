// SPDX-License-Identifier: MIT
//
// Proves that the harness finds planted faults, and by which means: ThreadSanitizer, the check of
// deliveries, or the check of sleepers. Each fault is planted in a process of its own (this program
// again), which runs until the fault is found. A table at the end shows the results.
//
//   planted_test                 some of them, in seconds
//   planted_test --every-label   all, also those that cannot be found (labels_long_test)
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "kmes/user/futex.h"
#include "kmes/user/test_support.h"
#include "props/threads/planted.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KMES_TEST_HAS_TSAN 1
#endif
#endif
#ifndef KMES_TEST_HAS_TSAN
#error "this test says nothing without ThreadSanitizer: bazel test --config=tsan"
#endif

namespace kmes::props {
namespace {

// The time for which a fault that cannot be found must stay unfound.
constexpr std::uint64_t kNobodySeconds = 4;

// The test of every commit plants each of the four most important kinds, in each place with another
// finder or another stand-in address.
constexpr PlantPlace kChosen[] = {
    {KMES_ORDER_PUBLISH, Fault::kRelaxed},         // data without publication
    {KMES_ORDER_LOAD_WRITE_POS, Fault::kRelaxed},  // and without acquiring it
    {KMES_ORDER_TAIL_FENCE, Fault::kDropped},      // tail without fence
    {KMES_ORDER_TAIL_FENCE, Fault::kReordered},
    {KMES_ORDER_DATA_FENCE, Fault::kDropped},
    {KMES_ORDER_DATA_FENCE, Fault::kReordered},
    {KMES_ORDER_RECHECK_TAIL, Fault::kSkipped},  // a reader that skips its re-check
    {KMES_ORDER_TAIL, Fault::kPlain},            // metadata without atomics
    {KMES_ORDER_PUBLISH, Fault::kPlain},
    {KMES_ORDER_GENERATION, Fault::kPlain},
    {KMES_ORDER_NEED_WAKE, Fault::kPlain},
    {KMES_ORDER_COUNTER, Fault::kPlain},
    {KMES_ORDER_CLEAR_WAKE, Fault::kPlain},
    {KMES_ORDER_COUNTER, Fault::kRelaxed},       // E2
    {KMES_ORDER_GENERATION, Fault::kRelaxed},    // E24
    {KMES_ORDER_WAKE_FENCE, Fault::kReordered},  // E1
    {KMES_ORDER_SLEEP_FENCE, Fault::kReordered},
};

bool every_label;

const Plant& plant_at(const PlantPlace& place) {
    const auto found = std::find_if(all_plants().begin(), all_plants().end(), [&](const Plant& p) {
        return p.label == place.label && p.fault == place.fault;
    });

    if (found == all_plants().end()) abort();
    return *found;
}

struct Seen {
    Finder finder = Finder::kNobody;
    std::string what;
    std::string output;
    double seconds = 0;
};

// The last line of `output` that begins with `beginning`, without the beginning.
std::string last_line(const std::string& output, const std::string& beginning) {
    const std::size_t at = output.rfind("\n" + beginning);

    if (at == std::string::npos) return "";
    const std::size_t begin = at + 1 + beginning.size();

    return output.substr(begin, output.find('\n', begin) - begin);
}

// The innermost function of the core's own files in the stack that begins at `at`, and its place.
std::string core_frame(const std::string& output, std::size_t at) {
    const std::size_t end = output.find("\n\n", at);

    while ((at = output.find("    #", at)) < end) {
        const std::size_t line_end = output.find('\n', at);
        const std::string line = output.substr(at, line_end - at);
        const std::size_t file = line.find("/kmes/");

        if (file != std::string::npos && line.find("/kmes/user/") == std::string::npos) {
            const std::size_t name = line.find(' ', 5) + 1;

            return line.substr(name, line.find(' ', name) - name) + " (" +
                   line.substr(file + 1, line.find(' ', file) - file - 1) + ")";
        }
        at = line_end;
    }
    return "a place outside of the core";
}

// "race of recheck_tail (kmes/consumer.c:63:5) with move_tail (kmes/producer.c:82:5)"
std::string tsan_summary(const std::string& output) {
    const std::size_t report = output.find("WARNING: ThreadSanitizer: data race");
    const std::size_t before = output.find("\n\n  Previous", report);

    if (report == std::string::npos || before == std::string::npos)
        return last_line(output, "SUMMARY: ThreadSanitizer: ");
    return "race of " + core_frame(output, report) + " with " + core_frame(output, before + 2);
}

// Whether the report is about the planted fault: it names the function. (TSan may have lost one of
// the two stacks, and says so then.)
bool is_about(const Plant& plant, const std::string& output) {
    return output.find(std::string(" ") + plant.in + " ") != std::string::npos ||
           output.find("failed to restore the stack") != std::string::npos;
}

Seen see(const Plant& plant) {
    const auto index = std::to_string(&plant - all_plants().data());
    const std::uint64_t seconds =
        plant.finder == Finder::kNobody ? kNobodySeconds : 3 * patience_ns() / 1000000000;
    const std::uint64_t begin = kmes_clock_monotonic_ns();
    Child child({"--plant", index, std::to_string(seconds)}, "");
    Seen seen;

    seen.output = "\n" + child.rest();
    const int status = child.finish();

    seen.seconds = static_cast<double>(kmes_clock_monotonic_ns() - begin) / 1e9;
    seen.what = last_line(seen.output, "found: ");
    if (status == kTsanStatus) {
        seen.finder = Finder::kTsan;
        seen.what = tsan_summary(seen.output);
    } else if (status == kPayloadStatus || status == kSleepStatus) {
        seen.finder = status == kPayloadStatus ? Finder::kPayloadCheck : Finder::kSleepCheck;
    } else {
        EXPECT_EQ(0, status) << seen.output;
    }
    return seen;
}

void print_row(const Plant& plant, const Seen& seen) {
    printf("%-16s %-9s %-13s run %-4s %6.2f s  %s\n", name_of(plant.label), name_of(plant.fault),
           name_of(seen.finder), last_line(seen.output, "run ").c_str(), seen.seconds,
           seen.finder == Finder::kNobody ? plant.why : seen.what.c_str());
    fflush(stdout);
}

TEST(PlantedTest, EachFaultIsFoundByWhomTheTableSays) {
    std::vector<Plant> plants;

    for (const PlantPlace& place : kChosen) plants.push_back(plant_at(place));
    printf("%-16s %-9s %-13s %8s %8s  %s\n", "label", "planted", "found by", "in", "after",
           "what was said, or why nobody can");
    for (const Plant& plant : every_label ? all_plants() : plants) {
        const Plant& original = plant_at({plant.label, plant.fault});
        const Seen seen = see(original);

        print_row(original, seen);
        EXPECT_STREQ(name_of(plant.finder), name_of(seen.finder))
            << name_of(plant.label) << " " << name_of(plant.fault)
            << "; the table says: " << plant.why << "\n"
            << seen.output;
        if (seen.finder == Finder::kTsan) {
            EXPECT_TRUE(is_about(plant, seen.output)) << plant.in << "\n" << seen.output;
        }
    }
}

TEST(PlantedTest, TheTableHasEveryFaultOfEveryLabel) {
    std::vector<PlantPlace> places;

    for (const Plant& plant : all_plants()) places.push_back({plant.label, plant.fault});
    EXPECT_TRUE(places == all_plant_places());
}

// Compares with docs/threads.md, line by line.
TEST(PlantedTest, TheDocumentHasTheTable) {
    std::ifstream file("docs/threads.md");
    const std::string text((std::istreambuf_iterator<char>(file)), {});

    ASSERT_FALSE(text.empty()) << "docs/threads.md is not there: run it from the top of the tree";
    for (const Plant& plant : all_plants()) {
        const std::string row = std::string("\n| ") + name_of(plant.label) + " | " +
                                name_of(plant.fault) + " | " + name_of(plant.finder) + " | " +
                                plant.why + " |\n";

        EXPECT_NE(std::string::npos, text.find(row)) << "docs/threads.md lacks:" << row;
    }
}

// Without a planted fault, a finding is a mistake of the harness or of the core.
TEST(PlantedTest, NothingIsFoundWhereNothingIsPlanted) {
    for (const Profile profile : {Profile::kLaps, Profile::kSleeps, Profile::kResizes}) {
        for (std::uint64_t seed = 1; seed <= 3; seed++) {
            const Mix mix = draw_mix(seed, profile);
            const RunResult result = run_mix(mix);

            EXPECT_STREQ("nobody", name_of(result.finder)) << print_mix(mix) << "\n"
                                                           << result.error;
        }
    }
}

}  // namespace
}  // namespace kmes::props

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);

    if (arguments.size() == 3 && arguments[0] == "--plant") {
        dup2(STDOUT_FILENO, STDERR_FILENO);  // the parent reads TSan's report
        return kmes::props::run_planted(kmes::props::all_plants().at(std::stoul(arguments[1])),
                                        std::stoul(arguments[2]));
    }
    kmes::props::every_label =
        std::find(arguments.begin(), arguments.end(), "--every-label") != arguments.end();
    // The first report ends a child with a status of its own, whatever options this run has.
    const char* options = getenv("TSAN_OPTIONS");

    setenv("TSAN_OPTIONS",
           (std::string(options ? options : "") + ":halt_on_error=1:exitcode=66:history_size=7")
               .c_str(),
           1);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
