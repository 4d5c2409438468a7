// SPDX-License-Identifier: MIT
//
// The arguments of futex calls on ring words: word, value, time limit, private or shared (5.1.8.2
// step 5, E2, E17). Knows the calls' layouts and the tables of mappings and buffers.

#ifndef CONFORMANCE_TRACER_FUTEX_CALLS_H_
#define CONFORMANCE_TRACER_FUTEX_CALLS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "conformance/tracer/events.h"
#include "conformance/tracer/mapping_table.h"
#include "conformance/tracer/served_files.h"

namespace kmes::conformance::tracing {

// Both tables must outlive it.
class FutexCalls {
  public:
    FutexCalls(const MappingTable& mappings, ServedFiles& buffers)
        : mappings_(mappings), buffers_(buffers) {}

    // Returns nothing if the call is no wait, or if none of its words is in a served buffer.
    std::optional<FutexWait> read_wait(pid_t tid, long number, const uint64_t (&arguments)[6]);
    // As read_wait, for all other operations of SYS_futex and for futex_wake.
    std::optional<FutexOther> read_other(pid_t tid, long number,
                                         const uint64_t (&arguments)[6]) const;
    // The number of a new wait, from 1 on.
    uint64_t take_wait_id() { return next_wait_id_++; }

  private:
    std::optional<FutexWord> word_at(uint64_t address, uint32_t expected, bool is_private);

    const MappingTable& mappings_;
    ServedFiles& buffers_;
    uint64_t next_wait_id_ = 1;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_FUTEX_CALLS_H_
