/* SPDX-License-Identifier: MIT */
/*
 * Model: on one CPU a task emits, and interrupts emit in the middle of its work. A non-maskable
 * interrupt (NMI) emits in the middle of either. A consumer drains and sleeps (E16). Without a -D
 * the model is the reference; each -D removes one part. These must hold: events are whole and in
 * order, no event of an interrupt is rejected, and every rejected event leaves a gap. No consumer
 * sleeps while there is an event.
 *
 * All emitters run on one CPU and see their own stores, so stores are visible at once here.
 *
 * Sizes:  TASK_EVENTS (if there are three, the last two are a batch), INTERRUPTS, NMIS.
 *
 *   INTERRUPTS_STAY_ON   preemption is off but interrupts are on, as the specification says.
 *   WITHOUT_GUARD        an interrupt or NMI inside an emission emits nevertheless.
 *   COUNTER_OUTSIDE      interrupts are on again before need_wake, the counter and the wake.
 *   WITHOUT_SETTLING     the sequence numbers of rejected events are forgotten.
 *   ONLY_TORN            the run does not end at events out of order or wrong numbers.
 */
/* leaves out: WALK_SIZE TAIL TAIL_FENCE: nothing is overwritten here; jump.pml */
/* leaves out: LOAD_TAIL DATA_FENCE RECHECK_TAIL: likewise */
/* leaves out: LOAD_GENERATION FROZEN_WRITE_POS SLEEP_GENERATION: there are no swaps here */
#ifndef TASK_EVENTS
#define TASK_EVENTS 1
#endif
#ifndef INTERRUPTS
#define INTERRUPTS 2
#endif
#ifndef NMIS
#define NMIS 1
#endif
#define ATTEMPTS (TASK_EVENTS + INTERRUPTS + NMIS)
#define UNITS 2 /* the units of an event */

/* Shared words, and the ring: never full here. Each unit has the sequence number of its event. */
byte write_pos;
byte futex_counter;
bool need_wake;
byte unit[ATTEMPTS * UNITS];

/* The CPU's private memory. */
byte frontier;
byte published;
byte counter_copy;
byte sequence;
bool inside;        /* an emission has begun and not ended */
byte nested_missed; /* the number of rejected events without a sequence number */
bool interrupts_are_on = true;
bool in_interrupt;
bool in_nmi;

/* The sleeper. */
byte read_pos;
byte last_sequence;
bool is_asleep;

/* The faults. */
bool an_event_is_torn;
bool an_event_is_out_of_order;
bool an_event_is_slept_through;
bool an_interrupt_is_turned_away;
bool a_drop_shows_no_gap;

inline interrupts_off() {
#ifndef INTERRUPTS_STAY_ON
    interrupts_are_on = false
#else
    skip
#endif
}

/* `was_on`: a handler runs with interrupts off, and leaves them so. */
inline interrupts_back(was_on) { interrupts_are_on = was_on }

/* kmes/guard.h: enters the critical section, or counts one more rejected event. */
inline enter(was_on, is_turned_away) {
    interrupts_off();
    if
#ifndef WITHOUT_GUARD
    :: inside ->
        an_interrupt_is_turned_away = !in_nmi;
        assert(!an_interrupt_is_turned_away);
        nested_missed++;
        is_turned_away = true;
        interrupts_back(was_on)
    :: else -> inside = true
#else
    :: inside = true
#endif
    fi
}

inline leave(was_on) {
    inside = false;
    interrupts_back(was_on)
}

/* Skips the numbers of rejected events before the next number is given. */
inline settle_nested(number) {
    number = nested_missed;
    nested_missed = nested_missed - number;
#ifndef WITHOUT_SETTLING
    sequence = sequence + number;
#endif
    number = 0
}

/* 5.1.7 steps 2 to 7. */
inline write_event(at, number) {
    settle_nested(number);
    number = sequence + 1;
    sequence = number;
    at = frontier;
    unit[at] = number;     /* @DATA producer.c */
    unit[at + 1] = number; /* @DATA producer.c */
    frontier = at + UNITS;
    at = 0;
    number = 0
}

inline publish(at) {
    at = frontier;
    published = at;
    write_pos = at; /* @PUBLISH producer.c */
    at = 0
}

/* Read, addition and write of the private counter are separate steps. */
inline wake_if_asked(counter) {
    skip; /* @WAKE_FENCE producer.c: stores are visible at once here */
    if
    :: need_wake -> /* @NEED_WAKE producer.c */
        counter = counter_copy + 1;
        counter_copy = counter;
        futex_counter = counter; /* @COUNTER producer.c */
        counter = 0;
        is_asleep = false
    :: else
    fi
}

/* One event, from the timestamp to the queueing of the wake. */
/* path: emit */
inline emit(was_on, is_turned_away, at, number) {
    enter(was_on, is_turned_away);
    if
    :: is_turned_away -> is_turned_away = false
    :: else ->
        write_event(at, number);
        publish(at);
#ifdef COUNTER_OUTSIDE
        leave(was_on);
        wake_if_asked(number)
#else
        wake_if_asked(number);
        leave(was_on)
#endif
    fi
}

/* Two events that are published together. Each is a critical section, and so is the end. A task is
 * never rejected, because each interrupt of it runs to its end. */
/* path: batch */
inline emit_batch(was_on, is_turned_away, at, number) {
    byte of_batch;

    do
    :: of_batch < 2 ->
        enter(was_on, is_turned_away);
        write_event(at, number);
        leave(was_on);
        of_batch++
    :: else -> of_batch = 0; break
    od;
    enter(was_on, is_turned_away);
    if
    :: frontier != published -> publish(at); wake_if_asked(number)
    :: else
    fi;
    leave(was_on)
}

proctype task() provided (!in_interrupt && !in_nmi) {
    byte at, number;
    bool is_turned_away;

    emit(true, is_turned_away, at, number);
#if TASK_EVENTS == 3
    emit_batch(true, is_turned_away, at, number)
#endif
}

/* Interrupts emit one after the other, each to its end, whenever interrupts are on. */
proctype interrupts() provided (!in_nmi) { /* endless */
    byte at, number, came;
    bool is_turned_away;

end:
    do
    :: atomic { came < INTERRUPTS && interrupts_are_on ->
           came++;
           in_interrupt = true;
           interrupts_are_on = false
       };
       emit(false, is_turned_away, at, number);
       atomic { in_interrupt = false; interrupts_are_on = true }
    od
}

proctype nmis() { /* endless */
    byte at, number, came;
    bool is_turned_away, was_on;

end:
    do
    :: atomic { came < NMIS -> came++; in_nmi = true; was_on = interrupts_are_on };
       emit(was_on, is_turned_away, at, number);
       atomic { in_nmi = false; was_on = false }
    od
}

/* The reference's reader, as far as this model needs it: see consumer.pml and sleep.pml. */
/* path: run */
proctype consumer() { /* endless */
    byte seen, counter, first;

    do
    :: atomic {
           seen = write_pos; /* @LOAD_WRITE_POS consumer.c */
           if
           :: read_pos < seen -> seen = 0
           :: else -> seen = 0; goto wait
           fi
       };
       first = unit[read_pos]; /* @READ_DATA consumer.c */
       atomic {
           an_event_is_torn = (unit[read_pos + 1] != first); /* @READ_DATA consumer.c */
           assert(!an_event_is_torn);
#ifndef ONLY_TORN
           an_event_is_out_of_order = (first <= last_sequence);
#endif
           assert(!an_event_is_out_of_order);
           last_sequence = first;
           first = 0;
           read_pos = read_pos + UNITS
       };
       goto next;
wait:
       counter = futex_counter; /* @SLEEP_COUNTER sleep.c */
       need_wake = true;        /* @ASK_WAKE sleep.c */
       skip;                    /* @SLEEP_FENCE sleep.c: stores are visible at once here */
       if
       :: read_pos < write_pos /* @SLEEP_WRITE_POS sleep.c */
       :: else ->
           atomic {
               if
               :: futex_counter == counter -> is_asleep = true
               :: else
               fi
           };
end_asleep:
           !is_asleep
       fi;
       atomic { counter = 0; need_wake = false } /* @CLEAR_WAKE sleep.c */
next:
       skip
    od
}

proctype monitor() {
    atomic {
        timeout ->
        an_event_is_slept_through = (read_pos < write_pos);
        assert(!an_event_is_slept_through);
#ifndef ONLY_TORN
        a_drop_shows_no_gap = (sequence + nested_missed != ATTEMPTS);
#endif
        assert(!a_drop_shows_no_gap)
    }
}

init {
    atomic {
        run task();
        run interrupts();
        run nmis();
        run consumer();
        run monitor()
    }
}
