// SPDX-License-Identifier: MIT
//
// Where the accesses of a timeline are in the code of the testee. Each is noted when it happens,
// and looked up once, when the run has failed: what a line tells depends on the other accesses that
// come through the same function. Knows no rings and no verdict.
#ifndef KMES_CONFORMANCE_STAGE_ACCESS_PLACES_H_
#define KMES_CONFORMANCE_STAGE_ACCESS_PLACES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "conformance/model/timeline.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

class AccessPlaces {
  public:
    // The code of the last step of the timeline. `field` names what is accessed: a field of the
    // metadata page, or the data; empty if that is not known. `stack` may be null.
    void add(const Timeline& timeline, const CodePlace& code,
             std::shared_ptr<const tracing::StackSnapshot> stack, std::string field);
    // Sets `instruction` and `source` of the steps.
    void put_into(Timeline& timeline) const;

  private:
    struct Place {
        CodePlace code;
        std::shared_ptr<const tracing::StackSnapshot> stack;
        std::string field;
    };
    std::map<std::uint64_t, Place> places_;  // by the number of the step
    std::uint64_t left_out_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_ACCESS_PLACES_H_
