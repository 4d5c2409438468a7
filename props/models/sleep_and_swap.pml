/* SPDX-License-Identifier: MIT */
/*
 * Model: one CPU emits and moves from buffer to buffer. Consumers drain, sleep and follow it. Each
 * processor has a store buffer. Without a -D the model is the reference; each -D removes one part,
 * as the included files say. These must hold: no event of a drained buffer is lost. When no process
 * can continue, no consumer sleeps on a retired buffer, or on one that has an event for it.
 *
 * Sizes:    CONSUMERS (1 or 2), EVENTS, SWAPS (at most 3); BATCHES: events may stay unpublished for
 *           a while; BEGIN_ATTACHED: consumers do not attach first.
 * Sharing:  CLEARS_0, CLEARS_1: whether consumer 0, 1 clears need_wake (1: exclusive; 0: shared);
 *           LIMITED_1: consumer 1 sleeps with a time limit (E12).
 * Barrier:  HAS_LIGHT_FENCE, BARRIERS: the asymmetric barrier (producer.pml, sleep.pml).
 * Backstop: NUDGE: the producer nudges one retired buffer at any time. It nudges each of them once
 *           when no other process can continue and one is mapped (E19). Left out by default,
 *           because it hides other faults.
 */
/* leaves out: WALK_SIZE TAIL TAIL_FENCE DATA: nothing is overwritten here; jump.pml */
/* leaves out: LOAD_TAIL READ_DATA DATA_FENCE RECHECK_TAIL: likewise */
#ifndef CONSUMERS
#define CONSUMERS 1
#endif
#ifndef EVENTS
#define EVENTS 3
#endif
#ifndef SWAPS
#define SWAPS 1
#endif
#ifndef CLEARS_0
#define CLEARS_0 1
#endif
#ifndef CLEARS_1
#define CLEARS_1 1
#endif
#ifndef HAS_LIGHT_FENCE
#define HAS_LIGHT_FENCE 0
#endif
#ifndef BARRIERS
#define BARRIERS CONSUMERS
#endif
#define BUFFERS (SWAPS + 1)

/* The shared words: the buffer that an attach finds, and five words of each buffer. */
#define CURRENT 0
#define WRITE_POS(buffer) (5 * (buffer) + 1)
#define TAIL_POS(buffer) (5 * (buffer) + 2)
#define GENERATION(buffer) (5 * (buffer) + 3)
#define COUNTER(buffer) (5 * (buffer) + 4)
#define NEED_WAKE(buffer) (5 * (buffer) + 5)
#define WORDS (5 * BUFFERS + 1)

/* The faults. */
bool an_event_is_lost;
bool an_event_is_slept_through;
bool a_dead_buffer_is_slept_on;

#define misses_an_event(me) (read_pos[me] < memory[WRITE_POS(mapped[me])])
#define is_left_behind(me) (mapped[me] != memory[CURRENT])
#define misses_something(me) (misses_an_event(me) || is_left_behind(me))

#include "store_buffers.pml"
#include "futex.pml"
#include "producer.pml"
#include "swap.pml"
#include "attach.pml"
#include "consumer.pml"
#include "sleep.pml"

#if CONSUMERS == 1
#define SOMEBODY_IS_LEFT_BEHIND is_left_behind(0)
#else
#define SOMEBODY_IS_LEFT_BEHIND (is_left_behind(0) || is_left_behind(1))
#endif
/* The nudges and the time limit each help once. If they helped until the fault ended, the monitor
 * could never see it. */
#ifdef NUDGE
bool has_nudged_all;
#define A_NUDGE_IS_DUE (!has_nudged_all && SOMEBODY_IS_LEFT_BEHIND)
#else
#define A_NUDGE_IS_DUE false
#endif
#ifdef LIMITED_1
bool has_ended_limit;
#define A_LIMIT_IS_DUE (!has_ended_limit && misses_something(1))
#else
#define A_LIMIT_IS_DUE false
#endif

/* path: emit, emit-with-light-fence */
inline emit(events, asked) {
    atomic { events < EVENTS -> events++; append(); publish() };
    wake_if_asked(asked)
}

/* path: batch, batch-with-light-fence */
inline end_batch(asked) {
    atomic { frontier != published -> publish() };
    wake_if_asked(asked)
}

proctype cpu() {
    byte events, swaps, asked;
#ifdef FLAG_IS_CLEARED
    bool has_cleared;
#endif
#ifdef NUDGE
    bool has_nudged;
    byte retired;
#endif

    do
    :: emit(events, asked)
#ifdef BATCHES
    :: events < EVENTS -> atomic { append(); events++ }
    :: end_batch(asked)
#endif
    :: swaps < SWAPS -> swap(swaps, swaps + 1, asked); swaps++
#ifdef FLAG_IS_CLEARED
    :: !has_cleared -> has_cleared = true; clear_wake(asked)
#endif
#ifdef NUDGE
    :: swaps > 0 && !has_nudged ->
        atomic { has_nudged = true; select(retired : 0 .. swaps - 1) };
        retire(retired, asked);
        retired = 0
#endif
    :: events == EVENTS && swaps == SWAPS && frontier == published -> break
    od
}

#ifdef NUDGE
/* Nudges every retired buffer, long after the swap. */
proctype nudger() { /* endless */
    byte asked;
    byte buffer;

end:
    do
    :: timeout && A_NUDGE_IS_DUE ->
        has_nudged_all = true;
        do
        :: buffer < current_buffer -> retire(buffer, asked); buffer++
        :: else -> buffer = 0; break
        od
    od
}
#endif

/* path: run, open, run-with-barrier */
proctype consumer(byte me; bool clears) { /* endless */
    byte generation, found_buffer, found_generation, changed, counter, seen;

#ifdef BEGIN_ATTACHED
    found_generation = 1;
#else
    attach_alive(me, found_buffer, found_generation, seen);
#endif
    atomic {
        adopt(me, found_buffer, found_generation);
        found_buffer = 0;
        found_generation = 0;
        owed[me] = read_pos[me]
    };
load_again:
    drain(me, seen);
    follow_generation(me, seen, changed, found_buffer, found_generation);
    goto load_again;
nothing_newer:
    wait(me, clears, counter, seen);
    goto load_again
}

#ifdef LIMITED_1
/* The time limit of a sleep passes once at any time, and once when no process can continue. */
proctype limit_of(byte me) { /* endless */
    bool has_passed;

end:
    do
    :: atomic { timeout && A_LIMIT_IS_DUE -> has_ended_limit = true; asleep_on[me] = AWAKE }
    :: atomic { !has_passed && asleep_on[me] != AWAKE -> has_passed = true; asleep_on[me] = AWAKE }
    od
}
#endif

proctype monitor() {
    byte me;

    atomic {
        timeout && !A_NUDGE_IS_DUE && !A_LIMIT_IS_DUE ->
        do
        :: me < CONSUMERS ->
            an_event_is_slept_through = misses_an_event(me);
            assert(!an_event_is_slept_through);
            a_dead_buffer_is_slept_on = is_left_behind(me);
            assert(!a_dead_buffer_is_slept_on);
            me++
        :: else -> break
        od
    }
}

init {
    atomic {
        memory[GENERATION(0)] = 1;
        generation_of[0] = 1;
        run store_buffers();
        run queued_wakes();
        run cpu();
        run consumer(0, CLEARS_0);
#if CONSUMERS > 1
        run consumer(1, CLEARS_1);
#endif
#ifdef NUDGE
        run nudger();
#endif
#ifdef LIMITED_1
        run limit_of(1);
#endif
        run monitor()
    }
}
