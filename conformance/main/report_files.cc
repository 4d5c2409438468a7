// SPDX-License-Identifier: MIT
//
// See report_files.h.
#include "conformance/main/report_files.h"

#include <algorithm>
#include <utility>

#include "conformance/report/result.h"

namespace kmes::conformance {

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
        if (!each.file->commit(text_of(each.format)) && error_.empty()) error_ = each.file->error();
    }
    return error_.empty();
}

}  // namespace kmes::conformance
