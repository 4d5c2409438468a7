# SPDX-License-Identifier: MIT
"""More broken consumers: six programs of other designs than the C example, in five languages.

Each program is right, and has one mistake where it is started, or built, with that one's name: what
stands behind the first hyphen of an entry's. The fields are those of table.bzl, with `language` in
the place of `edits`; the target is //conformance/testees:broken_<name>.

The file is Starlark for Bazel, and Python for the tests that read it.
"""

BROKEN = [
    # C: one thread for all CPUs, futex_waitv, spans of events copied at once.
    dict(
        name = "waitv-carry-survives-lap",
        wrong = "Keeps the part of an event that it has carried over when it moves to tail_pos " +
                "after a lap.",
        clause = "5.1.8.1-2",
        case = "5.1.8.1-2/lapped-between-two-looks",
        language = "c",
    ),
    dict(
        name = "waitv-tail-before-span-copy",
        wrong = "Looks at tail_pos before it copies a span of events, and not after.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/torn-in-the-middle",
        language = "c",
    ),
    dict(
        name = "waitv-span-end-recheck",
        wrong = "Takes a copied span for whole until tail_pos has passed its last byte, not its " +
                "first.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/burst-torn-in-part",
        language = "c",
    ),
    dict(
        name = "waitv-recheck-only-woken",
        wrong = "One thread for all CPUs: after a wake it looks again only at the CPU that has " +
                "woken it.",
        clause = "E2",
        case = "5.1.1/event-elsewhere-at-every-step",
        language = "c",
    ),
    dict(
        name = "waitv-relative-timeout",
        wrong = "Gives futex_waitv, whose limit is a time of day, 50 ms: it never sleeps.",
        clause = "5.1.8.2-5",
        case = "5.1.8.2/idle-burns-no-cpu",
        language = "c",
    ),
    dict(
        name = "waitv-counter-after-recheck",
        wrong = "One thread for all CPUs: reads the counters when it fills the vector for " +
                "futex_waitv, after the second look.",
        clause = "E2",
        case = "E2/event-at-every-step",
        language = "c",
    ),
    dict(
        name = "waitv-fence-only-for-first",
        wrong = "One thread for all CPUs: the full barrier stands behind the store of the first " +
                "flag only.",
        clause = "E1",
        case = "E1/full-barrier-on-the-last-cpu",
        language = "c",
    ),
    dict(
        name = "waitv-generation-of-first-only",
        wrong = "One thread for all CPUs: before it sleeps it looks again at the generation of " +
                "the first one only.",
        clause = "E3",
        case = "E3/swap-elsewhere-at-every-step",
        language = "c",
    ),
    dict(
        name = "waitv-offsets-compared",
        wrong = "Compares the offsets in the buffer, not the positions: a buffer filled to the " +
                "last byte looks empty.",
        clause = "5.1.8.1-1",
        case = "5.1.8.1-1/full-ring",
        language = "c",
    ),
    dict(
        name = "waitv-type-is-string",
        wrong = "Takes the type for a string that ends at a zero byte.",
        clause = "event-model",
        case = "event-model/types",
        language = "c",
    ),
    dict(
        name = "waitv-padded-store",
        wrong = "Stores need_wake with the whole word around it, the counter in front of it " +
                "included.",
        clause = "contract",
        case = "E2/event-at-every-step",
        language = "c",
    ),
    dict(
        name = "waitv-timestamp-skips-back",
        wrong = "Drops an event that is older by its timestamp than the one before.",
        clause = "event-model",
        case = "event-model/clock-jumps",
        language = "c",
    ),
    dict(
        name = "waitv-counter-sign-extended",
        wrong = "Gives futex_waitv the counter as a signed number: beyond 31 bits it is refused.",
        clause = "5.1.6.3",
        case = "5.1.6.3/counter-beyond-31-bits",
        language = "c",
    ),
    dict(
        name = "waitv-large-type-truncated",
        wrong = "Has room for a type of 4095 bytes.",
        clause = "event-model",
        case = "event-model/types",
        language = "c",
    ),
    dict(
        name = "waitv-gap-compares-as-int",
        wrong = "Tells old events from new ones by the 16-bit difference of sequence numbers.",
        clause = "5.1.9",
        case = "5.1.9/gap-of-many-events",
        language = "c",
    ),
    dict(
        name = "waitv-switches-all-at-once",
        wrong = "One thread for all CPUs: with one CPU's change it moves the others to their new " +
                "buffers as well, and drains the one alone.",
        clause = "E10",
        case = "E10/changed-on-the-way-to-another",
        language = "c",
    ),
    dict(
        name = "waitv-change-only-when-all-empty",
        wrong = "One thread for all CPUs: it moves to no new buffer while any CPU has events.",
        clause = "5.1.8.3",
        case = "5.1.8.3/swap-beside-a-busy-cpu",
        language = "c",
    ),
    dict(
        name = "waitv-changes-lost-at-a-refusal",
        wrong = "Takes a change for one of all CPUs, looks at it once, and ends that round at " +
                "the first buffer that it refuses.",
        clause = "E3",
        case = "E3/all-swapped-and-one-refused",
        language = "c",
    ),
    dict(
        name = "waitv-changes-lost-at-an-end",
        wrong = "Takes a change for one of all CPUs, looks at it once, and ends that round at " +
                "the first end event that it finds.",
        clause = "E3",
        case = "E3/all-swapped-and-one-ends",
        language = "c",
    ),
    dict(
        name = "waitv-news-of-a-refused-one",
        wrong = "Before it sleeps it looks at a CPU that it has refused, too, where there is " +
                "always something: it never sleeps.",
        clause = "5.1.8.2",
        case = "5.1.8.2/idle-beside-a-refused-cpu",
        language = "c",
    ),
    dict(
        name = "waitv-positions-xored",
        wrong = "Before it sleeps it compares the sum without carry of all write_pos with that " +
                "of its positions.",
        clause = "5.1.8.2-2",
        case = "5.1.1/events-everywhere-at-every-step",
        language = "c",
    ),
    # C++: a reader a CPU hands its events to a writer for all, and reads ahead.
    dict(
        name = "handover-queue-one-too-full",
        wrong = "The queue between its two threads takes one item more than it has slots.",
        clause = "5.1.8.1-6",
        case = "5.1.9/under-load",
        language = "c++",
    ),
    dict(
        name = "handover-queue-count-in-8-bits",
        wrong = "Counts what is in the queue in eight bits: with all 256 slots taken it looks " +
                "empty.",
        clause = "5.1.8.1-6",
        case = "contract-3/records-pile-up",
        language = "c++",
    ),
    dict(
        name = "handover-sleeps-before-written",
        wrong = "Goes to sleep while the thread that writes its records is still behind.",
        clause = "contract-3",
        case = "contract-3/records-before-it-sleeps",
        language = "c++",
    ),
    dict(
        name = "handover-two-writers",
        wrong = "Two threads take events of one CPU out of the queue and write them: the order " +
                "is luck.",
        clause = "5.1.8.1-6",
        case = "contract-3/records-before-it-sleeps",
        language = "c++",
    ),
    dict(
        name = "handover-ends-one-too-early",
        wrong = "Ends when the thread that writes has taken the last record, not when it has " +
                "written it.",
        clause = "contract-4",
        case = "contract-4/exits-behind-its-last-record",
        language = "c++",
    ),
    dict(
        name = "handover-checked-then-handed-over",
        wrong = "Looks at tail_pos and then hands a pointer into the ring to the thread that " +
                "uses it.",
        clause = "E6",
        case = "5.1.8.1-2/explored-burst",
        language = "c++",
    ),
    dict(
        name = "handover-large-in-shared-scratch",
        wrong = "Events over 4 KiB of all CPUs are copied through one static vector, without a " +
                "lock.",
        clause = "5.1.1",
        case = "5.1.1/two-cpus-in-the-middle",
        language = "c++",
    ),
    dict(
        name = "handover-unmaps-under-writer",
        wrong = "Unmaps the buffer that it leaves while another thread reads in it.",
        clause = "E6",
        case = "5.1.8.1-2/explored-burst",
        language = "c++",
    ),
    dict(
        name = "handover-notifies-without-lock",
        wrong = "Changes what a condition variable waits for without the lock: the notification " +
                "is lost between test and wait.",
        clause = "5.1.8.1-6",
        case = "- a race of some nanoseconds between two threads, at no access to a buffer",
        language = "c++",
    ),
    dict(
        name = "handover-waits-for-company",
        wrong = "Waits for up to 120 ms after each wake, for more events to come.",
        clause = "5.1.8.2-6",
        case = "- late, but all is delivered, and its records are written before it sleeps",
        language = "c++",
    ),
    dict(
        name = "handover-store-fence-only",
        wrong = "Has an sfence where the full barrier must be.",
        clause = "E1",
        case = "E1/full-barrier",
        language = "c++",
    ),
    dict(
        name = "handover-prefetch-survives-lap",
        wrong = "Uses the header of the next event that it has read ahead although it has moved " +
                "to tail_pos meanwhile.",
        clause = "5.1.8.1-2",
        case = "5.1.8.1-2/lapped-between-two-looks",
        language = "c++",
    ),
    dict(
        name = "handover-prefetches-unpublished",
        wrong = "Reads the header of the next event ahead although there is none yet.",
        clause = "5.1.8.1-1",
        case = "5.1.8.1-6/drain",
        language = "c++",
    ),
    dict(
        name = "handover-skips-wrapped-over-2-mib",
        wrong = "Skips an event of more than 2 MiB that crosses the end of the region.",
        clause = "5.1.4",
        case = "event-model/sizes-up-to-128-mebibytes",
        language = "c++",
    ),
    dict(
        name = "handover-half-of-capacity",
        wrong = "Refuses an event larger than half of the buffer: one that has survived a shrink " +
                "can be.",
        clause = "E7",
        case = "E7/event-larger-than-half",
        language = "c++",
    ),
    dict(
        name = "handover-header-at-most-4k",
        wrong = "Takes a header of more than 4 KiB for corrupt.",
        clause = "event-model",
        case = "event-model/large-headers",
        language = "c++",
    ),
    dict(
        name = "handover-positions-in-halves",
        wrong = "Loads write_pos in two halves of 32 bits.",
        clause = "5.1.8.1-1",
        case = "5.1.6.2/positions-pass-32-bits-at-every-step",
        language = "c++",
    ),
    dict(
        name = "handover-tail-in-halves",
        wrong = "Loads tail_pos in two halves of 32 bits.",
        clause = "5.1.8.1-2",
        case = "5.1.6.2/laps-pass-32-bits-at-every-step",
        language = "c++",
    ),
    # C++: a window of 256 KiB copied at once, its last event carried over, records queued.
    dict(
        name = "staged-index-of-16-bits",
        wrong = "The indices of its queue of records have 16 bits, and it compares them " +
                "without that.",
        clause = "5.1.8.1-6",
        case = "5.1.8.1-6/seventy-thousand-events",
        language = "c++",
    ),
    dict(
        name = "staged-arena-of-16-bits",
        wrong = "Keeps where a long type begins among those that wait to be written in " +
                "16 bits.",
        clause = "event-model",
        case = "event-model/many-types",
        language = "c++",
    ),
    dict(
        name = "staged-carry-survives-lap",
        wrong = "Keeps the begin of an event that it has carried over when it was " +
                "overtaken before the next window.",
        clause = "5.1.8.1-2",
        case = "5.1.8.1-2/overtaken-amid-a-backlog",
        language = "c++",
    ),
    dict(
        name = "staged-lapped-while-draining-skips-all",
        wrong = "Overtaken in a buffer that is replaced, it takes all of it for gone.",
        clause = "E10",
        case = "E10/overtaken-and-shrunk-at-every-step",
        language = "c++",
    ),
    dict(
        name = "staged-continued-window-unchecked",
        wrong = "Does not look at tail_pos behind the copy of a window that goes on " +
                "with a carried-over part.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/backlog-torn-on-the-way",
        language = "c++",
    ),
    dict(
        name = "staged-grown-copy-unchecked",
        wrong = "Does not look at tail_pos behind the copy for which its memory had to " +
                "grow.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/large-event-torn",
        language = "c++",
    ),
    dict(
        name = "staged-distance-of-32-bits",
        wrong = "Takes 32 bits of how far tail_pos has come into what it has copied.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/torn-by-4-gibibytes",
        language = "c++",
    ),
    dict(
        name = "staged-header-of-28-bytes",
        wrong = "Reads a header of which the last byte is not copied yet.",
        clause = "5.1.8.1-4",
        case = "5.1.8.1-4/headers-cut-by-any-part",
        language = "c++",
    ),
    dict(
        name = "staged-known-until-first-batch",
        wrong = "Passes over what it has delivered from an earlier buffer in the first " +
                "batch only.",
        clause = "5.1.8.3-5",
        case = "5.1.8.3-5/twenty-thousand-survivors",
        language = "c++",
    ),
    dict(
        name = "staged-one-buffer-for-large",
        wrong = "Copies events of more than 1 MiB of all CPUs to one place, without a " +
                "lock.",
        clause = "5.1.1",
        case = "5.1.1/two-cpus-in-the-middle-of-large-events",
        language = "c++",
    ),
    dict(
        name = "staged-no-look-after-eight-wakes",
        wrong = "After eight wakes without an event it does not look again before it " +
                "sleeps.",
        clause = "E2",
        case = "5.1.8.2-6/event-after-many-wakes-for-nothing",
        language = "c++",
    ),
    dict(
        name = "staged-no-generation-look-after-eight-wakes",
        wrong = "After eight wakes without an event it does not look at generation " +
                "before it sleeps.",
        clause = "E3",
        case = "E3/swap-after-many-wakes-for-nothing",
        language = "c++",
    ),
    dict(
        name = "staged-change-at-limit-forgotten",
        wrong = "Forgets a change of generation that it sees when its batch is full.",
        clause = "E10",
        case = "E10/twenty-thousand-unread",
        language = "c++",
    ),
    # Rust: a thread a CPU reads the events in the ring, spins, waits with a deadline.
    dict(
        name = "inplace-leaks-mapping-of-same-size",
        wrong = "Does not unmap the old buffer where the new one has the same capacity.",
        clause = "5.1.8.3-6",
        case = "5.1.8.3-6/closes-what-it-leaves",
        language = "rust",
    ),
    dict(
        name = "inplace-takes-the-old-generation",
        wrong = "Remembers for a new buffer what the old one shows as its generation.",
        clause = "E15",
        case = "E15/generation-of-the-old-buffer",
        language = "rust",
    ),
    dict(
        name = "inplace-generation-must-grow",
        wrong = "Attaches again until the new buffer's generation is not below that of the old " +
                "one.",
        clause = "E15",
        case = "E19/nudged",
        language = "rust",
    ),
    dict(
        name = "inplace-position-kept-where-it-fits",
        wrong = "Keeps its position over a resize where it lies between the new tail_pos and " +
                "write_pos.",
        clause = "E11",
        case = "E11/positions-fit-by-chance",
        language = "rust",
    ),
    dict(
        name = "inplace-header-size-in-16-bits",
        wrong = "Keeps header_size in 16 bits.",
        clause = "event-model",
        case = "event-model/large-headers",
        language = "rust",
    ),
    dict(
        name = "inplace-sequence-in-32-bits",
        wrong = "Compares sequence numbers in 32 bits.",
        clause = "event-model",
        case = "event-model/sequences-beyond-32-bits",
        language = "rust",
    ),
    dict(
        name = "inplace-looks-for-the-next-sequence",
        wrong = "Looks in a new buffer for the very number that follows, which a dropped event " +
                "has used.",
        clause = "5.1.8.3-5",
        case = "5.1.8.3-5/gap-over-a-swap",
        language = "rust",
    ),
    dict(
        name = "inplace-write-pos-kept-after-lap",
        wrong = "Goes on with the write_pos that it had after it has moved to tail_pos.",
        clause = "E20",
        case = "E20/lapped-at-every-step",
        language = "rust",
    ),
    dict(
        name = "inplace-goes-on-at-the-tail",
        wrong = "After a lap it reads at tail_pos at once, without another load of write_pos; " +
                "the sizes are checked, and the lines go out when it is about to sleep.",
        clause = "E20",
        case = "E20/tail-reaches-write-pos",
        language = "rust",
    ),
    dict(
        name = "inplace-wake-means-event",
        wrong = "Reads an event after every wake, without a look at write_pos.",
        clause = "5.1.8.2-6",
        case = "5.1.8.2-6/spurious-wakes",
        language = "rust",
    ),
    dict(
        name = "inplace-clamps-write-pos",
        wrong = "Takes a write_pos that is more than the capacity ahead for one that is the " +
                "capacity ahead.",
        clause = "E26",
        case = "E7/write-pos-laps-ahead-while-it-runs",
        language = "rust",
    ),
    dict(
        name = "inplace-skips-whole-over-32-mib",
        wrong = "Skips an event of more than 32 MiB that does not cross the end of the region.",
        clause = "5.1.4",
        case = "event-model/sizes-up-to-128-mebibytes",
        language = "rust",
    ),
    dict(
        name = "inplace-old-tail-for-bad-sizes",
        wrong = "Where the sizes cannot be right it does not look at tail_pos again, and refuses " +
                "the buffer.",
        clause = "E7",
        case = "E7/torn-header-of-large-sizes",
        language = "rust",
    ),
    dict(
        name = "inplace-tail-against-the-next",
        wrong = "Compares tail_pos with the end of the event that it has read, not with its begin.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/torn-by-one-event",
        language = "rust",
    ),
    dict(
        name = "inplace-recheck-in-32-bits",
        wrong = "Before it sleeps it compares positions in 32 bits.",
        clause = "5.1.8.2-2",
        case = "5.1.6.2/positions-pass-32-bits-at-every-step",
        language = "rust",
    ),
    dict(
        name = "inplace-recheck-signed",
        wrong = "Before it sleeps it compares positions as signed numbers.",
        clause = "5.1.8.2-2",
        case = "5.1.6.2/positions-pass-63-bits-at-every-step",
        language = "rust",
    ),
    dict(
        name = "inplace-recheck-of-tail",
        wrong = "Before it sleeps it looks at tail_pos again, not at write_pos.",
        clause = "5.1.8.2-2",
        case = "E2/event-at-every-step",
        language = "rust",
    ),
    dict(
        name = "inplace-deadline-is-relative",
        wrong = "Gives FUTEX_WAIT_BITSET, whose limit is a time of day, 100 ms: it never sleeps.",
        clause = "5.1.8.2-5",
        case = "5.1.8.2/idle-burns-no-cpu",
        language = "rust",
    ),
    dict(
        name = "inplace-bitset-of-nobody",
        wrong = "Waits with a bitset that is 0 on the first CPU, which the kernel refuses: it " +
                "never sleeps there.",
        clause = "5.1.8.2-5",
        case = "5.1.8.2/idle-burns-no-cpu",
        language = "rust",
    ),
    dict(
        name = "inplace-fence-before-store",
        wrong = "Has the full barrier in front of the store to need_wake.",
        clause = "E1",
        case = "E1/full-barrier",
        language = "rust",
    ),
    dict(
        name = "inplace-fence-acq-rel",
        wrong = "Has an acquire-release fence where the full barrier must be.",
        clause = "E1",
        case = "E1/full-barrier",
        language = "rust",
    ),
    dict(
        name = "inplace-compiler-fence",
        wrong = "Has a barrier for the compiler where the full one must be.",
        clause = "E1",
        case = "E1/full-barrier",
        language = "rust",
    ),
    dict(
        name = "inplace-volatile",
        wrong = "Has a volatile store and no barrier.",
        clause = "E1",
        case = "E1/full-barrier",
        language = "rust",
    ),
    dict(
        name = "inplace-spin-is-the-recheck",
        wrong = "Reads the counter after its spin, and does not look at write_pos once more.",
        clause = "E2",
        case = "E2/event-at-every-step",
        language = "rust",
    ),
    dict(
        name = "inplace-eagain-takes-the-new-counter",
        wrong = "After EAGAIN it waits again with the counter of now, without a look at write_pos.",
        clause = "5.1.8.2-5",
        case = "E2/event-at-the-futex-wait",
        language = "rust",
    ),
    dict(
        name = "inplace-eintr-clears-and-waits",
        wrong = "After EINTR it clears need_wake and waits on.",
        clause = "5.1.8.2-5",
        case = "5.1.8.2-5/interrupted-without-an-event",
        language = "rust",
    ),
    dict(
        name = "inplace-timeout-keeps-waiting",
        wrong = "After a time limit of a second it clears need_wake and waits on.",
        clause = "5.1.8.2-5",
        case = "5.1.8.2-5/waits-that-time-out",
        language = "rust",
    ),
    dict(
        name = "inplace-counter-must-grow",
        wrong = "Waits until the counter is larger than it was, which it is not when it wraps.",
        clause = "5.1.6.3",
        case = "5.1.6.3/counter-wraps",
        language = "rust",
    ),
    dict(
        name = "inplace-generation-after-drain",
        wrong = "Looks at generation after the drain and leaves the buffer at once: what came " +
                "between is not read there.",
        clause = "E24",
        case = "E24/swap-at-every-step",
        language = "rust",
    ),
    dict(
        name = "inplace-ends-with-0-without-means",
        wrong = "Ends with status 0 where a later kmes_attach fails.",
        clause = "contract-1",
        case = "contract-1/later-attach-emfile",
        language = "rust",
    ),
    dict(
        name = "inplace-sleeps-after-a-failed-attach",
        wrong = "Takes the old generation for seen where a later kmes_attach fails, and " +
                "sleeps on.",
        clause = "contract-1",
        case = "contract-1/later-attach-with-nothing-unread",
        language = "rust",
    ),
    dict(
        name = "inplace-skips-wrapped-over-4-mib",
        wrong = "Skips an event of more than 4 MiB that crosses the end of the region.",
        clause = "5.1.4",
        case = "event-model/sizes-up-to-128-mebibytes",
        language = "rust",
    ),
    dict(
        name = "inplace-trusts-events-over-64-mib",
        wrong = "Does not discard an event of more than 64 MiB that was overwritten.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/largest-event-torn",
        language = "rust",
    ),
    dict(
        name = "inplace-no-tail-after-2000-events",
        wrong = "Does not discard an overwritten event once it has delivered 2000.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-6/seventy-thousand-events",
        language = "rust",
    ),
    dict(
        name = "inplace-no-generation-after-2000-events",
        wrong = "Does not check generation before it sleeps once it has delivered 2000 " +
                "events.",
        clause = "E3",
        case = "E10/full-of-the-smallest-unread",
        language = "rust",
    ),
    # Go: a goroutine a CPU; the fds and the report are shared.
    dict(
        name = "pooled-clamps-write-pos",
        wrong = "Takes a write_pos that is more than the capacity ahead for one that is the " +
                "capacity ahead.",
        clause = "E26",
        case = "E7/write-pos-laps-ahead-while-it-runs",
        language = "go",
    ),
    dict(
        name = "pooled-skips-wrapped-over-16-mib",
        wrong = "Skips an event of more than 16 MiB that crosses the end of the region.",
        clause = "5.1.4",
        case = "event-model/sizes-up-to-128-mebibytes",
        language = "go",
    ),
    dict(
        name = "pooled-closes-twice",
        wrong = "Closes an fd twice: by then it may be another thread's.",
        clause = "5.1.8.3-6",
        case = "- two threads have to meet between its two closes: many runs fail, no case for " +
                "sure",
        language = "go",
    ),
    dict(
        name = "pooled-keeps-smaller-mappings",
        wrong = "Does not unmap the old buffer where the new one is larger.",
        clause = "5.1.8.3-6",
        case = "5.1.8.3-6/two-hundred-resizes",
        language = "go",
    ),
    dict(
        name = "pooled-one-sequence-for-all-at-swap",
        wrong = "Notes the last sequence number of a CPU in a variable that all CPUs share " +
                "during a change of buffers.",
        clause = "5.1.8.3-1",
        case = "5.1.8.3/two-cpus-change-buffers",
        language = "go",
    ),
    dict(
        name = "pooled-one-scratch-for-all",
        wrong = "All goroutines copy events into one array.",
        clause = "5.1.1",
        case = "5.1.1/two-cpus-in-the-middle",
        language = "go",
    ),
    dict(
        name = "pooled-type-read-in-the-ring",
        wrong = "Copies the event, but reads its type in the ring after the look at tail_pos.",
        clause = "E6",
        case = "5.1.8.1-5/lapped-at-every-look",
        language = "go",
    ),
    dict(
        name = "pooled-plain-store",
        wrong = "A plain store to need_wake and no barrier.",
        clause = "E1",
        case = "E1/full-barrier",
        language = "go",
    ),
    dict(
        name = "pooled-limit-instead-of-second-look",
        wrong = "Does not look again before it sleeps, but sleeps for a second at most.",
        clause = "5.1.8.2-2",
        case = "E2/no-limit-instead-of-a-second-look",
        language = "go",
    ),
    dict(
        name = "pooled-flushes-every-other-time",
        wrong = "Writes its records at every other turn only.",
        clause = "contract-3",
        case = "5.1.8.2-5/sleeps-and-wakes",
        language = "go",
    ),
    dict(
        name = "pooled-goes-on-at-the-tail",
        wrong = "After a lap it reads at tail_pos at once, without another load of write_pos; " +
                "the sizes are checked, and the lines go out when it is about to sleep.",
        clause = "E20",
        case = "E20/tail-reaches-write-pos",
        language = "go",
    ),
    dict(
        name = "pooled-yields-instead-of-sleeping",
        wrong = "Never sleeps: it gives the processor up and looks again.",
        clause = "5.1.8.2-5",
        case = "5.1.8.2-5/sleeps-and-wakes",
        language = "go",
    ),
    dict(
        name = "pooled-sleeps-by-the-clock",
        wrong = "Never waits by futex: it looks every millisecond.",
        clause = "5.1.8.2-5",
        case = "5.1.8.2-5/sleeps-and-wakes",
        language = "go",
    ),
    dict(
        name = "pooled-one-report-without-lock",
        wrong = "All goroutines add their records to one report, without a lock.",
        clause = "5.1.1",
        case = "- a race between two threads that write records: seen at most runs, not at all",
        language = "go",
    ),
    dict(
        name = "pooled-ends-with-0-without-means",
        wrong = "Ends with status 0 where a later kmes_attach fails.",
        clause = "contract-1",
        case = "contract-1/later-attach-enomem",
        language = "go",
    ),
    dict(
        name = "pooled-sleeps-after-a-failed-attach",
        wrong = "Takes the old generation for seen where a later kmes_attach fails, and " +
                "sleeps on.",
        clause = "contract-1",
        case = "contract-1/later-attach-emfile",
        language = "go",
    ),
    dict(
        name = "pooled-takes-the-old-generation",
        wrong = "Remembers for a new buffer what the old one shows as its generation.",
        clause = "E15",
        case = "E15/generation-of-the-old-buffer",
        language = "go",
    ),
    dict(
        name = "pooled-no-change-to-a-replaced-one",
        wrong = "Writes no G record for a buffer that is replaced before it is read.",
        clause = "contract-records",
        case = "E19/swap-with-events-behind-the-mmap",
        language = "go",
    ),
    dict(
        name = "pooled-events-over-4-mib-unchecked",
        wrong = "Does not discard an event of more than 4 MiB that was overwritten.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/largest-event-torn",
        language = "go",
    ),
    dict(
        name = "pooled-no-second-look-after-2000-events",
        wrong = "Does not check write_pos and generation before it sleeps once it has " +
                "delivered 2000 events.",
        clause = "5.1.8.2-2",
        case = "5.1.8.1-6/seventy-thousand-events",
        language = "go",
    ),
    dict(
        name = "pooled-refuses-the-third-before-it-drains",
        wrong = "Refuses its third buffer before it has drained the second one.",
        clause = "contract-records",
        case = "5.1.6.1/unread-before-a-later-refused-buffer",
        language = "go",
    ),
    dict(
        name = "pooled-leaves-the-buffer-after-a-lap",
        wrong = "Checks generation once more after a drain in which it was lapped, and " +
                "leaves a retired buffer at once.",
        clause = "E24",
        case = "E24/swap-at-every-step-after-unusual-rounds",
        language = "go",
    ),
    # Python: one thread goes round all CPUs, with a limit of 50 ms.
    dict(
        name = "round-signed-header",
        wrong = "Reads the numbers of the header as signed ones.",
        clause = "event-model",
        case = "event-model/large-headers",
        language = "python",
    ),
    dict(
        name = "round-positions-by-bytes",
        wrong = "Loads the positions byte by byte, as struct.unpack does with a byte order.",
        clause = "5.1.8.1-1",
        case = "5.1.6.2/positions-pass-32-bits-at-every-step",
        language = "python",
    ),
    dict(
        name = "round-strips-the-type",
        wrong = "Strips white space off the type.",
        clause = "event-model",
        case = "event-model/types",
        language = "python",
    ),
    dict(
        name = "round-nanoseconds-as-float",
        wrong = "Keeps the timestamp as a floating-point number of seconds.",
        clause = "event-model",
        case = "5.1.8.1-6/drain",
        language = "python",
    ),
    dict(
        name = "round-sorted-by-time",
        wrong = "Sorts what one drain has found by timestamp: the clock may go back.",
        clause = "5.1.8.1-6",
        case = "event-model/clock-jumps",
        language = "python",
    ),
    dict(
        name = "round-skips-wrapped-over-8-mib",
        wrong = "Skips an event of more than 8 MiB that crosses the end of the region.",
        clause = "5.1.4",
        case = "event-model/sizes-up-to-128-mebibytes",
        language = "python",
    ),
    dict(
        name = "round-each-in-turn",
        wrong = "Waits 100 ms on each CPU in turn.",
        clause = "contract",
        case = "- late by 100 ms a CPU; all is delivered",
        language = "python",
    ),
    dict(
        name = "round-limit-of-five-seconds",
        wrong = "One thread for all CPUs that waits for five seconds on the first of them.",
        clause = "contract",
        case = "5.1.8.2/delivers-on-any-cpu",
        language = "python",
    ),
    dict(
        name = "round-limit-that-doubles",
        wrong = "One thread for all CPUs that waits twice as long on the first of them each time " +
                "that nothing has come, a second at most.",
        clause = "contract-2",
        case = "contract-2/waits-when-idle-for-long",
        language = "python",
    ),
    dict(
        name = "round-others-after-a-timeout",
        wrong = "Looks at the first CPU after a wake, and at the others when its wait has come " +
                "to the limit.",
        clause = "contract-2",
        case = "contract-2/event-beside-a-busy-cpu",
        language = "python",
    ),
]
