// SPDX-License-Identifier: MIT
//
// A second process of the testee's program, which consumes the same buffers (E12, --shared). A
// separate thread traces the process, and can stop it before a chosen access to a metadata page.
// The process gets the buffers that are current at its start, so the caller must not resize while
// it exists. Its report is judged against the history of the stage.
#ifndef KMES_CONFORMANCE_STAGE_SECOND_INSTANCE_H_
#define KMES_CONFORMANCE_STAGE_SECOND_INSTANCE_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "conformance/model/finding.h"
#include "conformance/model/settings.h"
#include "conformance/oracle/judge.h"
#include "conformance/oracle/record.h"
#include "conformance/stage/access_stop.h"
#include "conformance/stage/rings.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance {

class SecondInstance {
  public:
    // Starts the process. `rings` outlives this object. Only the tracing runs in the separate
    // thread.
    SecondInstance(const StageSettings& settings, Rings& rings);
    ~SecondInstance();
    SecondInstance(const SecondInstance&) = delete;
    SecondInstance& operator=(const SecondInstance&) = delete;

    // Reads the new part of its report. Throws SuiteError if it could not be traced.
    void update();

    // Counts its accesses to metadata pages from now on, and stops it before access number `nth`
    // (from 1). It stays stopped until resume(), with all threads that reach such a page. If it is
    // stopped already, it continues, and the access that it was stopped at counts as the first.
    void stop_before_access(std::uint64_t nth);
    void resume();
    bool is_stopped() const;
    // True if it has entered a futex wait on a ring word since the last stop_before_access(), and a
    // thread still waits. Then it does not reach access number `nth`.
    bool has_slept_since() const;
    // Returns its accesses to metadata pages since stop_before_access(). See
    // AccessStop::take_accesses.
    std::vector<AccessStop::Access> take_accesses();

    // As of the last update().
    bool has_delivered_all(std::uint32_t cpu) const {
        return progress_.ended(cpu) || progress_.first_undelivered(cpu) == nullptr;
    }
    bool has_refused(std::uint32_t cpu) const { return progress_.refused(cpu); }
    // True if a thread waits on the current buffer of this CPU with the current counter, or waits
    // with a limit on any buffer.
    bool is_asleep(std::uint32_t cpu) const;
    // True if its threads are blocked, and the kernel wakes none of them by itself.
    bool is_blocked_for_good() const;
    std::optional<Ended> ended() const;
    std::vector<pid_t> threads() const;

    // Returns the faults of its report and of its exit. To be called after its end.
    std::vector<Finding> judge();

  private:
    struct Wait {
        std::uint32_t cpu = 0;
        std::uint32_t value_expected = 0;
        bool has_limit = false;
    };
    void trace();
    void trace_until_quit(Tracer& tracer);
    void handle(Tracer& tracer, const TracerEvent& event);
    void on(Tracer& tracer, const GuardHit& hit);
    void on(const FutexWait& wait);

    const std::vector<std::string> program_;
    const Stepping stepping_;
    Rings& rings_;
    // Used by the tracing thread. Set before it starts, except for the ids of the buffers.
    std::vector<ServedBuffer> served_;  // by CPU
    AttachAnswer answer_;
    std::map<BufferId, std::uint32_t> cpu_of_;

    // Used by the caller's thread.
    RecordParser parser_;
    Progress progress_;

    // Used by both threads, under lock_.
    mutable std::mutex lock_;
    std::string unread_;  // the unread part of the report
    AccessStop access_stop_;
    std::map<pid_t, Wait> waits_;
    std::uint64_t waits_entered_ = 0;
    std::uint64_t waits_entered_before_ = 0;
    bool blocked_for_good_ = false;
    std::optional<Ended> ended_;
    std::vector<pid_t> threads_;
    TracerTrouble trouble_;  // none: without a text

    std::atomic<bool> quit_{false};
    std::thread thread_;  // the last member: it uses the others
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_SECOND_INSTANCE_H_
