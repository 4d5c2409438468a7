// SPDX-License-Identifier: MIT
//
// The report of the testee, as far as it was read: its records, and its progress in the history.
// Knows no process.
#ifndef KMES_CONFORMANCE_STAGE_TESTEE_REPORT_H_
#define KMES_CONFORMANCE_STAGE_TESTEE_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "conformance/oracle/history.h"
#include "conformance/oracle/judge.h"
#include "conformance/oracle/record.h"

namespace kmes::conformance {

class TesteeReport {
  public:
    // To be called first. `history` outlives this object.
    void watch(const History& history);

    // Adds the next bytes. Returns whether they end a line that is not a comment.
    bool feed(const std::string& bytes);
    // The report has ended.
    void finish() { parser_.finish(); }

    const RecordParser& records() const { return parser_; }
    const Progress& progress() const { return *progress_; }
    // True if every event is delivered on every CPU that has not ended.
    bool owes_nothing() const;
    // Returns the bytes for the failure file: the whole report, or the beginning of a flood.
    const std::string& text() const { return text_; }
    std::uint64_t bytes_left_out() const { return parser_.bytes_fed() - text_.size(); }

  private:
    std::size_t lines() const { return parser_.records().size() + parser_.malformed_count(); }

    std::uint32_t cpus_ = 0;
    RecordParser parser_;
    std::unique_ptr<Progress> progress_;
    std::string text_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_TESTEE_REPORT_H_
