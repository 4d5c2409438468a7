/* SPDX-License-Identifier: MIT */
/*
 * Model: a full ring, its writer, and a consumer that is lapped and jumps to the tail. Without a -D
 * the model is the reference; each -D removes one part, as the included files say.
 *
 * Stores become visible in order, and loads happen in order, one at a time. x86-64 permits no more
 * here: the consumer stores nothing that the producer loads. A producer whose stores wait therefore
 * behaves like one that runs later. (Weaker machines need E4 and E5, which this model leaves out.)
 *
 * Sizes:    CAPACITY; EVENTS: the number of written events. Each has any size up to half of the
 *           capacity, alone or (with BATCHES) in a batch.
 * Start:    SURVIVOR: the units of one published event, after a shrink more than half of the
 *           capacity; 0: there is none.
 */
/* leaves out: WAKE_FENCE NEED_WAKE COUNTER: no consumer sleeps here; sleep_and_swap.pml */
/* leaves out: LOAD_GENERATION: there are no swaps here; sleep_and_swap.pml */
#ifndef CAPACITY
#define CAPACITY 8
#endif
#ifndef EVENTS
#define EVENTS 3
#endif
#ifndef SURVIVOR
#define SURVIVOR 5
#endif
#define SEQUENCES (EVENTS + 1)

#include "ring_producer.pml"
#include "ring_consumer.pml"

bool producer_is_done;

/* path: emit, batch, overfull-batch */
proctype producer() {
    byte events, size, new_tail, written;

    do
    :: events < EVENTS ->
        atomic {
            events++;
            select(size : 1 .. CAPACITY / 2)
        };
        make_room(size, new_tail);
        write_event(size, written);
        if
        :: publish()
#ifdef BATCHES
        :: skip
#endif
        fi
    :: else -> break
    od;
    if
    :: frontier != published -> publish()
    :: else
    fi;
    producer_is_done = true
}

/* path: open, next */
proctype consumer() {
    byte read_pos, available, seen, size, owner, copied;
    bool is_mixed, is_whole;

    read_pos = tail_pos; /* @LOAD_TAIL attach.c: begins at the tail, at any time (E11) */
    do
    :: load_positions(read_pos, available, seen);
read:
       read_event(read_pos, available, size, owner, copied, is_mixed);
       load_tail_again(read_pos, seen, is_whole);
       atomic {
           content_is_corrupt = (CHECKED & CORRUPT) && is_whole && !is_sound(size, available);
           assert(!content_is_corrupt);
           if
           :: is_whole && is_sound(size, available) -> deliver(read_pos, size, owner, is_mixed)
           :: else
           fi;
           size = 0; owner = 0; copied = 0; is_mixed = false;
           if
           :: is_whole -> is_whole = false; available = 0
#ifdef DISCARD_WITHOUT_LOAD
           :: else -> available = CAPACITY; goto read
#else
           :: else -> available = 0
#endif
           fi
       };
       goto next;
nothing_there:
       if
       :: producer_is_done && read_pos >= write_pos -> break
       :: write_pos > read_pos
       fi;
next:
       skip
    od;
    an_event_is_left = (CHECKED & LEFT) && last_sequence != sequence;
    assert(!an_event_is_left)
}

init {
    atomic {
#if SURVIVOR > 0
        byte written;

        do
        :: written < SURVIVOR ->
            unit[written] = 1;
            size_in_header[written] = ANYTHING;
            written++
        :: else -> break
        od;
        sequence = 1;
        size_in_header[0] = SURVIVOR;
        true_size[1] = SURVIVOR;
        frontier = SURVIVOR;
        published = SURVIVOR;
        write_pos = SURVIVOR;
#endif
        run producer();
        run consumer()
    }
}
