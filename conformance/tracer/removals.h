// SPDX-License-Identifier: MIT
//
// The memory that the testee has removed from its address space, and the calls that did it. A
// record: it changes nothing in the testee. Knows no buffers.

#ifndef CONFORMANCE_TRACER_REMOVALS_H_
#define CONFORMANCE_TRACER_REMOVALS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "conformance/tracer/events.h"

namespace kmes::conformance::tracing {

class Removals {
  public:
    static constexpr size_t kMost = 256;  // the last calls of the run that are kept

    void add(Removal removal);
    // The last call that removed this address; nothing if no kept call did.
    std::optional<Removal> last_of(uint64_t address) const;
    // The program was replaced, and its address space with it.
    void forget_all() { calls_.clear(); }

  private:
    std::deque<Removal> calls_;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_REMOVALS_H_
