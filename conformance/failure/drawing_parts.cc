// SPDX-License-Identifier: MIT
//
// See drawing_parts.h.
#include "conformance/failure/drawing_parts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "conformance/model/named_step.h"

namespace kmes::conformance::drawing {
namespace {

// A repetition is folded if it has at least this many pieces; longer pieces than this are not
// searched.
constexpr std::size_t kRepeatedAtLeast = 4;
constexpr std::size_t kLongestPeriod = 12;

std::string list_text(std::string_view one, const std::set<std::int64_t>& numbers) {
    if (numbers.empty()) return "";
    std::string text = std::string(one) + (numbers.size() == 1 ? " " : "s ");
    constexpr std::size_t kNamed = 8;
    std::size_t named = 0;
    for (const std::int64_t number : numbers) {
        if (named == kNamed) return text + " and others";
        text += (named++ == 0 ? "" : ", ") + std::to_string(number);
    }
    return text;
}

// The CPUs of the decisive steps; without any, that of the verdict. Empty: all CPUs.
std::set<std::uint32_t> subject_cpus(const std::vector<TimelineStep>& steps) {
    std::set<std::uint32_t> cpus;
    for (const TimelineStep& step : steps) {
        if (step.decisive && step.cpu) cpus.insert(*step.cpu);
    }
    if (cpus.empty() && !steps.empty() && steps.back().cpu) cpus.insert(*steps.back().cpu);
    return cpus;
}

bool has_place(const TimelineStep& step) {
    return !step.source.empty() || !step.instruction.empty();
}

bool is_about(const TimelineStep& step, const std::set<std::uint32_t>& cpus) {
    return cpus.empty() || !step.cpu || cpus.contains(*step.cpu);
}

// Returns, for each step, whether the trace has to show it: it is decisive, or a report names its
// place.
std::vector<bool> steps_to_show(const std::vector<TimelineStep>& steps) {
    std::vector<bool> shown;
    for (const TimelineStep& step : steps) shown.push_back(step.decisive);
    const std::set<std::uint32_t> cpus = subject_cpus(steps);
    const std::optional<std::size_t> named = named_step(steps, [&](const TimelineStep& step) {
        return has_place(step) && (step.decisive || is_about(step, cpus));
    });
    if (named) shown[*named] = true;
    return shown;
}

std::vector<std::int32_t> subject_threads(const std::vector<TimelineStep>& steps,
                                          const std::vector<bool>& to_show,
                                          const std::set<std::uint32_t>& cpus,
                                          std::size_t columns) {
    constexpr std::uint64_t kToShow = std::uint64_t{1} << 32;
    std::map<std::int32_t, std::uint64_t> weights;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const TimelineStep& step = steps[i];
        if (step.thread == 0) continue;
        const bool matters = cpus.empty() || (step.cpu && cpus.contains(*step.cpu));
        if (to_show[i]) weights[step.thread] += kToShow;
        if (matters) ++weights[step.thread];
    }
    std::vector<std::int32_t> threads;
    for (const auto& [thread, weight] : weights) threads.push_back(thread);
    // (std::stable_sort of libstdc++ 12 uses what clang calls deprecated.)
    std::sort(threads.begin(), threads.end(), [&](auto a, auto b) {
        return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
    });
    if (threads.size() > columns) threads.resize(columns);
    std::sort(threads.begin(), threads.end());
    return threads;
}

// The text of a step without its figures: equal for steps of one kind, on any CPU. The last step
// with a place is therefore in no fold: see steps_to_show.
std::string kind_of(const TimelineStep& step) {
    std::string key = std::to_string(static_cast<int>(step.kind)) + " " +
                      std::to_string(step.thread) + (step.cpu ? " of a CPU " : " ") +
                      (has_place(step) ? "at a place " : "");
    for (const char c : step.text) {
        const bool is_digit = c >= '0' && c <= '9';
        if (!is_digit) key.push_back(c);
        if (is_digit && key.back() != '#') key.push_back('#');
    }
    return key;
}

// How many times in a row the piece of `period` kinds at `begin` occurs before `limit`.
std::size_t repetitions(const std::vector<std::size_t>& kinds, std::size_t begin,
                        std::size_t period, std::size_t limit) {
    std::size_t end = begin + period;
    while (end < limit && kinds[end] == kinds[end - period]) ++end;
    return (end - begin) / period;
}

std::string in_full(const BufferState& state) {
    return "write_pos " + std::to_string(state.write_pos) + ", tail_pos " +
           std::to_string(state.tail_pos) + ", need_wake " + std::to_string(state.need_wake) +
           ", futex_counter " + std::to_string(state.futex_counter) + ", generation " +
           std::to_string(state.generation);
}

std::string change_text(const BufferState& before, const BufferState& after) {
    if (before.buffer != after.buffer)
        return "in buffer " + std::to_string(after.buffer) + ": " + in_full(after);
    std::string text;
    const auto put = [&](const char* name, std::uint64_t from, std::uint64_t to) {
        if (from == to) return;
        text += (text.empty() ? "" : ", ") + std::string(name) + " " + std::to_string(from) +
                " -> " + std::to_string(to);
    };
    put("write_pos", before.write_pos, after.write_pos);
    put("tail_pos", before.tail_pos, after.tail_pos);
    put("need_wake", before.need_wake, after.need_wake);
    put("futex_counter", before.futex_counter, after.futex_counter);
    put("generation", before.generation, after.generation);
    return text;
}

// The distance of each item from those that have to be shown. Items between two of them are near.
// What follows the last one counts as farther than what leads up to it.
std::vector<std::size_t> distances(const std::vector<Item>& items,
                                   const std::vector<bool>& to_show) {
    std::vector<std::size_t> anchors;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (items[i].repeated == 0 && to_show[items[i].step]) anchors.push_back(i);
    }
    if (anchors.empty()) anchors.push_back(items.size() - 1);
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const auto next = std::lower_bound(anchors.begin(), anchors.end(), i);
        std::size_t distance = items.size() * 8;
        if (next != anchors.end()) distance = std::min(distance, *next - i);
        if (next != anchors.begin()) {
            const std::size_t after = i - *std::prev(next);
            distance = std::min(distance, next == anchors.end() ? after * 2 : after);
        }
        result.push_back(distance);
    }
    return result;
}

}  // namespace

Subject find_subject(const Timeline& timeline, std::size_t columns) {
    const std::vector<TimelineStep>& steps = timeline.steps();
    const std::set<std::uint32_t> cpus = subject_cpus(steps);
    const std::vector<bool> to_show = steps_to_show(steps);
    Subject subject;
    subject.threads = subject_threads(steps, to_show, cpus, columns);
    std::set<std::int64_t> other_cpus;
    std::set<std::int64_t> other_threads;
    std::set<std::uint32_t> shown_cpus;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const TimelineStep& step = steps[i];
        const bool has_column =
            step.thread == 0 || std::find(subject.threads.begin(), subject.threads.end(),
                                          step.thread) != subject.threads.end();
        const bool is_of_cpus = is_about(step, cpus);
        if (to_show[i] || step.kind == StepKind::end || (has_column && is_of_cpus)) {
            subject.steps.push_back(i);
            if (step.cpu && step.kind != StepKind::end) shown_cpus.insert(*step.cpu);
            continue;
        }
        ++subject.others;
        if (!is_of_cpus) other_cpus.insert(*step.cpu);
        if (!has_column) other_threads.insert(step.thread);
    }
    subject.has_several_cpus = shown_cpus.size() > 1;
    subject.others_text = list_text("CPU", other_cpus);
    const std::string threads = list_text("thread", other_threads);
    if (!subject.others_text.empty() && !threads.empty()) subject.others_text += "; ";
    subject.others_text += threads;
    return subject;
}

std::vector<Item> fold(const Timeline& timeline, const std::vector<std::size_t>& steps) {
    // Kinds as small numbers. A step that must not be folded gets a kind of its own.
    std::map<std::string, std::size_t> numbers;
    std::vector<std::size_t> kinds;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const TimelineStep& step = timeline.steps()[steps[i]];
        const bool stays = step.decisive || step.kind == StepKind::end;
        const std::string key = stays ? "stays " + std::to_string(i) : kind_of(step);
        kinds.push_back(numbers.try_emplace(key, numbers.size()).first->second);
    }
    // No repetition is known to go on through the steps that the timeline left out.
    const std::size_t middle =
        timeline.left_out() == 0
            ? 0
            : static_cast<std::size_t>(
                  std::lower_bound(steps.begin(), steps.end(), Timeline::kFirst) - steps.begin());
    std::vector<Item> items;
    for (std::size_t i = 0; i < steps.size();) {
        const std::size_t limit = i < middle ? middle : steps.size();
        std::size_t best_period = 0;
        std::size_t best_count = 0;
        for (std::size_t period = 1; period <= kLongestPeriod; ++period) {
            const std::size_t count = repetitions(kinds, i, period, limit);
            if (count < kRepeatedAtLeast || count * period <= best_count * best_period) continue;
            best_period = period;
            best_count = count;
        }
        if (best_period == 0) {
            items.push_back({steps[i++]});
            continue;
        }
        // The first repetition, the mark, the last repetition.
        for (std::size_t k = 0; k < best_period; ++k) items.push_back({steps[i + k]});
        const std::size_t hidden = (best_count - 2) * best_period;
        items.push_back({steps[i + best_period], hidden, best_period});
        i += best_period + hidden;
        for (std::size_t k = 0; k < best_period; ++k) items.push_back({steps[i++]});
    }
    return items;
}

bool follows_left_out(const Timeline& timeline, std::size_t step) {
    return timeline.left_out() != 0 && step == Timeline::kFirst;
}

// Steps that are not shown change the state, too, so all steps are compared.
std::map<std::size_t, std::string> changes_of(const Timeline& timeline) {
    std::map<std::uint32_t, BufferState> known;
    std::map<std::size_t, std::string> changes;
    for (std::size_t i = 0; i < timeline.steps().size(); ++i) {
        if (follows_left_out(timeline, i)) known.clear();
        const TimelineStep& step = timeline.steps()[i];
        if (!step.state) continue;
        const auto [found, is_first] = known.try_emplace(step.cpu.value_or(0), *step.state);
        changes[i] = is_first ? in_full(*step.state) : change_text(found->second, *step.state);
        found->second = *step.state;
    }
    return changes;
}

std::vector<bool> choose(const Timeline& timeline, const std::vector<Item>& items,
                         const std::vector<std::size_t>& heights, std::size_t maximum_lines) {
    std::vector<bool> chosen(items.size(), false);
    if (items.empty()) return chosen;
    const std::vector<bool> to_show = steps_to_show(timeline.steps());
    const std::vector<std::size_t> distance = distances(items, to_show);
    std::vector<std::size_t> order(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](auto a, auto b) {
        return distance[a] != distance[b] ? distance[a] < distance[b] : a < b;
    });
    std::size_t lines = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const bool is_last = i + 1 == items.size();
        if (items[i].repeated != 0 || (!is_last && !to_show[items[i].step])) continue;
        chosen[i] = true;
        // With the mark of a gap before it.
        lines += heights[i] + 1;
    }
    for (const std::size_t i : order) {
        if (chosen[i]) continue;
        if (lines + heights[i] > maximum_lines) break;
        lines += heights[i];
        chosen[i] = true;
    }
    return chosen;
}

std::string plain(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7f) {
            out.push_back(c);
        } else {
            out += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
        }
    }
    return out;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width, std::size_t indent) {
    std::vector<std::string> lines;
    std::string line;
    const auto begin_line = [&] { line = std::string(lines.empty() ? 0 : indent, ' '); };
    begin_line();
    bool has_word = false;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (word.empty()) continue;
        if (has_word && line.size() + 1 + word.size() > width) {
            lines.push_back(line);
            begin_line();
            has_word = false;
        }
        if (has_word) line.push_back(' ');
        // A word longer than a line is cut at the end of the line.
        while (line.size() + word.size() > width) {
            const std::size_t room = width - line.size();
            line += word.substr(0, room);
            word.remove_prefix(room);
            lines.push_back(line);
            begin_line();
        }
        line += word;
        has_word = true;
    }
    if (has_word) lines.push_back(line);
    return lines;
}

}  // namespace kmes::conformance::drawing
