// SPDX-License-Identifier: MIT
//
// Judges a testee's records by the history: events that are torn, doubled, reordered, invented,
// missing or miscounted. Pure: the same input gives the same findings, in the same order. Knows no
// process and no memory.
//
// A correct consumer is never blamed. judge_missing.cc defines the events that a consumer owes, and
// gives the reason of each excuse.
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

// Returns the findings in order of weight, the most important first. Empty: nothing is wrong.
std::vector<Finding> judge(const History& history, const RecordParser& report,
                           const JudgeOptions& options = {});

// The testee's progress, record by record, for a driver that waits. Takes constant time for each
// record.
class Progress {
  public:
    explicit Progress(const History& history);

    // Processes the new records of the parser.
    void update(const RecordParser& report);

    // The end event was delivered on this CPU, or the testee has refused its buffer.
    bool ended(std::uint32_t cpu) const;
    bool all_ended() const;
    bool refused(std::uint32_t cpu) const;
    // The highest delivered sequence number; 0: none.
    std::uint64_t last_sequence(std::uint32_t cpu) const;
    std::uint64_t delivered_count(std::uint32_t cpu) const;

    // The oldest published event that survives in the current buffer of this CPU and is newer than
    // all delivered ones. A testee with any buffer of this CPU must deliver it sooner or later. One
    // with a retired buffer, too: the swap has woken it (E3). nullptr: it owes nothing now.
    const Event* first_undelivered(std::uint32_t cpu) const;

  private:
    struct CpuState {
        std::uint64_t last_sequence = 0;
        std::uint64_t delivered_count = 0;
        bool ended = false;
        bool refused = false;
    };
    const History& history_;
    std::vector<CpuState> cpu_states_;
    std::size_t records_seen_ = 0;
};

// Describes the history and the records of one CPU for a person (-v): the last `maximum_lines`
// events, and whether each was delivered, lost or overwritten.
std::string describe_history(const History& history, const RecordParser& report, std::uint32_t cpu,
                             std::size_t maximum_lines = 40);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_ORACLE_JUDGE_H_
