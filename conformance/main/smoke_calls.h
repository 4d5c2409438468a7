// SPDX-License-Identifier: MIT
//
// What `smoke` and the preflight say of a wrong kmes_attach or mmap. Each names the form of the
// layout (docs/layouts.md) that the call may be of. Knows no stream.
#ifndef KMES_CONFORMANCE_MAIN_SMOKE_CALLS_H_
#define KMES_CONFORMANCE_MAIN_SMOKE_CALLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/tracer/events.h"

namespace kmes::conformance {

// One line for each mistake of an mmap of a buffer of this capacity. None: it is correct.
std::vector<std::string> mapping_mistakes(const Mapped& event, std::uint64_t capacity_bytes);

// One line for the last kmes_attach of a consumer that has mapped nothing, which failed. Empty: in
// this form a failed call ends the count of the CPUs. `has_attached`: an earlier call gave a
// descriptor.
std::string attach_mistake(const Attached& last, bool has_attached);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SMOKE_CALLS_H_
