// SPDX-License-Identifier: MIT
//
// See statement.h.
#include "conformance/report/statement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "conformance/report/result.h"
#include "conformance/report/sha256.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

constexpr std::size_t kStatementTextBytes = 300;

std::string bounded(std::string_view text) {
    const std::string shown = printable(text);
    if (shown.size() <= kStatementTextBytes) return shown;
    return std::string(cut(shown, kStatementTextBytes)) + "...";
}

void add(std::string& out, std::string_view name, const std::string& value) {
    out += fmt::format("{:<15}{}\n", fmt::format("{}:", name), value);
}

// A reader of the statement must see which cases were chosen. Of many, the first stand for all.
void add_globs(std::string& text, std::string_view option, const std::vector<std::string>& globs) {
    constexpr std::size_t kShown = 20;
    for (std::size_t i = 0; i < std::min(globs.size(), kShown); ++i)
        text += fmt::format(" {} {}", option, bounded(shell_command({globs[i]})));
    if (globs.size() > kShown)
        text += fmt::format(" (and {} more of {})", globs.size() - kShown, option);
}

std::string options_text(const RunReport& report) {
    const RunOptions& options = report.options;
    std::string text = fmt::format("--level {} --cpus {} --capacity {} --seed {} --explore {}",
                                   bounded(options.level), report.cpus, report.capacity_bytes,
                                   report.seed, bounded(options.explore));
    if (options.timeout_scale != 1.0)
        text += fmt::format(" --timeout-scale {}", options.timeout_scale);
    if (options.shared) text += " --shared";
    if (options.as_published) text += fmt::format(" --producer {}", kAsPublished);
    if (options.soak_seconds > 0) text += fmt::format(" --soak {}", options.soak_seconds);
    if (!options.stream.empty()) text += " --stream " + bounded(options.stream);
    if (!options.device.empty()) text += " --device " + bounded(options.device);
    if (!options.layout.empty()) text += " --layout " + bounded(options.layout);
    add_globs(text, "--filter", options.filters);
    add_globs(text, "--without", options.without);
    return text;
}

Summary sums_of(const RunReport& report, Level level) {
    std::vector<CaseResult> results;
    for (const CaseResult& result : report.results) {
        if (result.level != level) continue;
        results.emplace_back();
        results.back().verdict = result.verdict;
    }
    return summarise(results);
}

// A level is passed only if each of its cases ran, and none failed or is undecided.
std::string level_text(const Summary& sums, std::uint64_t cases) {
    const std::uint64_t decided = sums.pass + sums.unsupported;
    const std::uint64_t ran = decided + sums.fail + sums.inconclusive + sums.suite_error;
    if (ran == 0) return fmt::format("not tested ({} cases)", cases);
    std::string counts = fmt::format("{} of {} cases ran: {} passed", ran, cases, sums.pass);
    const auto count = [&counts](std::uint64_t sum, std::string_view what) {
        if (sum > 0) counts += fmt::format(", {} {}", sum, what);
    };
    count(sums.fail, "failed");
    count(sums.inconclusive, "inconclusive");
    count(sums.unsupported, "unsupported");
    count(sums.suite_error, "errors of the suite");
    std::string_view verdict = "passed";
    if (ran < cases) verdict = "incomplete";
    if (sums.inconclusive > 0 || sums.suite_error > 0 || sums.pass == 0) verdict = "not decided";
    if (sums.fail > 0) verdict = "not passed";
    return fmt::format("{} ({})", verdict, counts);
}

void add_cases(std::string& out, const RunReport& report, Verdict verdict, std::string_view title) {
    bool has_title = false;
    for (const CaseResult& result : report.results) {
        if (result.verdict != verdict) continue;
        if (!has_title) out += fmt::format("\n{}:\n", title);
        has_title = true;
        const std::string clause =
            result.clause.empty() ? "" : fmt::format(" [{}]", bounded(result.clause));
        out += fmt::format("  {}{} {}\n", bounded(result.id), clause, bounded(result.message));
    }
}

}  // namespace

std::string to_statement(const RunReport& report, std::string_view json) {
    const SuiteVersion& suite = report.suite;
    std::string out = fmt::format("{}\n\n", kStatementTitle);
    add(out, "consumer", bounded(report.consumer.name));
    add(out, "version",
        report.consumer.version.empty() ? "not given" : bounded(report.consumer.version));
    add(out, "program", bounded(shell_command(report.testee)));
    add(out, "suite",
        fmt::format("kmes-conformance {}, {}", bounded(suite.release),
                    suite.commit.empty() ? "unknown commit" : "commit " + bounded(suite.commit)));
    add(out, "ring format", fmt::format("{}", suite.ring_format));
    add(out, "contract", fmt::format("{}", suite.contract));
    add(out, "date", utc_text(report.began));
    add(out, "kernel", bounded(report.machine.kernel));
    add(out, "processor",
        fmt::format("{} x {}", report.machine.processors, bounded(report.machine.processor)));
    add(out, "options", options_text(report));
    out += "\n";
    for (const Level level : kLevels)
        add(out, level_name(level),
            level_text(sums_of(report, level),
                       report.suite_cases.at(static_cast<std::size_t>(level))));
    add_cases(out, report, Verdict::fail, "failed");
    add_cases(out, report, Verdict::inconclusive, "inconclusive");
    add_cases(out, report, Verdict::unsupported, "unsupported on this machine");
    add_cases(out, report, Verdict::suite_error, "errors of the suite");
    if (!report.not_run.empty()) out += "\nnot run:\n";
    for (const std::string& id : report.not_run) out += "  " + bounded(id) + "\n";
    out += "\n";
    add(out, "json report", "sha256:" + sha256_hex(json));
    return out;
}

}  // namespace kmes::conformance
