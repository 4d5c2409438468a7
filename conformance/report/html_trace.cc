// SPDX-License-Identifier: MIT
//
// The sequence diagram of the HTML report. See html_parts.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>

#include "conformance/report/html_parts.h"

namespace kmes::conformance::html {
namespace {

class Diagram {
  public:
    Diagram(const Trace& trace, std::size_t number) : trace_(trace), number_(number) {}

    std::string draw() {
        const auto decisive = std::ranges::find(trace_.rows, true, &TraceRow::decisive);
        if (decisive != trace_.rows.end())
            out_ += fmt::format(
                "<p><a href=\"#step-{0}-{1}\">To the first deciding step ({1})</a></p>\n", number_,
                decisive->number);
        add_head();
        for (const TraceRow& row : trace_.rows) add_row(row);
        return out_ + "</tbody></table>\n";
    }

  private:
    std::size_t columns() const { return trace_.threads.size() + 1; }

    // A cell over all columns, with their life lines behind it.
    std::string over() const {
        return fmt::format("<td class=\"over c{0}\" colspan=\"{0}\">", columns());
    }

    std::string name_of(std::size_t column) const {
        return column == 0 ? "producer" : fmt::format("thread {}", trace_.threads[column - 1]);
    }

    // Returns 0 for the producer, or for none.
    std::size_t column_of(std::int32_t thread) const {
        const auto found = std::find(trace_.threads.begin(), trace_.threads.end(), thread);
        return found == trace_.threads.end()
                   ? 0
                   : static_cast<std::size_t>(found - trace_.threads.begin()) + 1;
    }

    void add_head() {
        out_ += "<table class=\"trace\"><colgroup><col class=\"n\">";
        for (std::size_t i = 0; i < columns(); ++i) out_ += "<col>";
        out_ += "</colgroup><thead><tr><th class=\"n\" scope=\"col\">step</th>";
        for (std::size_t i = 0; i < columns(); ++i)
            out_ += fmt::format("<th class=\"{}\" scope=\"col\"><span>{}</span></th>",
                                i == 0 ? "p" : "t", name_of(i));
        out_ += "</tr></thead><tbody>\n";
    }

    void add_row(const TraceRow& row) {
        if (row.hidden != 0) {
            asleep_.clear();  // a hidden step may have ended each sleep
            out_ += fmt::format(
                "<tr class=\"gap\"><td class=\"n\"></td>{}<span>{} step{} not "
                "shown</span></td></tr>\n",
                over(), row.hidden, row.hidden == 1 ? "" : "s");
            return;
        }
        const bool has_column = row.thread == 0 || column_of(row.thread) != 0;
        if (row.kind == StepKind::end || row.kind == StepKind::scheduler || !has_column) {
            add_wide(row);
        } else {
            add_cells(row);
        }
        if (row.decisive && !row.why.empty())
            out_ +=
                fmt::format("<tr class=\"why\"><td class=\"n\"></td>{}<div>{}</div></td></tr>\n",
                            over(), text(row.why));
    }

    void add_wide(const TraceRow& row) {
        const std::string who = row.thread == 0 ? "" : fmt::format("thread {}: ", row.thread);
        out_ +=
            fmt::format("<tr class=\"{}{}\">{}{}<div>{}{}{}</div></td></tr>\n",
                        row.kind == StepKind::end ? "end" : "wide", row.decisive ? " decisive" : "",
                        number_cell(row), over(), who, text(row.text), reference(row));
    }

    std::string number_cell(const TraceRow& row) const {
        const std::string id =
            row.decisive ? fmt::format(" id=\"step-{}-{}\"", number_, row.number) : std::string();
        return fmt::format("<td class=\"n\"{}>{}</td>", id, row.number);
    }

    static std::string reference(const TraceRow& row) {
        std::string words = text(row.clause);
        if (!row.place.empty()) words += (words.empty() ? "" : "; ") + text(row.place);
        return words.empty() ? "" : fmt::format("<span class=\"ref\">{}</span>", words);
    }

    std::string event(const TraceRow& row, std::size_t column) const {
        const std::string cpu =
            trace_.has_several_cpus && row.cpu ? fmt::format("CPU {}: ", *row.cpu) : std::string();
        const std::string change =
            column == 0 && !row.change.empty()
                ? fmt::format("<span class=\"change\">{}</span>", text(row.change))
                : std::string();
        return fmt::format("<div class=\"event\"><span class=\"who\">{}</span>{}{}{}{}</div>",
                           name_of(column), cpu, text(row.text), reference(row), change);
    }

    // The other end of the arrow: a store of a thread changes the producer's page, and the producer
    // wakes threads. Returns `column` itself if there is no arrow.
    std::size_t far_end(const TraceRow& row, std::size_t column) const {
        if (column != 0) return row.change.empty() ? column : 0;
        std::size_t end = 0;
        for (const std::int32_t thread : row.wakes) end = std::max(end, column_of(thread));
        return end;
    }

    // The part of the arrow in this cell, at one of its ends or in between.
    static std::string arrow_class(std::size_t cell, std::size_t from, std::size_t to) {
        if (from == to || cell < std::min(from, to) || cell > std::max(from, to)) return "";
        const std::string direction = from < to ? " rightward" : "";
        if (cell == std::min(from, to)) return " from-right" + direction;
        if (cell == std::max(from, to)) return " from-left" + direction;
        return " cross" + direction;
    }

    void add_cells(const TraceRow& row) {
        const std::size_t column = column_of(row.thread);
        const std::size_t end = far_end(row, column);
        out_ +=
            fmt::format("<tr{}>{}", row.decisive ? " class=\"decisive\"" : "", number_cell(row));
        for (std::size_t i = 0; i < columns(); ++i) {
            const std::int32_t thread = i == 0 ? 0 : trace_.threads[i - 1];
            const bool is_woken =
                std::find(row.wakes.begin(), row.wakes.end(), thread) != row.wakes.end();
            std::string content;
            if (i == column) content = event(row, i);
            if (i == 0 && column != 0 && !row.change.empty())
                content = fmt::format("<span class=\"note\">{}</span>", text(row.change));
            if (i != 0 && is_woken) content = "<span class=\"note wake\">wake</span>";
            const bool is_noted = !content.empty() && i != column;
            out_ += fmt::format("<td class=\"{}{}{}{}\">{}</td>", i == 0 ? "p" : "t",
                                is_noted          ? " here noted"
                                : content.empty() ? ""
                                                  : " here",
                                asleep_.contains(thread) ? " asleep" : "",
                                arrow_class(i, column, end), content);
        }
        out_ += "</tr>\n";
        if (row.kind == StepKind::wait_begin) asleep_.insert(row.thread);
        if (row.kind == StepKind::wait_end) asleep_.erase(row.thread);
        for (const std::int32_t thread : row.wakes) asleep_.erase(thread);
    }

    const Trace& trace_;
    std::size_t number_;
    std::set<std::int32_t> asleep_;
    std::string out_;
};

}  // namespace

std::string diagram(const Trace& trace, std::size_t number) {
    return Diagram(trace, number).draw();
}

}  // namespace kmes::conformance::html
