// SPDX-License-Identifier: MIT
//
// Describes the actions of the testee, except accesses to buffers, as steps of a log. These are its
// attaches, mappings, waits and lines of the report, and its end.
#ifndef KMES_CONFORMANCE_STAGE_TESTEE_STEPS_H_
#define KMES_CONFORMANCE_STAGE_TESTEE_STEPS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "conformance/oracle/record.h"
#include "conformance/stage/access_steps.h"
#include "conformance/stage/step_log.h"
#include "conformance/tracer/events.h"

namespace kmes::conformance {

class TesteeSteps {
  public:
    // Both outlive this object.
    TesteeSteps(StepLog& log, AccessSteps& accesses) : log_(log), accesses_(accesses) {}
    TesteeSteps(const TesteeSteps&) = delete;
    TesteeSteps& operator=(const TesteeSteps&) = delete;

    void attached(const Attached& event);
    void mapped(const Mapped& event);
    void wait_begins(const FutexWait& event);
    // `result_instead` is the result that the suite gives the thread; 0: the true one.
    void wait_ends(const FutexWaitEnd& event, std::int64_t result_instead);
    // Adds the lines of the report that have no step yet.
    void report_grew(const RecordParser& parser);
    void ended(const Ended& event);

  private:
    struct Asleep {
        StepFacts::Wait wait;
        CallSite site;
    };

    std::string with_number_of(const std::optional<Removal>& removal, std::string_view text);
    // The beginning of the step of a record: its kind, CPU and thread.
    TimelineStep record_step(std::optional<std::uint64_t> cpu) const;
    void add_record(const Record& record);
    void add_malformed(const MalformedLine& line);
    std::string event_text(std::uint64_t cpu, std::uint64_t sequence) const;

    StepLog& log_;
    AccessSteps& accesses_;
    std::map<pid_t, Asleep> asleep_;
    std::size_t records_added_ = 0;
    std::size_t comments_added_ = 0;
    std::size_t malformed_added_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_TESTEE_STEPS_H_
