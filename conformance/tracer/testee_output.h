// SPDX-License-Identifier: MIT
//
// The output of a testee: its report, its standard output and its standard error. Knows files, and
// no processes.

#ifndef CONFORMANCE_TRACER_TESTEE_OUTPUT_H_
#define CONFORMANCE_TRACER_TESTEE_OUTPUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/tracer/capture.h"
#include "conformance/tracer/events.h"
#include "conformance/tracer/proc.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance::tracing {

class TesteeOutput {
  public:
    // A file with more unread bytes than `limit_bytes` is a flood. `shown_bytes` of standard output
    // and of standard error are kept.
    TesteeOutput(uint64_t limit_bytes, size_t shown_bytes);

    // Makes the files. Throws std::system_error if there is no memory or no descriptor.
    void open();
    // Before: open(). Each returns a new descriptor, which the caller closes.
    int report_for_append() const { return report_->open_for_append(); }
    int output_for_append() const { return output_.file->open_for_append(); }
    int error_for_append() const { return error_.file->open_for_append(); }

    bool is_report(const FileIdentity& file) const { return report_ && report_->is(file); }
    // The report comes by standard output. Earlier text there is no part of it.
    void take_report_from_output();

    // The new bytes of the report. A flood stays unread while the testee writes: `is_final` says
    // that it no longer does.
    std::string read_report(bool is_final);
    std::string standard_output();
    std::string standard_error();

    // Call it often: it checks the files from time to time. Returns those that have become a flood,
    // each once in a run. Drops a part of standard output or error if it is a flood.
    std::vector<OutputLimit> check_limits();

  private:
    struct Stream {
        std::unique_ptr<CaptureFile> file;
        BoundedText text;
        bool is_limit_reported = false;
    };

    // Takes the new bytes of standard output and error.
    void pump();

    uint64_t limit_bytes_;
    std::unique_ptr<CaptureFile> report_;
    bool is_report_limit_reported_ = false;
    Stream output_;
    Stream error_;
    TimePoint next_check_ = {};
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_TESTEE_OUTPUT_H_
