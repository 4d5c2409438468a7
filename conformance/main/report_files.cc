// SPDX-License-Identifier: MIT
//
// See report_files.h.
#include "conformance/main/report_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "conformance/main/options.h"
#include "conformance/report/console.h"
#include "conformance/report/html.h"
#include "conformance/report/json.h"
#include "conformance/report/json_read.h"
#include "conformance/report/junit.h"
#include "conformance/report/result.h"
#include "conformance/report/statement.h"
#include "conformance/report/tap.h"
#include "conformance/report/text.h"

namespace kmes::conformance {

namespace {

constexpr std::string_view kRightReport =
    "console, json, html, junit, tap or statement, or one of them with a file (json:FILE)";

// Parses FORM, or FORM:FILE. Returns nothing for any other text.
std::optional<ReportTarget> parse_report(std::string_view text) {
    const std::size_t colon = text.find(':');
    const auto name = std::ranges::find(kReportFormatNames, text.substr(0, colon));
    if (name == std::end(kReportFormatNames)) return std::nullopt;
    ReportTarget target;
    target.format = static_cast<ReportFormat>(name - std::begin(kReportFormatNames));
    if (colon == std::string_view::npos) return target;
    target.file = text.substr(colon + 1);
    if (target.file->empty()) return std::nullopt;
    return target;
}

bool has_format(const ReportChoice& choice, ReportFormat format) {
    return choice.format == format ||
           std::ranges::any_of(choice.more, [format](const ReportTarget& target) {
               return target.format == format;
           });
}

std::string console_text(const RunReport& report) {
    std::ostringstream out;
    ConsoleReport console(out, {});
    console.begin(report, report.results.size());
    console.end(report);
    return out.str();
}

// Made from the JSON, as `verify` does it.
std::string statement_text(const RunReport& report) {
    const std::string json = to_json(report);
    const ReadReport read = report_from_json(json);
    if (!read.error.empty()) throw std::logic_error("the JSON report: " + read.error);
    return to_statement(read.report, json);
}

}  // namespace

std::string add_reports(const std::vector<std::string>& values, ReportChoice& choice) {
    for (const std::string& value : values) {
        const auto target = parse_report(value);
        if (!target) return wrong_value("--report", value, kRightReport);
        if (target->file) {
            choice.more.push_back(*target);
        } else if (choice.format) {
            return wrong_value("--report", value,
                               fmt::format("{}:FILE, as another report has no file", value));
        } else {
            choice.format = target->format;
        }
    }
    if (has_format(choice, ReportFormat::statement) && !has_format(choice, ReportFormat::json))
        return "--report statement has the digest of the JSON report; add --report json:FILE";
    return "";
}

std::vector<NamedFile> named_files(const std::vector<ReportTarget>& targets) {
    std::vector<NamedFile> files;
    for (const ReportTarget& target : targets) {
        const std::string path = target.file.value_or("");
        files.push_back(
            {fmt::format("--report {}:{}", report_format_name(target.format), path), path});
    }
    return files;
}

std::string find_repeated_file(const std::vector<NamedFile>& files) {
    for (std::size_t i = 0; i < files.size(); ++i) {
        const auto file = replaced_file(files[i].path);
        for (std::size_t j = 0; file && j < i; ++j) {
            const bool is_written = files[i].is_written || files[j].is_written;
            if (is_written && replaced_file(files[j].path) == file)
                return fmt::format("{} and {} name the same file; expected another one for each",
                                   printable(files[j].option), printable(files[i].option));
        }
    }
    return "";
}

std::string report_text(const RunReport& report, ReportFormat format) {
    switch (format) {
        case ReportFormat::json:
            return to_json(report);
        case ReportFormat::html:
            return to_html(report);
        case ReportFormat::junit:
            return to_junit(report);
        case ReportFormat::tap:
            return to_tap(report);
        case ReportFormat::statement:
            return statement_text(report);
        case ReportFormat::console:
            break;
    }
    return console_text(report);
}

std::string unmade_report(ReportFormat format, const std::exception& error) {
    return fmt::format("cannot make the {} report: {}", report_format_name(format),
                       printable(error.what()));
}

int ReportFiles::open(const std::vector<ReportTarget>& targets, const StopFlag* stop) {
    for (const ReportTarget& target : targets) {
        const std::string what(report_format_name(target.format));
        auto file = std::make_unique<OutputFile>(what + " report");
        const OutputFile::Status status = file->open(target.file.value_or(""), stop);
        if (status != OutputFile::Status::ok) {
            error_ = file->error();
            return status == OutputFile::Status::bad_path ? kExitUsage : kExitSuite;
        }
        opened_.push_back({target.format, std::move(file)});
    }
    return 0;
}

bool ReportFiles::commit(const std::function<std::string(ReportFormat)>& text_of) {
    for (const Opened& each : opened_) {
        std::string error;
        // A report that cannot be made must not lose the others.
        try {
            if (!each.file->commit(text_of(each.format))) error = each.file->error();
        } catch (const std::exception& exception) {
            error = unmade_report(each.format, exception);
        }
        if (error_.empty()) error_ = error;
    }
    return error_.empty();
}

}  // namespace kmes::conformance
