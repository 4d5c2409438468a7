/* SPDX-License-Identifier: MIT */
/*
 * Moves the CPU to the next buffer, and nudges a retired one (kmes/swap.c): 5.1.8.4. Buffers are
 * used in order, each once. Positions are kept (E11).
 *
 *   SHRINK                     the new buffer may hold only a suffix of the events (E10).
 *   NOTHING_SURVIVES           the new buffer holds none of the events.
 *   WITHOUT_SWAP_WAKE          neither increments a retired buffer's counter nor wakes (E3).
 *   SWAP_WAKES_IF_ASKED        does both only if need_wake is set (E3).
 *   GENERATION_BEFORE_POINTER  the old generation is stored first (E19).
 *   RELAXED_GENERATION         the old generation is no release store (E24; with WEAK_STORES).
 */
#if defined(RELAXED_GENERATION)
#define store_generation(buffer, value) store_relaxed(CPU, GENERATION(buffer), value)
#else
#define store_generation(buffer, value) store(CPU, GENERATION(buffer), value)
#endif

inline retire_counter(buffer) {
    counter_of[buffer]++;
    store(CPU, COUNTER(buffer), counter_of[buffer]); /* @RETIRE_COUNTER swap.c */
    queue_wake(buffer)
}

/* path: nudge */
inline retire(buffer, asked) {
    atomic {
        generation_of[buffer]++;
        store_generation(buffer, generation_of[buffer]); /* @GENERATION swap.c */
#if !defined(WITHOUT_SWAP_WAKE) && !defined(SWAP_WAKES_IF_ASKED)
        retire_counter(buffer)
#endif
    };
#ifdef SWAP_WAKES_IF_ASKED
    atomic {
        load(CPU, NEED_WAKE(buffer), asked);
        if
        :: asked -> asked = 0; retire_counter(buffer)
        :: else
        fi
    }
#endif
}

/* The new buffer continues at the positions of the old one. No consumer can load a word of it
 * before the later store of CURRENT is visible, so these stores need no store buffer. */
inline open_new(new_buffer) {
#if defined(SHRINK)
    do
    :: tail < frontier -> tail++
    :: break
    od;
#elif defined(NOTHING_SURVIVES)
    tail = frontier;
#endif
    generation_of[new_buffer] = generation_of[current_buffer] + 1;
    memory[GENERATION(new_buffer)] = generation_of[new_buffer]; /* @FRESH swap.c */
    memory[TAIL_POS(new_buffer)] = tail;                        /* @SWAP_TAIL swap.c */
    memory[WRITE_POS(new_buffer)] = published                   /* @SWAP_PUBLISH swap.c */
}

/* Stores the buffer that an attach finds. The step has no label, because it is private in the core.
 * An attach there reads it under a lock (E14), which orders at least as much. */
inline switch_pointer(new_buffer) {
    current_buffer = new_buffer;
    store(CPU, CURRENT, new_buffer)
}

/* path: swap */
inline swap(old_buffer, new_buffer, asked) {
    atomic {
        if
        :: frontier != published -> publish()
        :: else
        fi;
        open_new(new_buffer);
#ifdef GENERATION_BEFORE_POINTER
        retire(old_buffer, asked);
        switch_pointer(new_buffer)
#else
        switch_pointer(new_buffer);
        retire(old_buffer, asked)
#endif
    }
}
