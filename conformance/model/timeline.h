// SPDX-License-Identifier: MIT
//
// What happened in a run, step by step, on both sides: for the picture of a failure and for its
// file. Plain data; the stage fills it. Knows no way to print.
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
    attach,      // kmes_attach was served
    map,         // a buffer was mapped
    access,      // a load or store of the testee in a buffer, where the run looks at them
    wait_begin,  // enters a futex wait
    wait_end,    // leaves it
    record,      // wrote a record
    scheduler,   // a thread is held or let go, a guard is set: the suite's own doing
    end,         // exit, crash, or the verdict
};

// In the order of StepKind, as reports and failure files have them.
inline constexpr std::array<std::string_view, 9> kStepKindNames = {
    "producer", "attach", "map", "access", "wait_begin", "wait_end", "record", "scheduler", "end"};
static_assert(static_cast<std::size_t>(StepKind::end) + 1 == kStepKindNames.size());

constexpr std::string_view step_kind_name(StepKind kind) {
    return kStepKindNames[static_cast<std::size_t>(kind)];
}

// The producer's side of one buffer, as it is after a step.
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
    std::int32_t thread = 0;           // of the testee, counted from 1 in order of appearance; 0:
                                       // the producer's column
    std::optional<std::uint32_t> cpu;  // whose buffer, where it is about one
    std::string text;                  // one line in plain words: "reads write_pos: 1480"
    std::string clause;                // "5.1.8.1 step 1"; empty: none
    std::string instruction;           // "mov rax, [rdi+0x40]"; empty: not known
    std::string source;                // "consumer.c:120", else "module+0x1234"; empty: not known
    std::uint64_t sequence = 0;        // of the event that it is about; 0: none
    std::optional<BufferState> state;  // of that CPU's present buffer, after a step that changed it
    bool decisive = false;             // the step that decided the outcome
    std::string why;                   // of a decisive step: how, in one sentence

    bool operator==(const TimelineStep&) const = default;
};

// The steps of a run: all of the first ones and of the last ones, so that a long run stays small.
class Timeline {
  public:
    static constexpr std::size_t kFirst = 200;
    static constexpr std::size_t kLast = 3000;

    void add(TimelineStep step) {
        if (steps_.size() >= kFirst + 2 * kLast) drop_middle();
        steps_.push_back(std::move(step));
    }
    // For the step that was added last, where what came of it is known later. Not before any add.
    TimelineStep& last() { return steps_.back(); }
    const std::vector<TimelineStep>& steps() const { return steps_; }
    // How many steps are left out, behind the first kFirst ones. 0: none.
    std::uint64_t left_out() const { return left_out_; }
    bool empty() const { return steps_.empty(); }
    // As it was written to a file.
    static Timeline from(std::vector<TimelineStep> steps, std::uint64_t left_out) {
        Timeline timeline;
        timeline.steps_ = std::move(steps);
        timeline.left_out_ = left_out;
        return timeline;
    }
    // Every step has a number, counted from 1, that stays when others are left out.
    std::uint64_t number(std::size_t index) const {
        return index + 1 + (index < kFirst ? 0 : left_out_);
    }
    std::uint64_t last_number() const { return steps_.size() + left_out_; }
    // nullptr: left out, or no such step.
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
