/* SPDX-License-Identifier: MIT */
/*
 * Shared memory as processors see it: each has a first-in-first-out buffer of stores that it has
 * done but that others do not see yet (total store order: x86-64). This part knows nothing of the
 * protocol.
 *
 * No other processor sees a store enter the buffer, so it may be one step with what precedes it. A
 * fence may be one step with the load after it. Two loads, or a store and a load after it, never
 * are.
 *
 * Every word has one side that stores it and another that loads it, so no processor ever loads a
 * word of its own buffer; the assertion in `load` watches over that.
 *
 *   STORE_BUFFER_DEPTH   stores that may wait; a full buffer makes the next store wait. Default 2.
 *   WEAK_STORES          RELAXED stores of the CPU may overtake those before them, as on Arm.
 */
#ifndef STORE_BUFFER_DEPTH
#define STORE_BUFFER_DEPTH 2
#endif

#define ORDERED 0
#define RELAXED 1

/* Processor 0 is the CPU that produces; consumer n runs on processor 1 + n. */
#define CPU 0
#define PROCESSORS (1 + CONSUMERS)

byte memory[WORDS];
/* The word, value and order of each waiting store. */
chan store_buffer[PROCESSORS] = [STORE_BUFFER_DEPTH] of { byte, byte, bit };

/* Not part of the state: used inside one step only. */
hidden byte arriving_word;
hidden byte arriving_value;

inline store(processor, word, value) { store_buffer[processor]!word, value, ORDERED }

inline store_relaxed(processor, word, value) { store_buffer[processor]!word, value, RELAXED }

inline load(processor, word, into) {
    d_step {
        assert(!store_buffer[processor] ?? [eval(word), _, _]);
        into = memory[word]
    }
}

/* A full fence: waits until all stores before it are visible. */
inline fence(processor) { empty(store_buffer[processor]) }

/*
 * A consumer's membarrier: its own full fence, and then one at some moment on the producer's
 * processor, which makes the stores that wait there visible. Here the consumer waits until they
 * are; this leaves no order out, as each of these stores may become visible at any time.
 */
inline membarrier(processor) {
    fence(processor);
    fence(CPU)
}

/* The oldest waiting store of a processor becomes visible; a relaxed one may go first. */
inline arrive(processor) {
    store_buffer[processor]?arriving_word, arriving_value, _;
    memory[arriving_word] = arriving_value
}

inline overtake(processor) {
    store_buffer[processor]??arriving_word, arriving_value, RELAXED;
    memory[arriving_word] = arriving_value
}

/* Makes each waiting store visible at any time. */
proctype store_buffers() { /* endless */
end:
    do
    :: atomic { arrive(CPU) }
    :: atomic { arrive(1) }
#if CONSUMERS > 1
    :: atomic { arrive(2) }
#endif
#ifdef WEAK_STORES
    :: atomic { overtake(CPU) }
#endif
    od
}
