/* SPDX-License-Identifier: MIT */
/*
 * The drain loop's side of the swap (kmes/consumer.c): finds the published events and a newer
 * buffer. 5.1.8.1, 5.1.8.3 with E10, E15, E21, E24. An event's sequence number is also its
 * position. Laps and torn reads are in jump.pml.
 *
 *   WITHOUT_FROZEN_LOAD   takes the newer buffer without a second load of write_pos (E24).
 */

/* The sequence number that consumer `me` has to deliver next. The first one is at the tail of its
 * first buffer. */
byte owed[CONSUMERS];

inline deliver(me) {
    if
    :: read_pos[me] < owed[me] /* an older buffer contained it, too (E21) */
    :: else ->
        an_event_is_lost = (read_pos[me] > owed[me]);
        assert(!an_event_is_lost);
        owed[me] = read_pos[me] + 1
    fi;
    read_pos[me]++
}

inline drain(me, seen) {
    do
    :: atomic {
           load(1 + me, WRITE_POS(mapped[me]), seen); /* @LOAD_WRITE_POS consumer.c */
           if
           :: read_pos[me] < seen -> deliver(me); seen = 0
           :: else -> seen = 0; break
           fi
       }
    od
}

/* Runs after a drain. Jumps to `nothing_newer` if there is no newer buffer. */
inline follow_generation(me, seen, changed, found_buffer, found_generation) {
    atomic {
        load(1 + me, GENERATION(mapped[me]), changed); /* @LOAD_GENERATION consumer.c */
        if
        :: changed == generation -> changed = 0; goto nothing_newer
        :: else
        fi
    };
#ifndef WITHOUT_FROZEN_LOAD
    atomic {
        load(1 + me, WRITE_POS(mapped[me]), seen); /* @FROZEN_WRITE_POS consumer.c */
        if
        :: read_pos[me] < seen -> seen = 0; changed = 0; goto load_again
        :: else -> seen = 0
        fi
    };
#endif
    switch_buffer(me, changed, found_buffer, found_generation, seen);
    changed = 0
}
