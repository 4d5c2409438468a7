// SPDX-License-Identifier: MIT
//
// Nudges a consumer that sleeps on a retired buffer before it counts as hung (E19). Counts the
// nudges of each buffer.
#ifndef KMES_CONFORMANCE_STAGE_NUDGES_H_
#define KMES_CONFORMANCE_STAGE_NUDGES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "conformance/stage/rings.h"
#include "conformance/stage/served_buffers.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

class Nudges {
  public:
    // Turns nudges off for a case in which no swap can happen between an attach and the first load
    // of generation. No consumer needs a nudge there.
    void set_on(bool on) { is_on_ = on; }
    bool is_on() const { return is_on_; }
    // Nudges each retired buffer that is mapped in one of `mappings`, a few times each. Returns
    // whether it nudged a buffer.
    bool nudge_retired(Rings& rings, const ServedBuffers& buffers,
                       const std::vector<Mapping>& mappings);
    // All nudges so far.
    std::uint64_t count() const { return count_; }

  private:
    bool is_on_ = true;
    std::map<BufferIndex, std::uint64_t> nudged_;  // the number of nudges
    std::uint64_t count_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_NUDGES_H_
