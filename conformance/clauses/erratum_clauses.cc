// SPDX-License-Identifier: MIT
//
// The errata that bind a consumer, and what a consumer can see of E8. (E5, E13, E16, E18, E22 and
// E23 bind only the producer. E25 has no case: why_no_case.cc.)
#include "conformance/clauses/parts.h"

namespace kmes::conformance {

namespace {

void add_sleep_errata(std::vector<Clause>& clauses) {
    clauses.push_back(
        {"E1",
         "The consumer has a full barrier between the store to need_wake and the load of "
         "write_pos.",
         {"E1/full-barrier", "E1/full-barrier-on-the-last-cpu", "E1/full-barrier-in-between",
          "E1/full-barrier-later", "E1/full-barrier-at-first", "E1/full-barrier-beside-ended-cpus",
          "E1/full-barrier-after-unusual-iterations"}});
    clauses.push_back({"E2",
                       "The consumer reads futex_counter before the last load of write_pos.",
                       {"E2/event-at-every-step", "E2/event-at-every-step-beside-ended-cpus",
                        "E2/event-at-every-step-of-a-first-sleep", "E2/event-at-the-futex-wait",
                        "E2/event-at-every-step-after-unusual-iterations",
                        "E2/no-limit-instead-of-a-second-load"}});
    clauses.push_back(
        {"E3",
         "The consumer loads generation again, with write_pos, before it sleeps.",
         {"E3/swap-at-every-step", "E3/swap-at-every-step-beside-ended-cpus",
          "E3/swap-without-an-event-at-every-step", "E3/asleep-through-a-swap",
          "E3/swap-elsewhere-at-every-step", "E3/swap-after-a-spurious-wake",
          "E3/swap-after-an-interruption", "E3/swap-after-a-timeout",
          "E3/swap-after-many-spurious-wakes", "E3/swap-before-any-event",
          "E3/swap-at-every-step-on-the-last-cpu", "E3/swap-at-every-step-of-thirty-six",
          "E3/swap-at-every-step-after-unusual-iterations", "E3/all-swapped-and-one-refused",
          "E3/all-swapped-and-one-ends"}});
    clauses.push_back({"E17", "The consumer waits on a shared futex.", {"E17/shared-futex"}});
}

void add_read_errata(std::vector<Clause>& clauses) {
    clauses.push_back({"E4",
                       "The consumer has a fence between the copy and the second load of tail_pos.",
                       {"E4/data-before-the-second-load"}});
    clauses.push_back(
        {"E6",
         "The consumer copies an event before the check, or checks after its last use.",
         {"5.1.8.1-5/torn-in-the-middle", "5.1.8.1-5/torn-at-the-end"}});
    clauses.push_back({"E7 torn",
                       "The consumer bounds sizes before it uses them. If they are wrong and "
                       "tail_pos has passed, they were torn.",
                       {"E7/torn-header-of-large-sizes", "E7/torn-header-of-zeros",
                        "E7/torn-header-of-mixed-sizes", "E7/torn-to-a-plausible-header",
                        "E7/torn-to-an-old-number"}});
    clauses.push_back({"E7 bounds",
                       "The bound is what is published, not half of the capacity.",
                       {"E7/event-larger-than-half", "E7/survivors-larger-than-half"}});
    clauses.push_back({"E7 corrupt sizes",
                       "The consumer refuses impossible sizes or moves to write_pos. It never "
                       "steps back, loops, or reads outside its mapping.",
                       {"E7/event-size-zero",
                        "E7/event-size-one",
                        "E7/event-size-29",
                        "E7/event-size-huge",
                        "E7/event-size-beyond-write-pos",
                        "E7/header-size-beyond-event",
                        "E7/large-event-forged",
                        "E7/large-event-forged-while-it-runs",
                        "E7/header-size-huge",
                        "E7/type-beyond-header",
                        "E7/type-empty",
                        "E7/first-event-forged",
                        "E7/middle-event-forged",
                        "E7/last-event-forged",
                        "E7/first-event-forged-while-it-runs",
                        "E7/middle-event-forged-while-it-runs",
                        "E7/last-event-forged-while-it-runs",
                        "E7/event-forged-after-a-change",
                        "E7/survivor-forged",
                        "E7/forged-in-a-replaced-buffer",
                        "E7/forged-across-the-end"}});
    clauses.push_back(
        {"E7 corrupt positions",
         "The consumer refuses positions that contradict each other, or moves to write_pos.",
         {"E7/tail-beyond-write-pos", "E7/write-pos-far-ahead", "E7/size-and-write-pos-forged",
          "E7/positions-forged", "E7/positions-forged-while-it-runs"}});
    clauses.push_back(
        {"E26",
         "A write_pos more than the capacity beyond read_pos and tail_pos is corrupt content.",
         {"E7/write-pos-laps-ahead", "E7/write-pos-laps-ahead-while-it-runs"}});
    clauses.push_back(
        {"E7 corrupt numbers",
         "Impossible sequence numbers and cpu_id do no harm.",
         {"E7/sequence-goes-back", "E7/sequence-goes-back-while-it-runs", "E7/cpu-id-of-another"}});
    clauses.push_back({"E8",
                       "The producer publishes a batch larger than the room in pieces.",
                       {"E8/batch-larger-than-the-room"}});
    clauses.push_back(
        {"E20",
         "The consumer starts again with write_pos after every change of read_pos.",
         {"E20/lapped-at-every-step", "E20/explored-full-ring", "E20/explored-large-survivor",
          "E20/lapped-in-part-at-every-step", "E20/tail-reaches-write-pos",
          "E20/large-survivor-passed-at-every-step", "E20/fills-the-new-buffer"}});
}

void add_swap_errata(std::vector<Clause>& clauses) {
    clauses.push_back({"E9",
                       "The consumer reads generation each time and never caches it.",
                       {"5.1.8.3/grow", "E19/nudged"}});
    clauses.push_back(
        {"E10",
         "The consumer drains the old buffer to its frozen write_pos before the new one.",
         {"E10/unread-in-the-old-buffer", "E10/a-thousand-unread", "E10/twenty-thousand-unread",
          "E10/five-mebibytes-unread", "E10/next-buffer-overtaken-at-every-step",
          "E10/overtaken-and-shrunk-at-every-step", "E10/end-at-every-step",
          "E10/changed-on-the-way-to-another", "E10/thousands-unread-on-any-cpu",
          "E10/full-of-the-smallest-unread"}});
    clauses.push_back(
        {"E11",
         "The consumer begins at tail_pos and derives nothing from positions in another buffer.",
         {"E11/begins-at-tail-pos", "E11/positions-begin-at-zero", "E11/positions-are-shifted",
          "E11/positions-fit-by-chance", "E11/image-at-the-old-position",
          "E11/event-at-the-old-position", "E11/empty-and-begins-at-zero"}});
    clauses.push_back(
        {"E12",
         "The consumer of a shared buffer does not rely on a flag that another may clear.",
         {"E12/cleared-while-it-sleeps", "E12/cleared-at-every-step", "E12/set-at-every-step",
          "E12/two-instances", "E12/two-instances-under-load"}});
    clauses.push_back(
        {"E14",
         "The consumer reads the capacity once from each buffer's metadata, and refuses one that "
         "is not what is mapped.",
         {"E14/capacity-larger-than-the-mapping", "E14/capacity-smaller-than-the-mapping",
          "E14/capacity-of-the-next-buffer", "E14/smaller-capacity-of-the-next-buffer",
          "E14/attaches-of-two-capacities"}});
    clauses.push_back({"E15",
                       "Any difference of generation is a change.",
                       {"E15/two-swaps-at-once", "E15/two-swaps-without-events",
                        "E15/generation-jumps", "E15/generation-forged",
                        "E15/generation-of-the-old-buffer", "E15/nudged-between-two-loads"}});
    clauses.push_back(
        {"E19",
         "The consumer finds the current buffer, at once or at a nudge, if its own was retired "
         "between mmap and the first load of generation.",
         {"E19/swap-after-the-mmap", "E19/swap-with-events-after-the-mmap", "E19/nudged",
          "E19/resize-at-every-step-of-an-attach"}});
    clauses.push_back(
        {"E21",
         "The consumer keeps one last sequence number for a CPU, over all its buffers.",
         {"E21/swaps-without-events-between", "E21/lapped-over-a-swap",
          "E21/event-after-swaps-without-events", "E21/nothing-survives",
          "E21/torn-while-it-finds-its-place", "E21/lapped-in-part-while-it-finds-its-place",
          "E21/torn-to-a-plausible-header-while-it-scans", "5.1.8.3-5/no-event-twice",
          "E21/full-of-the-smallest-survivors", "E21/new-over-the-first-that-it-scans"}});
    clauses.push_back(
        {"E24",
         "The consumer loads write_pos of the old buffer again after generation has changed.",
         {"E24/swap-at-every-step", "E24/swap-at-every-step-of-an-empty-iteration",
          "E24/swap-at-every-step-after-unusual-iterations",
          "E24/full-ring-at-its-load-of-generation", "E24/refused-at-every-step"}});
}

}  // namespace

void add_erratum_clauses(std::vector<Clause>& clauses) {
    add_sleep_errata(clauses);
    add_read_errata(clauses);
    add_swap_errata(clauses);
}

}  // namespace kmes::conformance
