// SPDX-License-Identifier: MIT
//
// The emit calls (kmes/call.h) with hostile descriptors, compared with a second implementation of
// them and of the ring, written from the event model (batch_model.h). Compared are results,
// fetches, bytes in the ring, positions, numbers and counters.
//
// The input: a ring, limits, and the memory of a caller (batch_caller.h); then operations. An
// operation is a call, an in-kernel emission, a resize, or a call from inside an emission. Each
// fetch takes one more byte, which selects an action during the fetch. It is a fault, a change of
// the fetched bytes, a resize, an emission, the end of the producer, a consumer's request for a
// wake, or time.
//
// The same bytes are played twice more: to the CPU of a thread (batch_pinned.h), and as a list of
// entries in this address space (batch_entries.h).
#ifndef KMES_FUZZ_TARGETS_BATCH_H_
#define KMES_FUZZ_TARGETS_BATCH_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_batch(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_BATCH_H_
