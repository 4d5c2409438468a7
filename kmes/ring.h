/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The producer's side: one buffer, one CPU that writes to it, and the writer's calls (5.1.7). Knows
 * no consumer: the only thing that it ever reads from shared memory is need_wake, as zero or not
 * zero (E13); all else that a consumer can see is written from private copies.
 *
 * Invariants of a buffer, outside of a critical section (positions are absolute, 64 bits wide, and
 * never cross 2^64):
 *
 *   tail <= published <= frontier <= tail + capacity
 *   tail, published and frontier are boundaries of events
 *   the shared tail_pos is `tail`, the shared write_pos is `published`
 *   frontier != published only while a batch is open: what lies between is its unpublished part
 *   tail reaches published only where one event takes all the room there is (E8: the first of a
 *   batch in a buffer that was shrunk); an event that would move it there publishes what is pending
 *
 * The boundary index (E13, E23): blocks of `block_bytes` divide the positions. For each block that
 * starts in (tail, frontier] the index holds the first boundary at or after the start of the block,
 * so that the tail finds its way after at most block_bytes / 30 sizes (137 for 4 KiB), however many
 * tiny events are overwritten, and whatever a size in the ring says.
 */
#ifndef KMES_RING_H
#define KMES_RING_H

#include "kmes/abi.h"
#include "kmes/event.h"
#include "kmes/platform.h"

KMES_EXTERN_C_BEGIN

/* A boundary of events, and how many events of this buffer begin before it. */
struct kmes_boundary {
    __u64 pos;
    __u64 ordinal;
};

/* One ring buffer as its producer knows it. The memory belongs to whoever made it. */
struct kmes_buffer {
    struct kmes_fields shared; /* written only, but for need_wake (E13) */
    __u64 capacity;
    __u64 mask; /* capacity - 1 */
    __u64 tail;
    __u64 published;
    __u64 frontier;
    __u64 tail_ordinal;     /* events of this buffer that begin before tail */
    __u64 frontier_ordinal; /* likewise before frontier */
    __u64 generation;
    __u32 futex_counter;
    __u32 block_shift; /* a block of the index has 1 << block_shift bytes */
    struct kmes_boundary* index;
    __u64 index_mask; /* entries - 1 */
};

/* What a CPU's producer counts; read it inside the critical section, or after the last emission. */
struct kmes_statistics {
    __u64 events;  /* written, all buffers */
    __u64 bytes;   /* of those events */
    __u64 dropped; /* over 50 % of the capacity: number used, nothing written (5.1.7 step 5) */
    __u64 dropped_nested; /* emitted from inside an emission (NMI, signal handler): E16 */
    __u64 overwritten;    /* events that the tail has passed */
    __u64 wakes;          /* futex_counter increments because need_wake was set */
    __u64 corrupt;        /* sizes in the ring that were impossible (E13): the buffer was emptied */
    __u64 swaps;
    __u64 left_behind; /* events that did not fit into a smaller buffer at a swap (E10) */
};

/* One CPU's producer. Zero-initialise, then kmes_cpu_init. */
struct kmes_cpu {
    struct kmes_platform* platform;
    struct kmes_buffer* buffer;
    __u64 sequence; /* the number given last; 0 is never given */
    struct kmes_statistics statistics;
    __u16 cpu_id;
    bool wake_owed; /* published under E8 without a look at need_wake */
    /* Every consumer of this CPU executes the platform's barrier before it sleeps (SLEEP_BARRIER in
     * order.h), so an emission leaves out its full fence. kmes_cpu_init clears it. Set it before
     * the first emission, and only where no other consumer can attach: it would miss wakes. */
    bool has_light_fence;
    unsigned inside;        /* in the critical section: see E16 */
    unsigned nested_missed; /* emissions that came while inside; numbers owed to them */
};

/* -- Buffers (buffer.c) ---------------------------------------------------------------------- */

/* Entries of the boundary index for a capacity; 0 where the capacity is not valid. */
__u64 kmes_index_entries(__u64 capacity_bytes);

/* What kmes_buffer_init makes a buffer of. */
struct kmes_buffer_setup {
    void* mapping; /* kmes_mapping_bytes(version, capacity) of zeros, data mapped twice */
    struct kmes_boundary* index; /* kmes_index_entries(capacity) of them, private */
    __u64 capacity_bytes;
    __u64 generation; /* 0 for a boot buffer, 1 for the first that consumers see */
    __u64 start_pos;  /* of the first event: any value (E11) */
    __u32 version;    /* KMES_VERSION_1 */
    __u16 cpu_id;
};

/*
 * Makes an empty buffer and writes its metadata page (5.1.6), magic last. The mapping must not be
 * reachable for a consumer yet. 0; -EINVAL where capacity or version is not valid: nothing written.
 */
int kmes_buffer_init(struct kmes_buffer* buffer, const struct kmes_buffer_setup* setup);

/* -- The writer (producer.c) ----------------------------------------------------------------- */

/* A producer for CPU `cpu_id` that writes to `buffer` next, with `last_sequence` + 1 (0 at boot;
 * what the last producer of this boot gave, for one that goes on: E25). */
void kmes_cpu_init(struct kmes_cpu* cpu, __u16 cpu_id, struct kmes_buffer* buffer,
                   struct kmes_platform* platform, __u64 last_sequence);

/*
 * Emits one event (5.1.7), published at once, with a wake if one was asked for. The in-kernel form:
 * 0; -ENOSPC dropped over 50 % of the capacity, sequence number used, counted (step 5);
 * -EBUSY nested inside an emission on the same CPU: dropped, the number is used before the next one
 * (E16); -EINVAL type_len 0: nothing happened.
 */
int kmes_cpu_emit(struct kmes_cpu* cpu, const struct kmes_event_input* input);

/* The same for the emit call: -ENOSPC uses no sequence number and counts nothing (event-model.md).
 */
int kmes_cpu_emit_call(struct kmes_cpu* cpu, const struct kmes_event_input* input);

/* An event that is written in place: from kmes_reserve to kmes_commit or kmes_abandon. */
struct kmes_reservation {
    __u8* payload; /* payload_len bytes in the ring, contiguous, holding anything */
    __u64 payload_pos;
    __u64 sequence;
    __u64 event_bytes;
    __u32 payload_len;
};

/*
 * Reserves room for `input` (whose payload is not looked at) and writes its header. On 0 the CPU is
 * inside its critical section until the reservation is committed or abandoned: fill the payload and
 * do nothing else. Errors as kmes_cpu_emit, with nothing to commit. The payload may still hold
 * bytes of older events: fill all of it.
 */
int kmes_reserve(struct kmes_cpu* cpu, const struct kmes_event_input* input,
                 struct kmes_reservation* reservation);

/* Copies `bytes` bytes to byte `offset` of the reserved payload, with the order of kmes/order.h.
 * What lies beyond the payload is not copied. */
void kmes_reservation_fill(struct kmes_cpu* cpu, const struct kmes_reservation* reservation,
                           __u32 offset, const void* from, __u32 bytes);

/* Publishes the reserved event (5.1.7 steps 8 and 9) and leaves the critical section. */
void kmes_commit(struct kmes_cpu* cpu, const struct kmes_reservation* reservation);

/* Gives the reservation up: no event, no sequence number used. What was overwritten to make room
 * for it stays overwritten. Leaves the critical section. */
void kmes_abandon(struct kmes_cpu* cpu, const struct kmes_reservation* reservation);

/* A batch (5.1.7, last rule): one timestamp, steps 8 and 9 once, at the end. Not a critical
 * section: what emits in between appends behind what the batch has written and publishes all of it
 * (E16). */
struct kmes_batch {
    __u64 timestamp_ns;
};

void kmes_batch_begin(struct kmes_cpu* cpu, struct kmes_batch* batch);

/* One event of a batch; unpublished until kmes_batch_end, unless room has to be made beyond what is
 * published (E8). Errors as kmes_cpu_emit: the in-kernel batch goes on after a dropped one. */
int kmes_batch_emit(struct kmes_cpu* cpu, const struct kmes_batch* batch,
                    const struct kmes_event_input* input);

/* The same with the errors of kmes_cpu_emit_call: the caller stops at the first. */
int kmes_batch_emit_call(struct kmes_cpu* cpu, const struct kmes_batch* batch,
                         const struct kmes_event_input* input);

/* An event of a batch of the emit call, and what all events of the call have in common. */
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

/* Bytes after which a batch lets other emitters of its CPU in. */
#define KMES_BATCH_PIECE_BYTES (64ull << 10)

/*
 * Writes `count` entries, at least one, in as few critical sections as KMES_BATCH_PIECE_BYTES
 * allows: kmes_batch_emit_call for each of them, with the checks of the emit call. The entries are
 * the caller's memory in this address space. 0, or the error of the first bad entry: -EINVAL
 * type_len is 0 or more than 65535, or the type is not UTF-8; -ENOSPC more bytes than
 * max_event_bytes or than 50 % of the capacity; -EBUSY nested (E16), or the producer has ended.
 * *emitted, in any case: how many entries are before it, which are written.
 */
int kmes_batch_emit_entries(struct kmes_cpu* cpu, const struct kmes_batch* batch,
                            const struct kmes_batch_rules* rules,
                            const struct kmes_batch_entry* entries, __u32 count, __u32* emitted);

/* Publishes what of the batch is not yet, and looks at need_wake once. */
void kmes_batch_end(struct kmes_cpu* cpu, const struct kmes_batch* batch);

/* -- Resize, nudge, end (swap.c) ------------------------------------------------------------- */

/* Where the positions of the new buffer begin (E11). */
enum kmes_swap_positions {
    KMES_SWAP_KEEP,  /* an event has the same position in both: the default */
    KMES_SWAP_ZERO,  /* the oldest event that survives when the swap begins is at 0 */
    KMES_SWAP_SHIFT, /* every position is moved up by shift_bytes */
};

/* A swap on its way. Zero-initialise nothing; kmes_swap_begin fills it. */
struct kmes_swap {
    struct kmes_cpu* cpu;
    struct kmes_buffer* old_buffer;
    struct kmes_buffer* new_buffer;
    __u64 delta;  /* new position = old position + delta */
    __u64 copied; /* old positions below this are in the new buffer, as far as they survive */
    __u64 walked; /* and those below this, a boundary, are in its index */
    __u64 walked_ordinal;
};

/* Bytes that are copied, and sizes that are read, in one critical section of a swap (E18). */
#define KMES_SWAP_PIECE_BYTES (64ull << 10)
#define KMES_SWAP_PIECE_EVENTS 2048u

/*
 * Begins to move `cpu` to `new_buffer`, which is fresh (kmes_buffer_init; any start_pos and
 * generation: both are set here) and which nobody can attach to until kmes_swap_finish has returned
 * (E14). Emission goes on, into the old buffer. `shift_bytes` is for KMES_SWAP_SHIFT. 0; -EBUSY
 * from inside an emission on the same CPU: nothing done.
 */
int kmes_swap_begin(struct kmes_swap* swap, struct kmes_cpu* cpu, struct kmes_buffer* new_buffer,
                    enum kmes_swap_positions positions, __u64 shift_bytes);

/*
 * Copies one piece of what survives, in a critical section bounded by the two numbers above. True
 * while there is more to copy beforehand. -- A caller that loops on it against emitters that never
 * rest must bound the loop: see kmes_swap_rounds.
 */
bool kmes_swap_copy(struct kmes_swap* swap);

/* Pieces after which copying beforehand gains nothing against emitters that never rest. */
__u64 kmes_swap_rounds(const struct kmes_swap* swap);

/*
 * In one critical section: publishes what is pending, copies the rest (the longest suffix of whole
 * events that fits: E10), switches the CPU to the new buffer, then stores the old generation + 1
 * with release, adds one to the old futex_counter and wakes, whatever need_wake says (E3, E19,
 * E24). The old buffer is frozen from here on; its memory must outlive every mapping of it. 0;
 * -EBUSY from inside an emission on the same CPU: nothing done, call again.
 */
int kmes_swap_finish(struct kmes_swap* swap);

/* All of a swap: begin, bounded copying, finish. */
int kmes_swap_run(struct kmes_cpu* cpu, struct kmes_buffer* new_buffer,
                  enum kmes_swap_positions positions, __u64 shift_bytes);

/*
 * Nudges `retired`, a buffer that `cpu` wrote to before a swap (E19): generation + 1,
 * futex_counter + 1, wake. 0; -EBUSY as kmes_swap_finish; -EINVAL for the buffer that the CPU
 * writes to now. (The last buffer of a producer that has ended is nudged by kmes_cpu_retire again.)
 */
int kmes_buffer_nudge(struct kmes_cpu* cpu, struct kmes_buffer* retired);

/* The producer of this CPU ends (E25): publishes what is pending, retires and wakes its buffer.
 * Nothing may be emitted afterwards; calling it again nudges. 0; -EBUSY as kmes_swap_finish. */
int kmes_cpu_retire(struct kmes_cpu* cpu);

KMES_EXTERN_C_END

#endif
