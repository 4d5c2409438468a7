// SPDX-License-Identifier: MIT
//
// E1 in an unmodified binary: the store-buffer witness. The clause of an event that is lost in this
// way is E1.
//
// A processor, x86-64 included, may hold a store back while later loads execute. A faulty consumer
// sets need_wake and loads write_pos without a full barrier in between. It may load an old
// write_pos while the producer still loads need_wake as 0. Then an event is published, and the
// producer does not wake the consumer. A stop of the threads makes every store visible, so it
// cannot show this.
//
// The suite therefore holds the store back itself. After a plain store of 1 to need_wake it puts
// the byte back to 0, and continues the thread instruction by instruction. A full barrier or a
// system call releases the store, as on the processor. If write_pos is loaded first, the suite
// publishes an event right after that load, and then releases the store. The machine permits this
// execution, and a faulty consumer sleeps on the event in it.
//
// A consumer may load write_pos several times before it sleeps (5.1.8.2 step 4). It is faulty if
// the store can be held until after its last load. Each iteration holds the store for one more
// load, and starts again with one load after a barrier or a sleep.
#ifndef KMES_CONFORMANCE_PLAY_STORE_BUFFER_H_
#define KMES_CONFORMANCE_PLAY_STORE_BUFFER_H_

#include <cstdint>
#include <functional>
#include <initializer_list>

#include "conformance/play/unusual_iteration.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {

// Holds the stores of `cpu` back in at least `iterations` wakes and sleeps, each begun by `wake`.
// Plays more iterations while these may show something new.
void hold_stores(Stage& stage, std::uint32_t cpu, int iterations,
                 const std::function<void()>& wake);

// Holds the stores of CPU 0 back after the disturbance.
void hold_stores_after(Stage& stage, Disturbance disturbance);

// The first sleep on a buffer: the way in which the consumer reaches that buffer.
struct FirstSleep {
    enum class On {
        first_buffer,
        empty,      // the next buffer, empty
        survivors,  // the next buffer, with events that it has delivered
        meanwhile,  // the next buffer is itself replaced after kmes_attach has returned it
    };
    On on = On::empty;
    int loads = 1;  // the store is held for this many; most consumers load once
};

// Holds the stores of CPU 0 back from the mmap of each of these buffers to the first sleep on it.
// The first sleep is on the first buffer, and starts the testee.
void hold_first_stores(Stage& stage, std::initializer_list<FirstSleep> sleeps);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_STORE_BUFFER_H_
