// SPDX-License-Identifier: MIT
//
// The results of a case besides the records of the testee: findings, notes for a person, and the
// part of the case that was played. The findings are those of the case and of the monitors.
#ifndef KMES_CONFORMANCE_STAGE_FINDINGS_H_
#define KMES_CONFORMANCE_STAGE_FINDINGS_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/model/finding.h"

namespace kmes::conformance {

class Findings {
  public:
    // Adds a finding of the case or of a monitor.
    void blame(Finding finding) { findings_.push_back(std::move(finding)); }
    void blame(std::string_view clause, const std::string& message);
    const std::vector<Finding>& all() const { return findings_; }
    // Removes the first finding and returns it, if there is one.
    std::optional<Finding> take_first();

    // Adds a line to the details of the outcome.
    void note(std::string line) { notes_.push_back(std::move(line)); }
    const std::vector<std::string>& notes() const { return notes_; }

    // Adds to the message of a pass: a part of the case that was not played, and the reason. The
    // message has the first few different ones, and the number of the others.
    void played_in_part(std::string what);
    std::string in_part() const;

    // From now on the testee may exit with a non-zero status if its last attach has failed (the
    // contract allows that). A wait then throws EarlyExit.
    void allow_early_exit() { may_exit_early_ = true; }
    bool may_exit_early() const { return may_exit_early_; }

    // Records that the testee makes no progress. `has_hung` is false if it is blocked for good.
    void note_standstill(bool has_hung);
    bool stands_still() const { return stands_still_; }
    bool has_hung() const { return has_hung_; }

  private:
    std::vector<Finding> findings_;
    std::vector<std::string> notes_;
    std::vector<std::string> in_part_;
    bool may_exit_early_ = false;
    bool stands_still_ = false;
    bool has_hung_ = false;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_FINDINGS_H_
