// SPDX-License-Identifier: MIT
//
// The testee's program once more, as a second consumer of the same buffers (E12, --shared): traced
// by a thread of its own, and brought to a stand before a chosen access to a metadata page. It gets
// the buffers that are present when it is made; nobody may resize while it is there. The stage
// knows nothing of it; its report is judged against the same history.
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
#include "conformance/stage/rings.h"
#include "conformance/stage/stand.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance {

class SecondInstance {
  public:
    // Starts it. `rings` outlives it; everything but the tracing is done by the caller's thread.
    SecondInstance(const StageSettings& settings, Rings& rings);
    ~SecondInstance();
    SecondInstance(const SecondInstance&) = delete;
    SecondInstance& operator=(const SecondInstance&) = delete;

    // Takes what it has written. Throws SuiteError where it could not be traced.
    void update();

    // From now on its accesses to metadata pages are counted, and it stands before the `nth` (from
    // 1), all its threads that come to such a page with it, until go_on(). One that stands already
    // goes on to there: the access that it stands before is the first.
    void stand_at(std::uint64_t nth);
    void go_on();
    bool is_standing() const;
    // It has entered a futex wait on a ring word since the last stand_at(): there is no nth access.
    bool has_slept_since() const;
    // Its accesses to metadata pages since stand_at(). See Stand::take_accesses.
    std::vector<Stand::Access> take_accesses();

    // As of the last update().
    bool has_delivered_all(std::uint32_t cpu) const {
        return progress_.ended(cpu) || progress_.first_undelivered(cpu) == nullptr;
    }
    bool has_refused(std::uint32_t cpu) const { return progress_.refused(cpu); }
    // Some thread is in a futex wait on the present buffer of this CPU, with its counter, or in one
    // with a limit on any.
    bool is_asleep(std::uint32_t cpu) const;
    // Its threads are blocked, and nothing that the kernel does by itself wakes one.
    bool is_blocked_for_good() const;
    std::optional<Ended> ended() const;
    std::vector<pid_t> threads() const;

    // What its report has that is wrong, and its exit; after ended().
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
    // What the thread serves: made before it runs.
    std::vector<ServedBuffer> served_;  // by CPU
    AttachAnswer answer_;
    std::map<BufferId, std::uint32_t> cpu_of_;  // the thread's

    // The caller's.
    RecordParser parser_;
    Progress progress_;

    // Of both.
    mutable std::mutex lock_;
    std::string unread_;  // of the report
    Stand stand_;
    std::map<pid_t, Wait> waits_;
    std::uint64_t waits_entered_ = 0;
    std::uint64_t waits_entered_before_ = 0;
    bool blocked_for_good_ = false;
    std::optional<Ended> ended_;
    std::vector<pid_t> threads_;
    std::string trouble_;

    std::atomic<bool> quit_{false};
    std::thread thread_;  // the last: it uses the others
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_SECOND_INSTANCE_H_
