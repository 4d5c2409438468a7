/* SPDX-License-Identifier: MIT */
/*
 * Sleep and wake: futex_wait, and a wake that the CPU queues and issues later (platform.h). Both
 * calls enter the operating system and take a lock there, so both are full fences. This part knows
 * nothing of the protocol.
 *
 *   WAKE_GOES_TO_CURRENT   a queued wake does not store its buffer. It wakes the sleepers on the
 *                          buffer that is current when the wake is issued (against E16).
 */
#define AWAKE 255

byte asleep_on[CONSUMERS] = AWAKE;
bool wake_queued[BUFFERS];
hidden byte woken;

inline queue_wake(buffer) { wake_queued[buffer] = true }

/* Wakes all sleepers on this buffer, as a part of one step. */
inline wake_all(buffer) {
    woken = 0;
    do
    :: woken < CONSUMERS ->
        if
        :: asleep_on[woken] == buffer -> asleep_on[woken] = AWAKE
        :: else
        fi;
        woken++
    :: else -> break
    od
}

/* Issues the queued wake of this buffer. */
inline issue_wake(buffer) {
    wake_queued[buffer] && empty(store_buffer[CPU]) -> wake_queued[buffer] = false;
#ifdef WAKE_GOES_TO_CURRENT
    wake_all(memory[CURRENT])
#else
    wake_all(buffer)
#endif
}

/* Issues each queued wake at any time. */
proctype queued_wakes() { /* endless */
end:
    do
    :: atomic { issue_wake(0) }
#if BUFFERS > 1
    :: atomic { issue_wake(1) }
#endif
#if BUFFERS > 2
    :: atomic { issue_wake(2) }
#endif
#if BUFFERS > 3
    :: atomic { issue_wake(3) }
#endif
    od
}

/* Sleeps while the counter is `expected`. The comparison and falling asleep are one step. */
inline futex_wait(me, buffer, expected) {
    atomic {
        fence(1 + me);
        if
        :: memory[COUNTER(buffer)] == expected -> asleep_on[me] = buffer
        :: else -> goto awake
        fi
    };
end_asleep:
    atomic { asleep_on[me] == AWAKE -> goto awake };
}
