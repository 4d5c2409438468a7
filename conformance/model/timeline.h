// SPDX-License-Identifier: MIT
//
// The steps of a run, on both sides: for the trace of a failure and for its file. Plain data that
// the stage fills. Knows no way to print.
#ifndef KMES_CONFORMANCE_MODEL_TIMELINE_H_
#define KMES_CONFORMANCE_MODEL_TIMELINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kmes::conformance {

enum class StepKind {
    producer,    // an operation of the producer
    attach,      // kmes_attach has returned
    map,         // a buffer has been mapped
    access,      // a load or store of the testee in a buffer, if the run records them
    wait_begin,  // a thread enters a futex wait
    wait_end,    // a thread leaves it
    record,      // the testee has written a record
    scheduler,   // an action of the suite: it holds or resumes a thread, or sets a guard
    end,         // exit, crash, or the verdict
};

// In the order of StepKind. Reports and failure files contain these names.
inline constexpr std::array<std::string_view, 9> kStepKindNames = {
    "producer", "attach", "map", "access", "wait_begin", "wait_end", "record", "scheduler", "end"};
static_assert(static_cast<std::size_t>(StepKind::end) + 1 == kStepKindNames.size());

constexpr std::string_view step_kind_name(StepKind kind) {
    return kStepKindNames[static_cast<std::size_t>(kind)];
}

// The producer's fields of one buffer after a step.
struct BufferState {
    std::uint64_t buffer = 0;  // BufferIndex
    std::uint64_t write_pos = 0;
    std::uint64_t tail_pos = 0;
    std::uint64_t generation = 0;
    std::uint32_t futex_counter = 0;
    std::uint8_t need_wake = 0;
    bool retired = false;

    bool operator==(const BufferState&) const = default;
};

struct TimelineStep {
    StepKind kind = StepKind::producer;
    std::int32_t thread = 0;  // of the testee, from 1 in order of appearance; 0: the producer
    std::optional<std::uint32_t> cpu;  // the CPU of the buffer, if the step is about one
    std::string text;                  // one line in plain words: "reads write_pos: 1480"
    std::string clause;                // "5.1.8.1 step 1"; empty: none
    std::string instruction;           // "mov rax, [rdi+0x40]"; empty: not known
    std::string source;                // "consumer.c:120", else "module+0x1234"; empty: not known
    std::uint64_t sequence = 0;        // of the event that the step is about; 0: none
    std::optional<BufferState> state;  // of that CPU's current buffer, after a step that changed it
    bool decisive = false;             // this step decided the outcome
    std::string why;                   // of a decisive step: the reason in one sentence

    bool operator==(const TimelineStep&) const = default;
};

// The steps of a run. A long run keeps its first and its last steps, so that it stays small.
class Timeline {
  public:
    static constexpr std::size_t kFirst = 200;
    static constexpr std::size_t kLast = 3000;

    void add(TimelineStep step) {
        if (steps_.size() >= kFirst + 2 * kLast) drop_middle();
        steps_.push_back(std::move(step));
    }
    // The last step, whose outcome may become known only later. Before: at least one add.
    TimelineStep& last() { return steps_.back(); }
    const std::vector<TimelineStep>& steps() const { return steps_; }
    // The number of steps that are left out after the first kFirst; 0: none.
    std::uint64_t left_out() const { return left_out_; }
    bool empty() const { return steps_.empty(); }
    // Restores a timeline from a file.
    static Timeline from(std::vector<TimelineStep> steps, std::uint64_t left_out) {
        Timeline timeline;
        timeline.steps_ = std::move(steps);
        timeline.left_out_ = left_out;
        return timeline;
    }
    // Each step has a number from 1, which does not change when other steps are left out.
    std::uint64_t number(std::size_t index) const {
        return index + 1 + (index < kFirst ? 0 : left_out_);
    }
    std::uint64_t last_number() const { return steps_.size() + left_out_; }
    // Returns nullptr if the step is left out or does not exist.
    TimelineStep* find(std::uint64_t number) {
        if (number == 0 || number > last_number()) return nullptr;
        if (number > kFirst && number - kFirst <= left_out_) return nullptr;
        // A file may say that steps are left out although it has fewer than kFirst.
        const std::uint64_t index = number - 1 - (number <= kFirst ? 0 : left_out_);
        return index < steps_.size() ? &steps_[index] : nullptr;
    }

  private:
    void drop_middle() {
        steps_.erase(steps_.begin() + kFirst, steps_.begin() + kFirst + kLast);
        left_out_ += kLast;
    }

    std::vector<TimelineStep> steps_;
    std::uint64_t left_out_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_TIMELINE_H_
