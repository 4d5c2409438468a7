// SPDX-License-Identifier: MIT
//
// The finding about a consumer that has ended too early, or in a wrong way.
#ifndef KMES_CONFORMANCE_STAGE_END_FINDING_H_
#define KMES_CONFORMANCE_STAGE_END_FINDING_H_

#include <cstdint>
#include <string>

#include "conformance/oracle/driver_findings.h"
#include "conformance/oracle/record.h"

namespace kmes::conformance {

struct StageParts;

// The testee has ended before the case was over. Throws Stop; GivenUp, if the case allows the end;
// or SuiteError, if the testee could not be started.
[[noreturn]] void stop_ended(StageParts& parts);
// Throws Stop if a process besides the testee has called kmes_attach. It was to read some of the
// CPUs, so that it may explain what the testee does. `what` is that.
void stop_if_foreign(const StageParts& parts, const std::string& what);
// Throws Stop at the first malformed line: it may be the very record that is waited for.
void stop_at_malformed(const RecordParser& records);
// The last event of a CPU that was delivered.
LastDelivery last_delivery(const StageParts& parts, std::uint32_t cpu);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_END_FINDING_H_
