// SPDX-License-Identifier: MIT
//! The events of all CPUs in the order of their timestamps.
use crate::{Buffer, Error, Event, OwnedEvent, Place, Platform, Reader, ReaderSet};
use std::os::unix::io::RawFd;
use std::time::{Duration, Instant, SystemTime};

mod order;

use order::{Bulk, Held, Moment, Order};

const HOLD: Duration = Duration::from_millis(10);
const MOST_BYTES: usize = 4 << 20;
const BULK_BYTES: usize = 16 << 10;
const ENOMEM: i32 = 12;

/// How a [`Merge`] behaves. A field that is zero has its default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeOptions {
    /// How long an event is held at most. Zero: 10 ms.
    pub hold: Duration,
    /// Memory of held events. 0: 4 MiB. In addition each CPU has one bulk: up to 16 KiB of events,
    /// or one event. The headers of small events take 2.5 times as much.
    pub most_bytes: usize,
}

/// Counts of a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeStatistics {
    /// Events delivered.
    pub delivered: u64,
    /// How many of them came too late for their place.
    pub out_of_order: u64,
    /// How many of them were delivered early, because of [`MergeOptions::most_bytes`].
    pub forced: u64,
    /// Bytes that are held now.
    pub held_bytes: usize,
}

/// An event of a [`Merge`], which is an [`Event`] or an [`OwnedEvent`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged<E> {
    /// The CPU of the event.
    pub cpu: u16,
    /// The event.
    pub event: E,
    /// The buffer of the event. [`Merge::set`] reads ahead, and may have a later one.
    pub buffer: Buffer,
    /// True if the timestamp is below that of an earlier event. It is also true if the order
    /// restarted after the event was stamped.
    pub is_out_of_order: bool,
}

impl From<Merged<Event<'_>>> for Merged<OwnedEvent> {
    fn from(merged: Merged<Event<'_>>) -> Self {
        let Merged { cpu, event, buffer, is_out_of_order } = merged;
        Merged { cpu, event: event.into(), buffer, is_out_of_order }
    }
}

/// The events of all CPUs in the order of their timestamps. See [`ReaderSet::merge`].
///
/// An event is due at once if every CPU has a later one. Otherwise an empty CPU may still publish
/// an earlier event, so the merge holds the event until one of these is true:
///
/// - it is older than [`MergeOptions::hold`] by its timestamp, and every empty CPU was checked
///   since;
/// - the merge has held it for that time, and every empty CPU was checked since;
/// - [`MergeOptions::most_bytes`] are held.
///
/// An idle CPU, or a CPU with an error, thus delays others by at most the hold time. The order is
/// that of the timestamps if each event is published within the hold time of its timestamp and
/// fewer than `most_bytes` are held. Equal timestamps come in the order of their CPUs. The events
/// of one CPU always come in the order of their sequence numbers.
///
/// An event that comes too late for its place is delivered at once, as out of order. The same holds
/// for an event whose timestamp is below that of the event before it on the same CPU. If the clock
/// of the CPU went back by more than the hold time, the order restarts with that event. Held events
/// of other CPUs from before the step precede it. Otherwise the event keeps its place after the one
/// before it. The order restarts at most once in each hold time.
///
/// The merge neither loses nor repeats an event that a reader delivered.
///
/// ```no_run
/// use kmes::{MergeOptions, Options, ReaderSet};
///
/// let set = ReaderSet::by_system_call(Options::default())?;
/// let mut merge = set.merge(MergeOptions::default());
/// for merged in merge.events() {
///     let merged = merged?;
///     println!("{} CPU {}", merged.event.timestamp_ns, merged.cpu);
/// }
/// # Ok::<(), kmes::Error>(())
/// ```
pub struct Merge<P: Platform> {
    set: ReaderSet<P>,
    order: Order,
    scratch: Scratch,
    began: Instant,
}

impl<P: Platform + Clone> ReaderSet<P> {
    /// Delivers the events in the order of their timestamps from now on.
    pub fn merge(self, options: MergeOptions) -> Merge<P> {
        let given = |value: Duration| Some(value).filter(|value| !value.is_zero());
        let most_bytes = if options.most_bytes == 0 { MOST_BYTES } else { options.most_bytes };
        let places = (0..self.cpus()).map(|cpu| self.place(cpu as u16)).collect();
        let hold_ns = nanoseconds(given(options.hold).unwrap_or(HOLD));
        Merge {
            order: Order::new(places, hold_ns, most_bytes),
            scratch: Scratch::default(),
            began: Instant::now(),
            set: self,
        }
    }
}

impl<P: Platform + Clone + Send + 'static> Merge<P> {
    /// As [`ReaderSet::fd`]. A held event becomes due without a new event, so an event loop waits
    /// for at most [`Merge::due`].
    pub fn fd(&mut self) -> Result<RawFd, Error> {
        self.set.fd()
    }
}

impl<P: Platform + Clone> Merge<P> {
    /// The next event. None: no event is due now. The event is a copy in the merge. Fails with
    /// `Error::Os(12)` if there is no memory; no event is lost then.
    pub fn next(&mut self) -> Result<Option<Merged<Event<'_>>>, Error> {
        self.order.drop_delivered();
        while !self.order.is_first_due() {
            // The empty queues come first: filling them may be enough.
            let is_found = self.order.is_round_due() && self.do_round(false)?;
            if is_found || self.order.is_first_due() {
                continue;
            }
            if !self.do_round(true)? && !self.order.is_first_due() {
                self.order.end_flush();
                return Ok(None);
            }
        }
        let due = self.order.take_first();
        Ok(due.map(|due| self.order.event(&due)))
    }

    /// Makes every held event due, in their order, until none is held.
    pub fn flush(&mut self) {
        self.order.flush();
    }

    /// The time until a held event is due. None: no event is held.
    pub fn due(&self) -> Option<Duration> {
        self.order.due_ns(nanoseconds(self.began.elapsed())).map(Duration::from_nanos)
    }

    /// As [`ReaderSet::wait`], and also returns true if a held event has become due. Call it after
    /// [`Merge::next`] has returned `None`.
    pub fn wait(&mut self, limit: Option<Duration>) -> Result<bool, Error> {
        let is_due = |merge: &Self| merge.due() == Some(Duration::ZERO);
        if is_due(self) {
            return Ok(true);
        }
        let result = self.set.wait([limit, self.due()].into_iter().flatten().min());
        if is_due(self) {
            return Ok(true);
        }
        result
    }

    /// All events, with sleeps between them. It never ends, as [`ReaderSet::events`].
    pub fn events(&mut self) -> MergeEvents<'_, P> {
        MergeEvents { merge: self, sleeps: true }
    }

    /// The events that are due now. After [`Merge::flush`] these are all events that are there.
    pub fn available(&mut self) -> MergeEvents<'_, P> {
        MergeEvents { merge: self, sleeps: false }
    }

    /// The last event of a CPU that the merge has delivered, or what [`ReaderSet::place`] returned
    /// before. That of [`Merge::set`] counts held events. Its `session` is that of the event.
    pub fn place(&self, cpu: u16) -> Option<Place> {
        self.order.place(cpu.into())
    }

    /// The counts so far.
    pub fn statistics(&self) -> MergeStatistics {
        self.order.statistics()
    }

    /// The set, for its errors and counts. They count held events as delivered.
    pub fn set(&self) -> &ReaderSet<P> {
        &self.set
    }

    /// Ends the merge, and drops the events that are held: see [`Merge::flush`]. The set continues
    /// after them.
    pub fn into_set(self) -> ReaderSet<P> {
        self.set
    }

    /// Copies a bulk of each CPU whose queue is empty. `is_for_all`: also from CPUs that have
    /// events here, so that their rings do not overflow meanwhile. True: there was an event.
    fn do_round(&mut self, is_for_all: bool) -> Result<bool, Error> {
        let Merge { set, order, scratch, began } = self;
        let mut is_found = false;
        set.scan_by(|set| {
            order.begin_round(now(*began));
            for cpu in 0..set.cpus() {
                if is_for_all || !order.has_queue(cpu) {
                    order.reserve(cpu)?;
                    set.read_cpu(cpu, |reader| scratch.fill(reader))?;
                    if let Some(bulk) = scratch.take() {
                        order.add(cpu, bulk);
                        is_found = true;
                    }
                }
            }
            // If some CPUs were skipped, not each CPU was found empty.
            let is_each_empty = !is_found && (is_for_all || order.is_empty());
            Ok((!is_each_empty).then_some(()))
        })?;
        order.end_round();
        Ok(is_found)
    }
}

/// The buffer of a bulk that is copied from a ring.
#[derive(Default)]
struct Scratch {
    bulk: Bulk,
    used: usize,
}

impl Scratch {
    /// Copies the events that are there now, or a part of them. Returns the error of the reader.
    /// Fails if there is no memory for an event, which is then not consumed.
    fn fill<P: Platform>(&mut self, reader: &mut Reader<P>) -> Result<Option<Error>, Error> {
        self.make_room(BULK_BYTES)?;
        let mut end = BULK_BYTES;
        loop {
            let Bulk { events, bytes, .. } = &mut self.bulk;
            let is_first = events.is_empty();
            if events.try_reserve(1).is_err() {
                return if is_first { Err(Error::Os(ENOMEM)) } else { Ok(None) };
            }
            match reader.copy_next(&mut bytes[self.used..end]) {
                Ok(Some(copied)) => {
                    let (offset, buffer) = (self.used, reader.buffer());
                    self.used += copied.bytes();
                    events.push(Held { copied, offset, buffer });
                    // The large event may have been overwritten before its copy.
                    end = BULK_BYTES.max(self.used);
                }
                Ok(None) => return Ok(None),
                Err(Error::TooSmall(bytes)) if is_first => {
                    self.make_room(bytes)?;
                    end = bytes;
                }
                Err(Error::TooSmall(_)) => return Ok(None),
                Err(error) => return Ok(Some(error)),
            }
        }
    }

    fn make_room(&mut self, bytes: usize) -> Result<(), Error> {
        let room = &mut self.bulk.bytes;
        let more = bytes.saturating_sub(room.len());
        room.try_reserve_exact(more).map_err(|_| Error::Os(ENOMEM))?;
        room.resize(room.len() + more, 0);
        Ok(())
    }

    /// The events of the last fill, without unused memory. They were consumed, so a lack of memory
    /// must not lose them: the bulk is then the scratch itself.
    fn take(&mut self) -> Option<Bulk> {
        if self.bulk.events.is_empty() {
            return None;
        }
        let used = std::mem::take(&mut self.used);
        let is_exact = self.bulk.bytes.len() == used; // a large event is not copied again
        let mut bulk = match self.bulk.try_copy(if is_exact { 0 } else { used }) {
            Some(copy) => copy,
            None => {
                let mut bulk = std::mem::take(&mut self.bulk);
                bulk.bytes.truncate(used);
                return Some(bulk);
            }
        };
        if is_exact {
            std::mem::swap(&mut bulk.bytes, &mut self.bulk.bytes);
        }
        self.bulk.events.clear();
        if self.bulk.bytes.len() > BULK_BYTES {
            self.bulk.bytes = vec![];
        }
        Some(bulk)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn now(began: Instant) -> Moment {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Moment {
        realtime_ns: nanoseconds(since_epoch.unwrap_or(Duration::ZERO)),
        monotonic_ns: nanoseconds(began.elapsed()),
    }
}

/// An iterator over the events of a merge. See [`Merge::events`] and [`Merge::available`].
pub struct MergeEvents<'m, P: Platform> {
    merge: &'m mut Merge<P>,
    sleeps: bool,
}

impl<P: Platform + Clone> Iterator for MergeEvents<'_, P> {
    type Item = Result<Merged<OwnedEvent>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.merge.next() {
                Ok(Some(merged)) => return Some(Ok(merged.into())),
                Ok(None) if !self.sleeps => return None,
                Ok(None) => {
                    if let Err(error) = self.merge.wait(None) {
                        return Some(Err(error));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
