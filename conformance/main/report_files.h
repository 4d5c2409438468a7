// SPDX-License-Identifier: MIT
//
// The forms of a report, and the files that a run or a command writes them to.
#ifndef KMES_CONFORMANCE_MAIN_REPORT_FILES_H_
#define KMES_CONFORMANCE_MAIN_REPORT_FILES_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/stop_flag.h"
#include "conformance/report/output_file.h"
#include "conformance/report/run_report.h"

namespace kmes::conformance {

enum class ReportFormat { console, json, html, junit, tap, statement };
inline constexpr std::string_view kReportFormatNames[] = {"console", "json", "html",
                                                          "junit",   "tap",  "statement"};
constexpr std::string_view report_format_name(ReportFormat format) {
    return kReportFormatNames[static_cast<std::size_t>(format)];
}
struct ReportTarget {
    ReportFormat format = ReportFormat::console;
    std::optional<std::string> file;  // none: standard output, or the file of --report-file
};

// What --report asks for.
struct ReportChoice {
    std::optional<ReportFormat> format;  // of standard output, or of --report-file
    std::vector<ReportTarget> more;      // each with a file
};

// The types and the text of --report in --help.
inline constexpr const char* kReportTypes = "console|json|html|junit|tap|statement";
inline constexpr const char* kReportHelp =
    "form of the report (default console); FORM:FILE writes one more to FILE, and is repeatable";

// Adds the reports that the values of --report name: FORM, or FORM:FILE. Empty, or one line that
// says what is wrong.
std::string add_reports(const std::vector<std::string>& values, ReportChoice& choice);

// The report in a form, of which the console is for no terminal.
std::string report_text(const RunReport& report, ReportFormat format);

// The files of one run. Each is opened before the run, so that it is known whether it can be
// written, and committed after it.
class ReportFiles {
  public:
    // 0, or the exit status (bad usage, or an error of the machine) that error() explains.
    int open(const std::vector<ReportTarget>& targets, const StopFlag* stop);
    // Writes all of them, also where one fails. False: error() is about the first that failed.
    bool commit(const std::function<std::string(ReportFormat)>& text_of);
    const std::string& error() const { return error_; }

  private:
    struct Opened {
        ReportFormat format;
        std::unique_ptr<OutputFile> file;
    };
    std::vector<Opened> opened_;
    std::string error_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_REPORT_FILES_H_
