// SPDX-License-Identifier: MIT
//
// The report of a smoke run while it comes: its text, the lines that could be events, and the
// limits that show a flood. Names the events of the stream that it lacks. Knows no process.
#ifndef KMES_CONFORMANCE_MAIN_SMOKE_REPORT_H_
#define KMES_CONFORMANCE_MAIN_SMOKE_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "conformance/oracle/history.h"

namespace kmes::conformance {

class SmokeReport {
  public:
    // Appends bytes up to the limit. Returns true if a line other than a comment has begun.
    bool append(std::string_view bytes);
    // Says why the report is a flood; empty: it is none.
    const std::string& flood() const { return flood_; }
    const std::string& text() const { return text_; }
    std::string take() { return std::move(text_); }
    std::uint64_t lines() const;
    // Lines that could be records of events, whatever is wrong with them.
    std::uint64_t event_lines() const { return event_lines_; }
    bool has_refusal_of(std::uint32_t cpu) const;

    using EventName = std::pair<std::uint64_t, std::uint64_t>;  // CPU, sequence number
    // The events without a record.
    std::set<EventName> owed(const History& history) const;
    // Returns the first sequence number of this CPU that no line of the report can belong to; 0:
    // none.
    std::uint64_t first_owed(const History& history, std::uint32_t cpu) const;
    // Describes the lines after the first `in_time` bytes, when `owed` had no record yet. Empty:
    // they name no CPU of these events.
    std::string late_text(std::size_t in_time, const std::set<EventName>& owed) const;

  private:
    std::string text_;
    std::string flood_;
    std::uint64_t event_lines_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SMOKE_REPORT_H_
