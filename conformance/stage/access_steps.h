// SPDX-License-Identifier: MIT
//
// Describes the accesses of the testee to buffers as steps of a log. It names fields as in 5.1.6
// and events as in the history. If the order of the accesses shows it, a step also names its step
// of 5.1.8.
#ifndef KMES_CONFORMANCE_STAGE_ACCESS_STEPS_H_
#define KMES_CONFORMANCE_STAGE_ACCESS_STEPS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "conformance/oracle/history.h"
#include "conformance/stage/step_log.h"
#include "conformance/tracer/events.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance {

// Returns " of buffer 1, which is retired", or an empty string if the buffer is not retired.
std::string retired_suffix(const History& history, BufferIndex buffer);

class AccessSteps {
  public:
    // The log outlives this object.
    explicit AccessSteps(StepLog& log) : log_(log) {}
    AccessSteps(const AccessSteps&) = delete;
    AccessSteps& operator=(const AccessSteps&) = delete;

    // Adds an access. `step` is null if the suite did not step it. Then the guards are removed and
    // the thread is about to do it, or the case has done it (AtGuard::done).
    void accessed(const GuardHit& hit, const GuardStep* step);
    // Adds an access of a second consumer to this buffer. If `step` is null, the second consumer is
    // stopped before the access.
    void accessed_by_second(const GuardHit& hit, BufferIndex buffer, const GuardStep* step);
    // Adds a store that the contract forbids.
    void refused(const WriteFault& event);

    // -- Other actions of a thread, by its number in the log; they explain its next accesses --
    // The thread has returned from a wait.
    void note_woken(int thread);
    // The thread has mapped this buffer.
    void note_mapped(int thread, BufferIndex buffer) { readers_.erase({thread, buffer}); }

  private:
    // The event that a thread is reading, and its accesses that one step covers.
    struct Reading {
        std::uint64_t step = 0;
        BufferIndex buffer = 0;
        Placement event;  // sequence 0: no event at this place
        bool overwritten = false;
        std::uint64_t first_byte = 0;  // of the event
        std::uint64_t end_byte = 0;
        std::uint64_t count = 0;
    };
    // The position of a thread in 5.1.8, as its accesses to one buffer show it.
    struct Reader {
        bool asked = false;  // it has set need_wake
        bool woken = false;  // its wait has ended, and it has not stored to need_wake since
        bool has_loaded_write_pos = false;  // it has read write_pos
        bool has_data = false;  // it has read bytes of an event since its last metadata access
        Placement event;        // the event that it reads; sequence 0: none
    };

    std::string metadata_text(const BufferAccess& access, BufferIndex buffer,
                              const GuardStep* step);
    std::string metadata_clause(const BufferAccess& access, Reader& reader, std::uint64_t value);
    void read_data(const GuardHit& hit, const BufferAccess& access, BufferIndex buffer, int thread,
                   const GuardStep* step);
    void note_read(const Reading& reading);
    Placement event_at(BufferIndex buffer, std::uint64_t offset, Reader& reader) const;
    bool is_overwritten(BufferIndex buffer, const Placement& event) const;
    std::string reading_text(const Reading& reading, std::optional<std::uint64_t> value) const;
    void put_code(const GuardHit& hit);

    StepLog& log_;
    std::map<int, Reading> readings_;  // by thread
    std::map<std::pair<int, BufferIndex>, Reader> readers_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_ACCESS_STEPS_H_
