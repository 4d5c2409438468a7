// SPDX-License-Identifier: MIT
//
// See excerpt.h.
#include "conformance/failure/excerpt.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "conformance/failure/drawing_parts.h"

namespace kmes::conformance {
namespace {

using drawing::Item;

std::string cut(std::string_view text) {
    if (text.size() <= kMaximumTraceTextBytes) return std::string(text);
    return std::string(text.substr(0, kMaximumTraceTextBytes)) + " ... (" +
           std::to_string(text.size() - kMaximumTraceTextBytes) + " more bytes)";
}

// The threads that sleep on the futex of each CPU.
class Sleepers {
  public:
    // Call it for each step, in order. Returns the threads that the step wakes, because it changes
    // the futex word that they wait on.
    std::vector<std::int32_t> after(const TimelineStep& step) {
        const std::uint32_t cpu = step.cpu.value_or(0);
        if (step.kind == StepKind::wait_begin) asleep_[cpu].insert(step.thread);
        if (step.kind == StepKind::wait_end) {
            for (auto& [other, threads] : asleep_) threads.erase(step.thread);
        }
        if (!step.state) return {};
        const auto [found, is_first] = counters_.try_emplace(cpu, step.state->futex_counter);
        const bool has_moved = !is_first && found->second != step.state->futex_counter;
        found->second = step.state->futex_counter;
        if (!has_moved || step.thread != 0) return {};
        const std::set<std::int32_t> woken = std::exchange(asleep_[cpu], {});
        return {woken.begin(), woken.end()};
    }

  private:
    std::map<std::uint32_t, std::set<std::int32_t>> asleep_;
    std::map<std::uint32_t, std::uint32_t> counters_;
};

// Returns, for each step, the threads with a column that it wakes. All steps count, shown or not.
std::vector<std::vector<std::int32_t>> wakes_of(const Timeline& timeline,
                                                const std::vector<std::int32_t>& threads) {
    Sleepers sleepers;
    std::vector<std::vector<std::int32_t>> wakes;
    for (std::size_t i = 0; i < timeline.steps().size(); ++i) {
        if (drawing::follows_left_out(timeline, i)) sleepers = {};
        wakes.push_back(sleepers.after(timeline.steps()[i]));
        std::erase_if(wakes.back(), [&](std::int32_t thread) {
            return std::find(threads.begin(), threads.end(), thread) == threads.end();
        });
    }
    return wakes;
}

TraceRow row_of(const Timeline& timeline, std::size_t index) {
    const TimelineStep& step = timeline.steps()[index];
    TraceRow row;
    row.number = timeline.number(index);
    row.kind = step.kind;
    row.thread = step.thread;
    row.cpu = step.cpu;
    row.text = cut(step.text);
    row.clause = cut(step.clause);
    row.place = cut(step.source.empty() ? step.instruction : step.source);
    row.decisive = step.decisive;
    row.why = cut(step.why);
    return row;
}

}  // namespace

Trace excerpt(const Timeline& timeline, std::size_t maximum_rows, std::size_t maximum_threads) {
    Trace trace;
    if (timeline.empty()) return trace;
    const drawing::Subject subject = drawing::find_subject(timeline, maximum_threads);
    trace.threads = subject.threads;
    trace.has_several_cpus = subject.has_several_cpus;
    if (subject.others != 0)
        trace.left_out = subject.others_text + " (" + std::to_string(subject.others) +
                         (subject.others == 1 ? " step)" : " steps)");
    const std::map<std::size_t, std::string> changes = drawing::changes_of(timeline);
    const std::vector<std::vector<std::int32_t>> wakes = wakes_of(timeline, trace.threads);
    const std::vector<Item> items = drawing::fold(timeline, subject.steps);
    const std::vector<bool> chosen =
        drawing::choose(timeline, items, std::vector<std::size_t>(items.size(), 1), maximum_rows);
    std::uint64_t hidden = 0;
    bool is_after_middle = timeline.left_out() == 0;
    const auto add_gap = [&] {
        if (hidden == 0) return;
        trace.rows.emplace_back();
        trace.rows.back().hidden = std::exchange(hidden, 0);
    };
    for (std::size_t i = 0; i < items.size(); ++i) {
        const Item& item = items[i];
        // Steps that the timeline itself left out count at their place.
        if (!is_after_middle && item.step >= Timeline::kFirst) {
            hidden += timeline.left_out();
            is_after_middle = true;
        }
        if (!chosen[i] || item.repeated != 0) {
            hidden += item.repeated != 0 ? item.repeated : 1;
            continue;
        }
        add_gap();
        trace.rows.push_back(row_of(timeline, item.step));
        if (const auto change = changes.find(item.step); change != changes.end())
            trace.rows.back().change = change->second;
        trace.rows.back().wakes = wakes.at(item.step);
    }
    add_gap();
    return trace;
}

}  // namespace kmes::conformance
