/* SPDX-License-Identifier: MIT */
/*
 * The drain loop in a ring that the writer laps: 5.1.8.1 with E6, E7, E20 (kmes/consumer.c). It
 * copies unit by unit, and delivers the copy of an event after the second load of tail_pos.
 *
 *   LAP_WITHOUT_LOAD      reads at the tail after a lap without a load of write_pos (E20).
 *   DISCARD_WITHOUT_LOAD  likewise after a discarded read (E20).
 *   EMPTY_IF_EQUAL        takes the ring for empty only if read_pos == write_pos, not >= (E20).
 *   WITHOUT_RECHECK       has no second load of tail_pos (5.1.8.1 step 5).
 *   CHECKED               the sum of the faults below that end the run. Default: all.
 */
#define TORN 1    /* the copy has units of different events, or a wrong size */
#define EARLY 2   /* an event is delivered before it is published */
#define TWICE 4   /* an event is delivered again, or after a newer one */
#define CORRUPT 8 /* there is no event, although the tail has not passed it */
#define LEFT 16   /* the last event is published, but not delivered at the end */
#ifndef CHECKED
#define CHECKED 31
#endif

bool an_event_is_torn;
bool an_event_is_early;
bool an_event_comes_twice;
bool content_is_corrupt;
bool an_event_is_left;

byte last_sequence; /* of the last delivered event; 0: none */

#ifdef EMPTY_IF_EQUAL
#define is_empty(position, end) ((position) == (end))
#else
#define is_empty(position, end) ((position) >= (end))
#endif
#define is_sound(size, available) ((size) > 0 && (size) <= (available)) /* E7 */

hidden byte owner_there; /* used inside one step only */

/* Counts the published units from read_pos on, after it has moved a lapped read_pos to the tail. If
 * there are none, jumps to `nothing_there`. */
inline load_positions(read_pos, available, seen) {
    do
    :: atomic {
           seen = write_pos; /* @LOAD_WRITE_POS consumer.c */
           if
           :: is_empty(read_pos, seen) -> seen = 0; goto nothing_there
           :: else -> available = seen - read_pos
           fi
       };
       atomic {
           seen = tail_pos; /* @LOAD_TAIL consumer.c */
           if
           :: read_pos >= seen -> seen = 0; break
           :: else -> read_pos = seen; seen = 0
           fi
       };
#ifdef LAP_WITHOUT_LOAD
       atomic { available = CAPACITY; break }
#endif
    od
}

/* Copies the event at read_pos: its size, its owner, and whether all units have the same owner. */
inline read_event(read_pos, available, size, owner, copied, is_mixed) {
    atomic {
        size = size_in_header[read_pos % CAPACITY]; /* @READ_DATA consumer.c */
        owner = unit[read_pos % CAPACITY];          /* @READ_DATA consumer.c */
        copied = 1;
        if
        :: size == ANYTHING -> size = 0
        :: size == ANYTHING -> size = 1
        :: size == ANYTHING -> size = available
        :: size == ANYTHING -> size = available + 1
        :: else
        fi
    };
    do
    :: is_sound(size, available) && copied < size ->
        atomic {
            owner_there = unit[(read_pos + copied) % CAPACITY]; /* @READ_DATA consumer.c */
            is_mixed = (is_mixed || owner_there != owner);
            copied++
        }
    :: else -> break
    od
}

/* True if nothing from read_pos on was overwritten. Otherwise moves read_pos to the tail. */
inline load_tail_again(read_pos, seen, is_whole) {
#ifdef WITHOUT_RECHECK
    is_whole = true;
#else
    atomic {
        skip;            /* @DATA_FENCE consumer.c: every load is in order here */
        seen = tail_pos; /* @RECHECK_TAIL consumer.c */
        if
        :: seen <= read_pos -> is_whole = true
        :: else -> read_pos = seen
        fi;
        seen = 0
    }
#endif
}

inline deliver(read_pos, size, owner, is_mixed) {
    an_event_is_torn = (CHECKED & TORN) && (is_mixed || size != true_size[owner]);
    assert(!an_event_is_torn);
    an_event_is_early = (CHECKED & EARLY) && read_pos + size > write_pos;
    assert(!an_event_is_early);
    an_event_comes_twice = (CHECKED & TWICE) && owner <= last_sequence;
    assert(!an_event_comes_twice);
    last_sequence = owner;
    read_pos = read_pos + size
}
