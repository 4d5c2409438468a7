// SPDX-License-Identifier: MIT
//
// The verdict on a testee's records against the history: what was torn, doubled, reordered,
// invented, missing, miscounted. Pure: the same input gives the same findings, in the same order.
// Knows no process and no memory.
//
// A correct consumer is never blamed. What is owed, and why each excuse exists, is written down at
// judge_missing.cc.
#ifndef KMES_CONFORMANCE_ORACLE_JUDGE_H_
#define KMES_CONFORMANCE_ORACLE_JUDGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/model/finding.h"
#include "conformance/model/judge_options.h"
#include "conformance/oracle/history.h"
#include "conformance/oracle/record.h"

namespace kmes::conformance {

// The clause that a case is of: its id begins with it.
std::string clause_of_case(std::string_view case_id);

// Findings in order of weight: what the driver should show first comes first. Empty: nothing wrong.
std::vector<Finding> judge(const History& history, const RecordParser& report,
                           const JudgeOptions& options = {});

// How far the testee is, record by record; for a driver that waits. Constant time for each record.
class Progress {
  public:
    explicit Progress(const History& history);

    // Takes the records of the parser that it has not seen yet.
    void update(const RecordParser& report);

    // The end event was delivered on this CPU, or it was refused.
    bool ended(std::uint32_t cpu) const;
    bool all_ended() const;
    bool refused(std::uint32_t cpu) const;
    // The highest sequence number delivered; 0: none.
    std::uint64_t last_sequence(std::uint32_t cpu) const;
    std::uint64_t delivered_count(std::uint32_t cpu) const;

    // The oldest event that is published, survives in the present buffer of this CPU, and is newer
    // than all that was delivered. A testee that holds any buffer of this CPU owes it, sooner or
    // later: a consumer on a retired buffer was woken by the swap (E3). nullptr: nothing is owed
    // now.
    const Event* first_undelivered(std::uint32_t cpu) const;

  private:
    struct Lane {
        std::uint64_t last_sequence = 0;
        std::uint64_t delivered_count = 0;
        bool ended = false;
        bool refused = false;
    };
    const History& history_;
    std::vector<Lane> lanes_;
    std::size_t records_seen_ = 0;
};

// What the history and the records of one CPU look like, for a person (-v): the last
// `maximum_lines` events with what became of them.
std::string describe_history(const History& history, const RecordParser& report, std::uint32_t cpu,
                             std::size_t maximum_lines = 40);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_ORACLE_JUDGE_H_
