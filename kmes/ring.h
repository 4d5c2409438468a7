/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The producer's side: one buffer, one CPU that writes to it, and the calls of the writer (5.1.7).
 * It knows no consumer. From shared metadata it loads only need_wake, as zero or not zero (E13).
 * All other fields that a consumer can see are written from private copies.
 *
 * Invariants of a buffer outside of a critical section (positions are absolute, 64 bits wide, and
 * never wrap at 2^64):
 *
 *   tail <= published <= frontier <= tail + capacity
 *   tail, published and frontier are boundaries of events
 *   the shared tail_pos is `tail`, the shared write_pos is `published`
 *   frontier != published only while a batch is open: its unpublished part is between them
 *   tail reaches published only if one event needs all the room (E8: the first event of a batch
 *   in a buffer that was shrunk); an event that would move it there publishes the pending events
 *
 * The boundary index (E13, E23): blocks of `block_bytes` divide the positions. For each block that
 * starts in (tail, frontier] the index holds the first boundary at or after the start of the block.
 * To find a boundary, the tail reads at most block_bytes / 30 sizes (137 for 4 KiB). This bound
 * holds for any number of overwritten tiny events, and for any value of a size in the ring.
 */
#ifndef KMES_RING_H
#define KMES_RING_H

#include "kmes/abi.h"
#include "kmes/event.h"
#include "kmes/platform.h"

KMES_EXTERN_C_BEGIN

/* A boundary between events, and the number of events of this buffer that begin before it. */
struct kmes_boundary {
    __u64 pos;
    __u64 ordinal;
};

/* One ring buffer, private state of its producer. The memory belongs to the creator of the
 * buffer. */
struct kmes_buffer {
    struct kmes_fields shared; /* write-only, except need_wake (E13) */
    __u64 capacity;
    __u64 mask; /* capacity - 1 */
    __u64 tail;
    __u64 published;
    __u64 frontier;
    __u64 tail_ordinal;     /* events of this buffer that begin before tail */
    __u64 frontier_ordinal; /* events of this buffer that begin before frontier */
    __u64 generation;
    __u32 futex_counter;
    __u32 block_shift; /* a block of the index has 1 << block_shift bytes */
    struct kmes_boundary* index;
    __u64 index_mask; /* entries - 1 */
};

/* The counters of a CPU's producer. Read them inside the critical section, or after the last
 * emission. */
struct kmes_statistics {
    __u64 events;  /* written events, over all buffers */
    __u64 bytes;   /* bytes of the written events */
    __u64 dropped; /* over 50 % of the capacity: number used, nothing written (5.1.7 step 5) */
    __u64 dropped_nested; /* emissions nested in an emission (NMI, signal handler): E16 */
    __u64 overwritten;    /* events that the tail has passed */
    __u64 wakes;          /* futex_counter increments because need_wake was set */
    __u64 corrupt;        /* impossible sizes in the ring (E13); each empties the buffer */
    __u64 swaps;
    __u64 left_behind; /* events that did not fit into a smaller buffer at a swap (E10) */
};

/* One CPU's producer. Zero-initialise it, then call kmes_cpu_init. */
struct kmes_cpu {
    struct kmes_platform* platform;
    struct kmes_buffer* buffer;
    __u64 sequence; /* the last assigned number; 0 is never assigned */
    struct kmes_statistics statistics;
    __u16 cpu_id;
    bool wake_owed; /* published under E8, need_wake not yet checked */
    /* Set if every consumer of this CPU executes the platform's barrier before it sleeps
     * (SLEEP_BARRIER in order.h). An emission then omits its full fence. kmes_cpu_init clears it.
     * Set it before the first emission, and only if no other consumer can attach: such a consumer
     * would miss wakes. */
    bool has_light_fence;
    unsigned inside;        /* the CPU is in its critical section (E16) */
    unsigned nested_missed; /* emissions rejected while inside; they are owed numbers */
};

/* -- Buffers (buffer.c) ---------------------------------------------------------------------- */

/* Returns the number of entries of the boundary index for a capacity, and 0 for an invalid
 * capacity. */
__u64 kmes_index_entries(__u64 capacity_bytes);

/* The input of kmes_buffer_init. */
struct kmes_buffer_setup {
    void* mapping; /* kmes_mapping_bytes(version, capacity) zeros, data mapped twice */
    struct kmes_boundary* index; /* kmes_index_entries(capacity) entries, private */
    __u64 capacity_bytes;
    __u64 generation; /* 0 for a boot buffer, 1 for the first buffer that consumers see */
    __u64 start_pos;  /* position of the first event; any value (E11) */
    __u32 version;    /* KMES_VERSION_1 */
    __u16 cpu_id;
};

/*
 * Makes an empty buffer and writes its metadata page (5.1.6), magic last. No consumer may be able
 * to reach the mapping yet. Returns 0, or -EINVAL for an invalid capacity or version; nothing is
 * written then.
 */
int kmes_buffer_init(struct kmes_buffer* buffer, const struct kmes_buffer_setup* setup);

/* -- The writer (producer.c) ----------------------------------------------------------------- */

/* Initialises the producer of CPU `cpu_id`. It writes to `buffer`, and its next sequence number is
 * `last_sequence` + 1. `last_sequence` is 0 at boot. A producer that continues another one passes
 * the last number of that one (E25). */
void kmes_cpu_init(struct kmes_cpu* cpu, __u16 cpu_id, struct kmes_buffer* buffer,
                   struct kmes_platform* platform, __u64 last_sequence);

/*
 * Emits one event (5.1.7), publishes it at once, and wakes if a consumer asked for it. This is the
 * in-kernel form. Returns 0, or:
 *   -ENOSPC  over 50 % of the capacity: dropped and counted, its sequence number is used (step 5)
 *   -EBUSY   nested in an emission on the same CPU: dropped, its number is used before the next one
 *            (E16)
 *   -EINVAL  type_len is 0: no effect
 */
int kmes_cpu_emit(struct kmes_cpu* cpu, const struct kmes_event_input* input);

/* As kmes_cpu_emit, for the emit call: -ENOSPC uses no sequence number and is not counted
 * (event-model.md). */
int kmes_cpu_emit_call(struct kmes_cpu* cpu, const struct kmes_event_input* input);

/* An event that the caller writes in place, between kmes_reserve and kmes_commit or
 * kmes_abandon. */
struct kmes_reservation {
    __u8* payload; /* payload_len bytes in the ring, contiguous, with undefined content */
    __u64 payload_pos;
    __u64 sequence;
    __u64 event_bytes;
    __u32 payload_len;
};

/*
 * Reserves room for `input` and writes its header. It does not read the payload of `input`. If it
 * returns 0, the CPU is inside its critical section until kmes_commit or kmes_abandon: fill the
 * payload and do nothing else. Errors as kmes_cpu_emit; after an error there is no reservation. The
 * payload may still contain bytes of older events, so fill all of it.
 */
int kmes_reserve(struct kmes_cpu* cpu, const struct kmes_event_input* input,
                 struct kmes_reservation* reservation);

/* Copies `bytes` bytes to byte `offset` of the reserved payload, with the order of kmes/order.h.
 * Bytes past the end of the payload are not copied. */
void kmes_reservation_fill(struct kmes_cpu* cpu, const struct kmes_reservation* reservation,
                           __u32 offset, const void* from, __u32 bytes);

/* Publishes the reserved event (5.1.7 steps 8 and 9) and leaves the critical section. */
void kmes_commit(struct kmes_cpu* cpu, const struct kmes_reservation* reservation);

/* Ends the reservation without an event: no sequence number is used. Events that were overwritten
 * to make room for it stay overwritten. Leaves the critical section. */
void kmes_abandon(struct kmes_cpu* cpu, const struct kmes_reservation* reservation);

/* A batch (5.1.7, last rule): one timestamp, and steps 8 and 9 once, at its end. It is not a
 * critical section. Another emission during the batch appends its event after those of the batch
 * and publishes all of them (E16). */
struct kmes_batch {
    __u64 timestamp_ns;
};

void kmes_batch_begin(struct kmes_cpu* cpu, struct kmes_batch* batch);

/* Emits one event of a batch. It is unpublished until kmes_batch_end, unless the tail must pass all
 * published events (E8). Errors as kmes_cpu_emit: the in-kernel batch continues after a dropped
 * event. */
int kmes_batch_emit(struct kmes_cpu* cpu, const struct kmes_batch* batch,
                    const struct kmes_event_input* input);

/* As kmes_batch_emit, with the errors of kmes_cpu_emit_call. The caller stops at the first
 * error. */
int kmes_batch_emit_call(struct kmes_cpu* cpu, const struct kmes_batch* batch,
                         const struct kmes_event_input* input);

/* One event of a batch of the emit call. kmes_batch_rules is common to all events of the call. */
struct kmes_batch_entry {
    const void* type;
    const void* payload; /* may be NULL where payload_len is 0 */
    __u64 type_len;      /* bytes; any value is checked */
    __u64 payload_len;   /* bytes; any value is checked */
};

struct kmes_batch_rules {
    __u64 max_event_bytes; /* MaxEventSize, below 4 GiB */
    __u8 origin_class;     /* KMES_ORIGIN_... */
};

/* The number of bytes after which a batch lets other emitters of its CPU in. */
#define KMES_BATCH_PIECE_BYTES (64ull << 10)

/*
 * Writes `count` entries, at least one, in as few critical sections as KMES_BATCH_PIECE_BYTES
 * allows. It is kmes_batch_emit_call for each entry, with the checks of the emit call. The entries
 * are the caller's memory in this address space. *emitted is always written: it is the number of
 * entries before the first bad one, which are all written. Returns 0, or the error of the first bad
 * entry:
 *   -EINVAL  type_len is 0 or more than 65535, or the type is not UTF-8
 *   -ENOSPC  more bytes than max_event_bytes, or than 50 % of the capacity
 *   -EBUSY   nested (E16), or the producer has ended
 */
int kmes_batch_emit_entries(struct kmes_cpu* cpu, const struct kmes_batch* batch,
                            const struct kmes_batch_rules* rules,
                            const struct kmes_batch_entry* entries, __u32 count, __u32* emitted);

/* Publishes the unpublished part of the batch and checks need_wake once. */
void kmes_batch_end(struct kmes_cpu* cpu, const struct kmes_batch* batch);

/* -- Resize, nudge, end (swap.c) ------------------------------------------------------------- */

/* The first position of the new buffer (E11). */
enum kmes_swap_positions {
    KMES_SWAP_KEEP,  /* an event has the same position in both: the default */
    KMES_SWAP_ZERO,  /* the oldest surviving event at the start of the swap is at 0 */
    KMES_SWAP_SHIFT, /* every position increases by shift_bytes */
};

/* A swap in progress. Needs no initialisation: kmes_swap_begin fills it. */
struct kmes_swap {
    struct kmes_cpu* cpu;
    struct kmes_buffer* old_buffer;
    struct kmes_buffer* new_buffer;
    __u64 delta;  /* new position = old position + delta */
    __u64 copied; /* surviving bytes at old positions below this are in the new buffer */
    __u64 walked; /* a boundary; events below this are in the index of the new buffer */
    __u64 walked_ordinal;
};

/* Limits of one critical section of a swap (E18): bytes that it copies, and sizes that it reads. */
#define KMES_SWAP_PIECE_BYTES (64ull << 10)
#define KMES_SWAP_PIECE_EVENTS 2048u

/*
 * Begins to move `cpu` to `new_buffer`. The new buffer is fresh (kmes_buffer_init). The swap sets
 * its start_pos and generation, so their initial values are irrelevant. No consumer may be able to
 * attach to it until kmes_swap_finish has returned (E14). Emission continues into the old buffer.
 * `shift_bytes` is for KMES_SWAP_SHIFT. Returns 0, or -EBUSY from inside an emission on the same
 * CPU, without effect.
 */
int kmes_swap_begin(struct kmes_swap* swap, struct kmes_cpu* cpu, struct kmes_buffer* new_buffer,
                    enum kmes_swap_positions positions, __u64 shift_bytes);

/*
 * Copies one piece of the surviving events, in a critical section bounded by the two limits above.
 * Returns true while there is more to copy in advance. Emitters that never pause can make it return
 * true without end, so a caller must bound its loop: see kmes_swap_rounds.
 */
bool kmes_swap_copy(struct kmes_swap* swap);

/* Returns the number of pieces after which further copying in advance gains nothing against
 * emitters that never pause. */
__u64 kmes_swap_rounds(const struct kmes_swap* swap);

/*
 * Executes these steps in one critical section. It publishes the pending events. It copies the
 * rest: the longest suffix of whole events that fits (E10). It switches the CPU to the new buffer.
 * Then it stores the old generation + 1 with release, increments the old futex_counter and wakes,
 * whatever need_wake is (E3, E19, E24). The old buffer is frozen from then on; its memory must
 * outlive every mapping of it. Returns 0, or -EBUSY from inside an emission on the same CPU: no
 * effect, call again.
 */
int kmes_swap_finish(struct kmes_swap* swap);

/* A whole swap: begin, bounded copying, finish. */
int kmes_swap_run(struct kmes_cpu* cpu, struct kmes_buffer* new_buffer,
                  enum kmes_swap_positions positions, __u64 shift_bytes);

/*
 * Nudges `retired`, a buffer that `cpu` wrote to before a swap (E19): generation + 1, futex_counter
 * + 1, wake. Returns 0, -EBUSY as kmes_swap_finish, or -EINVAL for the current buffer of the CPU.
 * After the end of a producer, a further kmes_cpu_retire nudges its last buffer.
 */
int kmes_buffer_nudge(struct kmes_cpu* cpu, struct kmes_buffer* retired);

/* Ends the producer of this CPU (E25): publishes the pending events, retires its buffer and wakes.
 * No emission may follow. A further call nudges. Returns 0, or -EBUSY as kmes_swap_finish. */
int kmes_cpu_retire(struct kmes_cpu* cpu);

KMES_EXTERN_C_END

#endif
