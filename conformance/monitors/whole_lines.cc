// SPDX-License-Identifier: MIT
//
// The monitor of the report (contract-3): whole lines in each write. The lines of a single thread
// cannot mix.
#include <fmt/format.h>

#include <cstdint>
#include <set>

#include "conformance/monitors/monitors.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {
namespace {

class WholeLinesMonitor : public Monitor {
  public:
    explicit WholeLinesMonitor(Stage& stage) : stage_(stage) {}

    void writes_report(const ReportWrite& write) override {
        writers_.insert(write.tid);
        if (!write.ends_line && cut_bytes_ == 0) cut_bytes_ = write.bytes;
    }

    void finishing() override {
        if (cut_bytes_ == 0 || writers_.size() < 2) return;
        stage_.findings().blame(
            "contract-3",
            fmt::format("a write of {1} bytes by one of {0} threads does not end with a "
                        "newline; expected whole lines in each write, because lines of "
                        "several threads mix",
                        writers_.size(), cut_bytes_));
    }

  private:
    Stage& stage_;
    std::set<pid_t> writers_;
    std::uint64_t cut_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Monitor> make_whole_lines_monitor(Stage& stage) {
    return std::make_unique<WholeLinesMonitor>(stage);
}

}  // namespace kmes::conformance
