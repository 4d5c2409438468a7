/* SPDX-License-Identifier: MIT */
/*
 * The writer in a full ring: 5.1.7 steps 6 to 8 (kmes/producer.c, and the walk of kmes/index.h).
 * Positions count units of the ring. An event has at least one unit and at most half of the ring.
 * Each unit names its event, and the first unit also has the size.
 *
 *   EMPTIES                       the walk may meet an impossible size, and then drops all (E13).
 *   WITHOUT_PUBLISH_BEFORE_TAIL   a batch may move the tail past the published events (E8).
 */

/* The ring, and the two words of it that a consumer loads. */
byte unit[CAPACITY];           /* the sequence number of its event; 0: none */
byte size_in_header[CAPACITY]; /* the size, in the first unit of an event; else ANYTHING */
#define ANYTHING 255 /* payload, in which a consumer may see any size (ring_consumer.pml) */
byte write_pos;
byte tail_pos;

/* The CPU's private copies (E13). */
byte tail;
byte frontier;
byte published;
byte sequence;

/* The true size and state of each event, for the consumer's assertions. */
byte true_size[SEQUENCES + 1];

inline publish() {
    atomic {
        write_pos = frontier; /* @PUBLISH producer.c */
        published = frontier
    }
}

/* Moves the tail past exactly the events that `size` units at the frontier overwrite. */
inline make_room(size, new_tail) {
    if
    :: frontier + size - tail > CAPACITY ->
        atomic {
            new_tail = tail;
            do
            :: frontier + size - new_tail > CAPACITY ->
                new_tail = new_tail + size_in_header[new_tail % CAPACITY] /* @WALK_SIZE index.h */
#ifdef EMPTIES
            :: frontier + size - new_tail > CAPACITY -> new_tail = frontier; break
#endif
            :: else -> break
            od
        };
#ifndef WITHOUT_PUBLISH_BEFORE_TAIL
        if
        :: frontier != published && new_tail >= published -> publish()
        :: else
        fi;
#endif
        atomic {
            tail_pos = new_tail; /* @TAIL producer.c */
            skip;                /* @TAIL_FENCE producer.c: every store is in order here */
            tail = new_tail;
            new_tail = 0
        }
    :: else
    fi
}

inline write_event(size, written) {
    atomic {
        sequence++;
        true_size[sequence] = size;
        unit[frontier % CAPACITY] = sequence; /* @DATA producer.c */
        size_in_header[frontier % CAPACITY] = size; /* @DATA producer.c */
        written = 1
    };
    do
    :: written < size ->
        atomic {
            unit[(frontier + written) % CAPACITY] = sequence; /* @DATA producer.c */
            size_in_header[(frontier + written) % CAPACITY] = ANYTHING;
            written++
        }
    :: else -> break
    od;
    atomic { frontier = frontier + size; written = 0 }
}
