// SPDX-License-Identifier: MIT
//
// See spin_watch.h.
#include "conformance/stage/spin_watch.h"

#include <algorithm>

namespace kmes::conformance {

void SpinWatch::note_access(const GuardHit& hit) {
    const std::uint64_t operations = stage_.rings().history().operations();
    Loads& loads = loads_[hit.place.mapping];
    bool is_load = true;
    bool is_write = false;
    for (const BufferAccess& access : hit.accesses) {
        is_write = is_write || access.is_write;
        is_load = is_load && !access.is_write && access.place.offset_bytes < kMetadataBytes;
    }
    if (is_write && loads.pass)
        loads.pass = !stage_.guards().let_reads_pass(hit.place.mapping, false);
    if (!is_load || loads.operations != operations) loads.count = 0;
    loads.operations = operations;
    if (is_load && ++loads.count == spin_loads_)
        loads.pass = stage_.guards().let_reads_pass(hit.place.mapping, true);
}

bool SpinWatch::ignores_loads() const {
    return std::any_of(loads_.begin(), loads_.end(),
                       [](const auto& each) { return each.second.pass; });
}

void SpinWatch::stop_at_all_loads() {
    for (auto& [mapping, loads] : loads_) {
        if (loads.pass) stage_.guards().let_reads_pass(mapping, false);
        loads = Loads{stage_.rings().history().operations(), 0, false};
    }
}

}  // namespace kmes::conformance
