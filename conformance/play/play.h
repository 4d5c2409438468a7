// SPDX-License-Identifier: MIT
//
// Actions of the producer, and walks over the accesses of the testee, on a stage. Each function
// leaves the testee running. Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_PLAY_H_
#define KMES_CONFORMANCE_PLAY_PLAY_H_

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "conformance/model/case.h"
#include "conformance/play/unusual_iteration.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {

// Emits `count` events of `event_bytes` bytes on one CPU, or on every CPU.
void emit_some(Stage& stage, std::uint32_t cpu, std::uint64_t count, std::uint64_t event_bytes);
void emit_everywhere(Stage& stage, std::uint64_t count, std::uint64_t event_bytes);

// As emit_some on one CPU, but the events are all header and cheap to process.
void emit_headers(Stage& stage, std::uint32_t cpu, std::uint64_t count, std::uint64_t event_bytes);

// Emits the end event of one CPU.
void emit_end(Stage& stage, std::uint32_t cpu);

// As emit_end, and waits until it is delivered.
void end_cpu(Stage& stage, std::uint32_t cpu);

// Whether the report contains everything that is published on a CPU.
bool is_delivered(const Stage& stage, std::uint32_t cpu);

// The number of changes to a next buffer of a CPU (G records) in the part of the report that was
// read.
std::size_t reported_changes(const Stage& stage, std::uint32_t cpu);

// Whether a thread that enters this wait sleeps on undelivered events. The wait is on CPU 0's
// current buffer, need_wake is set, and a published event is not in the report.
bool sleeps_on_undelivered(Stage& stage, const FutexWait& wait);

// Whether the wait is longer than a consumer of several CPUs may rely on (contract: 100 ms at
// most).
bool is_long(const FutexWait& wait);

// Emits enough events of about `event_bytes` bytes to overwrite everything in the buffer.
void lap(Stage& stage, std::uint32_t cpu, std::uint64_t event_bytes = 4000);

// Emits until write_pos of the CPU is `offset` bytes before the end of the data region (5.1.4). The
// last event is not smaller than the smallest possible event.
void fill_up_to(Stage& stage, std::uint32_t cpu, std::uint64_t offset);

// Emits events of `bytes` bytes in total, none larger than 16 pages. So a consumer's memory for a
// large event has not grown before.
void emit_small(Stage& stage, std::uint32_t cpu, std::uint64_t bytes);

// Waits until the consumer of CPU 0 sleeps with its next event `offset` bytes before the end of the
// data region. `filler`: the events that fill the ring up to there. Returns false if the consumer
// has refused the buffer (the judge decides whether that was correct).
enum class Filler { any, small };
bool place_next_event(Stage& stage, std::uint64_t offset, Filler filler = Filler::any);

// Sets up the rings of the command line, but with `cpus` CPUs, or with only one. Call it first.
void set_up_cpus(Stage& stage, std::uint32_t cpus);
void set_up_cpus(Stage& stage, std::uint32_t cpus, std::uint64_t capacity_bytes);
void set_up_one_cpu(Stage& stage);
void set_up_one_cpu(Stage& stage, std::uint64_t capacity_bytes);

// Current positions of a CPU.
std::uint64_t write_pos(Stage& stage, std::uint32_t cpu);
std::uint64_t capacity(Stage& stage, std::uint32_t cpu);

// Wakes the sleeping consumer of `cpu` with one event, and stops it at each access to the metadata
// page. Calls `act` before its `k`-th access (counted from 1). Afterwards everything owed is
// delivered and the consumer sleeps again. Returns false if it slept before a k-th access, or has
// refused the buffer.
bool act_at_access(Stage& stage, std::uint32_t cpu, std::uint64_t k,
                   const std::function<void()>& act);
// As act_at_access, but `wake` emits the events that wake the consumer.
bool act_at_access_of(Stage& stage, std::uint32_t cpu, std::uint64_t k,
                      const std::function<void()>& wake, const std::function<void()>& act);

// The accesses of a walk that count: all, or the first of each instruction to each field.
enum class Counted { all, first_of_each };
struct AccessNumber {
    Counted counted = Counted::all;
    std::uint64_t number = 1;

    auto operator<=>(const AccessNumber&) const = default;
};
// A consumer that makes more accesses than this in a walk before it sleeps has met a spin.
inline constexpr std::uint64_t kWalkAccessesAtMost = 63;

// The chosen plays of a walk. A play is an action before one access.
struct WalkChoice {
    // nullopt: before the first access, then before the second, and so on.
    std::optional<std::vector<AccessNumber>> only = {};
    // Called before each play; may be empty.
    std::function<void(const AccessNumber&)> on_begin = nullptr;
};

// Ends a walk that takes long, because the consumer waits on one CPU after another at each step.
// While the walk lasts, ShortenedWaits shortens these waits. No verdict depends on the end.
// A pass says that the walk was ended.
class WalkLimit {
  public:
    explicit WalkLimit(Stage& stage);
    // Call it once for each step. Once true, it stays true.
    bool is_over();

  private:
    Stage& stage_;
    ShortenedWaits shortened_waits_;
    std::chrono::steady_clock::duration limit_;
    std::chrono::steady_clock::time_point begin_;
    int steps_ = 0;
    bool is_over_ = false;
};

// Calls act_at_access for every k until the consumer sleeps before a k-th access. A consumer that
// spins before it sleeps (5.1.8.2 step 4) is walked a second time. The second walk counts only the
// first access of each instruction to each field, and so reaches what comes after the spin.
void act_at_every_access(Stage& stage, std::uint32_t cpu, const std::function<void()>& act,
                         const WalkChoice& choice = {});

// As act_at_every_access, after one spurious wake, or after `wakes` of them in a row.
void act_at_every_access_after_nothing(Stage& stage, std::uint32_t cpu,
                                       const std::function<void()>& act, std::uint64_t wakes = 1,
                                       const WalkChoice& choice = {});

// As act_at_every_access on CPU 0, for the accesses after the disturbance.
void act_at_every_access_after(Stage& stage, Disturbance disturbance,
                               const std::function<void()>& act, const WalkChoice& choice = {});

// Overwrites everything in the buffer of CPU 0. `fill` changes the payload of each event, which is
// at `position`. The first header is after the place of the oldest event's header.
void overwrite_all(Stage& stage,
                   const std::function<void(std::string& payload, std::uint64_t position)>& fill);

// Call it if no thread has accessed the pages of CPU 0's events. Says why the case then shows
// nothing, and ends it, unless the consumer has refused the buffer. `calls_before`: the tracer's
// redirected calls before there was anything to read.
void stop_unseen(Stage& stage, std::uint64_t calls_before);

// `emit` gives the sleeping consumer of CPU 0 something to read. `overwrite` is called before its
// first access to one of `pages` pages of the data from `first_page` on. If `overwrite` leaves a
// reservation or a batch, it is published when the consumer has done all that it can. Afterwards
// the consumer sleeps again. If no such access comes, the case ends (stop_unseen) or continues
// without `overwrite`.
enum class IfUnseen { stop, ignore };
void overwrite_under_read(Stage& stage, std::uint64_t first_page, std::uint64_t pages,
                          const std::function<void()>& emit, const std::function<void()>& overwrite,
                          IfUnseen if_unseen = IfUnseen::stop);

// The event that is overwritten during the copy: a little less than four pages.
inline constexpr std::uint64_t kVictimPages = 4;
inline constexpr std::uint64_t kVictimBytes = kVictimPages * kPageBytes - 64;

// A part of that event, which another event of the same size overwrites without being complete. The
// reader can tell: it is stopped before a page whose bytes have changed.
struct PartOver {
    std::uint64_t page = 0;  // of the event
    Written written = Written::whole;
};
inline constexpr PartOver kPartsOver[] = {
    {0, Written::header}, {0, Written::half}, {1, Written::half}};

// Moves all positions of CPU 0 so that `position` becomes `to`.
void move_positions(Stage& stage, std::uint64_t position, std::uint64_t to);

// Wakes the sleeping consumer of `cpu` without an event, and waits until it sleeps again.
void wake_spuriously(Stage& stage, std::uint32_t cpu);

// Waits for `condition`, at most two seconds: a consumer may free something only after a timer of
// its own.
void give_time(Stage& stage, const std::function<bool()>& condition);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_PLAY_H_
