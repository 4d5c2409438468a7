// SPDX-License-Identifier: MIT
//
// The way in which guarded accesses are seen in this run, and its reason. Knows no guards.

#ifndef CONFORMANCE_TRACER_STEPPING_MODE_H_
#define CONFORMANCE_TRACER_STEPPING_MODE_H_

#include <string>
#include <utility>

#include "conformance/tracer/tracer.h"
#include "conformance/tracer/watchpoints.h"

namespace kmes::conformance::tracing {

// Guard pages or single steps. It begins with guard pages unless the caller asked for steps, and
// can fall back to steps.
class SteppingMode {
  public:
    // `is_blind`: see Watchpoints.
    SteppingMode(Stepping wanted, bool is_blind)
        : wanted_(wanted),
          reason_(first_reason(wanted)),
          watchpoints_(wanted == Stepping::kWatchpoints, is_blind) {
        if (wanted == Stepping::kSingleStep || wanted == Stepping::kWatchpoints)
            used_ = Stepping::kSingleStep;
    }

    // kGuardPages or kSingleStep.
    Stepping used() const { return used_; }
    bool uses_pages() const { return used_ == Stepping::kGuardPages; }
    bool uses_steps() const { return used_ == Stepping::kSingleStep; }
    const std::string& reason() const { return reason_; }

    // The second witness of the steps.
    Watchpoints& watchpoints() { return watchpoints_; }

    bool may_fall_back() const { return wanted_ == Stepping::kAutomatic; }
    // From now on guards are address ranges. Before: nothing is guarded.
    void fall_back_to_steps(std::string reason) {
        used_ = Stepping::kSingleStep;
        reason_ = std::move(reason);
    }

  private:
    static const char* first_reason(Stepping wanted) {
        switch (wanted) {
            case Stepping::kAutomatic:
                return "guard pages: nothing prevents them";
            case Stepping::kGuardPages:
                return "guard pages, as asked for";
            case Stepping::kSingleStep:
                return "single steps, as asked for";
            case Stepping::kWatchpoints:
                return "single steps, checked by the processor's watchpoints, as asked for";
        }
        return "";
    }

    Stepping wanted_;
    Stepping used_ = Stepping::kGuardPages;
    std::string reason_;
    Watchpoints watchpoints_;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_STEPPING_MODE_H_
