// SPDX-License-Identifier: MIT
//
// Which steps of a timeline decided the verdict. Marks them, and says why each did.
#ifndef KMES_CONFORMANCE_STAGE_VERDICT_MARKS_H_
#define KMES_CONFORMANCE_STAGE_VERDICT_MARKS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/finding.h"
#include "conformance/model/timeline.h"
#include "conformance/oracle/history.h"

namespace kmes::conformance {

// What the recorder knows of its steps besides their text.
struct StepFacts {
    // What an operation of the producer did, by the number of its step.
    struct Operation {
        std::uint64_t step = 0;
        std::uint32_t cpu = 0;
        std::uint64_t published_first = 0;  // 0: published nothing
        std::uint64_t published_last = 0;
        std::uint64_t overwritten_first = 0;  // 0: overwrote nothing
        std::uint64_t overwritten_last = 0;
        std::optional<BufferIndex> retired;
        std::optional<std::uint64_t> woken;  // threads; nothing: need_wake was 0
        bool in_move = false;
    };
    // A futex wait of the testee.
    struct Wait {
        std::uint64_t step = 0;
        std::uint32_t cpu = 0;
        BufferIndex buffer = 0;
        std::int32_t thread = 0;
    };

    std::vector<Operation> operations;
    std::vector<std::uint64_t> moves;  // the steps that say what is to be done
    std::vector<Wait> waits;
    std::map<std::uint64_t, std::uint64_t> step_of_line;  // of the report
};

class VerdictMarks {
  public:
    // `history` is null where there are no rings.
    VerdictMarks(Timeline& timeline, const StepFacts& facts, const History* history)
        : timeline_(timeline), facts_(facts), history_(history) {}

    // Once, after the last step, which states the verdict and has the number `last`.
    void mark_all(const Finding& finding, std::uint64_t last);

  private:
    void mark(std::uint64_t step, std::string why);
    bool mark_moves();
    const StepFacts::Operation* publication_of(std::uint32_t cpu, std::uint64_t sequence) const;
    std::uint64_t record_of(const Finding& finding) const;
    void mark_lost(const Finding& finding);
    void mark_torn(const Finding& finding);
    void mark_missing(const Finding& finding);
    void mark_record(const Finding& finding, std::uint64_t record);
    std::uint64_t last_where(const std::function<bool(const TimelineStep&)>& is_meant) const;
    std::uint64_t last_of(StepKind kind, std::optional<std::uint32_t> cpu,
                          std::string_view text) const;
    void mark_cause(const Finding& finding);

    Timeline& timeline_;
    const StepFacts& facts_;
    const History* history_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_VERDICT_MARKS_H_
