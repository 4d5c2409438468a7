// SPDX-License-Identifier: MIT
//
// The oracle's own model of what was done to the testee: buffers, events, positions, generations,
// computed from the specification alone. The driver tells every operation in the order in which it
// was done. Knows no process, no memory and no core; the driver compares its figures with the
// producer's memory (a difference is an error of the suite, never a verdict on the testee).
//
// Time is the length of the report. Before each operation the driver reads the size of the report
// file and gives it to set_report_bytes(): a record that ends at or before it was written before
// that operation. What lies behind it may have been written before or after. A size that is too
// small is safe: it only excuses more.
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
    std::uint64_t overwritten = 0;  // events that 5.1.7 step 6 gave up for it
    bool published = false;         // false inside a batch (unless E8 made it publish)
};

// An event that has a sequence number. A dropped one has no place.
struct Event {
    std::uint64_t sequence = 0;
    std::uint64_t timestamp = 0;
    std::uint8_t origin = 0;
    std::string type;
    std::string extra_header;
    std::string payload;  // released when it has been overwritten long ago: see payload_kept
    bool payload_kept = true;
    std::uint64_t length = 0;
    std::uint64_t bytes = 0;
    bool dropped = false;
    bool published = false;
    std::uint64_t published_after =
        0;  // report bytes when it was published: a record before that is too early
    std::uint64_t published_operation = kNever;  // History::operations() behind that
    std::uint64_t owed_by =
        kNever;                   // report bytes of the first idle checkpoint that it survived to
    BufferIndex owed_buffer = 0;  // where it stood then
    Written in_flight = Written::whole;  // so much of it was in the ring until it was published

    // Of the payload. Most events of an exploration are overwritten and never asked for it.
    std::uint64_t digest() const;
    void release_payload();

  private:
    mutable std::optional<std::uint64_t> digest_;
};

// As it was emitted. The payload is empty where it is no longer kept.
EventSpec spec_of(const Event& event);

// An event's place in one buffer.
struct Placement {
    std::uint64_t sequence = 0;
    std::uint64_t position = 0;
    std::uint64_t bytes = 0;
    std::uint64_t overwritten_after = kNever;  // report bytes when the tail moved past it
};

struct GenerationValue {
    std::uint64_t value = 0;
    std::uint64_t from_operation = 0;
    std::uint64_t from_report_bytes = 0;
};

// The consumer was seen asleep: see History::checkpoint_idle.
struct Checkpoint {
    BufferIndex buffer = 0;
    std::uint64_t report_bytes = 0;
};

struct Buffer {
    std::uint32_t cpu = 0;
    std::uint64_t capacity = 0;
    std::uint64_t start_position = 0;
    std::uint64_t write_pos = 0;       // published
    std::uint64_t write_frontier = 0;  // with what a pending batch has written
    std::uint64_t tail_pos = 0;
    bool boot = false;
    bool retired = false;
    std::uint64_t retired_after = kNever;  // report bytes at the swap
    std::uint64_t retired_operation = kNever;
    BufferFault fault = BufferFault::none;
    std::string fault_detail;
    std::vector<GenerationValue> generations;  // oldest first; the last is the present one
    // Every event it ever held, in order of position; those before tail_index are overwritten.
    std::vector<Placement> placements;
    std::size_t tail_index = 0;
    std::size_t published_count = 0;  // placements up to here are published
    std::size_t owed_count = 0;       // placements up to here were looked at by a checkpoint
    // The futex counter moves by one for a publication whose need_wake was set, which only the
    // consumer knows.
    std::uint32_t futex_counter_lowest = 0;
    std::uint32_t futex_counter_highest = 0;
    // Of the testee:
    std::uint64_t attached_operation = kNever;  // first time that it got an fd
    std::uint64_t attached_after = kNever;      // report bytes then
    std::uint64_t draining_operation = kNever;  // proven to read events from it

    std::uint64_t generation() const { return generations.back().value; }
    bool attached() const { return attached_operation != kNever; }
};

// What the metadata page of a buffer must hold.
struct ExpectedMetadata {
    std::uint16_t cpu_id = 0;
    std::uint64_t capacity = 0;
    std::uint64_t generation = 0;
    std::uint64_t write_pos = 0;
    std::uint64_t tail_pos = 0;
    std::uint32_t futex_counter_lowest = 0;  // equal: determined. Distance is modulo 2^32.
    std::uint32_t futex_counter_highest = 0;
};

class History {
  public:
    // Settings that no producer can have (no CPU, a capacity that is no power of two) throw
    // std::invalid_argument; so does every call below for a CPU or buffer that does not exist. That
    // is a mistake of the driver.
    explicit History(const HistorySettings& settings);

    // The size of the report file just before the operation that follows. Smaller than before:
    // ignored.
    void set_report_bytes(std::uint64_t report_bytes);

    // --- The producer ---

    // One event (5.1.7). While a batch is pending on this CPU: an emission that interrupts it; it
    // appends behind what the batch has written and publishes all of it (E16).
    Emitted emit(std::uint32_t cpu, const EventSpec& spec, EmitStyle style = EmitStyle::kernel);

    // A sequence number that is used without an event (5.1.7 step 5; an NMI inside an emission,
    // E16). Returns it.
    std::uint64_t drop(std::uint32_t cpu);

    // The tail makes room for an event of so many bytes (5.1.7 step 6), which is told by emit()
    // when it is published (steps 7 and 8). Nothing else may be told of this CPU in between.
    // `written`: so much of the event is in the ring until then.
    void reserve(std::uint32_t cpu, std::uint64_t bytes, Written written = Written::whole);

    // The producer overwrites all of the buffer `laps` times, while the testee stands still: nobody
    // can have read what was there, and its content is not kept. What is emitted next is all that
    // there is. With two events each time; or, where `events` is not 0, with so many altogether, of
    // which nothing but their number is kept.
    void outrun(std::uint32_t cpu, std::uint64_t laps, std::uint64_t events = 0);

    // A batch: what is added is unpublished until the end, or until E8 makes the producer publish.
    // `written`: so much of what is unpublished after the last batch_add is in the ring until then.
    void batch_begin(std::uint32_t cpu, BatchWritten written = {});
    Emitted batch_add(std::uint32_t cpu, const EventSpec& spec,
                      EmitStyle style = EmitStyle::kernel);
    void batch_end(std::uint32_t cpu);

    // A new buffer for this CPU, which is returned; the old one is frozen and stays readable
    // (5.1.8.3, 5.1.8.4, E10). What a pending batch has written is published first.
    BufferIndex swap(std::uint32_t cpu, const SwapSpec& spec);

    // The boot hand-over of one CPU (5.1.2): a swap out of the boot buffer, to generation
    // `first_generation`.
    BufferIndex hand_over(std::uint32_t cpu, const SwapSpec& spec);

    // generation + 1, counter + 1, wake: of a retired buffer (E19), or of a live one whose producer
    // ends (E25).
    void nudge(BufferIndex buffer);

    // A wake without an event: the counter may have moved by one.
    void spurious_wake(BufferIndex buffer);

    // The driver wrote a fault into the buffer's static fields or its content. `detail` goes into
    // messages
    // ("capacity 65537").
    void set_fault(BufferIndex buffer, BufferFault fault, std::string_view detail);

    // From now on nothing that this CPU delivers or does not deliver is judged, and a refusal is
    // right (level robust).
    void tolerate(std::uint32_t cpu);

    // --- The testee ---

    // It gets an fd of this buffer (or: of the present buffer of every CPU); told before its call
    // returns. From here on it may read it.
    void note_attached(BufferIndex buffer);
    void note_attached_all();

    // It is proven to be in the drain loop of this buffer (it reads events there, not only the
    // metadata). From a delivered event and from an idle checkpoint this follows by itself.
    void note_draining(BufferIndex buffer);

    // It was seen asleep on this buffer, with everything written, and `report_bytes` was read then.
    // To be called only where a correct consumer cannot owe anything: its wait began (or found its
    // counter) after the last publication and swap of this CPU that is told here, no wake is on its
    // way to it, none of its threads is held by the driver. A wait with a time limit counts only if
    // it began after the last publication. All that survives here is owed in the report by now.
    void checkpoint_idle(std::uint32_t cpu, BufferIndex buffer, std::uint64_t report_bytes);

    // --- What is so ---

    std::uint32_t cpus() const { return static_cast<std::uint32_t>(lanes_.size()); }
    std::uint64_t report_bytes() const { return log_.report_bytes; }
    std::uint64_t operations() const { return operations_; }

    BufferIndex present_buffer(std::uint32_t cpu) const;
    // All buffers of this CPU, oldest first.
    const std::vector<BufferIndex>& buffers_of(std::uint32_t cpu) const;
    const Buffer& buffer(BufferIndex buffer) const;
    std::size_t buffer_count() const { return buffers_.size(); }

    // nullptr: this sequence number was never used.
    const Event* find(std::uint32_t cpu, std::uint64_t sequence) const;
    // In order of sequence, without gaps.
    const std::vector<Event>& events_of(std::uint32_t cpu) const;
    // nullptr: this event was never in that buffer.
    const Placement* find_placement(BufferIndex buffer, std::uint64_t sequence) const;
    // In the order in which they were told.
    const std::vector<Checkpoint>& checkpoints_of(std::uint32_t cpu) const;
    bool tolerated(std::uint32_t cpu) const;
    bool batch_pending(std::uint32_t cpu) const;

    ExpectedMetadata expected_metadata(BufferIndex buffer) const;
    // The bytes of a surviving event. Throws std::invalid_argument if its payload is no longer
    // kept.
    std::string expected_bytes(BufferIndex buffer, const Placement& placement) const;
    // Compares a buffer's data region (at least `capacity` bytes, the first mapping) with every
    // surviving event. An empty string, or what differs first.
    std::string compare_data(BufferIndex buffer, std::span<const std::uint8_t> data) const;

    // Payloads of overwritten events are kept up to this many bytes, to say what a torn event was
    // mixed with.
    void set_kept_payload_bytes(std::uint64_t bytes) { log_.kept_payload_bytes = bytes; }
    // Payload bytes in memory: those, and all that the present buffers hold.
    std::uint64_t payload_bytes_in_memory() const { return kept_payload_bytes_; }

    // What it was told so far: history_from() makes it again.
    const HistoryLog& log() const { return log_; }

  private:
    // Sequence numbers of events that are not kept: `count` of them, before events[index].
    struct NumbersAlone {
        std::size_t index = 0;
        std::uint64_t count = 0;
    };
    struct Lane {
        std::vector<Event> events;
        std::vector<NumbersAlone> numbers_alone;
        std::vector<BufferIndex> buffers;
        std::vector<Checkpoint> checkpoints;
        bool batch_pending = false;
        bool tolerated = false;
        // Of the reservation, or of the pending batch; events[in_flight_at] is the one that is
        // written in part.
        Written in_flight = Written::whole;
        std::size_t in_flight_at = 0;
        std::size_t released_count = 0;
    };

    Lane& lane(std::uint32_t cpu);
    const Lane& lane(std::uint32_t cpu) const;
    Buffer& mutable_buffer(BufferIndex buffer);
    std::uint64_t next_sequence(const Lane& lane) const;
    // The place in lane.events; nothing if there is none of that number.
    std::optional<std::size_t> index_of(const Lane& lane, std::uint64_t sequence) const;
    Event& event_at(Lane& lane, std::uint64_t sequence);
    Buffer& add_buffer(std::uint32_t cpu, std::uint64_t capacity, std::uint64_t generation);
    Emitted append(std::uint32_t cpu, const EventSpec& spec, EmitStyle style);
    void mark_draining(BufferIndex buffer);
    std::uint64_t make_room(Lane& lane, Buffer& buffer, std::uint64_t bytes);
    void publish(Lane& lane, Buffer& buffer);
    void publish_in_flight(Lane& lane, Buffer& buffer);
    BufferIndex replace(std::uint32_t cpu, const SwapSpec& spec, std::uint64_t new_generation);
    void copy_survivors(const Buffer& from, Buffer& to, const SwapSpec& spec);
    void release_payloads(Lane& lane);

    HistoryLog log_;
    std::vector<Lane> lanes_;
    std::deque<Buffer> buffers_;  // whoever looks at one may keep it while others come
    std::uint64_t operations_ = 0;
    std::uint64_t kept_payload_bytes_ = 0;
};

// Whether the contract demands, allows or forbids a refusal for it.
bool must_refuse(BufferFault fault);
bool may_refuse(BufferFault fault);

// The history to which exactly this was told. Throws std::invalid_argument, with the number of the
// operation, where no driver can have told it; so does a log that is not complete, or whose making
// would take more work, or more memory for payloads, than any run.
inline constexpr std::uint64_t kMaximumPayloadBytesInMemory = std::uint64_t{1} << 30;
History history_from(const HistoryLog& log,
                     std::uint64_t most_payload_bytes_in_memory = kMaximumPayloadBytesInMemory);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_ORACLE_HISTORY_H_
