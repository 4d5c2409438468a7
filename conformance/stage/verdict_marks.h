// SPDX-License-Identifier: MIT
//
// Marks the steps of a timeline that decided the verdict, and says why.
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

// Facts about the steps besides their text.
struct StepFacts {
    // The effects of an operation of the producer. `step` is the number of its step.
    struct Operation {
        std::uint64_t step = 0;
        std::uint32_t cpu = 0;
        std::uint64_t published_first = 0;  // 0: published nothing
        std::uint64_t published_last = 0;
        std::uint64_t overwritten_first = 0;  // 0: overwrote nothing
        std::uint64_t overwritten_last = 0;
        std::optional<BufferIndex> retired;
        std::optional<std::uint64_t> woken;  // the number of threads; nothing: need_wake was 0
        bool in_move = false;

        bool overwrites(std::uint32_t of_cpu, std::uint64_t sequence) const {
            return cpu == of_cpu && overwritten_first != 0 && overwritten_first <= sequence &&
                   sequence <= overwritten_last;
        }
    };
    // A futex wait of the testee.
    struct Wait {
        std::uint64_t step = 0;
        std::uint32_t cpu = 0;
        BufferIndex buffer = 0;
        std::int32_t thread = 0;
    };
    // A load of tail_pos.
    struct TailLoad {
        std::uint64_t step = 0;
        std::uint32_t cpu = 0;
        BufferIndex buffer = 0;
        std::uint64_t value = 0;
    };
    // A step in which a thread reads bytes of an event.
    struct EventRead {
        std::uint64_t step = 0;
        bool is_to_the_end = false;  // the last byte of the event is among them
        BufferIndex buffer = 0;
        std::uint64_t position = 0;  // of the first byte
        std::uint64_t bytes = 0;
    };
    // An access to a metadata page.
    struct MetadataAccess {
        std::uint64_t step = 0;
        BufferIndex buffer = 0;
    };

    std::vector<Operation> operations;
    std::vector<std::uint64_t> moves;  // the steps that describe an action before a chosen access
    std::vector<Wait> waits;
    std::vector<TailLoad> tail_loads;
    std::vector<EventRead> event_reads;
    std::vector<MetadataAccess> metadata_accesses;
    std::map<std::uint64_t, std::uint64_t> step_of_line;  // key: the line of the report
};

class VerdictMarks {
  public:
    // `history` is null if there are no rings.
    VerdictMarks(Timeline& timeline, const StepFacts& facts, const History* history)
        : timeline_(timeline), facts_(facts), history_(history) {}

    // To be called once, after the last step, which states the verdict and has the number `last`.
    void mark_all(const Finding& finding, std::uint64_t last);

  private:
    // The reads of an event, as far as the run has recorded them.
    struct Copy {
        std::uint64_t last_read = 0;    // 0: none
        std::uint64_t next_access = 0;  // the access to the buffers of the CPU after it; 0: none
    };

    void mark(std::uint64_t step, std::string why);
    bool mark_moves();
    const StepFacts::Operation* publication_of(std::uint32_t cpu, std::uint64_t sequence) const;
    std::uint64_t record_of(const Finding& finding) const;
    void mark_lost(const Finding& finding);
    void mark_torn(const Finding& finding);
    void mark_missing(const Finding& finding);
    bool mark_dropped(const Finding& finding, std::uint64_t last_wait, std::uint64_t before);
    bool mark_lap(std::uint32_t cpu, std::uint64_t sequence, std::uint64_t next_record);
    void mark_last_access(const Finding& finding, std::uint64_t next_record);
    void mark_source(const Finding& finding, std::uint64_t record);
    void mark_load_instead(const Finding& finding, std::uint64_t record);
    void mark_end();
    void mark_leak(const Finding& finding);
    Copy copy_of(std::uint32_t cpu, std::uint64_t sequence, std::uint64_t record,
                 std::uint64_t read_as) const;
    Copy read_in_its_place(std::uint32_t cpu, std::uint64_t sequence, std::uint64_t record) const;
    bool overlaps(const StepFacts::EventRead& read, std::uint32_t cpu,
                  std::uint64_t sequence) const;
    bool mark_tail_load(std::uint32_t cpu, std::uint64_t sequence, std::uint64_t record,
                        std::uint64_t read_as);
    bool is_overwritten(std::uint32_t cpu, std::uint64_t sequence, std::uint64_t before) const;
    std::uint64_t last_delivered(std::uint32_t cpu, std::uint64_t before) const;
    void mark_record(const Finding& finding, std::uint64_t record);
    std::uint64_t last_where(const std::function<bool(const TimelineStep&)>& is_meant) const;
    std::uint64_t last_of(StepKind kind, std::optional<std::uint32_t> cpu,
                          std::string_view text) const;
    void mark_cause(const Finding& finding);
    void mark_loop(const Finding& finding);

    Timeline& timeline_;
    const StepFacts& facts_;
    const History* history_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_VERDICT_MARKS_H_
