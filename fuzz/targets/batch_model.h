// SPDX-License-Identifier: MIT
//
// A model of the emit calls for one CPU, written from event-model.md, 5.1.7 and the errata. It has
// a ring that is a list of events, and the two calls, which read the log of the core's fetches.
// Each fetch must be in its place, and there must be no other. The log also has the results of the
// fetches, and the actions during them. Knows nothing of the core.
#ifndef KMES_FUZZ_TARGETS_BATCH_MODEL_H_
#define KMES_FUZZ_TARGETS_BATCH_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "fuzz/targets/batch_caller.h"

namespace kmes::fuzz {

// An action on the CPU outside of a call.
struct Happening {
    enum Kind { kNothing, kResize, kEmission, kClose, kAskWake, kTick } kind = kNothing;
    std::uint64_t value = 0;  // capacity; bytes of the event; closed or not; need_wake; ns
};

// One recorded fetch: its range, its result, and the actions before it returned.
struct Fetch {
    std::uint64_t address = 0;
    std::uint64_t count = 0;
    bool is_fault = false;
    std::vector<std::uint8_t> bytes;
    Happening meanwhile;
};

class Model {
  public:
    using Bytes = std::vector<std::uint8_t>;

    std::uint64_t capacity = 0;
    std::uint64_t max_event_bytes = 0;
    std::uint64_t now_ns = 0;
    std::uint64_t last_sequence = 0;
    std::uint16_t cpu_id = 0;
    std::uint8_t origin_class = 0;
    std::uint8_t need_wake = 0;
    bool is_closed = false;
    bool is_inside = false;  // the call interrupted an emission of the same CPU

    std::uint64_t tail = 0;
    std::uint64_t published = 0;
    std::uint64_t frontier = 0;
    std::uint64_t generation = 1;
    std::uint32_t futex_counter = 0;  // of the current buffer
    std::deque<Bytes> events;         // from the tail to the frontier

    std::uint64_t emitted = 0, emitted_bytes = 0, dropped = 0, overwritten = 0;
    std::uint64_t wakes = 0, swaps = 0, left_behind = 0;

    void happen(const Happening& what);
    // The in-kernel form (5.1.7 step 5). The number of bytes determines the event (see
    // bytes_of_size).
    void emit_in_kernel(std::uint64_t event_bytes);
    // The two calls; they return the expected results, and consume the log from its front.
    int emit(const Descriptor& what, std::deque<Fetch>* log);
    int emit_batch(std::uint64_t entries, std::uint32_t count, std::deque<Fetch>* log,
                   std::uint32_t* emitted_entries);

    // Returns all surviving events, in order.
    Bytes survivors() const;
    // The payload of an in-kernel emission with the type "k": a sequence of counting bytes.
    static Bytes bytes_of_size(std::uint64_t payload_bytes);

  private:
    int one_event(const Descriptor& what, std::deque<Fetch>* log, const std::uint64_t* timestamp);
    bool fetch(std::deque<Fetch>* log, std::uint64_t address, std::uint64_t count, Bytes* got);
    void append(const Bytes& type, const Bytes& payload, std::uint8_t origin, std::uint64_t time);
    void make_room(std::uint64_t event_bytes);
    void publish_and_wake();
    void end_batch();
    void resize(std::uint64_t new_capacity);

    bool wake_owed_ = false;
};

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_BATCH_MODEL_H_
