// SPDX-License-Identifier: MIT
//
// Columns, rows and the budget of lines. See drawing.h.
#include "conformance/failure/drawing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "conformance/failure/drawing_parts.h"

namespace kmes::conformance {
namespace {

using drawing::Item;
using drawing::Subject;

constexpr std::size_t kNarrowest = 72;
constexpr std::size_t kWidest = 160;
constexpr std::size_t kNarrowestColumn = 20;
constexpr std::size_t kMostThreads = 3;
constexpr std::string_view kMark = ">>";

class Drawing {
  public:
    Drawing(const Timeline& timeline, const DrawingOptions& options)
        : timeline_(timeline),
          options_(options),
          width_(std::clamp(options.width, kNarrowest, kWidest)) {
        number_width_ = std::max<std::size_t>(4, std::to_string(timeline.last_number()).size());
        // The mark, the number and the spaces around them.
        left_width_ = kMark.size() + 1 + number_width_ + 1;
        const std::size_t room = (width_ - left_width_) / (kNarrowestColumn + 3) - 1;
        subject_ = drawing::find_subject(timeline, std::clamp<std::size_t>(room, 1, kMostThreads));
        set_columns();
        changes_ = drawing::changes_of(timeline);
    }

    std::string text() {
        const std::vector<Item> items = drawing::fold(timeline_, subject_.steps);
        std::vector<std::vector<std::string>> rows;
        for (const Item& item : items) rows.push_back(rows_of(item));
        add_head();
        add_rows(items, rows, choose(items, rows));
        return std::move(out_);
    }

  private:
    const TimelineStep& step_of(const Item& item) const { return timeline_.steps()[item.step]; }
    std::string_view bar() const { return options_.unicode ? "│" : "|"; }

    void set_columns() {
        const std::size_t count = std::max<std::size_t>(subject_.threads.size(), 1) + 1;
        // A bar and two spaces for each column, minus the last space.
        const std::size_t room = width_ - left_width_ - 3 * count + 1;
        const std::size_t share = count == 2 ? 48 : count == 3 ? 38 : 30;
        const std::size_t producer = room * share / 100;
        columns_.push_back(producer);
        for (std::size_t i = 1; i < count; ++i) columns_.push_back((room - producer) / (count - 1));
        columns_.back() += room - producer - columns_[1] * (count - 1);
    }

    std::size_t column_of(std::int32_t thread) const {
        const auto found = std::find(subject_.threads.begin(), subject_.threads.end(), thread);
        return found == subject_.threads.end()
                   ? 0
                   : static_cast<std::size_t>(found - subject_.threads.begin()) + 1;
    }

    // -- Rows -------------------------------------------------------------------------------

    static std::string padded(std::string text, std::size_t width) {
        text.resize(std::max(width, text.size()), ' ');
        return text;
    }

    std::string left(std::optional<std::uint64_t> number, bool is_marked) const {
        const std::string digits = number ? std::to_string(*number) : "";
        return std::string(is_marked ? kMark : "  ") + " " +
               std::string(number_width_ - std::min(number_width_, digits.size()), ' ') + digits +
               " ";
    }

    std::string painted(std::string line, std::string_view colour) const {
        while (!line.empty() && line.back() == ' ') line.pop_back();
        if (!options_.colour || colour.empty()) return line;
        return std::string(colour) + line + "\x1b[0m";
    }
    static constexpr std::string_view kDecisive = "\x1b[1;31m";
    static constexpr std::string_view kDim = "\x1b[2m";

    // A text over all columns.
    void add_wide(std::vector<std::string>& lines, const std::string& text,
                  std::optional<std::uint64_t> number, bool is_marked, std::string_view colour,
                  std::size_t indent) const {
        add_wide(lines, drawing::wrap(text, wide_width(), indent), number, is_marked, colour);
    }

    std::size_t wide_width() const { return width_ - left_width_ - 2; }

    void add_wide(std::vector<std::string>& lines, const std::vector<std::string>& texts,
                  std::optional<std::uint64_t> number, bool is_marked,
                  std::string_view colour) const {
        bool is_first = true;
        for (const std::string& line : texts) {
            lines.push_back(painted(left(is_first ? number : std::nullopt, is_first && is_marked) +
                                        std::string(bar()) + " " + line,
                                    colour));
            is_first = false;
        }
    }

    // "CPU 2: ", if the step does not name its CPU itself.
    static std::string cpu_of(const TimelineStep& step) {
        if (!step.cpu || step.kind == StepKind::end) return "";
        const std::string name = "CPU " + std::to_string(*step.cpu);
        return step.text.find(name) != std::string::npos ? "" : name + ": ";
    }

    // The text of the step, and after it, unbroken if possible, its place.
    static std::vector<std::string> lines_of(const TimelineStep& step, std::string_view who,
                                             std::size_t width) {
        std::vector<std::string> lines =
            drawing::wrap(std::string(who) + drawing::plain(step.text), width, 2);
        if (lines.empty()) lines.emplace_back();  // the step has a number in any case
        std::string place = drawing::plain(step.clause);
        const std::string code = step.source.empty() ? step.instruction : step.source;
        if (!code.empty()) place += (place.empty() ? "" : "; ") + drawing::plain(code);
        if (place.empty()) return lines;
        place = "[" + place + "]";
        if (!lines.empty() && lines.back().size() + 1 + place.size() <= width) {
            lines.back() += " " + place;
            return lines;
        }
        for (const std::string& line : drawing::wrap(place, width - 2))
            lines.push_back("  " + line);
        return lines;
    }

    std::vector<std::string> rows_of(const Item& item) const {
        std::vector<std::string> lines;
        if (item.repeated != 0) {
            const std::string text =
                item.period == 1
                    ? "... " + std::to_string(item.repeated) + " steps of the same kind ..."
                    : "... " + std::to_string(item.repeated) + " steps: the same " +
                          std::to_string(item.period) + " again and again ...";
            add_wide(lines, text, std::nullopt, false, kDim, 0);
            return lines;
        }
        const TimelineStep& step = step_of(item);
        const std::uint64_t number = timeline_.number(item.step);
        const std::string_view colour = step.decisive ? kDecisive : std::string_view();
        const std::size_t column = column_of(step.thread);
        const bool is_wide = step.kind == StepKind::end || step.kind == StepKind::scheduler ||
                             (step.thread != 0 && column == 0);
        if (is_wide) {
            const std::string who =
                step.thread == 0 ? "" : "thread " + std::to_string(step.thread) + ": ";
            add_wide(lines, lines_of(step, cpu_of(step) + who, wide_width()), number, step.decisive,
                     colour);
        } else {
            add_cells(lines, item.step, column, colour);
        }
        if (step.decisive && !step.why.empty())
            add_wide(lines, "=> " + drawing::plain(step.why), std::nullopt, false, colour, 3);
        return lines;
    }

    void add_cells(std::vector<std::string>& lines, std::size_t index, std::size_t column,
                   std::string_view colour) const {
        const TimelineStep& step = timeline_.steps()[index];
        std::vector<std::vector<std::string>> cells(columns_.size());
        cells[column] = lines_of(step, cpu_of(step), columns_[column]);
        if (const auto change = changes_.find(index); change != changes_.end()) {
            for (std::string& line : drawing::wrap(change->second, columns_[0] - 2))
                cells[0].push_back("  " + std::move(line));
        }
        std::size_t height = 0;
        for (const auto& cell : cells) height = std::max(height, cell.size());
        for (std::size_t i = 0; i < height; ++i) {
            std::string line = left(i == 0 ? std::optional(timeline_.number(index)) : std::nullopt,
                                    i == 0 && step.decisive);
            for (std::size_t k = 0; k < cells.size(); ++k) {
                const std::string cell = i < cells[k].size() ? cells[k][i] : "";
                line += std::string(k == 0 ? "" : " ") + std::string(bar()) + " " +
                        padded(cell, columns_[k]);
            }
            lines.push_back(painted(std::move(line), colour));
        }
    }

    // -- The budget -------------------------------------------------------------------------

    std::vector<bool> choose(const std::vector<Item>& items,
                             const std::vector<std::vector<std::string>>& rows) const {
        std::vector<std::size_t> heights;
        for (const auto& lines : rows) heights.push_back(lines.size());
        const std::size_t room = std::max(options_.maximum_lines, kHeadLines) - kHeadLines;
        return drawing::choose(timeline_, items, heights, room);
    }

    // -- The whole --------------------------------------------------------------------------

    static constexpr std::size_t kHeadLines = 7;

    void add_line(const std::string& line) { out_ += line + "\n"; }

    void add_rule() {
        const std::string_view line = options_.unicode ? "─" : "-";
        const std::string_view cross = options_.unicode ? "┼" : "+";
        std::string rule;
        const auto draw_line = [&](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) rule += line;
        };
        draw_line(left_width_);
        for (std::size_t k = 0; k < columns_.size(); ++k) {
            rule += cross;
            draw_line(columns_[k] + (k + 1 == columns_.size() ? 1 : 2));
        }
        add_line(painted(rule, ""));
    }

    void add_head() {
        add_line("Time runs downwards. Left: the producer. Right: the consumer's threads.");
        add_line("[5.1.8.2 step 1; c.c:9]: clause 5.1.8.2-1, line of the code.");
        add_line(std::string(kMark) +
                 " and => mark a step that decided the outcome, and say why it did.");
        if (subject_.others != 0) {
            const std::string text = "Left out, not concerned: " + subject_.others_text + " (" +
                                     std::to_string(subject_.others) +
                                     (subject_.others == 1 ? " step)." : " steps).");
            for (const std::string& line : drawing::wrap(text, width_)) add_line(line);
        }
        add_line("");
        std::string head = padded("", left_width_ - 5) + "step ";
        for (std::size_t k = 0; k < columns_.size(); ++k) {
            const std::string name =
                k == 0 ? "producer"
                : subject_.threads.empty()
                    ? "consumer"
                    : "consumer, thread " + std::to_string(subject_.threads[k - 1]);
            head += std::string(k == 0 ? "" : " ") + std::string(bar()) + " " +
                    padded(name.substr(0, columns_[k]), columns_[k]);
        }
        add_line(painted(head, ""));
        add_rule();
    }

    void add_gap(std::uint64_t steps) {
        if (steps == 0) return;
        std::vector<std::string> lines;
        add_wide(lines, "... " + std::to_string(steps) + (steps == 1 ? " step ..." : " steps ..."),
                 std::nullopt, false, kDim, 0);
        for (const std::string& line : lines) add_line(line);
    }

    void add_rows(const std::vector<Item>& items, const std::vector<std::vector<std::string>>& rows,
                  const std::vector<bool>& chosen) {
        std::uint64_t hidden = 0;
        bool is_after_middle = timeline_.left_out() == 0;
        for (std::size_t i = 0; i < items.size(); ++i) {
            // Steps that the timeline itself left out count at their place.
            if (!is_after_middle && items[i].step >= Timeline::kFirst) {
                hidden += timeline_.left_out();
                is_after_middle = true;
            }
            if (!chosen[i]) {
                hidden += items[i].repeated != 0 ? items[i].repeated : 1;
                continue;
            }
            add_gap(hidden);
            hidden = 0;
            for (const std::string& line : rows[i]) add_line(line);
        }
        add_gap(hidden);
    }

    const Timeline& timeline_;
    const DrawingOptions& options_;
    const std::size_t width_;
    std::size_t number_width_ = 0;
    std::size_t left_width_ = 0;
    Subject subject_;
    std::vector<std::size_t> columns_;            // the producer's first
    std::map<std::size_t, std::string> changes_;  // by index in the timeline
    std::string out_;
};

}  // namespace

std::string draw(const Timeline& timeline, const DrawingOptions& options) {
    if (timeline.empty()) return "";
    return Drawing(timeline, options).text();
}

}  // namespace kmes::conformance
