// SPDX-License-Identifier: MIT
//
// See testee.h.
#include "conformance/stage/testee.h"

#include <chrono>
#include <ctime>
#include <string>

#include "conformance/oracle/driver_findings.h"
#include "conformance/stage/ring_backend.h"
#include "conformance/stage/stop.h"

namespace kmes::conformance {

Tracer& Testee::make_tracer(const TracerOptions& options) {
    tracer_ = std::make_unique<Tracer>(options);
    return *tracer_;
}

// An access that the processor saw and the stepper did not is an error of the suite.
void Testee::check_watchpoints() const {
    if (!tracer_) return;
    const WatchCheck check = tracer_->guards().watch_check();
    if (!check.unavailable.empty()) throw SuiteError(check.unavailable);
    if (!check.unseen.empty()) throw SuiteError(check.unseen);
}

void Testee::read_report() {
    if (!tracer_) return;
    const std::string bytes = tracer_->output().read_report();
    if (bytes.empty()) return;
    const bool has_lines = report_.feed(bytes);
    steps_.report_grew(records());
    // A comment is no progress: a thread may write comments for as long as it lives.
    if (has_lines) clock_.note_work();
    if (!records().flooded()) return;
    stop_with(
        contract_finding("the consumer floods its report: " +
                         (records().malformed().empty() ? std::string("more than any run can need")
                                                        : records().malformed().back().message)));
}

std::optional<Clock::duration> Testee::processor_time() const {
    clockid_t clock{};
    timespec time{};
    const pid_t pid = tracer_->testee_pid();
    if (pid == 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return std::nullopt;
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

void Testee::note(const Forked& event) {
    has_forked_ |= !event.is_vfork;
    has_twin_ |= event.shares_memory && !event.is_vfork;
}

void Testee::note(const Ended& event) {
    if (!end_) steps_.ended(event);
    end_ = event;
}

}  // namespace kmes::conformance
