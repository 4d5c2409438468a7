// SPDX-License-Identifier: MIT
//
// Writes down what happens on a stage, step by step, in plain words: the timeline that the picture
// of a failure is drawn from. It is told by the stage and by the rings, looks at the producer's
// side only, changes nothing, and judges nothing: at the end it is given the finding and marks the
// steps that decided it. Knows no case and no way to print.
#ifndef KMES_CONFORMANCE_STAGE_RECORDER_H_
#define KMES_CONFORMANCE_STAGE_RECORDER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/finding.h"
#include "conformance/model/timeline.h"
#include "conformance/oracle/history.h"
#include "conformance/oracle/record.h"
#include "conformance/stage/access_places.h"
#include "conformance/stage/verdict_marks.h"
#include "conformance/tracer/events.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance {

class Rings;

class Recorder {
  public:
    using FindBuffer = std::function<std::optional<BufferIndex>(BufferId)>;

    // Switched off, every call costs a comparison: for runs that are some of thousands.
    explicit Recorder(bool on) : on_(on) {}
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    // Before anything is told. `rings` outlives the recorder's last call.
    void watch(const Rings& rings, FindBuffer find_buffer);

    bool on() const { return on_; }
    const Timeline& timeline() const { return timeline_; }

    // -- The producer, told by Rings. begin() before each operation on a CPU; woke() within it --
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
    // Bytes of the metadata page, or of the data, that were written behind the producer's back.
    void planted(BufferIndex buffer, bool is_data, std::uint64_t place,
                 std::span<const std::uint8_t> bytes);

    // need_wake of this buffer was put to what it is, by nobody whose access is told.
    void flag_put(BufferIndex buffer, const std::string& text);

    // What the producer does between the two is a move: somebody chose this place for it, and it is
    // taken for what decided the outcome. `text` says what is to be done.
    void begin_move(const std::string& text);
    void end_move() { in_move_ = false; }

    // -- The testee, told by the stage --
    void attached(const Attached& event);
    void mapped(const Mapped& event);
    void wait_begins(const FutexWait& event);
    void wait_ends(const FutexWaitEnd& event, std::int64_t told_instead);
    void access_refused(const WriteFault& event);
    // `step` is null where the guards were taken away and the access is about to happen.
    void accessed(const GuardHit& hit, const GuardStep* step);
    // The same of a second consumer of this buffer; without a step it stands before the access.
    void accessed_by_second(const GuardHit& hit, BufferIndex buffer, const GuardStep* step);
    // The lines that the report has and that were not told yet.
    void report_grew(const RecordParser& parser);
    void ended(const Ended& event);

    // -- The suite's own doing: a thread is held, all are let go --
    void scheduled(const std::string& text, pid_t thread = 0);

    // The verdict, as the last step, and the marks on the steps that decided it. Once.
    void finish(const Finding& finding);

  private:
    // An event whose bytes a thread is reading, and the accesses that one step stands for.
    struct Reading {
        std::uint64_t step = 0;
        BufferIndex buffer = 0;
        Placement event;  // sequence 0: no event is there
        bool overwritten = false;
        std::uint64_t first_byte = 0;  // of the event
        std::uint64_t end_byte = 0;
        std::uint64_t count = 0;
    };
    // Where a thread is in 5.1.8, as far as its accesses to one buffer say.
    struct Reader {
        bool asked = false;     // need_wake is set by it
        bool woken = false;     // its wait is over, and need_wake not yet cleared
        bool looked = false;    // it has read write_pos
        bool has_data = false;  // it has read bytes of an event since it read a position
        Placement event;        // that it reads; sequence 0: none
    };

    // recorder.cc
    const History& history() const;
    BufferState state_of(BufferIndex buffer) const;
    int number_of(pid_t thread);
    void add(TimelineStep step);
    StepFacts::Operation& add_operation(std::uint32_t cpu, std::string text, std::string clause,
                                        std::uint64_t sequence);
    std::string tail_text(StepFacts::Operation& operation) const;
    std::string wake_text(std::uint32_t cpu) const;
    void add_record(const Record& record);
    std::string event_text(std::uint64_t cpu, std::uint64_t sequence) const;
    std::string buffer_suffix(BufferIndex buffer) const;

    // recorder_access.cc
    std::string metadata_text(const BufferAccess& access, BufferIndex buffer,
                              const GuardStep* step);
    std::string metadata_clause(const BufferAccess& access, Reader& reader, std::uint64_t value);
    void read_data(const GuardHit& hit, const BufferAccess& access, BufferIndex buffer, int thread,
                   const GuardStep* step);
    Placement event_at(BufferIndex buffer, std::uint64_t offset, Reader& reader) const;
    bool is_overwritten(BufferIndex buffer, const Placement& event) const;
    std::string reading_text(const Reading& reading, std::optional<std::uint64_t> value) const;
    void put_code(const GuardHit& hit);

    // recorder_verdict.cc
    std::string with_thread_numbers(std::string message) const;

    bool on_;
    Timeline timeline_;
    AccessPlaces places_;
    const Rings* rings_ = nullptr;
    FindBuffer find_buffer_;
    std::map<pid_t, int> threads_;
    std::map<std::uint32_t, int> thread_of_cpu_;
    StepFacts facts_;
    std::optional<std::uint64_t> woken_;  // by the operation that goes on
    BufferIndex operated_buffer_ = 0;
    std::size_t tail_index_before_ = 0;
    bool in_move_ = false;
    std::map<int, Reading> readings_;
    std::map<std::pair<int, BufferIndex>, Reader> readers_;
    std::map<pid_t, StepFacts::Wait> asleep_;
    std::size_t records_told_ = 0;
    std::size_t comments_told_ = 0;
    std::size_t malformed_told_ = 0;
    bool finished_ = false;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_RECORDER_H_
