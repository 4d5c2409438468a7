// SPDX-License-Identifier: MIT
//
// Describes the operations of the producer as steps of a log, and the changes that the suite makes
// to buffers. The rings report both. Knows no testee, changes nothing, and judges nothing.
#ifndef KMES_CONFORMANCE_STAGE_PRODUCER_STEPS_H_
#define KMES_CONFORMANCE_STAGE_PRODUCER_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "conformance/oracle/history.h"
#include "conformance/stage/step_log.h"

namespace kmes::conformance {

class ProducerSteps {
  public:
    // The log outlives this object.
    explicit ProducerSteps(StepLog& log) : log_(log) {}
    ProducerSteps(const ProducerSteps&) = delete;
    ProducerSteps& operator=(const ProducerSteps&) = delete;

    // -- Operations: begin() precedes each operation on a CPU; woke() is called during it --
    void begin(std::uint32_t cpu);
    void woke(std::uint64_t threads);
    void emitted(std::uint32_t cpu, const Emitted& emitted);
    void batched(std::uint32_t cpu, const std::vector<Emitted>& emitted);
    void began_batch(std::uint32_t cpu, const std::vector<Emitted>& emitted, Written written);
    void ended_batch(std::uint32_t cpu, const std::vector<Emitted>& emitted);
    void reserved(std::uint32_t cpu, std::uint64_t bytes, Written written);
    void outran(std::uint32_t cpu, std::uint64_t bytes, std::uint64_t events);
    void committed(std::uint32_t cpu, const Emitted& emitted);
    void not_counted_yet(std::uint32_t cpu);
    void counted_late(std::uint32_t cpu, std::uint64_t threads);
    void swapped(std::uint32_t cpu, BufferIndex from, BufferIndex to);
    void nudged(BufferIndex buffer);
    void woken_without_event(std::uint32_t cpu, std::uint64_t threads);

    // -- Actions of the suite --
    // The suite has written bytes of the metadata page or of the data, without the producer.
    // `place` is an offset in the page, or a position in the data.
    void planted(BufferIndex buffer, bool is_data, std::uint64_t place,
                 std::span<const std::uint8_t> bytes);
    // need_wake of this buffer was changed by an access that has no step of its own. `text` is the
    // step.
    void flag_put(BufferIndex buffer, const std::string& text);
    // The operations between begin_move() and end_move() are an action before a chosen access, and
    // count as a cause of the verdict. `text` describes the action.
    void begin_move(const std::string& text);
    void end_move() { in_move_ = false; }

  private:
    StepFacts::Operation& add_operation(std::uint32_t cpu, std::string text, std::string clause,
                                        std::uint64_t sequence);
    std::string tail_text(StepFacts::Operation& operation) const;
    std::string wake_text(std::uint32_t cpu) const;

    StepLog& log_;
    std::optional<std::uint64_t> woken_;  // threads that the current operation has woken
    BufferIndex operated_buffer_ = 0;
    std::size_t tail_index_before_ = 0;
    bool in_move_ = false;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_PRODUCER_STEPS_H_
