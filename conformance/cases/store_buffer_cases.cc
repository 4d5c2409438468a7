// SPDX-License-Identifier: MIT
//
// E1: the full barrier between the store to need_wake and the load of write_pos (store_buffer.h).
#include <cerrno>

#include "conformance/cases/play.h"
#include "conformance/play/row.h"
#include "conformance/play/store_buffer.h"

namespace kmes::conformance {

namespace {

constexpr std::uint64_t kIterations = 4;

CaseOutcome full_barrier_at_first(Stage& stage) {
    using On = FirstSleep::On;
    set_up_one_cpu(stage);
    hold_first_stores(stage, {{On::first_buffer},
                              {On::empty},
                              {On::empty},
                              {On::empty, 2},
                              {On::empty, 3},
                              {On::survivors},
                              {On::survivors},
                              {On::meanwhile},
                              {On::meanwhile}});
    return stage.finish();
}

const Row kStoreBufferRows[] = {
    {{"E1/full-barrier", Level::erratum, "a full barrier after the store to need_wake",
      "Hold the store of 1 to need_wake back, as a processor may, until a full barrier or a "
      "system call. If write_pos is loaded before that, publish an event right after the load, "
      "later after one load more.",
      "The consumer orders the two by a full barrier, so it never sleeps on an unread event."},
     {HoldStores{kIterations}}},
    {{"E1/full-barrier-on-the-last-cpu", Level::erratum,
      "a full barrier after the last store to need_wake",
      "Play E1/full-barrier on the last CPU, because one thread may set the flags of all CPUs.",
      "The consumer has a full barrier after its last store to a need_wake."},
     {OnCpu{kLastCpu, {HoldStores{kIterations}}}}},
    {{"E1/full-barrier-in-between", Level::erratum, "a full barrier after every store to need_wake",
      "Play E1/full-barrier on each CPU between the first and the last.",
      "The consumer has a full barrier after each store of 1 to a need_wake."},
     {OnEachCpu{{HoldStores{}}, {0, kLastCpu}}}},
    {{"E1/full-barrier-later", Level::erratum, "a full barrier at every sleep",
      "Play E1/full-barrier after twenty sleeps, after a spurious wake, after an "
      "interrupted wait, and in the next buffer.",
      "The consumer has a full barrier after the store at each of them."},
     {Times{20, {Asleep{}, Emit{}}}, HoldStores{.wake = {SpuriousWake{}}}, WakesReturn{-EINTR},
      HoldStores{.wake = {SpuriousWake{}}}, WakesReturn{0}, Resize{}, Asleep{}, HoldStores{}},
     kOneCpu},
    {{"E1/full-barrier-beside-ended-cpus", Level::erratum, "a full barrier with ended CPUs",
      "Play E1/full-barrier with two CPUs left of three, and with one.",
      "The consumer has a full barrier after the store, however many CPUs are left."},
     with_fewer_and_fewer({HoldStores{}}),
     {.cpus = 3}},
    {{"E1/full-barrier-at-first", Level::erratum, "a full barrier before the first sleep",
      "Play E1/full-barrier before the first sleep of all, and before the first one on several "
      "more buffers. These are empty, hold delivered events, or are replaced between "
      "kmes_attach and the first access.",
      "The consumer has a full barrier after the store there, too."},
     full_barrier_at_first},
    {{"E1/full-barrier-after-unusual-iterations", Level::erratum,
      "a full barrier after an unusual iteration",
      "Play E1/full-barrier after a sleep that the second check prevented, after a "
      "lap, and after a torn read. Play it after a wait that returned EAGAIN, EINTR "
      "or, if it has a limit, ETIMEDOUT.",
      "The consumer has a full barrier after the store in any iteration."},
     {each({Disturbance::given_up, Disturbance::lapped, Disturbance::torn, Disturbance::torn_whole,
            Disturbance::refused, Disturbance::interrupted, Disturbance::timed_out,
            Disturbance::many},
           [](Disturbance disturbance) { return Steps{HoldStores{.after = disturbance}}; })},
     {.cpus = 1, .capacity = kUnusualCapacity}},
};

}  // namespace

const std::vector<Case> kStoreBufferCases = cases_of(kStoreBufferRows);

}  // namespace kmes::conformance
