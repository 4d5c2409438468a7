// SPDX-License-Identifier: MIT
//
// The tracer's own pages in the memory of the testee. One page is for paths. Each vector of
// pointers that is rewritten for a system call has a slot, until that call ends
// (pointer_redirect.h). Knows which slots are taken, but not their addresses.

#ifndef CONFORMANCE_TRACER_SCRATCH_SLOTS_H_
#define CONFORMANCE_TRACER_SCRATCH_SLOTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "conformance/tracer/types.h"

namespace kmes::conformance::tracing {

class ScratchSlots {
  public:
    static constexpr uint64_t kUnitBytes = 256;
    static constexpr size_t kUnits = 4096;
    static constexpr uint64_t kBytes = kPageBytes + kUnitBytes * kUnits;
    static constexpr uint64_t kNone = 0;

    // The testee has got new pages. Before that, there is no slot.
    void begin() { is_taken_.assign(kUnits, false); }
    // Returns the offset of a free slot of this size from the first page, or kNone. It is a
    // multiple of kUnitBytes.
    uint64_t find_free(uint64_t size_bytes) const {
        const auto units = static_cast<std::ptrdiff_t>(units_of(size_bytes));
        const auto first = std::search_n(is_taken_.begin(), is_taken_.end(), units, false);
        if (first == is_taken_.end()) return kNone;
        return kPageBytes + kUnitBytes * static_cast<uint64_t>(first - is_taken_.begin());
    }
    uint64_t take(uint64_t size_bytes) {
        const uint64_t slot = find_free(size_bytes);
        if (slot != kNone) mark(slot, size_bytes, true);
        return slot;
    }
    void give_back(uint64_t slot, uint64_t size_bytes) { mark(slot, size_bytes, false); }

  private:
    static uint64_t units_of(uint64_t size_bytes) {
        return (size_bytes + kUnitBytes - 1) / kUnitBytes;
    }
    void mark(uint64_t slot, uint64_t size_bytes, bool is_taken) {
        const auto first =
            is_taken_.begin() + static_cast<std::ptrdiff_t>((slot - kPageBytes) / kUnitBytes);
        std::fill_n(first, units_of(size_bytes), is_taken);
    }

    std::vector<bool> is_taken_;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_SCRATCH_SLOTS_H_
