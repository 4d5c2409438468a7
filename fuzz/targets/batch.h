// SPDX-License-Identifier: MIT
//
// The emit calls (kmes/call.h) with hostile descriptors, against a second implementation of them
// and of the ring, written from the event model (batch_model.h): results, fetches, bytes in the
// ring, positions, numbers, counters.
//
// The input: a ring, limits, and the memory of a caller (batch_caller.h); then operations, each of
// them a call, an in-kernel emission, a resize, or a call from inside an emission. Each fetch takes
// one more byte: what happens while it is done (a fault, a change of what was fetched, a resize, an
// emission, the end of the producer, a consumer that asks to be woken, time).
//
// The same bytes are played twice more: to the CPU of a thread (batch_pinned.h), and as a list of
// entries in this address space (batch_entries.h).
#ifndef KMES_FUZZ_TARGETS_BATCH_H_
#define KMES_FUZZ_TARGETS_BATCH_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_batch(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_BATCH_H_
