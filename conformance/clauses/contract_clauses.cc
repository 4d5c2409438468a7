// SPDX-License-Identifier: MIT
//
// The testee contract, version 1: its four points, its records, and what the suite may do.
#include "conformance/clauses/parts.h"

namespace kmes::conformance {

namespace {

void add_points(std::vector<Clause>& clauses) {
    clauses.push_back({"contract 1 attach",
                       "The consumer calls kmes_attach by number. After ERANGE, which returns the "
                       "number of slots, it may call again.",
                       {"5.1.5/attach-and-map", "contract-1/more-cpus-than-slots"}});
    clauses.push_back({"contract 1 EAGAIN",
                       "The consumer tries again after EAGAIN, or exits with a non-zero status.",
                       {"contract-1/eagain", "5.1.2/attach-in-the-boot-phase"}});
    clauses.push_back(
        {"published producer",
         "What a producer by the published rules of forms B to D loses is no fault of a consumer.",
         {"published/tail-after-the-data", "published/wake-without-a-fence",
          "published/swap-without-a-nudge", "published/swap-without-a-fence"}});
    clauses.push_back({"contract 1 holes",
                       "In form D of the layout, EINVAL of kmes_attach is a slot without a buffer, "
                       "and not the end of the array.",
                       {"contract-1/hole-in-the-cpus"}});
    clauses.push_back(
        {"contract 1 later attach",
         "The consumer delivers the old buffer when a later attach fails. It tries again after a "
         "rest, or exits with a non-zero status.",
         {"contract-1/later-attach-eagain", "contract-1/later-attach-enomem",
          "contract-1/later-attach-emfile", "contract-1/later-attach-enfile",
          "contract-1/later-attach-eperm", "contract-1/later-attach-with-nothing-unread",
          "contract-1/later-attach-beside-others", "contract-1/later-attach-at-every-step"}});
    clauses.push_back(
        {"contract 2 map",
         "The consumer makes one shared mmap for each fd, readable and writable, from offset 0.",
         {"5.1.5/attach-and-map"}});
    clauses.push_back(
        {"contract 2 drain",
         "The consumer drains every CPU's buffer and sleeps by futex when all are empty.",
         {"5.1.1/four-cpus", "5.1.8.2-5/sleeps-and-wakes", "contract-2/event-beside-a-busy-cpu"}});
    clauses.push_back({"contract 2 owed",
                       "The consumer owes every event from the tail_pos of its first load on that "
                       "is not overwritten.",
                       {"E11/begins-at-tail-pos", "5.1.8.1-2/lapped-moves-to-tail"}});
    clauses.push_back({"contract 3 lines",
                       "A record is one line, and a write consists of whole lines.",
                       {"5.1.8.1-6/drain", "5.1.9/under-load", "contract-3/whole-lines",
                        "contract-3/records-pile-up"}});
    clauses.push_back({"contract 3 in time",
                       "The consumer writes all records before it sleeps on that CPU.",
                       {"5.1.8.2-5/sleeps-and-wakes", "contract-3/records-before-it-sleeps",
                        "contract-3/a-change-is-reported-before-it-sleeps"}});
    clauses.push_back({"contract 4 end of a CPU",
                       "The consumer stops a CPU after the end event, and only then.",
                       {"contract-4/nothing-after-the-end", "contract-4/almost-the-end",
                        "contract-4/other-ends"}});
    clauses.push_back(
        {"contract 4 exit",
         "The consumer exits with status 0 when all CPUs have ended.",
         {"contract-4/cpu-by-cpu", "contract-4/ended-through-changes", "5.1.5/attach-and-map",
          "contract-4/exits-with-all-records", "contract-4/exits-after-its-last-record"}});
}

void add_records(std::vector<Clause>& clauses) {
    clauses.push_back(
        {"contract record E",
         "An E record reports each event, with its own numbers, type, length and digest.",
         {"5.1.8.1-6/drain", "event-model/types", "event-model/payload-bytes"}});
    clauses.push_back({"contract record L",
                       "An L record, if written, has the exact count of missing events. The "
                       "consumer writes none before the first event.",
                       {"5.1.9/gap-of-dropped-events", "5.1.9/gap-before-the-first"}});
    clauses.push_back({"contract record G",
                       "A G record follows every switch, with a value that the field had.",
                       {"5.1.8.3/grow", "E19/nudged", "E19/swap-with-events-after-the-mmap"}});
    clauses.push_back({"contract record R",
                       "An R record needs a reason. The CPU then counts as ended.",
                       {"5.1.6.1/bad-magic-first-byte", "5.1.6.1/reserved-bytes-set",
                        "5.1.6.1/two-refused-of-forty", "5.1.3/attach-says-no-power-of-two"}});
    clauses.push_back(
        {"contract, a refused successor",
         "The consumer owes unread events of the old buffer before the R record of the next.",
         {"5.1.6.1/unread-before-a-refused-buffer", "5.1.6.1/one-unread-before-a-refused-buffer",
          "5.1.6.1/unread-before-a-later-refused-buffer", "E24/refused-at-every-step"}});
    clauses.push_back({"contract record #",
                       "The suite never judges a comment.",
                       {},
                       "it requires nothing of a consumer"});
    clauses.push_back({"contract records, others",
                       "An unknown record or a malformed line fails the case in which it appears.",
                       {"5.1.8.1-6/drain"}});
}

void add_liberties(std::vector<Clause>& clauses) {
    clauses.push_back(
        {"contract, stopped threads",
         "Any thread may be stopped at any instruction for any time.",
         {"5.1.8.2-5/interrupted-waits", "5.1.8.1-2/lapped-many-times", "E2/event-at-every-step"}});
    clauses.push_back({"contract, CPUs",
                       "The number of CPUs is 1 to 64.",
                       {"5.1.1/one-cpu", "5.1.1/sixteen-cpus", "contract-1/more-cpus-than-slots"}});
    clauses.push_back({"contract, capacities",
                       "The capacity is any valid one.",
                       {"5.1.8.3/grow", "5.1.8.3/shrink", "5.1.3/largest-capacity"}});
    clauses.push_back({"contract, resizes",
                       "The number of resizes is unlimited.",
                       {"5.1.8.4/resizes-under-load", "5.1.8.3-6/closes-retired-buffers",
                        "5.1.8.3-6/two-hundred-resizes"}});
    clauses.push_back({"contract, wakes",
                       "Spurious wakes and interrupted waits may occur at any time.",
                       {"5.1.8.2-6/spurious-wakes", "5.1.8.2-5/waits-that-return-eintr"}});
    clauses.push_back({"contract, stores",
                       "The consumer writes need_wake and nothing else. A 32-bit store of 0 or 1 "
                       "is correct, too.",
                       {"5.1.8.1-6/drain", "5.1.8.2-5/sleeps-and-wakes"}});
    clauses.push_back({"contract, robust",
                       "The consumer may refuse content that no producer writes, or continue with "
                       "the whole events. It never crashes, hangs or reads outside its mapping.",
                       {"E7/event-size-huge", "E7/write-pos-far-ahead"}});
    clauses.push_back(
        {"contract, waiting",
         "The consumer waits by futex on futex_counter after any bounded spin. One thread for "
         "several CPUs uses futex_waitv or a limit of at most 100 ms.",
         {"5.1.8.2-5/sleeps-and-wakes", "5.1.8/one-busy-cpu", "5.1.8.2/idle-burns-no-cpu",
          "5.1.8.2/delivers-when-woken", "5.1.8.2/delivers-on-any-cpu",
          "contract-2/event-beside-a-busy-cpu", "contract-2/waits-when-idle-for-long"}});
}

}  // namespace

void add_contract_clauses(std::vector<Clause>& clauses) {
    add_points(clauses);
    add_records(clauses);
    add_liberties(clauses);
}

}  // namespace kmes::conformance
