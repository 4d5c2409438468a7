// SPDX-License-Identifier: MIT
//
// The producer's side of a stage: real buffers in shared memory, which a backend writes
// (ring_backend.h), and the oracle's history of the same operations. Every operation is applied to
// both. verify() compares the memory with the history. Therefore a mistake of the core is an error
// of the suite, and never a verdict on a testee. Knows no testee process.
#ifndef KMES_CONFORMANCE_STAGE_RINGS_H_
#define KMES_CONFORMANCE_STAGE_RINGS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "conformance/oracle/history.h"
#include "conformance/stage/emissions.h"
#include "conformance/stage/event_maker.h"
#include "conformance/stage/forged_bytes.h"
#include "conformance/stage/futex_counters.h"
#include "conformance/stage/ring_backend.h"
#include "conformance/stage/rings_observer.h"

namespace kmes::conformance {

class ProducerSteps;
class Recorder;

struct RingsSetup {
    std::uint32_t cpus = 1;
    std::uint64_t capacity_bytes = 65536;
    std::vector<std::uint64_t> start_positions;  // one for each CPU; missing values are 0
    // With a value, the run begins in the boot phase: kmes_attach fails until hand_over() (EAGAIN
    // in form A).
    std::optional<std::uint64_t> boot_capacity_bytes;
    std::uint64_t first_sequence = 1;       // more than 1 after a restart of the producer (E25)
    std::uint64_t first_generation = 1;     // more than 1 if buffers were replaced before
    std::uint32_t first_futex_counter = 0;  // of the first buffers; near the maximum it wraps soon
    std::uint64_t least_file_bytes = 0;     // the least file size of each buffer
};

class Rings {
  public:
    // The default backend is the core in this process. The rings report every operation to `steps`,
    // which outlives them. `steps` may be null.
    explicit Rings(const RingsSetup& setup, std::unique_ptr<RingBackend> backend = nullptr,
                   ProducerSteps* steps = nullptr);
    ~Rings();
    Rings(const Rings&) = delete;
    Rings& operator=(const Rings&) = delete;

    History& history() { return history_; }
    const History& history() const { return history_; }
    std::uint32_t cpus() const { return history_.cpus(); }
    std::uint64_t capacity_bytes() const { return capacity_bytes_; }

    // Sets the observer, once, and calls its on_buffer() for each existing buffer. The observer
    // outlives the last operation.
    void set_observer(RingsObserver& observer);

    // -- The parts --
    EventMaker& events() { return events_; }
    ForgedBytes& forged() { return forged_; }
    const ForgedBytes& forged() const { return forged_; }
    const FutexCounters& counters() const { return counters_; }
    // Also emits in two halves.
    Emissions& emissions() { return emissions_; }
    const Emissions& emissions() const { return emissions_; }

    // -- The producer. The stage's clock sets the timestamp of a spec that has none --
    Emitted emit(std::uint32_t cpu, EventSpec spec, EmitStyle style = EmitStyle::kernel);
    // Overwrites the whole buffer and moves write_pos by `bytes`, a multiple of the capacity and at
    // least twice the capacity. The testee must be stopped. Only the last lap is written. Each
    // earlier lap counts as two events; if `events` is not 0, the earlier laps together count as
    // that many.
    void outrun(std::uint32_t cpu, std::uint64_t bytes, std::uint64_t events = 0);
    // Emits `count` events of `event_bytes` bytes.
    void emit_many(std::uint32_t cpu, std::uint64_t count, std::uint64_t event_bytes);
    // Emits events of exactly `bytes` bytes altogether, none larger than a quarter of the capacity.
    // Emits nothing if `bytes` is less than the size of the least event (30 in form A).
    void emit_bytes(std::uint32_t cpu, std::uint64_t bytes);
    // Emits an event over 50 % of the capacity: only its sequence number is used (5.1.7 step 5).
    void drop(std::uint32_t cpu);
    void batch(std::uint32_t cpu, std::span<const EventSpec> specs);
    // Replaces the current buffer of a CPU.
    void swap(std::uint32_t cpu, const SwapSpec& spec);
    // Replaces the boot buffer of a CPU.
    void hand_over(std::uint32_t cpu, const SwapSpec& spec);
    // Replaces the current buffer by the published rule: if need_wake of the old buffer is 0,
    // futex_counter stays and no thread is woken (docs/layouts.md). The testee must be asleep.
    // Throws NotStageable if the backend is not the core in this process.
    void swap_as_published(std::uint32_t cpu, const SwapSpec& spec);
    // Nudges a retired buffer (E19).
    void nudge(BufferIndex buffer);
    // Issues a FUTEX_WAKE without an event: futex_counter stays. Returns how many threads it woke.
    std::uint64_t spurious_wake(std::uint32_t cpu);

    // -- State --
    const RingBackend& backend() const { return *backend_; }
    // Compares producer and history. Throws SuiteError if they differ.
    void verify() const;

  private:
    void add_buffer(BufferIndex expected);
    void move(std::uint32_t cpu, const SwapSpec& spec, BufferIndex expected);

    std::uint64_t capacity_bytes_;
    std::unique_ptr<Recorder> silent_;  // owns the steps if the caller passes none
    ProducerSteps& steps_;
    History history_;
    std::unique_ptr<RingBackend> backend_;
    RingsObserver* observer_ = nullptr;
    EventMaker events_;
    ForgedBytes forged_;
    FutexCounters counters_;
    Emissions emissions_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_RINGS_H_
