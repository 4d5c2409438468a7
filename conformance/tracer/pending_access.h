// SPDX-License-Identifier: MIT
//
// A guarded access before it happens, and the ways to split it. Knows instructions and mappings by
// their numbers, no threads.

#ifndef CONFORMANCE_TRACER_PENDING_ACCESS_H_
#define CONFORMANCE_TRACER_PENDING_ACCESS_H_

#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "conformance/tracer/code.h"
#include "conformance/tracer/events.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance::tracing {

// A memory operand of an instruction, with its first or last byte in a mapping of a buffer.
struct RingOperand {
    size_t form = 0;  // index in Instruction::memory
    uint64_t address = 0;
    uint32_t size_bytes = 0;  // of a string operation in bulk: the bytes of all elements
    MappingId mapping = 0;
    bool is_inside = false;  // the whole operand is in that mapping
};

// A guarded access that has not happened: the thread is stopped before it.
struct PendingAccess {
    GuardHit hit;
    user_regs_struct registers = {};
    std::shared_ptr<const Code> code;
    std::vector<RingOperand> operands;
    bool has_lanes_elsewhere = false;  // a gather with some elements outside of all buffers
    // The number of elements of a string operation that can be done at once; 0: none.
    uint64_t string_elements = 0;
};

// A read in two parts, with an action in between.
class Torn {
  public:
    Torn(uint64_t split_bytes, const std::function<void()>& between)
        : split_bytes_(split_bytes), between_(between) {}
    uint64_t split_bytes() const { return split_bytes_; }
    // Reads `size_bytes` from `from` to `to`: first the bytes at the low end (`is_down`: at the
    // high end). Then calls `between`, and reads the others. The parts meet at a multiple of
    // `granule` from `origin`.
    void compose(const uint8_t* from, uint8_t* to, uint64_t size_bytes, bool is_down,
                 uint64_t origin, uint64_t granule);
    // Calls `between`, once. For a read that cannot be split.
    void give_up();
    // Calls `between` after `bytes` bytes, which the caller has read. Does nothing the second time.
    void act_after(uint64_t bytes);

  private:
    uint64_t split_bytes_;
    const std::function<void()>& between_;
    bool is_over_ = false;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_PENDING_ACCESS_H_
