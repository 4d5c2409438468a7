// SPDX-License-Identifier: MIT
//
// Who spins under guards: thousands of looks at a page of which nothing changes, each of which
// would stop. Such reads are let pass until the thread writes, or somebody says that something
// changes.
#ifndef KMES_CONFORMANCE_STAGE_SPIN_WATCH_H_
#define KMES_CONFORMANCE_STAGE_SPIN_WATCH_H_

#include <cstdint>
#include <map>

#include "conformance/stage/stage.h"

namespace kmes::conformance {

class SpinWatch {
  public:
    // One that has read a page so often, while nothing changed, spins.
    static constexpr std::uint64_t kLooksOfASpin = 1000;

    explicit SpinWatch(Stage& stage, std::uint64_t looks = kLooksOfASpin)
        : stage_(stage), looks_of_a_spin_(looks) {}

    // An access that has been stopped at. One that writes makes the reads of its mapping seen
    // again.
    void saw(const GuardHit& hit);
    // Before the producer does anything: all reads are seen again.
    void look_again();
    // Since a spin, reads of some mapping are not seen.
    bool lets_pass() const;

  private:
    // How often the metadata of a mapping has been read since the testee last did anything else.
    struct Looks {
        std::uint64_t operations = 0;
        std::uint64_t count = 0;
        bool pass = false;  // unseen
    };

    Stage& stage_;
    std::uint64_t looks_of_a_spin_;
    std::map<MappingId, Looks> looks_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_SPIN_WATCH_H_
