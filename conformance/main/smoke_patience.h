// SPDX-License-Identifier: MIT
//
// Decides that the testee of a smoke run will do nothing more: it is blocked for good, or it has
// slept without progress for too long.
#ifndef KMES_CONFORMANCE_MAIN_SMOKE_PATIENCE_H_
#define KMES_CONFORMANCE_MAIN_SMOKE_PATIENCE_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "conformance/tracer/patience.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

class Tracer;
struct Inspection;

class SmokePatience {
  public:
    // A testee that is not blocked, but makes no progress, gets `limit`.
    SmokePatience(Tracer& tracer, std::chrono::milliseconds limit);

    void note_progress();
    // Something has happened that may be no progress.
    void note_event() { quiet_checks_ = 0; }
    // Returns why nothing more will come; empty: something may.
    std::string why_hopeless();
    // True if the time was over at the last check.
    bool is_over() const { return is_over_; }
    std::string no_progress() const;

  private:
    bool is_resting(const Inspection& inspection) const;
    bool has_rested() const;

    Tracer& tracer_;
    const std::chrono::milliseconds limit_;
    Patience patience_;
    TimePoint last_check_;
    bool is_over_ = false;
    unsigned quiet_checks_ = 0;  // in a row: blocked for good
    std::uint64_t checks_ = 0;   // since the last progress
    std::uint64_t resting_checks_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SMOKE_PATIENCE_H_
