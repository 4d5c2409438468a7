/* SPDX-License-Identifier: MIT */
/*
 * Shared memory as processors see it: each has a first-in-first-out buffer of stores that are done
 * for itself and not yet visible to others (total store order: x86-64). Knows no protocol.
 *
 * A store into one's own buffer is nobody else's business: it may be one step with what precedes
 * it. Likewise a fence with the load behind it. Two loads, or a load behind a store, never are.
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
/* Of each: word, value, order. */
chan store_buffer[PROCESSORS] = [STORE_BUFFER_DEPTH] of { byte, byte, bit };

/* Of no step's state: used inside one step only. */
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

/* A full fence: goes on when all stores before it are visible. */
inline fence(processor) { empty(store_buffer[processor]) }

/*
 * membarrier of a consumer: its own full fence, and then one at some moment on the processor that
 * produces. (What is waiting there becomes visible at that moment; here the consumer waits for
 * that, which leaves nothing out: each of these stores may arrive at any time.)
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

/* Each at any time. */
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
