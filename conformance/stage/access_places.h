// SPDX-License-Identifier: MIT
//
// Finds the place in the code of the testee for each access and system call of a timeline. Each one
// is stored when it happens. The places are looked up once, after the run has failed, because the
// line for a step depends on other accesses of the same function. Knows no rings and no verdict.
#ifndef KMES_CONFORMANCE_STAGE_ACCESS_PLACES_H_
#define KMES_CONFORMANCE_STAGE_ACCESS_PLACES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "conformance/model/timeline.h"
#include "conformance/tracer/events.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

class AccessPlaces {
  public:
    // Adds the code of the last step of the timeline. `field` names the accessed field of the
    // metadata page, or is "data"; empty: unknown. `stack` may be null.
    void add(const Timeline& timeline, const CodePlace& code,
             std::shared_ptr<const tracing::StackSnapshot> stack, std::string field);
    // Adds the system call of the last step of the timeline. Its place is shown only if the caller
    // is outside of libraries.
    void add_call(const Timeline& timeline, const CallSite& site);
    // Sets `instruction` and `source` of the steps.
    void put_into(Timeline& timeline) const;

  private:
    struct Place {
        CodePlace code;
        std::shared_ptr<const tracing::StackSnapshot> stack;
        std::string field;
        bool is_call = false;
    };
    void put(const Timeline& timeline, Place place);

    std::map<std::uint64_t, Place> places_;  // key: the number of the step
    std::uint64_t left_out_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_ACCESS_PLACES_H_
