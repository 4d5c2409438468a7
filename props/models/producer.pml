/* SPDX-License-Identifier: MIT */
/*
 * The writer's side of the sleep: 5.1.7 steps 8 and 9 (kmes/producer.c). Positions count events.
 * The bytes of events and the tail are in jump.pml; here nothing is overwritten.
 *
 *   HAS_LIGHT_FENCE=1    no full fence here: each consumer causes one by membarrier (sleep.pml).
 *   WITHOUT_WAKE_FENCE   need_wake is loaded while the store of write_pos may still wait (E1).
 *   PRODUCER_CLEARS      the producer clears need_wake when it has found it set (against E12).
 *   FLAG_IS_CLEARED      the CPU clears need_wake once because it knows of no consumer
 *                        (clear_need_wake in kmes/user/platform.cc), although there is one. The
 *                        check of the lease after the store, and its fence, are left out.
 *   CLEARS_WITHOUT_COUNTER, CLEARS_AFTER_COUNTER   ... and does not increment the counter, or
 *                        increments it first.
 */

/* The CPU's private copies (E13). */
byte current_buffer; /* the buffer that it writes to */
byte tail;           /* the tail of that buffer */
byte frontier;       /* the end of the last written event */
byte published;      /* write_pos once all its stores are visible */
byte generation_of[BUFFERS];
byte counter_of[BUFFERS];

inline append() { frontier++ }

inline publish() {
    store(CPU, WRITE_POS(current_buffer), frontier); /* @PUBLISH producer.c */
    published = frontier
}

inline wake_if_asked(asked) {
    atomic {
#ifndef WITHOUT_WAKE_FENCE
        if
        :: HAS_LIGHT_FENCE -> skip /* @WAKE_FENCE_LIGHT producer.c */
        :: else -> fence(CPU) /* @WAKE_FENCE producer.c */
        fi;
#endif
        load(CPU, NEED_WAKE(current_buffer), asked); /* @NEED_WAKE producer.c */
        if
        :: asked ->
#ifdef PRODUCER_CLEARS
            store(CPU, NEED_WAKE(current_buffer), 0);
#endif
            asked = counter_of[current_buffer] + 1;
            counter_of[current_buffer] = asked;
            store(CPU, COUNTER(current_buffer), asked); /* @COUNTER producer.c */
            asked = 0;
            queue_wake(current_buffer)
        :: else
        fi
    }
}

#ifdef FLAG_IS_CLEARED
inline move_counter(asked) {
    asked = counter_of[current_buffer] + 1;
    counter_of[current_buffer] = asked;
    store(CPU, COUNTER(current_buffer), asked)
}

inline clear_wake(asked) {
    atomic {
        load(CPU, NEED_WAKE(current_buffer), asked);
        if
        :: asked ->
#ifdef CLEARS_AFTER_COUNTER
            move_counter(asked);
#endif
            store(CPU, NEED_WAKE(current_buffer), 0);
#if !defined(CLEARS_AFTER_COUNTER) && !defined(CLEARS_WITHOUT_COUNTER)
            move_counter(asked);
#endif
            asked = 0;
            queue_wake(current_buffer)
        :: else
        fi
    }
}
#endif
