// SPDX-License-Identifier: MIT
//
// Emissions of the producer (5.1.7): whole, or in two halves between which the testee runs. The
// first half reserves an event, writes a batch, or publishes an event without step 9. The second
// half completes it. Each half is applied to the history and to the backend, and their results are
// compared: a difference throws SuiteError. Knows no swap and no testee.
#ifndef KMES_CONFORMANCE_STAGE_EMISSIONS_H_
#define KMES_CONFORMANCE_STAGE_EMISSIONS_H_

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "conformance/oracle/history.h"
#include "conformance/stage/event_maker.h"
#include "conformance/stage/futex_counters.h"
#include "conformance/stage/ring_backend.h"
#include "conformance/stage/rings_observer.h"
#include "conformance/stage/unwritten_bytes.h"

namespace kmes::conformance {

class ProducerSteps;

class Emissions {
  public:
    // All arguments outlive this object. The history already has its CPUs.
    Emissions(History& history, RingBackend& backend, EventMaker& events, FutexCounters& counters,
              ProducerSteps& steps);

    // -- Whole emissions. The stage's clock sets the timestamp of a spec that has none --
    Emitted emit(std::uint32_t cpu, EventSpec spec, EmitStyle style);
    void batch(std::uint32_t cpu, std::span<const EventSpec> specs);

    // -- In two halves --
    // Writes a batch that end_batch() publishes; if room runs out, the producer publishes a part
    // earlier (E8). Until the publication the ring contains only the bytes that `written` names. In
    // between, the caller does nothing else on this CPU. end_batch() does nothing if the observer
    // has ended the batch (RingsObserver::before_operation).
    void begin_batch(std::uint32_t cpu, std::span<const EventSpec> specs, BatchWritten written);
    void end_batch(std::uint32_t cpu);
    bool is_batch_pending(std::uint32_t cpu) const { return history_.batch_pending(cpu); }
    // Makes room for an event that commit() publishes. A consumer on another processor sees this
    // state during an emission (5.1.7 steps 6 to 8). Until the publication the ring contains only
    // the bytes that `written` names. The history records the reservation at once. In between, the
    // caller emits nothing else on this CPU. commit() does nothing if the observer has published
    // the event.
    void reserve(std::uint32_t cpu, EventSpec spec, Written written);
    void commit(std::uint32_t cpu);
    bool is_reserved(std::uint32_t cpu) const { return reserved_.contains(cpu); }
    // Publishes an event and delays step 9 of 5.1.7 until count_late(). The testee must be stopped.
    // Returns false if need_wake was 0, so that there is nothing to count.
    bool emit_and_count_late(std::uint32_t cpu, EventSpec spec);
    void count_late(std::uint32_t cpu);

    // -- For every operation of the producer --
    // Sets the observer that begin_operation() calls.
    void set_observer(RingsObserver& observer) { observer_ = &observer; }
    // Precedes each operation on this CPU. Calls RingsObserver::before_operation, and publishes an
    // event that this call has reserved on the CPU.
    void begin_operation(std::uint32_t cpu);
    // Writes the missing bytes of the events in flight. Precedes each publication.
    void write_rest(std::uint32_t cpu) { unwritten_.at(cpu).write_rest(backend_); }
    // True while bytes of events in flight are missing in the ring.
    bool has_unwritten_bytes(std::uint32_t cpu) const {
        return unwritten_.at(cpu).is_missing_any();
    }

  private:
    void stamp(EventSpec& spec);
    void compare(const Emitted& expected, int result, std::uint32_t cpu) const;
    std::vector<Emitted> add_batch(std::uint32_t cpu, std::span<const EventSpec> specs,
                                   BatchWritten written);
    void publish_batch(std::uint32_t cpu, const std::vector<Emitted>& emitted);
    void save_old(std::uint32_t cpu, const EventSpec& spec);
    void remove_unwritten(std::uint32_t cpu, BatchWritten written);

    History& history_;
    RingBackend& backend_;
    EventMaker& events_;
    FutexCounters& counters_;
    ProducerSteps& steps_;
    RingsObserver* observer_ = nullptr;
    std::map<std::uint32_t, EventSpec> reserved_;            // by CPU
    std::map<std::uint32_t, std::vector<Emitted>> pending_;  // by CPU: the events of a batch
    std::vector<UnwrittenBytes> unwritten_;  // by CPU: missing bytes of events in flight
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_EMISSIONS_H_
