// SPDX-License-Identifier: MIT
//
// Detects a consumer that spins on a guarded page: thousands of loads without a change, each of
// which would stop. Then no load stops until the thread writes, or until stop_at_all_loads().
#ifndef KMES_CONFORMANCE_STAGE_SPIN_WATCH_H_
#define KMES_CONFORMANCE_STAGE_SPIN_WATCH_H_

#include <cstdint>
#include <map>

#include "conformance/stage/stage.h"

namespace kmes::conformance {

class SpinWatch {
  public:
    // A consumer that loads from a page this often without a change spins.
    static constexpr std::uint64_t kLoadsOfASpin = 1000;

    explicit SpinWatch(Stage& stage, std::uint64_t spin_loads = kLoadsOfASpin)
        : stage_(stage), spin_loads_(spin_loads) {}

    // Notes a stopped access. After a write, the loads of its mapping stop again.
    void note_access(const GuardHit& hit);
    // Makes all loads stop again. Call it before each action of the producer.
    void stop_at_all_loads();
    // Returns true if the loads of a mapping do not stop.
    bool ignores_loads() const;

  private:
    // The loads of a mapping's metadata since the last other action: another access to the mapping,
    // or an operation of the producer.
    struct Loads {
        std::uint64_t operations = 0;
        std::uint64_t count = 0;
        bool pass = false;  // loads do not stop
    };

    Stage& stage_;
    std::uint64_t spin_loads_;
    std::map<MappingId, Loads> loads_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_SPIN_WATCH_H_
