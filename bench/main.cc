// SPDX-License-Identifier: MIT
//
// kmes-bench [--quick] [--first] [--json FILE] [--peer OBJECT]... [GROUP...]: prints the tables of
// the groups, each figure next to the floor of the same run. No figure makes the program fail.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/rows.h"

namespace kmes::bench {
namespace {

struct Group {
    const char* name;
    std::vector<Table> (*tables)(std::uint64_t value, const Effort& effort);
    const char* column;  // the meaning of `values`
    std::vector<std::uint64_t> values;
};

std::vector<Group> groups() {
    const std::vector<std::uint64_t> all(std::begin(kPayloadBytes), std::end(kPayloadBytes));

    return {
        {"producer", producer_tables, "payload bytes", all},
        {"reader", reader_tables, "payload bytes", all},
        {"pair", pair_tables, "payload bytes", all},
        {"wake", wake_tables, "payload bytes", {64}},
        {"mixed", mixed_tables, "mean payload bytes", {64, 256, 1024, 4096}},
        {"rings", rings_tables, "rings", {1, 4, 16, 64}},
        {"capacity", capacity_tables, "capacity bytes", {64 << 10, 1 << 20, 16 << 20, 256 << 20}},
        {"resize", resize_tables, "capacity bytes", {64 << 10, 1 << 20, 16 << 20, 256 << 20}},
        {"peers", peers_tables, "payload bytes", all}};
}

// One row of a printed table: a variant, and its figure for each value of the column.
struct Row {
    std::string name;
    std::vector<Figure> figures;
};

struct Result {
    std::string group;
    std::string table;
    std::string unit;
    std::string column;
    std::vector<std::uint64_t> values;
    std::vector<Row> rows;
};

std::vector<Result> run(const Group& group, const Effort& effort) {
    std::vector<Result> results;

    for (std::uint64_t value : group.values) {
        const std::vector<Table> tables = group.tables(value, effort);

        results.resize(tables.size());
        for (std::size_t i = 0; i < tables.size(); i++) {
            const std::vector<Figure> figures = measure(tables[i].variants, effort.sampling);

            results[i].group = group.name;
            results[i].table = tables[i].name;
            results[i].unit = tables[i].unit;
            results[i].column = group.column;
            results[i].values = group.values;
            results[i].rows.resize(figures.size());
            for (std::size_t k = 0; k < figures.size(); k++) {
                results[i].rows[k].name = figures[k].name;
                results[i].rows[k].figures.push_back(figures[k]);
            }
        }
    }
    return results;
}

void print(const Result& result) {
    unsigned samples = 0, rejected = 0;

    fmt::print("\n{}: {}, {} (ratio to {})\n", result.group, result.table, result.unit,
               result.rows[0].name);
    fmt::print("{:<28}", result.column);
    for (std::uint64_t value : result.values) fmt::print("{:>16}", value);
    fmt::print("\n");
    for (const Row& row : result.rows) {
        fmt::print("{:<28}", row.name);
        for (std::size_t i = 0; i < row.figures.size(); i++) {
            const double ratio = row.figures[i].median / result.rows[0].figures[i].median;

            fmt::print("{:>9.1f} ({:.2f})", row.figures[i].median, ratio);
            samples += row.figures[i].samples;
            rejected += row.figures[i].rejected;
        }
        fmt::print("\n");
    }
    fmt::print("medians of {} interleaved samples; {} disturbed samples were repeated\n", samples,
               rejected);
}

nlohmann::json to_json(const std::vector<Result>& results) {
    nlohmann::json rows = nlohmann::json::array();

    for (const Result& result : results) {
        for (const Row& row : result.rows) {
            for (std::size_t i = 0; i < row.figures.size(); i++) {
                const Figure& figure = row.figures[i];
                const double floor = result.rows[0].figures[i].median;

                rows.push_back({{"group", result.group},
                                {"table", result.table},
                                {"variant", row.name},
                                {"column", result.column},
                                {"value", result.values[i]},
                                {"unit", result.unit},
                                {"median", figure.median},
                                {"p10", figure.low},
                                {"p90", figure.high},
                                {"ratio", figure.median / floor},
                                {"samples", figure.samples},
                                {"rejected", figure.rejected}});
            }
        }
    }
    return {{"schema", 3}, {"rows", rows}};
}

// Returns the peers that this machine can run. Prints a line for each of the others.
std::vector<std::string> peers_that_run(const std::vector<std::string>& peers) {
    std::vector<std::string> found;

    for (const std::string& peer : peers) {
        const std::string fault = peer_fault(peer);

        if (fault.empty())
            found.push_back(peer);
        else
            fmt::print("left out: {}\n", fault);
    }
    return found;
}

int main_checked(int argc, char** argv) {
    CLI::App app("Measures the cost of an event, and compares it with the floor of the same run.",
                 "kmes-bench");
    bool is_quick = false, is_first = false;
    Effort effort;
    std::string json_path;
    std::vector<std::string> names;
    std::vector<std::string> known;

    for (const Group& group : groups()) known.push_back(group.name);
    app.add_flag("--quick", is_quick, "take fewer and shorter samples, and one warm-up lap");
    app.add_flag("--first", is_first, "measure only the first value of each column");
    app.add_option("--json", json_path, "write the figures to this file, too");
    app.add_option("--peer", effort.peers,
                   "shared object of bench/peers, for the group peers; repeatable")
        ->allow_extra_args(false);
    app.add_option("group", names, "groups to measure (default: all)")->check(CLI::IsMember(known));
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        return app.exit(CLI::CallForHelp());
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "kmes-bench: {}\n", error.what());
        return 2;
    }
    std::vector<Result> results;

    if (is_quick) {
        effort.warm_up_laps = 1;
        effort.sample_events /= 4;
        effort.sampling.samples = 5;
        effort.sampling.tries = 2;
    }
    if (names.empty()) names = known;
    effort.peers = peers_that_run(effort.peers);
    for (Group group : groups()) {
        if (std::find(names.begin(), names.end(), group.name) == names.end()) continue;
        if (is_first) group.values.resize(1);
        for (Result& result : run(group, effort)) {
            print(result);
            results.push_back(std::move(result));
        }
    }
    for (const std::string& peer : effort.peers) fmt::print("{}\n", peer_note(peer));
    if (json_path.empty()) return 0;
    std::ofstream file(json_path);
    file << to_json(results).dump(2) << '\n';
    if (file.flush()) return 0;
    fmt::print(stderr, "kmes-bench: cannot write {}\n", json_path);
    return 3;
}

}  // namespace
}  // namespace kmes::bench

int main(int argc, char** argv) {
    try {
        return kmes::bench::main_checked(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "kmes-bench: {}\n", error.what());
        return 3;
    }
}
