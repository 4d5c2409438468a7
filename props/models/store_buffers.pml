/* SPDX-License-Identifier: MIT */
/*
 * Shared memory as processors see it. Each processor has a first-in-first-out buffer of stores
 * that others do not see yet (total store order: x86-64). This part knows nothing of the protocol.
 *
 * No other processor sees a store enter the buffer, so the store and the action before it may be
 * one step. So may a fence and the load after it. Two loads are never one step, nor are a store and
 * a load after it.
 *
 * One side stores each word, and the other side loads it. So no processor ever loads a word that is
 * in its own buffer. The assertion in `load` checks that.
 *
 *   STORE_BUFFER_DEPTH   the number of stores that may wait. If the buffer is full, the next store
 *                        blocks. Default 2.
 *   WEAK_STORES          RELAXED stores of the CPU may overtake earlier stores, as on Arm.
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

/* Not part of the state, because only single steps use them. */
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
 * A consumer's membarrier: a full fence of its own, and then one on the producer's processor, which
 * makes the waiting stores there visible. Here the consumer waits until they are visible. This
 * leaves no order out, because each of these stores may become visible at any time.
 */
inline membarrier(processor) {
    fence(processor);
    fence(CPU)
}

/* The oldest waiting store of a processor becomes visible. A relaxed one may overtake it. */
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
