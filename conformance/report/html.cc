// SPDX-License-Identifier: MIT
//
// The report as HTML.
#include "conformance/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/model/case_id.h"
#include "conformance/model/published_clause.h"
#include "conformance/report/html_assets.h"
#include "conformance/report/html_parts.h"
#include "conformance/report/result.h"
#include "conformance/report/sha256.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace html {

std::string text(std::string_view bytes, bool keep_lines) {
    if (bytes.size() <= kHtmlTextBytes) return xml_text(bytes, keep_lines);
    const std::string_view beginning = cut(bytes, kHtmlTextBytes);
    return xml_text(beginning, keep_lines) +
           fmt::format(" ... ({} more bytes)", bytes.size() - beginning.size());
}

}  // namespace html

namespace {

using html::text;

// The most serious verdict first.
constexpr Verdict kColumns[] = {Verdict::fail, Verdict::suite_error, Verdict::inconclusive,
                                Verdict::unsupported, Verdict::pass};

std::string_view spoken(Verdict verdict) {
    return verdict == Verdict::suite_error ? "suite error" : verdict_name(verdict);
}

std::string badge(Verdict verdict) {
    return fmt::format("<span class=\"badge {}\">{}</span>", verdict_name(verdict),
                       spoken(verdict));
}

// A pass may name no clause: the clause is then that of its id.
std::string clause_of(const CaseResult& result) {
    return result.clause.empty() ? std::string(clause_of_id(result.id)) : result.clause;
}

// A value of data-*. The filters compare texts, so it must be the same everywhere.
std::string data_of(const CaseResult& result) {
    return fmt::format(R"(data-verdict="{}" data-level="{}" data-clause="{}")",
                       verdict_name(result.verdict), level_name(result.level),
                       text(clause_of(result)));
}

// The totals of one row of a table, by verdict.
using Sums = std::map<Verdict, std::uint64_t>;

std::string sum_cells(const Sums& sums) {
    std::string cells;
    for (const Verdict verdict : kColumns) {
        const auto found = sums.find(verdict);
        const std::uint64_t sum = found == sums.end() ? 0 : found->second;
        cells += fmt::format("<td class=\"number {}\">{}</td>",
                             sum == 0 ? "zero" : verdict_name(verdict), sum);
    }
    return cells;
}

std::string sum_heads() {
    std::string heads;
    for (const Verdict verdict : kColumns)
        heads += fmt::format("<th class=\"number\" scope=\"col\">{}</th>", spoken(verdict));
    return heads;
}

class Document {
  public:
    explicit Document(const RunReport& report) : report_(report), sums_(summarise(report.results)) {
        order_failures();
    }

    std::string write() {
        add_head();
        out_ += "<main>\n";
        add_preflight();
        add_differences();
        add_sums();
        add_filters();
        add_articles("Failures", failures_);
        for (const Verdict verdict :
             {Verdict::suite_error, Verdict::inconclusive, Verdict::unsupported})
            add_articles(title_of(verdict), indexes_of(verdict));
        add_not_run();
        add_table();
        out_ += "</main>\n";
        out_ += fmt::format(
            "<footer><p>Made by kmes-conformance {}. The file loads nothing from elsewhere.</p>"
            "</footer>\n<script>{}</script>\n</body>\n</html>\n",
            text(report_.suite.release), kHtmlScript);
        return std::move(out_);
    }

  private:
    static std::string_view title_of(Verdict verdict) {
        if (verdict == Verdict::suite_error) return "Errors of the suite";
        return verdict == Verdict::inconclusive ? "Inconclusive" : "Unsupported here";
    }

    // Puts the failures into the order for the reader.
    void order_failures() {
        failures_ = report_.reading_order;
        if (failures_.empty()) failures_ = indexes_of(Verdict::fail);
    }

    std::vector<std::size_t> indexes_of(Verdict verdict) const {
        std::vector<std::size_t> indexes;
        for (std::size_t i = 0; i < report_.results.size(); ++i) {
            if (report_.results[i].verdict == verdict) indexes.push_back(i);
        }
        return indexes;
    }

    void add_head() {
        const std::string name = text(shell_command(report_.testee));
        out_ += fmt::format(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
            "style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action "
            "'none'\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta name=\"color-scheme\" content=\"light dark\">\n"
            "<title>KMES conformance: {}</title>\n<style>{}</style>\n</head>\n<body>\n",
            sha256_base64(kHtmlStyle), sha256_base64(kHtmlScript), name, kHtmlStyle);
        out_ += "<header class=\"top\">\n<h1>KMES conformance report</h1>\n";
        out_ += fmt::format("<p class=\"outcome {}\">{}</p>\n", outcome_class(), outcome_text());
        add_facts(name);
        out_ += "</header>\n";
    }

    std::string_view outcome_class() const {
        if (sums_.suite_error > 0 || is_incomplete()) return "suite_error";
        if (sums_.fail > sums_.known || !report_.differences.empty()) return "fail";
        return sums_.inconclusive > 0 ? "inconclusive" : "pass";
    }

    bool is_incomplete() const { return report_.interrupted || !report_.not_run.empty(); }

    std::string outcome_text() const {
        const std::size_t count = report_.results.size();
        std::string line = sums_.fail > 0 ? fmt::format("{} of {} cases failed", sums_.fail, count)
                                          : fmt::format("No case of {} failed", count);
        const auto add = [&line](std::uint64_t sum, std::string_view words) {
            if (sum > 0) line += fmt::format(", {} {}", sum, words);
        };
        add(sums_.known, "of them known");
        add(sums_.suite_error,
            sums_.suite_error == 1 ? "error of the suite" : "errors of the suite");
        add(sums_.inconclusive, "inconclusive");
        add(sums_.unsupported, "unsupported here");
        add(report_.not_run.size(), "not run");
        add(report_.differences.size(), report_.differences.size() == 1
                                            ? "line of a list does not fit"
                                            : "lines of lists do not fit");
        return line;
    }

    void add_facts(const std::string& name) {
        out_ += "<dl class=\"facts card\">\n";
        const auto add = [this](std::string_view term, const std::string& words, bool is_wide) {
            if (words.empty()) return;
            out_ += fmt::format("<dt>{}</dt><dd{}>{}</dd>\n", term,
                                is_wide ? " class=\"wide\"" : "", words);
        };
        const SuiteVersion& suite = report_.suite;
        const Consumer& consumer = report_.consumer;
        add("Consumer",
            text(consumer.name + (consumer.version.empty() ? "" : ", " + consumer.version)), true);
        add("Program", "<code>" + name + "</code>", true);
        add("Suite", text(suite.release + (suite.commit.empty() ? "" : ", commit " + suite.commit)),
            false);
        add("Ring format",
            fmt::format("version {}, contract {}", suite.ring_format, suite.contract), false);
        add("Began", utc_text(report_.began), false);
        add("Took", fmt::format("{:.1f} s", report_.seconds), false);
        add("Kernel", text(report_.machine.kernel), false);
        add("Processor",
            fmt::format(
                "{} &times; {}", report_.machine.processors,
                report_.machine.processor.empty() ? "unknown" : text(report_.machine.processor)),
            false);
        add("Buffers",
            fmt::format("{} CPU{}, {} bytes each", report_.cpus, report_.cpus == 1 ? "" : "s",
                        report_.capacity_bytes),
            false);
        add("Seed", fmt::format("{}", report_.seed), false);
        add("Stepper", text(report_.stepper), true);
        out_ += "</dl>\n";
    }

    void add_preflight() {
        if (report_.preflight.empty()) return;
        out_ += fmt::format(
            "<section><h2>The adapter cannot work, and no case was run</h2>\n<pre>{}</pre>"
            "</section>\n",
            text(report_.preflight, true));
    }

    // Lines of the lists of expected results.
    void add_differences() {
        if (report_.differences.empty()) return;
        out_ += "<section><h2>Lists that do not fit the run</h2>\n<ul>\n";
        for (const ListDifference& each : report_.differences)
            out_ += fmt::format("<li>{}</li>\n", text(each.message));
        out_ += "</ul></section>\n";
    }

    // -- Totals -----------------------------------------------------------------------------

    void add_sums() {
        out_ +=
            "<div class=\"sums\">\n<section><h2>By level</h2>\n<div class=\"card scroll\">"
            "<table class=\"plain\" id=\"levels\"><thead><tr><th scope=\"col\">level</th>" +
            sum_heads() + "</tr></thead><tbody>\n";
        std::map<Level, Sums> levels;
        for (const CaseResult& result : report_.results) ++levels[result.level][result.verdict];
        for (const Level level : kLevels) {
            if (!levels.contains(level)) continue;
            out_ += fmt::format("<tr><th scope=\"row\">{}</th>{}</tr>\n", level_name(level),
                                sum_cells(levels[level]));
        }
        out_ += "</tbody></table></div></section>\n";
        add_clauses();
        out_ += "</div>\n";
    }

    // Lists broken clauses first, in the order for the reader, each with the case to read.
    void add_clauses() {
        std::map<std::string, Sums> clauses;
        for (const CaseResult& result : report_.results)
            ++clauses[clause_of(result)][result.verdict];
        std::vector<std::pair<std::string, std::size_t>> broken;
        for (const std::size_t index : failures_) {
            const std::string clause = clause_of(report_.results.at(index));
            const auto is_it = [&](const auto& each) { return each.first == clause; };
            if (std::none_of(broken.begin(), broken.end(), is_it))
                broken.emplace_back(clause, index);
        }
        out_ +=
            "<section><h2>By clause</h2>\n<div class=\"card scroll\"><table class=\"plain\" "
            "id=\"clauses\"><thead><tr><th scope=\"col\">clause</th>" +
            sum_heads() + "</tr></thead><tbody>\n";
        for (const auto& [clause, index] : broken) {
            out_ += fmt::format("<tr><th scope=\"row\"><a href=\"#case-{}\">{}</a></th>{}</tr>\n",
                                index, text(clause), sum_cells(clauses[clause]));
            clauses.erase(clause);
        }
        for (const auto& [clause, sums] : clauses)
            out_ += fmt::format("<tr><th scope=\"row\">{}</th>{}</tr>\n", text(clause),
                                sum_cells(sums));
        out_ += "</tbody></table></div></section>\n";
    }

    // -- Filters ----------------------------------------------------------------------------

    static std::string choice(std::string_view value, std::string_view words) {
        return fmt::format("<option value=\"{}\">{}</option>", value, words);
    }

    void add_filters() {
        out_ +=
            "<form id=\"filters\" class=\"card\" hidden>\n"
            "<label class=\"text\">Search<input name=\"text\" type=\"search\" "
            "placeholder=\"case, message\"></label>\n"
            "<label>Verdict<select name=\"verdict\">" +
            choice("", "all");
        for (const Verdict verdict : kColumns)
            out_ += choice(verdict_name(verdict), spoken(verdict));
        out_ += "</select></label>\n<label>Level<select name=\"level\">" + choice("", "all");
        for (const Level level : kLevels) out_ += choice(level_name(level), level_name(level));
        out_ += "</select></label>\n<label>Clause<select name=\"clause\">" + choice("", "all");
        std::vector<std::string> clauses;
        for (const CaseResult& result : report_.results) clauses.push_back(text(clause_of(result)));
        std::sort(clauses.begin(), clauses.end());
        clauses.erase(std::unique(clauses.begin(), clauses.end()), clauses.end());
        for (const std::string& clause : clauses) out_ += choice(clause, clause);
        out_ += "</select></label>\n<output></output>\n</form>\n";
    }

    // -- Cases in full ----------------------------------------------------------------------

    void add_articles(std::string_view title, const std::vector<std::size_t>& indexes) {
        if (indexes.empty()) return;
        out_ += fmt::format("<section class=\"articles\"><h2>{}</h2>\n", title);
        std::vector<std::string> seen;
        for (const std::size_t index : indexes) {
            const CaseResult& result = report_.results.at(index);
            // The first case of each broken clause is open.
            const std::string clause = clause_of(result);
            const bool is_first = std::find(seen.begin(), seen.end(), clause) == seen.end();
            if (is_first) seen.push_back(clause);
            add_article(result, index, is_first && result.verdict == Verdict::fail);
        }
        out_ += "</section>\n";
    }

    void add_article(const CaseResult& result, std::size_t index, bool is_open) {
        out_ += fmt::format(
            "<article class=\"card {0}-case\" id=\"case-{1}\" {2}>\n<details{3}><summary>"
            "<div class=\"search\"><h3 class=\"id\">{4}</h3>{5}<span class=\"badge level\">{6}"
            "</span><span class=\"badge level\">{7}</span>{9}"
            "<p class=\"message\">{8}</p></div></summary>\n<div class=\"body\">\n",
            verdict_name(result.verdict), index, data_of(result), is_open ? " open" : "",
            text(result.id), badge(result.verdict), level_name(result.level),
            text(clause_of(result)), text(result.message),
            result.is_known ? "<span class=\"badge level\">known failure</span>" : "");
        add_part("In the published document",
                 published_place(result.clause, report_.options.layout));
        add_part("The suite does", result.what_is_done);
        add_part("A correct consumer", result.what_is_right);
        if (result.verdict == Verdict::fail) add_trace(result, index);
        add_secondary(result);
        add_lines("History", result.history);
        add_lines("Standard error of the consumer", result.standard_error);
        if (result.verdict != Verdict::fail) add_lines("Details", result.details);
        if (!result.replay.empty() && result.verdict != Verdict::unsupported)
            out_ += fmt::format("<h4>Run again</h4><pre>{}</pre>\n", text(result.replay));
        if (!result.saved.empty())
            out_ +=
                fmt::format("<h4>Failure file</h4><p><code>{}</code></p>\n", text(result.saved));
        out_ += "</div></details>\n</article>\n";
    }

    void add_part(std::string_view title, const std::string& words) {
        if (words.empty()) return;
        out_ += fmt::format("<h4>{}</h4><p>{}</p>\n", title, text(words));
    }

    void add_lines(std::string_view title, const std::string& lines) {
        if (lines.empty()) return;
        out_ += fmt::format("<details><summary>{}</summary><pre>{}</pre></details>\n", title,
                            text(lines, true));
    }

    void add_trace(const CaseResult& result, std::size_t index) {
        if (result.trace.rows.empty()) return;
        out_ += "<h4>Trace</h4>\n";
        if (rows_ + result.trace.rows.size() > kHtmlTraceRows) {
            out_ +=
                "<p class=\"soft\">Left out: the file would be too long. Run the case again.</p>\n";
            return;
        }
        rows_ += result.trace.rows.size();
        if (!result.trace.left_out.empty())
            out_ +=
                fmt::format("<p class=\"soft\">Not shown: {}.</p>\n", text(result.trace.left_out));
        out_ += html::diagram(result.trace, index);
    }

    void add_secondary(const CaseResult& result) {
        if (result.findings.size() < 2) return;
        out_ += "<h4>Secondary findings</h4><ul>\n";
        for (std::size_t i = 1; i < result.findings.size(); ++i) {
            const Finding& finding = result.findings[i];
            out_ += fmt::format("<li><code>{}</code> {} <span class=\"soft\">[{}]</span></li>\n",
                                finding_name(finding.code), text(finding.message),
                                text(finding.clause));
        }
        out_ += "</ul>\n";
    }

    void add_not_run() {
        if (report_.not_run.empty()) return;
        out_ += fmt::format(
            "<section><h2>Not run</h2>\n<p>{} {} not run.</p><details><summary>"
            "Which</summary><pre>",
            report_.not_run.size(), report_.not_run.size() == 1 ? "case was" : "cases were");
        for (const std::string& id : report_.not_run) out_ += text(id) + "\n";
        out_ += "</pre></details></section>\n";
    }

    void add_table() {
        out_ +=
            "<section><h2>All cases</h2>\n<div class=\"card scroll\"><table class=\"plain "
            "cases\" id=\"cases\"><thead><tr><th scope=\"col\">case</th><th scope=\"col\" "
            "class=\"title\">title</th><th scope=\"col\">level</th><th scope=\"col\">verdict"
            "</th><th scope=\"col\" class=\"number time\">seconds</th></tr></thead><tbody>\n";
        for (std::size_t i = 0; i < report_.results.size(); ++i) {
            const CaseResult& result = report_.results[i];
            const std::string id = text(result.id);
            out_ += fmt::format(
                "<tr {}><td class=\"id search\">{}</td><td class=\"title\">{}</td><td>{}</td><td>"
                "{}</td><td class=\"number time\">{:.2f}</td></tr>\n",
                data_of(result),
                result.verdict == Verdict::pass ? id
                                                : fmt::format("<a href=\"#case-{}\">{}</a>", i, id),
                text(result.title), level_name(result.level), badge(result.verdict),
                result.seconds);
        }
        out_ += "</tbody></table></div></section>\n";
    }

    const RunReport& report_;
    const Summary sums_;
    std::vector<std::size_t> failures_;
    std::size_t rows_ = 0;
    std::string out_;
};

}  // namespace

std::string to_html(const RunReport& report) {
    return Document(report).write();
}

}  // namespace kmes::conformance
