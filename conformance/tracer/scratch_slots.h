// SPDX-License-Identifier: MIT
//
// The tracer's own pages in the memory of the testee. One page is for paths. Each simultaneous
// system call whose vector of pointers is rewritten has one slot (pointer_redirect.h). Knows which
// slots are taken, but not their addresses.

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
    static constexpr size_t kSlots = 64;
    static constexpr uint64_t kBytes = kPageBytes * (1 + kSlots);
    static constexpr int kNone = -1;
    // The offset of a slot, which is one page, from the first page.
    static uint64_t offset_of(int slot) { return kPageBytes * static_cast<uint64_t>(1 + slot); }

    // The testee has got new pages. Before that, there is no slot.
    void begin() { is_taken_.assign(kSlots, false); }
    // A free slot, or kNone.
    int find_free() const {
        const auto slot = std::find(is_taken_.begin(), is_taken_.end(), false);
        return slot == is_taken_.end() ? kNone : static_cast<int>(slot - is_taken_.begin());
    }
    int take() {
        const int slot = find_free();
        if (slot != kNone) is_taken_[static_cast<size_t>(slot)] = true;
        return slot;
    }
    void give_back(int slot) {
        if (slot != kNone) is_taken_[static_cast<size_t>(slot)] = false;
    }

  private:
    std::vector<bool> is_taken_;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_SCRATCH_SLOTS_H_
