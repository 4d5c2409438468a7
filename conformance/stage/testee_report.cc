// SPDX-License-Identifier: MIT
//
// See testee_report.h.
#include "conformance/stage/testee_report.h"

#include <algorithm>

namespace kmes::conformance {

void TesteeReport::watch(const History& history) {
    cpus_ = history.cpus();
    progress_ = std::make_unique<Progress>(history);
}

bool TesteeReport::feed(const std::string& bytes) {
    constexpr std::size_t kBytesKept = std::size_t{16} << 20;
    const std::size_t lines_before = lines();
    parser_.feed(bytes);
    text_.append(bytes, 0, kBytesKept - std::min(kBytesKept, text_.size()));
    progress_->update(parser_);
    return lines() != lines_before;
}

bool TesteeReport::owes_nothing() const {
    for (std::uint32_t cpu = 0; cpu < cpus_; ++cpu) {
        if (!progress_->ended(cpu) && progress_->first_undelivered(cpu)) return false;
    }
    return true;
}

}  // namespace kmes::conformance
