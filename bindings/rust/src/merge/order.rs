// SPDX-License-Identifier: MIT
//! The order of the events that a merge holds. It reads no ring and no clock. The rules are those
//! of kmes/user/merge.c.
//!
//! Each CPU has a queue of bulks. A heap has the CPUs whose queue is not empty, ordered by the key
//! of their first event. The key is the timestamp, but never less than that of the event before it.
//! A round copies a bulk of each CPU whose queue is empty. After a round each CPU has a first event
//! here, or was empty after the start of the round.
//!
//! A clock that goes back too far begins a new epoch, and the key includes the epoch. Events from
//! before the step thus precede those from after it, on all CPUs.
use super::{MergeStatistics, Merged};
use crate::reader::Copied;
use crate::{Buffer, Error, Event, Place};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::mem::size_of;

const ENOMEM: i32 = 12;

/// An event of a bulk.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) copied: Copied,
    pub(super) offset: usize, // of its bytes
    pub(super) buffer: Buffer,
}

/// Events of one CPU, and their bytes.
#[derive(Default)]
pub(super) struct Bulk {
    pub(super) events: Vec<Held>,
    pub(super) bytes: Vec<u8>,
    taken: usize,
    arrival_ns: u64,
}

impl Bulk {
    /// A copy without unused memory, whose bytes are the first `used`. None: there is no memory.
    pub(super) fn try_copy(&self, used: usize) -> Option<Bulk> {
        let mut copy = Bulk::default();
        copy.events.try_reserve_exact(self.events.len()).ok()?;
        copy.bytes.try_reserve_exact(used).ok()?;
        copy.events.extend_from_slice(&self.events);
        copy.bytes.extend_from_slice(&self.bytes[..used]);
        Some(copy)
    }

    fn held_bytes(&self) -> usize {
        self.events.len() * size_of::<Held>() + self.bytes.len()
    }

    fn event(&self, at: usize) -> Event<'_> {
        self.events[at].copied.event(&self.bytes[self.events[at].offset..])
    }
}

/// The moment at which a round began.
#[derive(Clone, Copy, Default)]
pub(super) struct Moment {
    pub(super) realtime_ns: u64,
    pub(super) monotonic_ns: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    epoch: u64,
    ns: u64,
}

#[derive(Default)]
struct Queue {
    bulks: VecDeque<Bulk>,
    place: Option<Place>,
    key: Key,          // of the first held event, or of the last one if none is held
    begins_anew: bool, // the clock went back too far before the first event
}

impl Queue {
    fn first_timestamp(&self) -> u64 {
        self.bulks[0].events[self.bulks[0].taken].copied.timestamp_ns()
    }
}

/// An event that is due: its CPU, its index in its bulk, and whether that was the last one there.
pub(super) struct Due {
    cpu: usize,
    at: usize,
    is_last: bool,
    is_out_of_order: bool,
}

pub(super) struct Order {
    queues: Vec<Queue>,
    heap: BinaryHeap<Reverse<(Key, usize)>>,
    delivered: Bulk, // the memory of the last event, if that was the last of its bulk
    statistics: MergeStatistics,
    hold_ns: u64,
    most_bytes: usize,
    last_key: Key,         // of the delivered events
    newest: Key,           // the highest timestamp since the order began
    epoch: u64,            // the latest one
    epoch_arrival_ns: u64, // of the event that began it
    round: Moment,         // the start of the last round
    is_round_due: bool,    // a queue became empty since the last round
    is_flushing: bool,
}

fn has_passed(since_ns: u64, now_ns: u64, duration_ns: u64) -> bool {
    now_ns.checked_sub(since_ns).map_or(false, |passed| passed >= duration_ns)
}

impl Order {
    pub(super) fn new(places: Vec<Option<Place>>, hold_ns: u64, most_bytes: usize) -> Order {
        let heap = BinaryHeap::with_capacity(places.len());
        let queue = |place| Queue { place, ..Queue::default() };
        Order {
            queues: places.into_iter().map(queue).collect(),
            heap,
            delivered: Bulk::default(),
            statistics: MergeStatistics::default(),
            hold_ns,
            most_bytes,
            last_key: Key::default(),
            newest: Key::default(),
            epoch: 0,
            epoch_arrival_ns: 0,
            round: Moment::default(),
            is_round_due: true,
            is_flushing: false,
        }
    }

    pub(super) fn statistics(&self) -> MergeStatistics {
        self.statistics
    }

    pub(super) fn place(&self, cpu: usize) -> Option<Place> {
        self.queues.get(cpu).and_then(|queue| queue.place)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    pub(super) fn is_round_due(&self) -> bool {
        self.is_round_due
    }

    pub(super) fn has_queue(&self, cpu: usize) -> bool {
        !self.queues[cpu].bulks.is_empty()
    }

    pub(super) fn begin_round(&mut self, now: Moment) {
        self.round = now;
    }

    pub(super) fn end_round(&mut self) {
        self.is_round_due = false;
    }

    /// Makes every held event due. A CPU with an empty queue may have earlier events.
    pub(super) fn flush(&mut self) {
        self.is_flushing = true;
        self.is_round_due = true;
    }

    /// Called when a round has found every CPU empty, and nothing is due.
    pub(super) fn end_flush(&mut self) {
        self.is_flushing &= !self.heap.is_empty();
    }

    /// Makes room for one more bulk, so that [`Order::add`] does not fail.
    pub(super) fn reserve(&mut self, cpu: usize) -> Result<(), Error> {
        self.queues[cpu].bulks.try_reserve(1).map_err(|_| Error::Os(ENOMEM))
    }

    /// Adds events of a CPU, at least one.
    pub(super) fn add(&mut self, cpu: usize, mut bulk: Bulk) {
        bulk.arrival_ns = self.round.monotonic_ns;
        bulk.taken = 0;
        self.statistics.held_bytes += bulk.held_bytes();
        let was_empty = !self.has_queue(cpu);
        self.queues[cpu].bulks.push_back(bulk);
        if was_empty {
            self.set_key(cpu);
            self.heap.push(Reverse((self.queues[cpu].key, cpu)));
        }
    }

    /// Frees the memory of the last event.
    pub(super) fn drop_delivered(&mut self) {
        self.statistics.held_bytes -= self.delivered.held_bytes();
        self.delivered = Bulk::default();
    }

    pub(super) fn is_first_due(&self) -> bool {
        if self.heap.is_empty() || self.is_round_due {
            return false;
        }
        self.statistics.held_bytes >= self.most_bytes || self.is_first_in_time()
    }

    /// The time until the first event is due, at the moment `monotonic_ns`. None: none is held.
    pub(super) fn due_ns(&self, monotonic_ns: u64) -> Option<u64> {
        let Reverse((_, cpu)) = self.heap.peek()?;
        if self.is_flushing {
            return Some(0);
        }
        let held_ns = monotonic_ns.saturating_sub(self.queues[*cpu].bulks[0].arrival_ns);
        Some(self.hold_ns.saturating_sub(held_ns))
    }

    /// Takes the first event, which is due.
    pub(super) fn take_first(&mut self) -> Option<Due> {
        let is_forced = !self.is_first_in_time();
        let Reverse((_, cpu)) = self.heap.pop()?;
        let is_out_of_order = self.note_order(cpu);
        let queue = &mut self.queues[cpu];
        let bulk = &mut queue.bulks[0];
        let (at, event) = (bulk.taken, &bulk.events[bulk.taken]);
        let (session, last_sequence) = (event.buffer.session, event.copied.sequence());
        queue.place = Some(Place { session, last_sequence });
        bulk.taken += 1;
        let is_last = bulk.taken == bulk.events.len();
        if is_last {
            self.delivered = queue.bulks.pop_front().unwrap_or_default();
        }
        if self.has_queue(cpu) {
            self.set_key(cpu);
            self.heap.push(Reverse((self.queues[cpu].key, cpu)));
        } else {
            self.is_round_due = true;
        }
        self.statistics.delivered += 1;
        self.statistics.forced += u64::from(is_forced);
        self.statistics.out_of_order += u64::from(is_out_of_order);
        Some(Due { cpu, at, is_last, is_out_of_order })
    }

    /// The event that was taken last.
    pub(super) fn event(&self, due: &Due) -> Merged<Event<'_>> {
        let bulk = if due.is_last { &self.delivered } else { &self.queues[due.cpu].bulks[0] };
        let (event, buffer) = (bulk.event(due.at), bulk.events[due.at].buffer);
        Merged { cpu: due.cpu as u16, event, buffer, is_out_of_order: due.is_out_of_order }
    }

    /// Ignores the memory limit.
    fn is_first_in_time(&self) -> bool {
        let queue = match self.heap.peek() {
            Some(Reverse((_, cpu))) => &self.queues[*cpu],
            None => return false,
        };
        self.heap.len() == self.queues.len()
            || self.is_flushing
            || (self.statistics.delivered > 0 && queue.key < self.last_key)
            || has_passed(queue.first_timestamp(), self.round.realtime_ns, self.hold_ns)
            || has_passed(queue.bulks[0].arrival_ns, self.round.monotonic_ns, self.hold_ns)
    }

    /// The clock of one CPU is often the clock of all. So the first CPU that sees a step begins the
    /// epoch, and the others join it. At most one epoch begins in each hold_ns. Otherwise the
    /// others could not keep up, and their events would always precede those of a CPU whose clock
    /// is broken.
    fn begin_anew(&mut self, cpu: usize) {
        let (key, arrival_ns) = (self.queues[cpu].key, self.queues[cpu].bulks[0].arrival_ns);
        let is_too_soon =
            self.epoch > 0 && !has_passed(self.epoch_arrival_ns, arrival_ns, self.hold_ns);
        if key.epoch >= self.epoch && !is_too_soon {
            self.epoch += 1;
            self.epoch_arrival_ns = arrival_ns;
        }
    }

    /// Sets the key after an event has become the first one of its CPU. An event from before a step
    /// is published within hold_ns. An event that arrives later is in the new epoch, even if its
    /// own CPU saw no step.
    fn set_key(&mut self, cpu: usize) {
        let (timestamp, key) = (self.queues[cpu].first_timestamp(), self.queues[cpu].key);
        let begins_anew = key.ns.checked_sub(timestamp).map_or(false, |step| step > self.hold_ns);
        if begins_anew {
            self.begin_anew(cpu);
        }
        let arrival_ns = self.queues[cpu].bulks[0].arrival_ns;
        let joins = begins_anew
            || (key.epoch < self.epoch
                && has_passed(self.epoch_arrival_ns, arrival_ns, self.hold_ns));
        let queue = &mut self.queues[cpu];
        queue.begins_anew = begins_anew;
        queue.key = match joins {
            true => Key { epoch: self.epoch, ns: timestamp },
            false => Key { epoch: key.epoch, ns: timestamp.max(key.ns) },
        };
    }

    /// Records the order of the first event of `cpu`, which is delivered now. Returns whether it
    /// comes too late for its place.
    fn note_order(&mut self, cpu: usize) -> bool {
        let queue = &self.queues[cpu];
        let delivered = Key { epoch: queue.key.epoch, ns: queue.first_timestamp() };
        let is_of_an_earlier_epoch = delivered.epoch < self.newest.epoch;
        let is_out_of_order = self.statistics.delivered > 0
            && (is_of_an_earlier_epoch || delivered.ns < self.newest.ns);
        let restarts = queue.begins_anew && !is_of_an_earlier_epoch;
        if restarts || self.newest < delivered {
            self.newest = delivered;
        }
        if restarts || self.last_key < queue.key {
            self.last_key = queue.key;
        }
        is_out_of_order
    }
}
