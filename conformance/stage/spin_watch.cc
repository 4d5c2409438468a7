// SPDX-License-Identifier: MIT
//
// See spin_watch.h.
#include "conformance/stage/spin_watch.h"

#include <algorithm>

namespace kmes::conformance {

void SpinWatch::saw(const GuardHit& hit) {
    const std::uint64_t operations = stage_.rings().history().operations();
    Looks& looks = looks_[hit.place.mapping];
    bool is_look = true;
    bool is_write = false;
    for (const BufferAccess& access : hit.accesses) {
        is_write = is_write || access.is_write;
        is_look = is_look && !access.is_write && access.place.offset_bytes < kMetadataBytes;
    }
    if (is_write && looks.pass)
        looks.pass = !stage_.guards().let_reads_pass(hit.place.mapping, false);
    if (!is_look || looks.operations != operations) looks.count = 0;
    looks.operations = operations;
    if (is_look && ++looks.count == looks_of_a_spin_)
        looks.pass = stage_.guards().let_reads_pass(hit.place.mapping, true);
}

bool SpinWatch::lets_pass() const {
    return std::any_of(looks_.begin(), looks_.end(),
                       [](const auto& each) { return each.second.pass; });
}

void SpinWatch::look_again() {
    for (auto& [mapping, looks] : looks_) {
        if (looks.pass) stage_.guards().let_reads_pass(mapping, false);
        looks = Looks{stage_.rings().history().operations(), 0, false};
    }
}

}  // namespace kmes::conformance
