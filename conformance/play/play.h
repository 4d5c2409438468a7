// SPDX-License-Identifier: MIT
//
// Actions of the producer and walks over the accesses of the testee, on a stage. Each leaves the
// testee running. Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_PLAY_H_
#define KMES_CONFORMANCE_PLAY_PLAY_H_

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "conformance/model/case.h"
#include "conformance/play/unusual_round.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {

// `count` events of `event_bytes` bytes on one CPU, or on every CPU.
void emit_some(Stage& stage, std::uint32_t cpu, std::uint64_t count, std::uint64_t event_bytes);
void emit_everywhere(Stage& stage, std::uint64_t count, std::uint64_t event_bytes);

// The same on one CPU, with events that are all header and cheap to process.
void emit_headers(Stage& stage, std::uint32_t cpu, std::uint64_t count, std::uint64_t event_bytes);

// The end event of one CPU, until it is delivered.
void end_cpu(Stage& stage, std::uint32_t cpu);

// Ends the first of three CPUs, then the second. Calls `look` with a CPU to check, when two CPUs
// are left and when one is.
CaseOutcome with_fewer_and_fewer(Stage& stage, const std::function<void(std::uint32_t cpu)>& look);

// The report holds everything that is published on a CPU.
bool is_delivered(const Stage& stage, std::uint32_t cpu);

// A thread that enters this wait really sleeps, on CPU 0's present buffer and with its flag set,
// while something that is published is not in the report.
bool sleeps_on_undelivered(Stage& stage, const FutexWait& wait);

// Longer than a consumer of several CPUs may rely on (contract: 100 ms at most).
bool is_long(const FutexWait& wait);

// Enough events of about `event_bytes` bytes to overwrite everything that is in the buffer.
void lap(Stage& stage, std::uint32_t cpu, std::uint64_t event_bytes = 4000);

// Events until write_pos of the CPU is `offset` bytes before the end of the data region (5.1.4).
// The last one has at least the least size that an event can have.
void fill_up_to(Stage& stage, std::uint32_t cpu, std::uint64_t offset);

// Events of so many bytes together, none of them larger than 16 pages: what grows for a large event
// has not grown before.
void emit_small(Stage& stage, std::uint32_t cpu, std::uint64_t bytes);

// Waits until the consumer of CPU 0 sleeps, with its next event `offset` bytes before the end of
// the data region. `filler`: the events that fill the ring up to there. Returns false if the
// consumer has refused the buffer (the judge decides whether it was right).
enum class Filler { any, small };
bool place_next_event(Stage& stage, std::uint64_t offset, Filler filler = Filler::any);

// The rings as the command line says, with so many CPUs, or with one only. Before anything else.
void set_up_cpus(Stage& stage, std::uint32_t cpus);
void set_up_cpus(Stage& stage, std::uint32_t cpus, std::uint64_t capacity_bytes);
void set_up_one_cpu(Stage& stage);
void set_up_one_cpu(Stage& stage, std::uint64_t capacity_bytes);

// Present positions of a CPU.
std::uint64_t write_pos(Stage& stage, std::uint32_t cpu);
std::uint64_t capacity(Stage& stage, std::uint32_t cpu);

// Wakes the sleeping consumer of `cpu` with one event, lets it go on access by access to the
// metadata page, and calls `act` before its `k`-th access (counted from 1). Afterwards everything
// that is owed has been delivered and it sleeps again. False: it slept again before a k-th access,
// or has refused the buffer.
bool act_at_access(Stage& stage, std::uint32_t cpu, std::uint64_t k,
                   const std::function<void()>& act);
// The same, where it is woken by what `wake` emits.
bool act_at_access_of(Stage& stage, std::uint32_t cpu, std::uint64_t k,
                      const std::function<void()>& wake, const std::function<void()>& act);

// Which accesses of a walk are counted: all of them, or the first by each instruction to each
// field.
enum class Counted { all, first_of_each };
struct AccessNumber {
    Counted counted = Counted::all;
    std::uint64_t number = 1;

    auto operator<=>(const AccessNumber&) const = default;
};
// A walk that needs more accesses than this before the consumer sleeps has met a spin.
inline constexpr std::uint64_t kWalkAccessesAtMost = 63;

// Which plays of a walk are played. Each play is an action before one access.
struct WalkChoice {
    // nullopt: before the first access, then before the second, while there is such an access.
    std::optional<std::vector<AccessNumber>> only = {};
    // Called before each play. None: nobody is.
    std::function<void(const AccessNumber&)> on_begin = nullptr;
};

// Ends a walk over all steps of a consumer that takes long for each, because it waits on one CPU
// after another. Stage::ShortenedWaits shortens these waits while the walk lasts. No verdict
// depends on the end. A pass says that the walk was ended.
class WalkLimit {
  public:
    explicit WalkLimit(Stage& stage);
    // To be asked once for each step.
    bool is_over();

  private:
    Stage& stage_;
    Stage::ShortenedWaits shortened_waits_;
    std::chrono::steady_clock::duration limit_;
    std::chrono::steady_clock::time_point begin_;
    int steps_ = 0;
};

// act_at_access for every k, until it sleeps before there is a k-th. One that spins before it
// sleeps (5.1.8.2 step 4) is then taken round again, and only the first access of each instruction
// to each field is counted: so what it does after its spin is reached, too.
void act_at_every_access(Stage& stage, std::uint32_t cpu, const std::function<void()>& act,
                         const WalkChoice& choice = {});

// The same after a spurious wake, or after `wakes` of them in a row.
void act_at_every_access_after_nothing(Stage& stage, std::uint32_t cpu,
                                       const std::function<void()>& act, std::uint64_t wakes = 1,
                                       const WalkChoice& choice = {});

// The same on CPU 0, of the accesses after the disturbance.
void act_at_every_access_after(Stage& stage, Disturbance disturbance,
                               const std::function<void()>& act, const WalkChoice& choice = {});

// Overwrites everything in the buffer of CPU 0 with payloads that `fill` has changed, each of an
// event at `position`. The first header is after the place of the oldest one.
void overwrite_all(Stage& stage,
                   const std::function<void(std::string& payload, std::uint64_t position)>& fill);

// No thread has accessed the pages of CPU 0's events. Says why that shows nothing, and ends the
// case, except for a consumer that has refused the buffer. `calls_before`: the tracer's redirected
// calls before there was anything to read.
void stop_unseen(Stage& stage, std::uint64_t calls_before);

// `emit` gives the sleeping consumer of CPU 0 something to read; before its first access to one of
// `pages` pages of the data from `first_page` on, `overwrite` is called. What that leaves reserved,
// or in a batch, is published when the consumer has done all that it can. Afterwards it sleeps
// again.
// An access that does not come ends the case (stop_unseen), or is left out.
enum class IfUnseen { stop, go_on };
void overwrite_under_read(Stage& stage, std::uint64_t first_page, std::uint64_t pages,
                          const std::function<void()>& emit, const std::function<void()>& overwrite,
                          IfUnseen if_unseen = IfUnseen::stop);

// The event that is overwritten during the copy: a little less than four pages.
inline constexpr std::uint64_t kVictimPages = 4;
inline constexpr std::uint64_t kVictimBytes = kVictimPages * kPageBytes - 64;

// A part of that event which is overwritten by an event of the same size that is not whole yet. The
// reader can tell: it is stopped before a page of which bytes have changed.
struct PartOver {
    std::uint64_t page = 0;  // of the event
    Written written = Written::whole;
};
inline constexpr PartOver kPartsOver[] = {
    {0, Written::header}, {0, Written::half}, {1, Written::half}};

// Every position of CPU 0 is moved so that `position` becomes `to`.
void move_positions(Stage& stage, std::uint64_t position, std::uint64_t to);

// Wakes the sleeping consumer of `cpu` without an event, until it waits again.
void wake_for_nothing(Stage& stage, std::uint32_t cpu);

// Until `condition`, for two seconds at most: what a consumer gives back by a timer of its own, it
// has some time for.
void give_time(Stage& stage, const std::function<bool()>& condition);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_PLAY_H_
