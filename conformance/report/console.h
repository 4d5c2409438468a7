// SPDX-License-Identifier: MIT
//
// The report for a person: the failures, the clearest one first, and how to repeat them; then one
// line of totals. With -v, one line for each case before. Knows no case and no testee. Makes
// everything that a testee wrote printable.
#ifndef KMES_CONFORMANCE_REPORT_CONSOLE_H_
#define KMES_CONFORMANCE_REPORT_CONSOLE_H_

#include <chrono>
#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "conformance/report/run_report.h"

namespace kmes::conformance {

struct ConsoleOptions {
    bool verbose = false;  // a line and the details of every case, and every failure in full
    bool quiet = false;    // only what did not pass, and the totals
    bool colour = false;   // only for a terminal
    // A sign of life after each such time. 0: none, as a terminal has its progress line.
    std::chrono::seconds sign_of_life{0};
    std::size_t id_width = 0;  // of the longest id
    std::string command = {};  // how a person calls the suite: "tools/kmes conformance"
    std::string given = {};    // the options of this run, as for a shell
    bool fail_fast = false;    // so the first failure has ended the run
};

class ConsoleReport {
  public:
    ConsoleReport(std::ostream& out, const ConsoleOptions& options)
        : out_(out), options_(options) {}

    // Prints what is run, and with `verbose` the head of the table if there are cases.
    void begin(const RunReport& report, std::size_t case_count);
    // With `verbose`, prints a line of the table with details; without, only signs of life.
    void add(const CaseResult& result);
    // Prints the clearest failure of each broken clause in full, and one line for each of the
    // others; with `verbose`, all in full. Then prints the cases that did not run; for each broken
    // clause, how many cases failed, which to read, and its line of code; and the totals. If the
    // run was interrupted, all finished cases have a line.
    void end(const RunReport& report);

  private:
    std::string paint(std::string_view text, Verdict verdict) const;
    void print_text(const std::string& text);
    void print_command(const std::string& text);
    void print_problem(const CaseResult& result);
    void print_place(const CaseResult& result);
    void print_failures(const std::vector<const CaseResult*>& failures);
    void print_in_a_line(const CaseResult& result, const std::string& text);
    void print_others(const std::vector<const CaseResult*>& others);
    void print_head();
    void print_row(const CaseResult& result);
    void print_sign_of_life();
    void print_remarks(const RunReport& report);
    void print_preflight(const RunReport& report);
    void print_details(const std::string& details, std::size_t maximum_lines);
    void print_not_run(const RunReport& report);
    void print_clauses(const std::vector<const CaseResult*>& failures);
    void print_sums(const RunReport& report);

    std::ostream& out_;
    ConsoleOptions options_;
    std::string layout_;  // of the run; empty: form A
    bool has_said_how_to_see_lines_ = false;
    std::size_t case_count_ = 0;
    std::size_t finished_ = 0;
    std::size_t failed_ = 0;
    std::chrono::steady_clock::time_point last_sign_ = std::chrono::steady_clock::now();
};

// One line that is rewritten: the running case. Does nothing without a terminal.
class ProgressLine {
  public:
    // `out` may be null: then there is no progress line.
    explicit ProgressLine(std::ostream* out) : out_(out) {}
    ~ProgressLine() { clear(); }
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    void show(std::size_t number, std::size_t count, std::size_t failed, std::string_view id);
    // Removes the line, so that other output can follow.
    void clear();

  private:
    std::ostream* out_;
    bool shown_ = false;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_CONSOLE_H_
