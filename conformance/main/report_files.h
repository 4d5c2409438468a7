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

namespace kmes::conformance {

enum class ReportFormat { console, json, html, junit, tap };
inline constexpr std::string_view kReportFormatNames[] = {"console", "json", "html", "junit",
                                                          "tap"};
constexpr std::string_view report_format_name(ReportFormat format) {
    return kReportFormatNames[static_cast<std::size_t>(format)];
}
inline constexpr std::string_view kRightReport =
    "console, json, html, junit or tap, or one of them with a file (json:FILE)";

struct ReportTarget {
    ReportFormat format = ReportFormat::console;
    std::optional<std::string> file;  // none: standard output, or the file of --report-file
};

// FORM, or FORM:FILE. Nothing where it is neither.
std::optional<ReportTarget> parse_report(std::string_view text);

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
