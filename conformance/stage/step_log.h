// SPDX-License-Identifier: MIT
//
// The steps of a case for the trace of a failure: a timeline, and facts about its steps besides
// their text. The classes that describe the steps share the log. It knows the rings, whose state a
// step shows. It describes no step itself.
#ifndef KMES_CONFORMANCE_STAGE_STEP_LOG_H_
#define KMES_CONFORMANCE_STAGE_STEP_LOG_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "conformance/model/timeline.h"
#include "conformance/oracle/history.h"
#include "conformance/stage/access_places.h"
#include "conformance/stage/thread_numbers.h"
#include "conformance/stage/verdict_marks.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

class Rings;

// Returns "1 event" or "2 events".
std::string amount_text(std::uint64_t count, std::string_view one);

class StepLog {
  public:
    using FindBuffer = std::function<std::optional<BufferIndex>(BufferId)>;

    // A log that is off has no steps. For a run that is one of thousands.
    explicit StepLog(bool on) : on_(on) {}
    StepLog(const StepLog&) = delete;
    StepLog& operator=(const StepLog&) = delete;

    // To be called before the first step that needs the rings. They outlive the last step.
    void watch(const Rings& rings, FindBuffer find_buffer);

    bool on() const { return on_; }
    bool has_rings() const { return rings_ != nullptr; }
    const Rings& rings() const { return *rings_; }
    const History& history() const;
    std::optional<BufferIndex> find_buffer(BufferId id) const { return find_buffer_(id); }
    BufferState state_of(BufferIndex buffer) const;

    ThreadNumbers& threads() { return threads_; }

    // -- Steps --
    void add(TimelineStep step);
    // Adds an action of the suite. `thread` is 0 if the action concerns no single thread.
    void add_scheduled(const std::string& text, pid_t thread = 0);
    // True if there is no later step of the same thread, of the producer, or of the end.
    bool is_latest(std::uint64_t step, int thread) const;
    const Timeline& timeline() const { return timeline_; }
    Timeline& timeline() { return timeline_; }

    // -- Facts about the last step --
    // Adds its code: see AccessPlaces::add.
    void add_place(const CodePlace& code, std::shared_ptr<const tracing::StackSnapshot> stack,
                   std::string field);
    // Adds its system call.
    void add_call(const CallSite& site) { places_.add_call(timeline_, site); }
    void put_places() { places_.put_into(timeline_); }
    const StepFacts& facts() const { return facts_; }
    StepFacts::Operation& add_operation(const StepFacts::Operation& operation);
    void add_wait(const StepFacts::Wait& wait);
    void add_tail_load(const StepFacts::TailLoad& load);
    // Adds the read of an event, or replaces the last one if that has the same step.
    void add_event_read(const StepFacts::EventRead& read);
    void add_metadata_access(const StepFacts::MetadataAccess& access);
    // The last step describes an action before a chosen access.
    void note_move() { facts_.moves.push_back(timeline_.last_number()); }
    // The last step is this line of the report.
    void note_line(std::uint64_t line);

  private:
    bool on_;
    Timeline timeline_;
    AccessPlaces places_;
    const Rings* rings_ = nullptr;
    FindBuffer find_buffer_;
    ThreadNumbers threads_;
    StepFacts facts_;
    std::map<int, std::uint64_t> last_of_thread_;
    std::uint64_t last_of_all_threads_ = 0;  // the last step of the producer or of the end
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_STEP_LOG_H_
