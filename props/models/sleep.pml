/* SPDX-License-Identifier: MIT */
/*
 * The reader's sleep (kmes/sleep.c): 5.1.8.2 with E1, E2, E3, E12.
 *
 *   BARRIERS=n                  with HAS_LIGHT_FENCE=1 only the first n consumers execute the
 *                               barrier; by default all of them.
 *   WITHOUT_SLEEP_FENCE         checks again while its store of need_wake may still wait (E1).
 *   COUNTER_AFTER_RECHECK       loads the counter after the second load of write_pos (E2).
 *   COUNTER_AFTER_FENCE         ... after the fence and before that load. This is as good as the
 *                               reference's order while only the consumer clears the flag (E2).
 *   WITHOUT_GENERATION_RECHECK  has no second load of generation (E3).
 */

/* path: wait, wait-with-barrier */
inline wait(me, clears, counter, seen) {
    atomic {
#if !defined(COUNTER_AFTER_RECHECK) && !defined(COUNTER_AFTER_FENCE)
        load(1 + me, COUNTER(mapped[me]), counter); /* @SLEEP_COUNTER sleep.c */
#endif
        store(1 + me, NEED_WAKE(mapped[me]), 1); /* @ASK_WAKE sleep.c */
        if
        :: HAS_LIGHT_FENCE && me < BARRIERS -> membarrier(1 + me) /* @SLEEP_BARRIER sleep.c */
        :: else
        fi
    };
#ifdef COUNTER_AFTER_FENCE
    atomic { fence(1 + me); load(1 + me, COUNTER(mapped[me]), counter) };
#endif
    atomic {
#ifndef WITHOUT_SLEEP_FENCE
        fence(1 + me); /* @SLEEP_FENCE sleep.c */
#endif
        load(1 + me, WRITE_POS(mapped[me]), seen); /* @SLEEP_WRITE_POS sleep.c */
        if
        :: read_pos[me] < seen -> goto awake
        :: else -> seen = 0
        fi
    };
#ifndef WITHOUT_GENERATION_RECHECK
    atomic {
        load(1 + me, GENERATION(mapped[me]), seen); /* @SLEEP_GENERATION sleep.c */
        if
        :: seen != generation -> goto awake
        :: else -> seen = 0
        fi
    };
#endif
#ifdef COUNTER_AFTER_RECHECK
    load(1 + me, COUNTER(mapped[me]), counter);
#endif
    futex_wait(me, mapped[me], counter);
awake:
    atomic {
        seen = 0;
        counter = 0;
        if
        :: clears -> store(1 + me, NEED_WAKE(mapped[me]), 0) /* @CLEAR_WAKE sleep.c */
        :: else
        fi
    }
}
