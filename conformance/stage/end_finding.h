// SPDX-License-Identifier: MIT
//
// The finding for a consumer that has ended too early or incorrectly.
#ifndef KMES_CONFORMANCE_STAGE_END_FINDING_H_
#define KMES_CONFORMANCE_STAGE_END_FINDING_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "conformance/oracle/driver_findings.h"
#include "conformance/oracle/record.h"
#include "conformance/tracer/events.h"

namespace kmes::conformance {

struct StageParts;

// The message of the inconclusive case of a testee that SIGSYS has killed.
inline constexpr std::string_view kKilledBySeccomp =
    "the consumer's own seccomp filter killed it. It has to allow the calls by which the suite "
    "serves kmes_attach and mmap: openat, fcntl, mmap, mprotect, munmap, close";

// Ends the case because the testee has ended first. Throws EarlyExit if the case allows this end,
// SuiteError if the testee did not start, and Stop otherwise.
[[noreturn]] void stop_ended(StageParts& parts);
// Throws Stop if another process than the testee has called kmes_attach: that process may read some
// of the CPUs, which would explain the fault. `what` describes the fault of the testee.
void stop_if_foreign(const StageParts& parts, const std::string& what);
// Throws Stop if the consumer was killed by another process or by a limit of the machine.
void stop_if_killed_from_outside(const Ended& end);
// Throws Stop if the report has a malformed line: this line may be the record that the case waits
// for.
void stop_at_malformed(const RecordParser& records);
// Returns the last event of a CPU that the consumer delivered.
LastDelivery last_delivery(const StageParts& parts, std::uint32_t cpu);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_END_FINDING_H_
