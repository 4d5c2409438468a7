// SPDX-License-Identifier: MIT
//
// The forms of a report, and the files that a run or a command writes them to.
#ifndef KMES_CONFORMANCE_MAIN_REPORT_FILES_H_
#define KMES_CONFORMANCE_MAIN_REPORT_FILES_H_

#include <exception>
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

// The reports that --report selects.
struct ReportChoice {
    std::optional<ReportFormat> format;  // for standard output, or for --report-file
    std::vector<ReportTarget> more;      // each with a file
};

// The types and the text of --report in --help.
inline constexpr const char* kReportTypes = "console|json|html|junit|tap|statement";
inline constexpr const char* kReportHelp =
    "form of the report (default console); FORM:FILE writes one more to FILE, and is repeatable";

// Adds the reports of the values of --report: FORM, or FORM:FILE. Returns an empty string, or one
// line that says what is wrong.
std::string add_reports(const std::vector<std::string>& values, ReportChoice& choice);

// A file that an option names.
struct NamedFile {
    std::string option;  // with its value, for an error
    std::string path;
    bool is_written = true;
};

std::vector<NamedFile> named_files(const std::vector<ReportTarget>& targets);

// Two outputs in one file would lose the first, and an output in an input would lose the input.
// Returns one line about the first such pair, or an empty string. Devices and FIFOs may repeat.
std::string find_repeated_file(const std::vector<NamedFile>& files);

// Returns the report in a form; the console form is for a file.
std::string report_text(const RunReport& report, ReportFormat format);

// Returns the line about a report whose text cannot be made.
std::string unmade_report(ReportFormat format, const std::exception& error);

// The report files of one run. Each is opened before the run, so that an unwritable file is known
// early, and committed after it.
class ReportFiles {
  public:
    // Returns 0, or an exit status (bad usage, or an error of the machine) that error() explains.
    int open(const std::vector<ReportTarget>& targets, const StopFlag* stop);
    // Writes all files, even if one fails. Returns false if one failed; error() is about the first.
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
