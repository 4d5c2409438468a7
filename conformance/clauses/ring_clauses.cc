// SPDX-License-Identifier: MIT
//
// Section 5.1 of the specification, every sentence that a consumer can break. Sentences that bind
// only the producer are left out. If an erratum changes a sentence, the erratum holds.
#include "conformance/clauses/parts.h"

namespace kmes::conformance {

namespace {

void add_metadata_clauses(std::vector<Clause>& clauses) {
    clauses.push_back({"5.1.6.1 magic",
                       "The consumer compares all eight bytes of the magic.",
                       {"5.1.6.1/bad-magic-first-byte", "5.1.6.1/bad-magic-last-byte",
                        "5.1.6.1/each-byte-of-the-magic"}});
    clauses.push_back(
        {"5.1.6.1 version",
         "The consumer knows format version 1 only and refuses any other.",
         {"5.1.6.1/unknown-version", "5.1.6.1/version-zero", "5.1.6.1/version-in-all-its-bytes",
          "5.1.6.1/version-all-ones", "5.1.6.1/version-of-the-next-buffer",
          "5.1.6.1/version-after-sound-buffers", "5.1.6.1/magic-of-the-next-buffer",
          "5.1.6.1/next-version-in-all-its-bytes", "5.1.6.1/faults-on-later-cpus"}});
    clauses.push_back({"5.1.6.1 data_offset",
                       "The data begins at data_offset, which is 4096.",
                       {"5.1.6.1/other-data-offset", "5.1.6.1/absurd-static-fields"}});
    clauses.push_back({"5.1.6.1 reserved",
                       "Reserved bytes belong to later versions, and the consumer ignores them.",
                       {"5.1.6.1/reserved-bytes-set", "5.1.6.1/reserved-bytes-that-change"}});
    clauses.push_back({"5.1.6.1 static",
                       "The consumer may keep static fields. A later change of them changes "
                       "nothing that is mapped.",
                       {"5.1.6.1/static-fields-that-change"}});
    clauses.push_back({"5.1.6.1 generation",
                       "Each buffer has a generation higher than that of the buffer before it.",
                       {"5.1.8.3/grow", "E19/nudged", "5.1.6.1/generations-beyond-32-bits"}});
    clauses.push_back(
        {"5.1.6.2 positions",
         "Positions have 64 bits and never wrap. Their place is position & (capacity - 1).",
         {"5.1.6.2/positions-beyond-31-bits", "5.1.6.2/positions-beyond-32-bits",
          "5.1.6.2/positions-beyond-63-bits", "5.1.6.2/positions-near-the-top",
          "5.1.6.2/positions-pass-31-bits-at-every-step",
          "5.1.6.2/positions-pass-32-bits-at-every-step",
          "5.1.6.2/positions-pass-63-bits-at-every-step", "5.1.6.2/laps-pass-32-bits-at-every-step",
          "5.1.6.2/overtaken-by-2-gibibytes", "5.1.6.2/overtaken-by-4-gibibytes"}});
    clauses.push_back({"5.1.6.2 writer",
                       "The consumer writes none of the producer's fields.",
                       {"5.1.8.1-6/drain", "5.1.8.2-5/sleeps-and-wakes"}});
    clauses.push_back(
        {"5.1.6.3 futex_counter",
         "The consumer sleeps on futex_counter, 32 bits at offset 128, and does not write it.",
         {"5.1.8.2-5/sleeps-and-wakes", "E17/shared-futex", "5.1.6.3/counter-wraps",
          "5.1.6.3/counter-beyond-31-bits"}});
    clauses.push_back(
        {"5.1.6.3 need_wake",
         "The consumer sets need_wake to 1 before it sleeps and clears it afterwards.",
         {"5.1.8.2-1/asks-to-be-woken", "5.1.8.2-5/sleeps-and-wakes", "5.1.6.3/flag-left-set"}});
}

}  // namespace

void add_layout_clauses(std::vector<Clause>& clauses) {
    clauses.push_back(
        {"5.1.1",
         "Each CPU has one buffer, which is mapped and read independently.",
         {"5.1.1/one-cpu", "5.1.1/four-cpus", "5.1.1/explored-two-cpus", "5.1.1/explored-two-large",
          "5.1.1/sixteen-cpus", "5.1.1/some-of-sixty-four", "5.1.8.3/change-of-twenty",
          "5.1.1/two-cpus-go-to-sleep", "5.1.1/two-cpus-in-the-middle-of-a-lap",
          "5.1.1/many-cpus-in-the-middle", "5.1.1/two-cpus-in-the-middle",
          "5.1.1/two-cpus-in-the-middle-of-large-events",
          "5.1.1/two-cpus-in-the-middle-of-long-types", "5.1.1/event-elsewhere-at-every-step",
          "5.1.1/events-everywhere-at-every-step"}});
    clauses.push_back({"5.1.2",
                       "Events that survive the boot buffers are in the rings. Before the "
                       "hand-over there is no ring.",
                       {"5.1.2/events-of-the-boot-phase", "5.1.2/attach-in-the-boot-phase",
                        "contract-1/eagain"}});
    clauses.push_back({"5.1.3",
                       "The capacity is a power of two, the same for every CPU.",
                       {"5.1.3/capacity-no-power-of-two", "5.1.3/capacity-zero",
                        "5.1.3/attach-says-no-power-of-two",
                        "5.1.3/a-later-attach-says-no-power-of-two", "5.1.3/largest-capacity"}});
    clauses.push_back({"5.1.4",
                       "An event that crosses the end of the ring is one run of bytes.",
                       {"5.1.4/wrap-at-every-byte", "5.1.4/wrap-at-an-event-boundary"}});
    clauses.push_back(
        {"5.1.5",
         "The mapping is one page of metadata and twice the capacity.",
         {"5.1.5/attach-and-map", "5.1.5/files-longer-than-the-mapping", "5.1.5/fds-from-300-on"}});
    add_metadata_clauses(clauses);
}

namespace {

void add_drain_clauses(std::vector<Clause>& clauses) {
    clauses.push_back({"5.1.7 step 5",
                       "The producer writes events of up to half the capacity. A larger one uses "
                       "its sequence number, which shows as a gap.",
                       {"5.1.7-5/sizes-up-to-half", "5.1.9/gap-of-dropped-events"}});
    clauses.push_back({"5.1.7 batch",
                       "The producer publishes a batch by one store and one load of need_wake.",
                       {"5.1.7/batches", "5.1.7/batch-at-every-step"}});
    clauses.push_back(
        {"5.1.8",
         "Each buffer has its own read position, and is drained while others are idle.",
         {"5.1.8/one-busy-cpu", "5.1.8/explored-mixed", "5.1.8/explored-turns", "5.1.8/soak",
          "stream/every-event"}});
    clauses.push_back(
        {"5.1.8.1 step 1",
         "The consumer reads nothing beyond write_pos. A full ring is not an empty one.",
         {"5.1.8.1-1/full-ring", "5.1.8.1-6/drain", "5.1.8.1/explored-drain"}});
    clauses.push_back(
        {"5.1.8.1 step 2",
         "The consumer continues at tail_pos after a lap, and not beyond it.",
         {"5.1.8.1-2/lapped-moves-to-tail", "5.1.8.1-2/explored-burst",
          "5.1.8.1-2/lapped-many-times", "5.1.8.1-2/lapped-by-small-events",
          "5.1.8.1-2/lapped-by-one-event", "5.1.8.1-2/lapped-between-two-loads",
          "5.1.8.1-2/lapped-in-part-between-two-loads", "5.1.8.1-2/overtaken-amid-a-backlog"}});
    clauses.push_back({"5.1.8.1 step 4",
                       "The event is at read_pos & (capacity - 1), in one piece.",
                       {"5.1.4/wrap-at-every-byte", "event-model/every-small-size",
                        "5.1.8.1-4/headers-cut-by-any-part", "5.1.8.1-4/sizes-cut-by-any-part"}});
    clauses.push_back(
        {"5.1.8.1 step 5",
         "The consumer loads tail_pos again and discards an event that tail_pos has passed.",
         {"5.1.8.1-5/torn-in-the-middle",
          "5.1.8.1-5/explored-overwrite",
          "5.1.8.1-5/torn-by-2-gibibytes",
          "5.1.8.1-5/torn-by-4-gibibytes",
          "5.1.8.1-5/torn-at-the-end",
          "5.1.8.1-5/burst-torn-in-part",
          "5.1.8.1-5/torn-by-one-event",
          "5.1.8.1-5/lapped-at-every-load",
          "5.1.8.1-5/torn-by-an-unpublished-event",
          "5.1.8.1-5/torn-at-the-end-of-the-region",
          "5.1.8.1-5/end-lapped-at-every-load",
          "5.1.8.1-5/torn-where-positions-pass-a-border",
          "5.1.8.1-5/backlog-torn-in-part",
          "5.1.8.1-5/large-event-torn",
          "5.1.8.1-5/large-event-lapped-after-every-load",
          "5.1.8.1-5/backlog-torn-on-the-way",
          "5.1.8.1-5/very-large-event-torn",
          "5.1.8.1-5/largest-event-torn",
          "5.1.8.1-5/torn-reads-are-released",
          "5.1.8.1-5/overtaken-again-and-again",
          "5.1.8.1-5/torn-again-and-again",
          "5.1.8.1-5/torn-at-the-last-access",
          "5.1.8.1-5/torn-one-by-one",
          "5.1.8.1-5/long-type-lapped-after-every-load",
          "5.1.8.1-5/without-payload-lapped-after-every-load",
          "5.1.8.1-5/torn-by-a-pending-batch"}});
    clauses.push_back(
        {"5.1.8.1 step 6",
         "The consumer processes a valid event once and advances by event_size.",
         {"5.1.8.1-6/drain", "event-model/every-small-size", "5.1.8.1-6/seventy-thousand-events",
          "5.1.8.1-6/full-of-the-smallest-events"}});
}

void add_wait_clauses(std::vector<Clause>& clauses) {
    clauses.push_back({"5.1.8.2 step 1",
                       "The consumer sets need_wake before it sleeps.",
                       {"5.1.8.2-1/asks-to-be-woken"}});
    clauses.push_back({"5.1.8.2 step 2",
                       "The consumer loads write_pos again after it sets need_wake.",
                       {"E2/event-at-every-step", "5.1.7/batch-at-every-step",
                        "5.1.8.2-2/event-at-every-step-on-the-last-cpu",
                        "5.1.8.2-2/event-at-every-step-after-three-hundred-sleeps",
                        "5.1.8.2-2/event-at-every-step-of-thirty-six"}});
    clauses.push_back({"5.1.8.2 step 3",
                       "The consumer reads the value for the wait anew before each wait.",
                       {"5.1.8.2-5/sleeps-and-wakes", "E2/event-at-the-futex-wait"}});
    clauses.push_back({"5.1.8.2 step 4",
                       "The spin is brief and loads write_pos.",
                       {"5.1.8.2-5/sleeps-and-wakes", "5.1.8.2/explored-sleep",
                        "5.1.8.2/idle-burns-no-cpu", "stream/between-sleeps"}});
    clauses.push_back({"5.1.8.2 step 5",
                       "The consumer sleeps in futex_wait on futex_counter and checks for events "
                       "again, whatever ends the wait.",
                       {"5.1.8.2-5/sleeps-and-wakes", "5.1.8.2-5/interrupted-waits",
                        "5.1.8.2-5/waits-that-return-eintr", "5.1.8.2-5/waits-that-time-out",
                        "5.1.8.2-5/interrupted-without-an-event", "5.1.8.2/idle-burns-no-cpu",
                        "5.1.8.2/idle-beside-an-ended-cpu", "5.1.8.2/idle-after-changes",
                        "5.1.8.2/idle-after-a-late-count", "5.1.8.2/idle-beside-a-refused-cpu"}});
    clauses.push_back(
        {"5.1.8.2 step 6",
         "The consumer returns to the drain loop after a wake, whatever its cause.",
         {"5.1.8.2-6/spurious-wakes", "5.1.8.2/spurious-wake-at-every-step",
          "5.1.8.2-6/event-after-a-spurious-wake", "5.1.8.2-6/event-after-an-interruption",
          "5.1.8.2-6/event-after-a-timeout", "5.1.8.2-6/event-after-many-spurious-wakes",
          "5.1.8.2-6/event-after-many-interruptions", "5.1.8.2-6/event-after-many-timeouts",
          "5.1.8.2/delivers-when-woken", "5.1.8.2/delivers-on-any-cpu"}});
}

void add_generation_clauses(std::vector<Clause>& clauses) {
    clauses.push_back(
        {"5.1.8.3",
         "The consumer loads generation after a drain. A change leads it to the new buffer.",
         {"5.1.8.3/grow", "5.1.8.3/explored-resize", "5.1.8.3/shrink",
          "5.1.8.3/three-hundred-changes", "5.1.8.3/two-cpus-change-buffers",
          "5.1.8.3/one-cpu-is-two-changes-behind", "5.1.8.3/swap-beside-a-busy-cpu"}});
    clauses.push_back({"5.1.8.3 step 1",
                       "The consumer keeps the last sequence number over the change.",
                       {"5.1.8.3-5/no-event-twice", "5.1.8.3-5/twenty-thousand-survivors",
                        "5.1.8.3-5/seventy-thousand-survivors"}});
    clauses.push_back(
        {"5.1.8.3 steps 2 to 4",
         "The consumer attaches again, maps, and reads the new capacity and positions.",
         {"5.1.8.3/grow", "5.1.8.3/shrink"}});
    clauses.push_back({"5.1.8.3 step 5",
                       "The consumer continues after the last sequence number, and neither repeats "
                       "nor omits an event.",
                       {"5.1.8.3-5/no-event-twice", "5.1.8.3/grow", "5.1.8.3-5/gap-over-a-swap",
                        "5.1.8.3-5/gap-of-2-to-the-31-events-over-a-swap",
                        "5.1.8.3-5/clock-set-back-over-a-swap"}});
    clauses.push_back(
        {"5.1.8.3 step 6",
         "The consumer closes the old fd and removes the old mapping.",
         {"5.1.8.3-6/closes-retired-buffers", "5.1.8.3-6/two-hundred-resizes",
          "5.1.8.3-6/two-hundred-empty-resizes", "5.1.8.3-6/eighty-resizes-on-the-way",
          "5.1.8.3-6/eighty-resizes-beside-an-ended-cpu", "5.1.8.3-6/eighty-changes-of-one-cpu",
          "5.1.8.3-6/eighty-resizes-beside-a-refused-cpu",
          "5.1.8.3-6/forty-changes-with-a-failed-attach"}});
    clauses.push_back(
        {"5.1.8.4",
         "The consumer neither loses an event in a change of buffers nor delivers one twice.",
         {"5.1.8.4/resizes-under-load", "stream/with-a-resize"}});
    clauses.push_back(
        {"5.1.9 laps",
         "The producer overwrites the oldest events during a read. The consumer delivers the rest.",
         {"5.1.9/under-load", "5.1.8.1-2/lapped-many-times", "5.1.9/paused-for-ten-laps",
          "stream/as-fast-as-possible"}});
    clauses.push_back(
        {"5.1.9 gaps",
         "A gap in the sequence numbers of a CPU is the number of lost events.",
         {"5.1.9/gap-of-dropped-events", "5.1.9/gap-before-the-first", "5.1.9/gap-of-many-events",
          "5.1.9/gap-of-2-to-the-31-events", "5.1.9/long-runs-of-drops"}});
    clauses.push_back({"5.1.10",
                       "The consumer loads write_pos and tail_pos with acquire order.",
                       {},
                       "x86-64 orders loads by itself, so a relaxed load cannot fail here"});
}

}  // namespace

void add_protocol_clauses(std::vector<Clause>& clauses) {
    add_drain_clauses(clauses);
    add_wait_clauses(clauses);
    add_generation_clauses(clauses);
}

void add_event_clauses(std::vector<Clause>& clauses) {
    clauses.push_back({"event model, sizes",
                       "Events are packed end to end, without padding.",
                       {"event-model/every-small-size"}});
    clauses.push_back(
        {"event model, largest",
         "An event has any size up to half of the capacity, in all of its parts.",
         {"event-model/sizes-around-powers-of-two", "event-model/payloads-around-powers-of-two",
          "event-model/headers-around-powers-of-two", "event-model/types-around-powers-of-two",
          "event-model/sizes-up-to-128-mebibytes"}});
    clauses.push_back(
        {"event model, header_size",
         "The payload begins at header_size, which a later version may increase.",
         {"event-model/longer-header", "event-model/large-headers", "event-model/five-mebibytes",
          "event-model/nine-mebibytes", "event-model/eighteen-mebibytes"}});
    clauses.push_back({"event model, timestamp",
                       "The timestamp is 64 bits of CLOCK_REALTIME, which may jump.",
                       {"event-model/clock-jumps", "event-model/timestamps-at-the-ends"}});
    clauses.push_back(
        {"event model, sequence",
         "The sequence number has 64 bits for each CPU and boot.",
         {"event-model/sequences-beyond-32-bits", "event-model/sequences-beyond-63-bits"}});
    clauses.push_back(
        {"event model, origin_class",
         "Origin classes 0 to 3 have a name. Classes 4 to 255 are reserved and may occur.",
         {"event-model/origins"}});
    clauses.push_back({"event model, type",
                       "The type is UTF-8 of type_len bytes, not terminated, of any length.",
                       {"event-model/types", "event-model/many-types", "event-model/types-alike"}});
    clauses.push_back({"event model, payload",
                       "The payload is any bytes, or none.",
                       {"event-model/payload-bytes", "event-model/empty-payload"}});
    clauses.push_back(
        {"event model, kmes_attach",
         "kmes_attach fails with ERANGE and the number if the slots are too few, and with EAGAIN "
         "before the hand-over. Index i is CPU i.",
         {"contract-1/more-cpus-than-slots", "contract-1/eagain", "5.1.1/four-cpus"}});
}

}  // namespace kmes::conformance
