// SPDX-License-Identifier: MIT
//
// The vector and mask registers of a stopped thread that gathers need. Knows ptrace's register
// sets, no buffers.

#ifndef CONFORMANCE_TRACER_VECTOR_STATE_H_
#define CONFORMANCE_TRACER_VECTOR_STATE_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "conformance/tracer/decode.h"

namespace kmes::conformance::tracing {

// The extended state in its plain form.
class VectorState {
  public:
    // Returns nothing if the thread is gone.
    static std::optional<VectorState> read(pid_t tid);
    bool write(pid_t tid) const;

    // The signed index of an element, and whether its mask is set. If the processor lacks the
    // register: 0 and false.
    int64_t index(const GatherForm& form, uint32_t element) const;
    bool is_masked_in(const GatherForm& form, uint32_t element) const;
    void set_mask(const GatherForm& form, uint32_t element, bool value);

  private:
    // The offset in bytes_ of `bytes` bytes at `offset` of vector register `number`. The pieces of
    // a register are not contiguous there.
    std::optional<size_t> place_of_vector(int number, uint32_t offset) const;
    uint64_t load(size_t place, size_t bytes) const;

    std::vector<uint8_t> bytes_;
};

// Returns the addresses of the elements that the gather or scatter would touch, in order. `base` is
// the address of an element with index 0.
std::vector<uint64_t> gather_addresses(pid_t tid, const AddressForm& form, uint64_t base);

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_VECTOR_STATE_H_
