// SPDX-License-Identifier: MIT
//
// Shows the loop of a consumer that uses processor time without progress.
#ifndef KMES_CONFORMANCE_STAGE_LOOP_RECORD_H_
#define KMES_CONFORMANCE_STAGE_LOOP_RECORD_H_

#include <cstdint>
#include <optional>

namespace kmes::conformance {

struct StageParts;

// Records the next accesses of the consumer to the buffers of a CPU as steps of the trace: some
// hundreds, or those of half a second. `cpu` is empty for all CPUs. Call it when the verdict is
// known, because no other part receives the events of the tracer then. Does nothing if accesses are
// recorded already.
void record_loop(StageParts& parts, std::optional<std::uint32_t> cpu);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_LOOP_RECORD_H_
