// SPDX-License-Identifier: GPL-2.0-only
//
// Plays scripts on the producer in this process and on an instance of the module, and compares all
// bytes after each operation (docs/identity.md). Needs a test build of kmes.ko.
#include <getopt.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "kmod/identity/concurrent.h"
#include "kmod/identity/player.h"
#include "kmod/identity/scaled.h"
#include "kmod/identity/sources.h"
#include "kmod/identity/stream.h"

namespace kmes::identity {
namespace {

// Scripts with larger rings are skipped, because all buffers of a script exist until its end.
constexpr std::uint64_t kLargestCapacity = 16ull << 20;

constexpr char kUsage[] =
    "usage: identity [--random N] [--steps N] [--seed N] [--cpus N] [--calls N]\n"
    "                [--concurrent N] [--real N] [--plant-difference] [--incomplete]\n"
    "                [FILE or FOLDER...]\n"
    "--random N          play N random scripts of --steps operations (1000), from --seed on (1)\n"
    "--cpus N            play N scripts at once, one on each CPU of an instance (1)\n"
    "--calls N           make N valid and invalid emit calls\n"
    "--concurrent N      make N runs of resizes while other threads emit\n"
    "--real N            resize the real rings N times under load, with readers\n"
    "--plant-difference  play each script again with one changed byte, which must be found\n"
    "--incomplete        do not fail if an operation of the core was never played\n";

struct Options {
    std::uint64_t random = 0, steps = 1000, seed = 1, cpus = 1, calls = 0, concurrent = 0, real = 0;
    bool has_plants = false, may_be_incomplete = false;
    std::vector<std::string> paths;
};

struct Sum {
    std::uint64_t scripts = 0, operations = 0, skipped = 0, bytes = 0, scaled = 0, too_large = 0;
    std::uint64_t failures = 0, plants = 0;
    OperationTable table;
};

bool parse(int count, char** words, Options* options) {
    static const option kOptions[] = {
        {"random", 1, nullptr, 'r'},     {"steps", 1, nullptr, 't'},
        {"seed", 1, nullptr, 's'},       {"cpus", 1, nullptr, 'c'},
        {"calls", 1, nullptr, 'a'},      {"concurrent", 1, nullptr, 'o'},
        {"real", 1, nullptr, 'e'},       {"plant-difference", 0, nullptr, 'p'},
        {"incomplete", 0, nullptr, 'i'}, {nullptr, 0, nullptr, 0}};
    for (int word; (word = getopt_long(count, words, "", kOptions, nullptr)) != -1;) {
        const std::uint64_t number = optarg ? std::strtoull(optarg, nullptr, 0) : 0;
        switch (word) {
            case 'r':
                options->random = number;
                break;
            case 't':
                options->steps = number;
                break;
            case 's':
                options->seed = number;
                break;
            case 'c':
                options->cpus = number;
                break;
            case 'a':
                options->calls = number;
                break;
            case 'o':
                options->concurrent = number;
                break;
            case 'e':
                options->real = number;
                break;
            case 'p':
                options->has_plants = true;
                break;
            case 'i':
                options->may_be_incomplete = true;
                break;
            default:
                return false;
        }
    }
    options->paths.assign(words + optind, words + count);
    return options->cpus >= 1 && options->cpus <= 64;
}

void take(const std::string& name, const Played& played, Sum* sum) {
    sum->scripts++;
    sum->operations += played.operations;
    sum->skipped += played.skipped;
    sum->bytes += played.bytes;
    sum->table.add(played.table);
    if (played.difference) {
        sum->failures++;
        std::printf("DIFFERENT %s: %s\n", name.c_str(), played.difference->c_str());
    } else {
        std::printf("same %s: %" PRIu64 " operations, %" PRIu64 " skipped, %zu buffers, %" PRIu64
                    " KiB compared\n",
                    name.c_str(), played.operations, played.skipped, played.buffers,
                    played.bytes >> 10);
    }
    std::fflush(stdout);
}

// Plays a script again, and changes one byte after one operation. A hash of the script's name
// chooses both. The comparison must find the difference after that operation.
void plant(const std::string& name, const std::vector<props::Script>& scripts, const Played& before,
           Sum* sum) {
    if (before.operations == 0) return;
    const std::uint64_t hash = std::hash<std::string>{}(name);
    const Plant plant{hash % before.operations, hash >> 20};
    const Played played = Player(scripts, plant).play();
    sum->plants++;
    const bool is_caught = played.difference && played.operations == plant.at_operation + 1;
    if (is_caught) {
        std::printf("planted %s: found, %s\n", name.c_str(), played.difference->c_str());
        return;
    }
    sum->failures++;
    std::printf("PLANTED %s: NOT found at once (operation %" PRIu64 ", offset %" PRIu64 ")\n",
                name.c_str(), plant.at_operation, plant.offset);
}

void play(const std::vector<Named>& group, const Options& options, Sum* sum) {
    std::string name;
    std::vector<props::Script> scripts;
    for (const Named& named : group) {
        Scaled scaled = scale(named.script);
        if (scaled.largest_capacity > kLargestCapacity) {
            std::printf("skipped %s: a capacity of %" PRIu64 " bytes\n", named.name.c_str(),
                        scaled.largest_capacity);
            sum->too_large++;
            continue;
        }
        sum->scaled += scaled.factor > 1;
        name += (name.empty() ? "" : " + ") + named.name;
        if (scaled.factor > 1) name += " (x" + std::to_string(scaled.factor) + ")";
        scripts.push_back(std::move(scaled.script));
    }
    if (scripts.empty()) return;
    const Played played = Player(scripts).play();
    take(name, played, sum);
    if (options.has_plants && !played.difference) plant(name, scripts, played, sum);
}

void play_all(const Options& options, Sum* sum) {
    std::uint64_t others = 0;
    std::vector<Named> group;
    const auto add = [&](Named named) {
        group.push_back(std::move(named));
        if (group.size() < options.cpus) return;
        play(group, options, sum);
        group.clear();
    };
    for (Named& named : read_scripts(options.paths, &others)) add(std::move(named));
    for (std::uint64_t i = 0; i < options.random; i++)
        add(random_script(options.seed + i, options.steps));
    if (!group.empty()) play(group, options, sum);
    if (others) std::printf("%" PRIu64 " files are not scripts\n", others);
    if (options.calls) {
        const std::vector<props::Script> empty(2);
        take("emit calls, seed " + std::to_string(options.seed),
             Player(empty).play_calls(options.seed, static_cast<unsigned>(options.calls)), sum);
    }
    for (std::uint64_t i = 0; i < options.concurrent; i++) {
        const std::uint64_t seed = options.seed + i;
        take("resizes while emitting, seed " + std::to_string(seed), play_concurrently(seed), sum);
    }
}

int run(const Options& options) {
    Sum sum;
    play_all(options, &sum);
    if (sum.scripts) sum.table.print();
    std::printf("%" PRIu64 " runs, seed %" PRIu64 ": %" PRIu64 " operations, %" PRIu64
                " skipped, %" PRIu64 " MiB compared; %" PRIu64 " scripts scaled, %" PRIu64
                " scripts skipped; %" PRIu64 " differences planted; %" PRIu64 " failures\n",
                sum.scripts, options.seed, sum.operations, sum.skipped, sum.bytes >> 20, sum.scaled,
                sum.too_large, sum.plants, sum.failures);
    if (options.real && !resize_real_instance(static_cast<unsigned>(options.real))) return 1;
    if ((!sum.scripts && !options.real) || sum.failures) return 1;
    return !sum.scripts || options.may_be_incomplete || sum.table.is_complete() ? 0 : 1;
}

}  // namespace
}  // namespace kmes::identity

int main(int count, char** words) {
    kmes::identity::Options options;
    if (!kmes::identity::parse(count, words, &options)) {
        std::fputs(kmes::identity::kUsage, stderr);
        return 2;
    }
    try {
        return kmes::identity::run(options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "identity: %s\n", error.what());
        return 1;
    }
}
