// SPDX-License-Identifier: MIT
//
// Every fault that can be planted at a label of kmes/order.h in a ThreadSanitizer build. Each has
// its finder, or the reason why it cannot be found. Knows the labels and the runner of a mix, no
// ring.
#ifndef KMES_PROPS_THREADS_PLANTED_H_
#define KMES_PROPS_THREADS_PLANTED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kmes/order.h"
#include "props/threads/world.h"

namespace kmes::props {

enum class Fault {
    kPlain,      // the access is not atomic
    kRelaxed,    // the load or store has no order
    kDropped,    // the fence is neither executed nor reported to TSan
    kReordered,  // the accesses around the fence are reordered as a processor could without it
    kSkipped,    // the load is left out
};

struct Plant {
    enum kmes_order_label label;
    Fault fault;
    Profile profile;  // the runs in which it occurs
    Finder finder;
    const char* in;   // a function of the core that TSan's report names; "" for other finders
    const char* why;  // the observation of the finder, or the reason why there is none
};

// One for each meaningful fault at each label, in the order of kmes/order.h.
const std::vector<Plant>& all_plants();

// The expected content of all_plants, derived from the kind of each label's access in kmes/order.h.
struct PlantPlace {
    enum kmes_order_label label;
    Fault fault;
    bool operator==(const PlantPlace&) const = default;
};
std::vector<PlantPlace> all_plant_places();

const char* name_of(enum kmes_order_label label);
const char* name_of(Fault fault);
const char* name_of(Finder finder);

// In a process of its own: plants the fault, and runs mixes until it is found or the time is over.
// The exit status names the finder. TSan itself ends the process with kTsanStatus.
inline constexpr int kTsanStatus = 66;
inline constexpr int kPayloadStatus = 67;
inline constexpr int kSleepStatus = 68;
int run_planted(const Plant& plant, std::uint64_t seconds);

}  // namespace kmes::props

#endif  // KMES_PROPS_THREADS_PLANTED_H_
