// SPDX-License-Identifier: MIT
//
// See testee_output.h.

#include "conformance/tracer/testee_output.h"

#include <utility>

namespace kmes::conformance::tracing {
namespace {

constexpr auto kCheckInterval = std::chrono::milliseconds(20);

}  // namespace

TesteeOutput::TesteeOutput(uint64_t limit_bytes, size_t shown_bytes)
    : limit_bytes_(limit_bytes),
      output_{nullptr, BoundedText(shown_bytes)},
      error_{nullptr, BoundedText(shown_bytes)} {}

void TesteeOutput::open() {
    report_ = std::make_unique<CaptureFile>("kmes-report");
    output_.file = std::make_unique<CaptureFile>("kmes-stdout");
    error_.file = std::make_unique<CaptureFile>("kmes-stderr");
}

void TesteeOutput::pump() {
    for (Stream* stream : {&output_, &error_}) {
        if (stream->file) stream->text.take(*stream->file);
    }
}

std::string TesteeOutput::standard_output() {
    pump();
    return output_.text.text();
}

std::string TesteeOutput::standard_error() {
    pump();
    return error_.text.text();
}

void TesteeOutput::take_report_from_output() {
    pump();
    std::swap(report_, output_.file);
}

// Reading a flood takes long, and a living testee continues to write meanwhile. Such a report stays
// unread except for its first bytes, and wait() reports the flood.
std::string TesteeOutput::read_report(bool is_final) {
    constexpr uint64_t kFloodBytes = uint64_t{1} << 28;  // RecordLimits::maximum_report_bytes
    if (!report_) return "";
    // Called before each operation, and mostly there is little or nothing.
    std::string bytes = report_->read_new(CaptureFile::kFewBytes);
    if (bytes.size() < CaptureFile::kFewBytes) return bytes;
    if (!is_final && report_->unread_bytes() > kFloodBytes) return bytes;
    return bytes + report_->read_new(kFloodBytes + 1 - bytes.size());
}

std::vector<OutputLimit> TesteeOutput::check_limits() {
    std::vector<OutputLimit> result;
    if (Clock::now() < next_check_) return result;
    next_check_ = Clock::now() + kCheckInterval;
    const auto is_flood = [&](const std::unique_ptr<CaptureFile>& file, OutputLimit::File name,
                              bool& is_reported) {
        const uint64_t unread = file ? file->unread_bytes() : 0;
        if (unread <= limit_bytes_) return false;
        if (!std::exchange(is_reported, true)) result.push_back({name, unread});
        return true;
    };
    is_flood(report_, OutputLimit::File::kReport, is_report_limit_reported_);
    const bool is_output_flood =
        is_flood(output_.file, OutputLimit::File::kStandardOutput, output_.is_limit_reported);
    const bool is_error_flood =
        is_flood(error_.file, OutputLimit::File::kStandardError, error_.is_limit_reported);
    if (is_output_flood || is_error_flood) pump();
    return result;
}

}  // namespace kmes::conformance::tracing
