/* SPDX-License-Identifier: MIT */
/*
 * The reader takes a buffer (kmes/attach.c): 5.1.8.3 with E11, E15, E19. An attach returns the
 * buffer that the CPU writes to at that moment. A swap may come between any two steps.
 *
 *   WITHOUT_INODE_CHECK   takes the buffer without a check that it was alive when its generation
 *                         was read (E19).
 */

/* The buffer and position that consumer `me` reads. They are private, but global so that the
 * monitor sees them. */
byte mapped[CONSUMERS];
byte read_pos[CONSUMERS];

inline attach_alive(me, found_buffer, found_generation, now) {
    do
    :: load(1 + me, CURRENT, found_buffer);
       load(1 + me, GENERATION(found_buffer), found_generation); /* @LOAD_GENERATION attach.c */
#ifdef WITHOUT_INODE_CHECK
       break
#else
       atomic {
           load(1 + me, CURRENT, now);
           if
           :: now == found_buffer -> now = 0; break
           :: else -> now = 0
           fi
       }
#endif
    od
}

/* Reading begins at the tail. Sequence numbers show which events are new. */
inline adopt(me, found_buffer, found_generation) {
    mapped[me] = found_buffer;
    generation = found_generation;
    load(1 + me, TAIL_POS(found_buffer), read_pos[me]); /* @LOAD_TAIL attach.c */
}

inline switch_buffer(me, changed_generation, found_buffer, found_generation, now) {
    attach_alive(me, found_buffer, found_generation, now);
    atomic {
        if
        :: found_buffer == mapped[me] ->
            /* The generation has changed without a new buffer. Store it, or every check would
             * lead here again (E15). */
            generation = changed_generation
        :: else -> adopt(me, found_buffer, found_generation)
        fi;
        found_buffer = 0;
        found_generation = 0
    }
}
