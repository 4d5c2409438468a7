// SPDX-License-Identifier: MIT
//
// See smoke_report.h.
#include "conformance/main/smoke_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "conformance/oracle/record.h"

namespace kmes::conformance {
namespace {

// The report of these few events is a hundred times shorter, comments included.
constexpr std::size_t kReportBytesAtMost = std::size_t{1} << 20;
// If a machine is too slow for that many bytes, the number of lines shows a flood: the stream has a
// few dozen events.
constexpr std::uint64_t kEventLinesAtMost = 1024;

// Returns the events that have a record in this part of a report.
std::vector<SmokeReport::EventName> delivered_in(std::string_view report) {
    RecordParser parser;
    parser.feed(report);
    parser.finish();
    std::vector<SmokeReport::EventName> names;
    for (const Record& record : parser.records()) {
        if (record.kind == RecordKind::event) names.emplace_back(record.cpu, record.sequence);
    }
    return names;
}

}  // namespace

bool SmokeReport::append(std::string_view bytes) {
    bool has_begun_a_line = false;
    for (const char byte : bytes) {
        if (text_.size() == kReportBytesAtMost) {
            flood_ = fmt::format("more than {} bytes for a few events", kReportBytesAtMost);
            return has_begun_a_line;
        }
        const char before = text_.empty() ? '\n' : text_.back();
        text_.push_back(byte);
        // A comment is no progress, and neither is the rest of a line.
        if (before == '\n' && byte != '#') has_begun_a_line = true;
        if (before == '\n' && (byte == 'E' || byte == 'e')) ++event_lines_;
    }
    if (event_lines_ > kEventLinesAtMost)
        flood_ = fmt::format("more than {} event lines for a few events", kEventLinesAtMost);
    return has_begun_a_line;
}

std::uint64_t SmokeReport::lines() const {
    return static_cast<std::uint64_t>(std::count(text_.begin(), text_.end(), '\n'));
}

bool SmokeReport::has_refusal_of(std::uint32_t cpu) const {
    return ("\n" + text_).find(fmt::format("\nR {} ", cpu)) != std::string::npos;
}

std::set<SmokeReport::EventName> SmokeReport::owed(const History& history) const {
    std::set<EventName> owed;
    for (std::uint32_t cpu = 0; cpu < history.cpus(); ++cpu) {
        for (const Event& event : history.events_of(cpu)) {
            if (!event.dropped) owed.emplace(cpu, event.sequence);
        }
    }
    for (const EventName& name : delivered_in(text_)) owed.erase(name);
    return owed;
}

std::uint64_t SmokeReport::first_owed(const History& history, std::uint32_t cpu) const {
    const std::string lines = "\n" + text_;
    const std::string begin = fmt::format("\nE {} ", cpu);
    std::size_t count = 0;
    for (std::size_t at = lines.find(begin); at != std::string::npos;
         at = lines.find(begin, at + 1))
        ++count;
    const auto& events = history.events_of(cpu);
    return count < events.size() ? events[count].sequence : 0;
}

std::string SmokeReport::late_text(std::size_t in_time, const std::set<EventName>& owed) const {
    // A line that was incomplete then counts as late.
    const std::size_t lines_in_time = text_.substr(0, in_time).rfind('\n') + 1;
    std::string passed_over;
    for (const auto& [cpu, sequence] : delivered_in(text_.substr(lines_in_time))) {
        if (owed.contains({cpu, sequence})) {
            return "; the record came when the testee ended, but has to be written before a "
                   "sleep (is the output buffered?)";
        }
        const auto first = owed.lower_bound({cpu, 0});
        if (!passed_over.empty() || first == owed.end() || first->first != cpu) continue;
        passed_over = fmt::format(
            "; later the program delivered event {} of CPU {}, but not "
            "event {}",
            sequence, cpu, first->second);
    }
    return passed_over;
}

}  // namespace kmes::conformance
