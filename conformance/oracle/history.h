// SPDX-License-Identifier: MIT
//
// The oracle's own model of the producer: buffers, events, positions, generations, computed from
// the specification alone. The driver records every operation in the order in which it happened.
// Knows no process, no memory and no core. The driver compares its values with the producer's
// memory: a difference is an error of the suite, never a verdict on the testee.
//
// Time is the length of the report. Before each operation the driver reads the size of the report
// file and passes it to set_report_bytes(). A record that ends at or before this size was written
// before the operation. Later records may have been written before or after it. A size that is too
// small is safe, because it only excuses more.
#ifndef KMES_CONFORMANCE_ORACLE_HISTORY_H_
#define KMES_CONFORMANCE_ORACLE_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/history_log.h"
#include "conformance/model/operations.h"
#include "conformance/oracle/event.h"

namespace kmes::conformance {

enum class EmitOutcome { written, dropped, refused };

struct Emitted {
    EmitOutcome outcome = EmitOutcome::written;
    std::uint64_t sequence = 0;     // 0 if refused
    std::uint64_t position = 0;     // written only
    std::uint64_t bytes = 0;        // header and payload
    std::uint64_t overwritten = 0;  // the number of events that 5.1.7 step 6 gave up for it
    bool published = false;         // false inside a batch (unless E8 made it publish)
};

// An event with a sequence number. A dropped event has no position.
struct Event {
    std::uint64_t sequence = 0;
    std::uint64_t timestamp = 0;
    std::uint8_t origin = 0;
    std::string type;
    std::string extra_header;
    std::string payload;  // freed when it was overwritten long ago: see payload_kept
    bool payload_kept = true;
    std::uint64_t length = 0;
    std::uint64_t bytes = 0;
    bool dropped = false;
    bool published = false;
    // Report bytes at its publication: an earlier record is too early.
    std::uint64_t published_after = 0;
    std::uint64_t published_operation = kNever;  // History::operations() after the publication
    // Report bytes of the first idle checkpoint at which it survived.
    std::uint64_t owed_by = kNever;
    BufferIndex owed_buffer = 0;         // its buffer at that checkpoint
    Written in_flight = Written::whole;  // how much of it was in the ring before its publication

    // The digest of the payload. Computed on demand: most events of an exploration are never
    // delivered.
    std::uint64_t digest() const;
    void release_payload();

  private:
    mutable std::optional<std::uint64_t> digest_;
};

// The event as it was emitted. The payload is empty if it is no longer kept.
EventSpec spec_of(const Event& event);

// An event's place in one buffer.
struct Placement {
    std::uint64_t sequence = 0;
    std::uint64_t position = 0;
    std::uint64_t bytes = 0;
    std::uint64_t overwritten_after = kNever;  // report bytes when the tail passed it
};

struct GenerationValue {
    std::uint64_t value = 0;
    std::uint64_t from_operation = 0;
    std::uint64_t from_report_bytes = 0;
};

// The driver saw the consumer asleep: see History::checkpoint_idle.
struct Checkpoint {
    BufferIndex buffer = 0;
    std::uint64_t report_bytes = 0;
};

struct Buffer {
    std::uint32_t cpu = 0;
    std::uint64_t capacity = 0;
    std::uint64_t start_position = 0;
    std::uint64_t write_pos = 0;       // published
    std::uint64_t write_frontier = 0;  // including the bytes of a pending batch
    std::uint64_t tail_pos = 0;
    bool boot = false;
    bool retired = false;
    std::uint64_t retired_after = kNever;  // report bytes at the swap
    std::uint64_t retired_operation = kNever;
    BufferFault fault = BufferFault::none;
    std::string fault_detail;
    std::vector<GenerationValue> generations;  // oldest first; the last is the current one
    // Every event that was ever in it, by position. Those before tail_index are overwritten.
    std::vector<Placement> placements;
    std::size_t tail_index = 0;
    std::size_t published_count = 0;  // placements before this index are published
    std::size_t owed_count = 0;       // a checkpoint has processed the placements before this index
    // The futex counter advances for a publication whose need_wake was set. Only the consumer knows
    // whether it was, so the model keeps bounds.
    std::uint32_t futex_counter_lowest = 0;
    std::uint32_t futex_counter_highest = 0;
    // About the testee:
    std::uint64_t attached_operation = kNever;  // the first time that the testee got an fd
    std::uint64_t attached_after = kNever;      // report bytes at that time
    std::uint64_t draining_operation = kNever;  // the testee is proven to read events from it

    std::uint64_t generation() const { return generations.back().value; }
    bool attached() const { return attached_operation != kNever; }
};

// The expected content of a buffer's metadata page.
struct ExpectedMetadata {
    std::uint16_t cpu_id = 0;
    std::uint64_t capacity = 0;
    std::uint64_t generation = 0;
    std::uint64_t write_pos = 0;
    std::uint64_t tail_pos = 0;
    // If both are equal, the value is known; distance is modulo 2^32.
    std::uint32_t futex_counter_lowest = 0;
    std::uint32_t futex_counter_highest = 0;
};

class History {
  public:
    // Throws std::invalid_argument for settings that no producer can have (no CPU, a capacity that
    // is no power of two). Every call below throws it for a CPU or buffer that does not exist. Both
    // are mistakes of the driver.
    explicit History(const HistorySettings& settings);

    // The size of the report file just before the next operation. Ignored if smaller than before.
    void set_report_bytes(std::uint64_t report_bytes);

    // --- The producer ---

    // One event (5.1.7). While a batch is pending on this CPU, it is an emission that interrupts
    // the batch. It appends after the events of the batch, and publishes all of them (E16).
    Emitted emit(std::uint32_t cpu, const EventSpec& spec, EmitStyle style = EmitStyle::kernel);
    // As emit, and takes the bytes of `spec` if the event is written. Otherwise `spec` stays as it
    // is.
    Emitted emit_taking(std::uint32_t cpu, EventSpec& spec, EmitStyle style);

    // Uses a sequence number without an event (5.1.7 step 5; an NMI inside an emission, E16).
    // Returns the number.
    std::uint64_t drop(std::uint32_t cpu);

    // The tail makes room for an event of `bytes` bytes (5.1.7 step 6). emit() publishes the event
    // later (steps 7 and 8). In between, no other operation may be recorded for this CPU.
    // `written`: how much of the event is in the ring until then.
    void reserve(std::uint32_t cpu, std::uint64_t bytes, Written written = Written::whole);

    // The producer overwrites the whole buffer `laps` times while the testee is stopped. No
    // consumer can have read the overwritten events, so their content is not kept. A lap has two
    // events. If `events` is not 0, all laps together have that many events, of which only the
    // number is kept.
    void outrun(std::uint32_t cpu, std::uint64_t laps, std::uint64_t events = 0);

    // A batch: its events are unpublished until batch_end, or until E8 makes the producer publish.
    // `written`: how much of the unpublished events is in the ring after the last batch_add.
    void batch_begin(std::uint32_t cpu, BatchWritten written = {});
    Emitted batch_add(std::uint32_t cpu, const EventSpec& spec,
                      EmitStyle style = EmitStyle::kernel);
    void batch_end(std::uint32_t cpu);

    // Replaces the buffer of this CPU and returns the new one. The old buffer is frozen and stays
    // readable (5.1.8.3, 5.1.8.4, E10). The events of a pending batch are published first.
    BufferIndex swap(std::uint32_t cpu, const SwapSpec& spec);

    // The boot hand-over of one CPU (5.1.2): a swap from the boot buffer to generation
    // `first_generation`.
    BufferIndex hand_over(std::uint32_t cpu, const SwapSpec& spec);

    // Increments generation and counter, and wakes. For a retired buffer (E19), or a live one whose
    // producer ends (E25).
    void nudge(BufferIndex buffer);

    // A wake without an event: the counter may have advanced by one.
    void spurious_wake(BufferIndex buffer);

    // The driver wrote a fault into the buffer's static fields or its content. Messages contain
    // `detail` ("capacity 65537").
    void set_fault(BufferIndex buffer, BufferFault fault, std::string_view detail);

    // From now on deliveries of this CPU are not judged, and a refusal is correct (level robust).
    void tolerate(std::uint32_t cpu);

    // --- The testee ---

    // The testee gets an fd of this buffer, or of the current buffer of every CPU. Call it before
    // kmes_attach returns. From then on the testee may read the buffer.
    void note_attached(BufferIndex buffer);
    void note_attached_all();

    // The testee is proven to read events (and not only metadata) from this buffer. A delivered
    // event and an idle checkpoint imply this.
    void note_draining(BufferIndex buffer);

    // The testee was seen asleep on this buffer, and the size of the report, with everything
    // written, was `report_bytes`. Call it only if a correct consumer owes nothing:
    // - The wait began, or found its counter, after the last recorded publication and swap of this
    //   CPU. A wait with a timeout must have begun after the last publication.
    // - No wake for the consumer is pending, and the driver holds none of its threads.
    //
    // Every event that survives here must be in the report by now.
    void checkpoint_idle(std::uint32_t cpu, BufferIndex buffer, std::uint64_t report_bytes);

    // --- Queries ---

    std::uint32_t cpus() const { return static_cast<std::uint32_t>(cpu_states_.size()); }
    std::uint64_t report_bytes() const { return log_.report_bytes; }
    std::uint64_t operations() const { return operations_; }

    BufferIndex current_buffer(std::uint32_t cpu) const;
    // All buffers of this CPU, oldest first.
    const std::vector<BufferIndex>& buffers_of(std::uint32_t cpu) const;
    const Buffer& buffer(BufferIndex buffer) const;
    std::size_t buffer_count() const { return buffers_.size(); }

    // Returns nullptr if this sequence number was never used.
    const Event* find(std::uint32_t cpu, std::uint64_t sequence) const;
    // Its index in events_of(); nothing if this sequence number was never used.
    std::optional<std::size_t> index_of(std::uint32_t cpu, std::uint64_t sequence) const;
    // In the order of the sequence numbers, without gaps.
    const std::deque<Event>& events_of(std::uint32_t cpu) const;
    // Returns nullptr if this event was never in that buffer.
    const Placement* find_placement(BufferIndex buffer, std::uint64_t sequence) const;
    // In the order in which they were recorded.
    const std::vector<Checkpoint>& checkpoints_of(std::uint32_t cpu) const;
    bool tolerated(std::uint32_t cpu) const;
    bool batch_pending(std::uint32_t cpu) const;

    ExpectedMetadata expected_metadata(BufferIndex buffer) const;
    // Returns the bytes of a surviving event. Throws std::invalid_argument if its payload is no
    // longer kept.
    std::string expected_bytes(BufferIndex buffer, const Placement& placement) const;
    // Compares a buffer's data region (at least `capacity` bytes, the first mapping) with every
    // surviving event. Returns the first difference, or an empty string.
    std::string compare_data(BufferIndex buffer, std::span<const std::uint8_t> data) const;

    // The number of payload bytes of overwritten events to keep. They show which event's bytes are
    // mixed into a torn event.
    void set_kept_payload_bytes(std::uint64_t bytes) { log_.kept_payload_bytes = bytes; }
    // Payload bytes in memory: these, and all that the current buffers hold.
    std::uint64_t payload_bytes_in_memory() const { return kept_payload_bytes_; }

    // All operations so far. history_from() makes an equal History from them.
    const HistoryLog& log() const { return log_; }

  private:
    // Sequence numbers without kept events: `count` numbers before events[index].
    struct NumbersAlone {
        std::size_t index = 0;
        std::uint64_t count = 0;
    };
    struct CpuState {
        std::deque<Event> events;
        std::vector<NumbersAlone> numbers_alone;
        std::vector<BufferIndex> buffers;
        std::vector<Checkpoint> checkpoints;
        bool batch_pending = false;
        bool tolerated = false;
        // The part of the reservation or of the pending batch that is in the ring.
        // events[in_flight_at] is the partly written event.
        Written in_flight = Written::whole;
        std::size_t in_flight_at = 0;
        std::size_t released_count = 0;
    };

    CpuState& cpu_state(std::uint32_t cpu);
    const CpuState& cpu_state(std::uint32_t cpu) const;
    Buffer& mutable_buffer(BufferIndex buffer);
    std::uint64_t next_sequence(const CpuState& cpu_state) const;
    // Returns the index in cpu_state.events; nothing if no event has that number.
    std::optional<std::size_t> index_in(const CpuState& cpu_state, std::uint64_t sequence) const;
    Event& event_at(CpuState& cpu_state, std::uint64_t sequence);
    Buffer& add_buffer(std::uint32_t cpu, std::uint64_t capacity, std::uint64_t generation);
    void log_event(const LoggedOperation& operation, const EventSpec& spec);
    Emitted append_taking(std::uint32_t cpu, EventSpec& spec, EmitStyle style);
    void mark_draining(BufferIndex buffer);
    std::uint64_t make_room(CpuState& cpu_state, Buffer& buffer, std::uint64_t bytes);
    void publish(CpuState& cpu_state, Buffer& buffer);
    void publish_in_flight(CpuState& cpu_state, Buffer& buffer);
    BufferIndex replace(std::uint32_t cpu, const SwapSpec& spec, std::uint64_t new_generation);
    void copy_survivors(const Buffer& from, Buffer& to, const SwapSpec& spec);
    void release_payloads(CpuState& cpu_state);

    HistoryLog log_;
    std::vector<CpuState> cpu_states_;
    std::deque<Buffer> buffers_;  // a deque: references stay valid when buffers are added
    std::uint64_t operations_ = 0;
    std::uint64_t kept_payload_bytes_ = 0;
};

// Whether the contract demands, permits or forbids a refusal because of this fault.
bool must_refuse(BufferFault fault);
bool may_refuse(BufferFault fault);

// Makes the history that has recorded exactly this log. Throws std::invalid_argument, with the
// number of the operation, for a log that no driver can have made. It also throws for a log that is
// incomplete, or that needs more work or payload memory than any run.
inline constexpr std::uint64_t kMaximumPayloadBytesInMemory = std::uint64_t{1} << 30;
History history_from(const HistoryLog& log,
                     std::uint64_t most_payload_bytes_in_memory = kMaximumPayloadBytesInMemory);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_ORACLE_HISTORY_H_
