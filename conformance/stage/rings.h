// SPDX-License-Identifier: MIT
//
// The producer's side of a stage: real buffers in shared memory, written by the core (where that
// runs is the backend's: ring_backend.h), and the oracle's history of the same operations. Every
// operation is told to both; verify() compares what stands in memory with what the history expects,
// so that a mistake of the core is an error of the suite and never a verdict on a testee. Knows no
// testee process.
#ifndef KMES_CONFORMANCE_STAGE_RINGS_H_
#define KMES_CONFORMANCE_STAGE_RINGS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "conformance/model/finding.h"
#include "conformance/oracle/history.h"
#include "conformance/stage/held_back.h"
#include "conformance/stage/ring_backend.h"

namespace kmes::conformance {

class Recorder;

struct RingsSetup {
    std::uint32_t cpus = 1;
    std::uint64_t capacity_bytes = 65536;
    std::vector<std::uint64_t> start_positions;  // one a CPU; what is missing is 0
    // With a value the run begins in the boot phase: attaching is answered EAGAIN until hand_over.
    std::optional<std::uint64_t> boot_capacity_bytes;
    std::uint64_t first_sequence = 1;       // E25: a producer that restarted goes on
    std::uint64_t first_generation = 1;     // more: of buffers that were replaced before
    std::uint32_t first_futex_counter = 0;  // of the first buffers: near the top it wraps soon
    std::uint64_t least_file_bytes = 0;     // the files of all buffers are as long as this at least
};

class Rings {
  public:
    // Without a backend the core in this process is it.
    explicit Rings(const RingsSetup& setup, std::unique_ptr<RingBackend> backend = nullptr);
    ~Rings();
    Rings(const Rings&) = delete;
    Rings& operator=(const Rings&) = delete;

    History& history() { return history_; }
    const History& history() const { return history_; }
    std::uint32_t cpus() const { return history_.cpus(); }
    std::uint64_t capacity_bytes() const { return capacity_bytes_; }

    // Called before each operation, so that the stage can read the report first. It may do other
    // operations; what it reserves on the CPU of this one is published before this one begins.
    void set_before_operation(std::function<void()> function);
    // Called when a buffer that consumers may attach to has been made, before anybody attaches.
    void set_on_buffer(std::function<void(BufferIndex)> function);
    // Is told every operation. Never null; outlives the rings.
    void set_recorder(Recorder* recorder) { recorder_ = recorder; }

    // -- The producer (timestamps: the stage's clock unless the spec has one) --
    Emitted emit(std::uint32_t cpu, EventSpec spec, EmitStyle style = EmitStyle::kernel);
    // While the testee stands still: all of the buffer is overwritten, until write_pos is `bytes`
    // further, a multiple of the capacity and at least two of them. Only the last lap is written.
    // By two events a lap; or, where `events` is not 0, by so many before the last lap.
    void outrun(std::uint32_t cpu, std::uint64_t bytes, std::uint64_t events = 0);
    // `count` events of `event_bytes` bytes.
    void emit_many(std::uint32_t cpu, std::uint64_t count, std::uint64_t event_bytes);
    // Events of exactly `bytes` bytes altogether, none larger than a quarter of the capacity. Fewer
    // than the least event has (30 in form A) are not written.
    void emit_bytes(std::uint32_t cpu, std::uint64_t bytes);
    // An event over 50 % of the capacity: its sequence number is used (5.1.7 step 5).
    void drop(std::uint32_t cpu);
    void batch(std::uint32_t cpu, std::span<const EventSpec> specs);
    // The same in two: it is published by end_batch only, where E8 does not make the producer
    // publish before. Until then so much as `written` says is in the ring. Nothing else may be done
    // on this CPU in between.
    // (In the middle of what set_before_operation calls, others may have ended it: that is no
    // mistake, and nothing is left to do.)
    void begin_batch(std::uint32_t cpu, std::span<const EventSpec> specs, BatchWritten written);
    void end_batch(std::uint32_t cpu);
    bool is_batch_pending(std::uint32_t cpu) const { return history_.batch_pending(cpu); }
    // An event that is reserved, with room made for it, and published by commit only: what a
    // consumer on another processor sees in the middle of an emission (5.1.7 steps 6 to 8). Until
    // then so much as `written` says is in the ring. The history learns of the room at once.
    // Nothing else may be emitted on this CPU in between. (As with a batch, others may have
    // published it by the time that commit comes to it.)
    void reserve(std::uint32_t cpu, EventSpec spec, Written written);
    void commit(std::uint32_t cpu);
    bool is_reserved(std::uint32_t cpu) const { return reserved_.contains(cpu); }
    // While the testee stands still: an event that is published, and the producer has not come to
    // step 9 of 5.1.7 before count_late. False: need_wake was 0, and there is nothing to count.
    bool emit_and_count_late(std::uint32_t cpu, EventSpec spec);
    void count_late(std::uint32_t cpu);
    void swap(std::uint32_t cpu, const SwapSpec& spec);
    void hand_over(std::uint32_t cpu, const SwapSpec& spec);
    void nudge(BufferIndex buffer);
    // A FUTEX_WAKE with nothing behind it: the counter stays.
    // Returns how many threads it woke.
    std::uint64_t spurious_wake(std::uint32_t cpu);

    // -- Malformed buffers: bytes of the metadata page, written behind the producer's back --
    void write_metadata(BufferIndex buffer, std::uint64_t offset,
                        std::span<const std::uint8_t> bytes);
    // Bytes of the data region, behind the producer's back; both halves show them (5.1.4).
    void write_data(BufferIndex buffer, std::uint64_t position,
                    std::span<const std::uint8_t> bytes);

    // -- Events --
    // An event of exactly `event_bytes` bytes, with a payload of pseudo-random bytes that no other
    // event of the run has. 29 + the type + extra_header_bytes at least. (Where the header of the
    // form is longer and `event_bytes` has no room for it, the event is as much longer. Where the
    // headers of the form do not grow, the payload has the extra bytes.)
    EventSpec make(std::uint64_t event_bytes, std::string type = "t",
                   std::uint64_t extra_header_bytes = 0);
    // The end event of the contract, without a payload.
    EventSpec make_end();
    void set_clock(std::uint64_t ns) { clock_ns_ = ns; }
    // From now on a spec's timestamp of 0 means 0, not the stage's clock.
    void take_timestamps_as_given() { timestamps_as_given_ = true; }
    std::uint64_t clock() const { return clock_ns_; }
    void set_seed(std::uint64_t seed) { random_ = seed; }
    std::uint64_t random();

    // -- Looking --
    const RingBackend& backend() const { return *backend_; }
    // As it stands in the page: between emit_and_count_late and count_late behind the producer's.
    std::uint32_t counter(BufferIndex buffer) const {
        const auto late = late_.find(buffer);
        return late == late_.end() ? backend_->state(buffer).futex_counter : late->second;
    }
    // The producer's own: between reserve and commit ahead of the history's.
    std::uint64_t tail(BufferIndex buffer) const { return backend_->state(buffer).tail; }
    std::uint8_t need_wake(BufferIndex buffer) const;
    // For a store of the testee that is held back and let go, and for what another consumer stores.
    // `told` says in the picture who did it: "the suite holds this store back".
    void put_need_wake(BufferIndex buffer, std::uint8_t value, const std::string& told);
    bool has_put_need_wake(BufferIndex buffer) const { return flags_put_.contains(buffer); }
    std::uint64_t wakes() const { return backend_->wakes(); }
    // Whether futex_counter has moved to `expected` with this event or a later one: a waiter that
    // expects that value has read it behind the event.
    bool is_counted_before(std::uint32_t cpu, std::uint64_t sequence, std::uint32_t expected) const;
    // What the testee has written to the metadata page where it may not. Nothing: right.
    std::optional<Finding> check_metadata(BufferIndex buffer) const;
    // Compares producer and history; throws SuiteError where they differ.
    void verify() const;

  private:
    void before_operation(std::uint32_t cpu);
    void compare(const Emitted& expected, int result, std::uint32_t cpu) const;
    void add_buffer(BufferIndex expected);
    void move(std::uint32_t cpu, const SwapSpec& spec, BufferIndex expected);
    void stamp(EventSpec& spec);
    std::vector<Emitted> add_batch(std::uint32_t cpu, std::span<const EventSpec> specs,
                                   BatchWritten written);
    void keep(std::uint32_t cpu, const EventSpec& spec);
    void hold(std::uint32_t cpu, BatchWritten written);
    void publish_batch(std::uint32_t cpu, const std::vector<Emitted>& emitted);
    void note_counter(std::uint32_t cpu, std::uint64_t sequence);
    void put_counter(BufferIndex buffer, std::uint32_t counter);

    std::uint64_t capacity_bytes_;
    std::uint32_t first_futex_counter_;
    History history_;
    std::unique_ptr<RingBackend> backend_;
    std::function<void()> before_operation_;
    std::unique_ptr<Recorder> silent_;  // where nobody wants to be told
    Recorder* recorder_;
    std::function<void(BufferIndex)> on_buffer_;
    // What a case has put into a page behind the producer's back: no fault of the testee.
    std::vector<std::vector<std::pair<std::uint64_t, std::vector<std::uint8_t>>>> planted_;
    std::uint64_t clock_ns_ = 1'700'000'000'000'000'000;
    std::uint64_t random_ = 1;
    // The last emission of a CPU that moved futex_counter.
    struct Counted {
        BufferIndex buffer = ~BufferIndex{0};
        std::uint32_t counter = 0;
        std::uint64_t sequence = 0;
    };
    std::vector<Counted> counted_;                           // by CPU
    std::map<std::uint32_t, EventSpec> reserved_;            // by CPU
    std::map<std::uint32_t, std::vector<Emitted>> pending_;  // of a batch, by CPU
    std::vector<HeldBack> held_back_;                        // by CPU: of what is in flight
    std::map<BufferIndex, std::uint32_t> late_;              // futex_counter, as it was before
    std::set<BufferIndex> flags_put_;                        // put_need_wake
    bool data_is_planted_ = false;
    bool timestamps_as_given_ = false;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_RINGS_H_
