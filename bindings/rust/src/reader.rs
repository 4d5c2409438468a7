// SPDX-License-Identifier: MIT
//! The reader of one CPU: the drain loop (5.1.8.1), the sleep (5.1.8.2), the change of buffers
//! (5.1.8.3).
use crate::place::before_first;
use crate::ring::{Bytes, Ring, HEADER_BYTES};
use crate::{Error, Identity, Place, Platform, Resumed, Wake};
use core::time::Duration;

/// Attempts to meet a buffer that is alive. A producer that swaps at each of them does not hold a
/// reader up forever: its nudges tell of the change then (E19).
const ATTACH_ATTEMPTS: u32 = 64;
/// Longest sleep beside other consumers, one of which may clear need_wake (E12).
const SHARED_LIMIT: Duration = Duration::from_millis(100);
/// Longest sleep on a producer that may be killed, and how long a reader sleeps without an event
/// before it asks for the producer (E25).
const PROCESS_LIMIT: Duration = Duration::from_secs(1);
pub(crate) const ASK_INTERVAL: Duration = Duration::from_millis(50);
const SLEEP_AT_LEAST: Duration = Duration::from_micros(1);

/// How a reader behaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'p> {
    /// Nobody else sleeps on this ring: the caller promises it (E12). The default is correct beside
    /// any number of consumers.
    pub exclusive: bool,
    /// Corrupt content ends the reader with [`Error::Corrupt`]. Else it is skipped, and counted
    /// (E7).
    pub stop_on_corrupt: bool,
    /// Where earlier readers have stopped ([`Reader::place`], `ReaderSet::place`), the place of CPU
    /// 0 first. A reader does not deliver events of the same session up to its place again. Any
    /// numbers are safe: a number that the session has not reached only leaves out the events up to
    /// it. A CPU without a place begins at its oldest event.
    pub places: &'p [Option<Place>],
}

impl Options<'_> {
    pub(crate) fn place(&self, cpu: u16) -> Option<Place> {
        self.places.get(usize::from(cpu)).copied().flatten()
    }

    /// The same without the places, which belong to the caller.
    pub(crate) fn without_places(&self) -> Options<'static> {
        Options { exclusive: self.exclusive, stop_on_corrupt: self.stop_on_corrupt, places: &[] }
    }
}

/// The buffer that an event is from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Buffer {
    /// Its producer, as [`Identity::session`](crate::Identity::session).
    pub session: u64,
    /// Its generation, as it was when reading began there (5.1.8.3).
    pub generation: u64,
    /// Changes of buffers of this CPU before it. Another value than at the previous event of the
    /// CPU: another buffer.
    pub switches: u64,
}

/// Counts of a reader, over all its buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Events delivered.
    pub delivered: u64,
    /// Events lost after the attach, by the sequence numbers of delivered ones (5.1.9).
    pub lost: u64,
    /// Times that the tail had passed the read position before a read.
    pub laps: u64,
    /// Reads that were discarded, because the tail passed during them.
    pub torn: u64,
    /// Times that content was impossible, and not torn (E7, E26).
    pub corrupt: u64,
    /// Changes to another buffer.
    pub switches: u64,
}

/// The fixed part of an event header (docs/event-model.md).
#[derive(Clone, Copy)]
struct Header {
    event_size: u64,
    header_size: u64,
    timestamp_ns: u64,
    sequence: u64,
    origin: u8,
    type_len: u64,
}

impl Header {
    /// The header at the start of `bytes`; None if its sizes, torn perhaps, cannot be right (E7).
    /// More than half of the capacity can be: such an event has survived a shrink.
    fn of(bytes: Bytes<'_>) -> Option<Header> {
        if (bytes.len() as u64) < HEADER_BYTES + 1 {
            return None;
        }
        let mut copy = [0; HEADER_BYTES as usize];
        bytes.slice(0..copy.len()).copy_to(&mut copy);
        let number = |from: usize, bytes: usize| {
            copy[from..from + bytes].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        let header = Header {
            event_size: number(0, 4),
            header_size: number(4, 4),
            timestamp_ns: number(8, 8),
            sequence: number(16, 8),
            origin: copy[26],
            type_len: number(27, 2),
        };
        let is_sound = header.type_len > 0
            && HEADER_BYTES + header.type_len <= header.header_size
            && header.header_size <= header.event_size
            && header.event_size <= bytes.len() as u64;
        is_sound.then_some(header)
    }
}

/// An event, copied to the buffer of the caller and checked (E6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Of its CPU, from 1.
    pub sequence: u64,
    /// Nanoseconds since the Unix epoch. It may jump either way.
    pub timestamp_ns: u64,
    /// 0 userspace, 1 KMES, 2 KACS, 3 LCS.
    pub origin: u8,
    /// Events of this CPU that were lost directly before this one (5.1.9). For the first event:
    /// those that were overwritten since the attach. For the first event of another process as the
    /// producer: those that it emitted before.
    pub lost_before: u64,
    /// UTF-8, as the producer has checked it.
    pub kind: &'a [u8],
    /// The payload.
    pub payload: &'a [u8],
}

/// What a buffer has after [`Reader::copy_next`].
#[derive(Clone, Copy)]
pub(crate) struct Copied {
    header: Header,
    lost_before: u64,
}

impl Copied {
    #[cfg(feature = "std")]
    pub(crate) fn bytes(&self) -> usize {
        self.header.event_size as usize
    }

    #[cfg(feature = "std")]
    pub(crate) fn sequence(&self) -> u64 {
        self.header.sequence
    }

    #[cfg(feature = "std")]
    pub(crate) fn timestamp_ns(&self) -> u64 {
        self.header.timestamp_ns
    }

    pub(crate) fn event<'b>(&self, buffer: &'b [u8]) -> Event<'b> {
        let header = &self.header;
        let kind_end = (HEADER_BYTES + header.type_len) as usize;
        Event {
            sequence: header.sequence,
            timestamp_ns: header.timestamp_ns,
            origin: header.origin,
            lost_before: self.lost_before,
            kind: &buffer[HEADER_BYTES as usize..kind_end],
            payload: &buffer[header.header_size as usize..header.event_size as usize],
        }
    }
}

/// The next event in place. Its bytes may be overwritten at any time: what was made of them is to
/// be believed only after [`Peek::release`] has returned true (E6). A peek that is dropped
/// consumes nothing.
pub struct Peek<'r, P: Platform> {
    reader: &'r mut Reader<P>,
    header: Header,
}

impl<P: Platform> Peek<'_, P> {
    /// As [`Event::sequence`], to be believed after the release, as everything here.
    pub fn sequence(&self) -> u64 {
        self.header.sequence
    }

    /// As [`Event::timestamp_ns`].
    pub fn timestamp_ns(&self) -> u64 {
        self.header.timestamp_ns
    }

    /// As [`Event::origin`].
    pub fn origin(&self) -> u8 {
        self.header.origin
    }

    /// As [`Event::lost_before`].
    pub fn lost_before(&self) -> u64 {
        self.reader.lost_before(self.header.sequence)
    }

    /// As [`Event::kind`]; always inside of the ring.
    pub fn kind(&self) -> Bytes<'_> {
        let start = HEADER_BYTES as usize;
        self.bytes().slice(start..start + self.header.type_len as usize)
    }

    /// As [`Event::payload`]; always inside of the ring.
    pub fn payload(&self) -> Bytes<'_> {
        self.bytes().slice(self.header.header_size as usize..self.header.event_size as usize)
    }

    /// True: everything was whole until now, and the event is consumed. False: it was overwritten
    /// meanwhile; discard what was made of it, and search for the next one.
    #[must_use]
    pub fn release(self) -> bool {
        let is_whole = self.reader.recheck_tail();
        if is_whole {
            self.reader.deliver(&self.header);
        }
        is_whole
    }

    fn bytes(&self) -> Bytes<'_> {
        self.reader.ring().data(self.reader.read_pos, self.header.event_size)
    }
}

/// A reader of the events of one CPU. See the documentation of the crate.
pub struct Reader<P: Platform> {
    platform: P,
    options: Options<'static>,
    statistics: Statistics,
    ring: Option<Ring>, // None only while it is dropped
    cpu: u16,
    read_pos: u64,
    generation: u64,            // seen in this buffer (E15)
    last_sequence: Option<u64>, // over all buffers (E21); at first, before what can be lost
    resumed: Resumed,
    unasked: Duration, // slept since the producer was asked for (E25)
    is_replaced: bool, // there is a newer buffer, whatever the generation of this one says
    is_stopped: bool,
}

impl<P: Platform> Reader<P> {
    /// Attaches to the ring of a CPU. Reading begins at its oldest event (E11), or after the CPU's
    /// place in the options.
    pub fn open(platform: P, cpu: u16, options: Options<'_>) -> Result<Self, Error> {
        Reader::open_at(platform, cpu, options.without_places(), options.place(cpu))
    }

    pub(crate) fn open_at(
        mut platform: P,
        cpu: u16,
        options: Options<'static>,
        place: Option<Place>,
    ) -> Result<Self, Error> {
        let attached = attach_alive(&mut platform, cpu)?;
        let read_pos = attached.ring.tail_pos();
        let mut reader = Reader {
            platform,
            options,
            statistics: Statistics::default(),
            cpu,
            read_pos,
            last_sequence: attached.before_oldest(read_pos),
            generation: attached.generation,
            ring: Some(attached.ring),
            resumed: Resumed::NoPlace,
            unasked: Duration::ZERO,
            is_replaced: false,
            is_stopped: false,
        };
        if let Some(place) = place {
            reader.resume(place)?;
        }
        Ok(reader)
    }

    /// E25: the numbers of two sessions are unrelated. A kernel's place has no session that tells
    /// another producer from the earlier one. The events of another one would not be newer than the
    /// place, and would never be delivered.
    fn resume(&mut self, place: Place) -> Result<(), Error> {
        let session = self.session();
        let is_same = place.session == session;
        let goes_on = is_same && (session != 0 || self.has_reached(place.last_sequence)?);
        (self.resumed, self.last_sequence) = match goes_on {
            true => (Resumed::GoesOn, Some(place.last_sequence)),
            false => (Resumed::NewSession, before_first(session).or(self.last_sequence)),
        };
        Ok(())
    }

    /// True if the ring had an event of `sequence` or later when the reader attached. Older events
    /// are passed then. A ring contains its last event, unless a resize left no room for it. It
    /// then counts as the ring of another producer. Called before any event is read.
    fn has_reached(&mut self, sequence: u64) -> Result<bool, Error> {
        let end = self.ring().write_pos();
        while self.read_pos < end {
            let header = match self.load_header()? {
                Some(header) => header,
                None => break,
            };
            if !self.recheck_tail() {
                continue;
            }
            if header.sequence >= sequence {
                return Ok(true);
            }
            self.read_pos += header.event_size;
        }
        // Nothing was delivered: reading begins at the tail, as after an attach.
        self.statistics = Statistics::default();
        self.read_pos = self.ring().tail_pos();
        Ok(false)
    }

    /// The next event that is there now, copied to `buffer`. [`Error::TooSmall`] says how large the
    /// buffer must be; nothing is consumed then. Changes buffers by itself (5.1.8.3); after an
    /// error of the platform nothing is lost, and the next call tries it again.
    pub fn next<'b>(&mut self, buffer: &'b mut [u8]) -> Result<Option<Event<'b>>, Error> {
        Ok(self.copy_next(buffer)?.map(|copied| copied.event(buffer)))
    }

    /// As next, without a view that keeps the buffer borrowed.
    pub(crate) fn copy_next(&mut self, buffer: &mut [u8]) -> Result<Option<Copied>, Error> {
        loop {
            let header = match self.find()? {
                Some(header) => header,
                None => return Ok(None),
            };
            let size = header.event_size as usize;
            if size > buffer.len() {
                if self.recheck_tail() {
                    return Err(Error::TooSmall(size));
                }
                continue;
            }
            self.ring().data(self.read_pos, header.event_size).copy_to(&mut buffer[..size]);
            if !self.recheck_tail() {
                continue;
            }
            let lost_before = self.lost_before(header.sequence);
            self.deliver(&header);
            return Ok(Some(Copied { header, lost_before }));
        }
    }

    /// The next event in place, without a copy. Errors as [`Reader::next`], never `TooSmall`.
    pub fn peek(&mut self) -> Result<Option<Peek<'_, P>>, Error> {
        let found = self.find()?;
        Ok(found.map(|header| Peek { reader: self, header }))
    }

    /// Sleeps until there may be something new, for at most `limit`. False: the time is over, or a
    /// signal came. Call it after [`Reader::next`] has returned `None`.
    pub fn wait(&mut self, limit: Option<Duration>) -> Result<bool, Error> {
        let mut left = limit;
        loop {
            if self.is_stopped {
                return Err(Error::Corrupt);
            }
            let sleep = self.sleep_limit(left);
            let wake = match self.sleep(sleep)? {
                Some(wake) => wake,
                None => return Ok(true),
            };
            if wake == Wake::Woken {
                return Ok(true);
            }
            self.ask_after_sleep(sleep.unwrap_or(Duration::ZERO));
            // Where others clear the flag, a wake may have gone to them (E12).
            if self.is_replaced || (!self.options.exclusive && self.is_unread()) {
                return Ok(true);
            }
            if wake == Wake::Interrupted || sleep == left {
                return Ok(false);
            }
            left = left.map(|left| left - sleep.unwrap_or(Duration::ZERO));
        }
    }

    /// The counts so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The generation of the current buffer, as it was when reading began there.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The buffer that is read now. After [`Reader::next`] has returned an event it is that of the
    /// event.
    pub fn buffer(&self) -> Buffer {
        let (generation, switches) = (self.generation, self.statistics.switches);
        Buffer { session: self.session(), generation, switches }
    }

    /// The producer of the ring that is read now: 0 for a kernel, another number for each process.
    /// After a restart of the producer it changes with the first event of the next one, or shortly
    /// before.
    pub fn session(&self) -> u64 {
        self.ring().mapping.identity.session
    }

    /// The last event that was delivered, for [`Options::places`] of a later reader. Before the
    /// first event it is the place of the options, or the event before the oldest one. `None`: the
    /// ring was empty, and nothing told its next number.
    pub fn place(&self) -> Option<Place> {
        let session = self.session();
        self.last_sequence.map(|last_sequence| Place { session, last_sequence })
    }

    /// What became of the place in the options.
    ///
    /// A producer in a kernel has no sessions. The reader takes it for another one if the ring's
    /// last event has a lower number than the place, or if the ring is empty. It cannot recognise a
    /// reloaded module that has emitted more events than the earlier one since.
    pub fn resumed(&self) -> Resumed {
        self.resumed
    }

    #[cfg(feature = "std")]
    pub(crate) fn wake_word(&self) -> &core::sync::atomic::AtomicU32 {
        self.ring().futex_word()
    }

    /// E25: another producer has taken the CPU.
    #[cfg(feature = "std")]
    pub(crate) fn is_replaced(&self) -> bool {
        self.is_replaced
    }

    /// What a sleep for this reader needs; None if it never reads again.
    ///
    /// # Safety
    ///
    /// Nothing may access the result after a call of this reader that reads, or after its drop.
    #[cfg(feature = "std")]
    pub(crate) unsafe fn watch(&self) -> Option<Watch> {
        // SAFETY: only these calls detach.
        let ring = unsafe { self.ring().alias() };
        (!self.is_stopped).then_some(Watch {
            ring,
            cpu: self.cpu,
            read_pos: self.read_pos,
            generation: self.generation,
            limit: self.sleep_limit(None),
            is_exclusive: self.options.exclusive,
            is_replaced: self.is_replaced,
        })
    }

    /// E25: `identity` has been replaced as the buffer of the CPU.
    #[cfg(feature = "std")]
    pub(crate) fn note_replaced(&mut self, identity: &Identity) {
        self.is_replaced |= self.ring().mapping.identity == *identity;
    }

    fn ring(&self) -> &Ring {
        self.ring.as_ref().expect("a reader has a ring until it is dropped")
    }

    /// The header of the next event that is newer than the last one, as of [`Reader::load_header`].
    fn find(&mut self) -> Result<Option<Header>, Error> {
        loop {
            match self.load_header()? {
                Some(header) if self.last_sequence.map_or(true, |last| header.sequence > last) => {
                    return Ok(Some(header));
                }
                // E21: an older buffer, or an earlier reader, had it, too.
                Some(header) if self.recheck_tail() => self.read_pos += header.event_size,
                Some(_) => {}
                None if self.follow_generation()? => {}
                None => return Ok(None),
            }
        }
    }

    /// 5.1.8.1 steps 1 to 4 in this buffer: the header of the next event. Its sizes are sound (E7);
    /// its content is to be believed once recheck_tail() was true. After every move of read_pos it
    /// begins with write_pos again: the tail may have come as far as that (E20).
    fn load_header(&mut self) -> Result<Option<Header>, Error> {
        loop {
            if self.is_stopped {
                return Err(Error::Corrupt);
            }
            let write_pos = self.ring().write_pos(); // before the tail: E26 rests on this order
            if self.read_pos >= write_pos {
                return Ok(None);
            }
            let tail_pos = self.ring().tail_pos();
            if tail_pos > self.read_pos {
                self.statistics.laps += 1;
                self.read_pos = tail_pos;
                continue;
            }
            // E26: no producer publishes more than the capacity beyond its tail.
            let readable = write_pos - self.read_pos;
            let capacity = self.ring().capacity;
            let at = (readable <= capacity).then(|| self.ring().data(self.read_pos, readable));
            if let Some(header) = at.and_then(Header::of) {
                return Ok(Some(header));
            }
            if self.recheck_tail() {
                self.statistics.corrupt += 1;
                self.is_stopped = self.options.stop_on_corrupt;
                self.read_pos = write_pos; // never back, never a loop
            }
        }
    }

    /// 5.1.8.1 step 5: nothing from the read position on was overwritten until now. Else the read
    /// position moves to the tail.
    fn recheck_tail(&mut self) -> bool {
        let tail_pos = self.ring().tail_pos_after_data();
        if tail_pos <= self.read_pos {
            return true;
        }
        self.statistics.torn += 1;
        self.read_pos = tail_pos;
        false
    }

    fn lost_before(&self, sequence: u64) -> u64 {
        self.last_sequence.map_or(0, |last| sequence.wrapping_sub(last).wrapping_sub(1))
    }

    /// 5.1.8.1 step 6.
    fn deliver(&mut self, header: &Header) {
        // A hostile ring can lose nearly 2^64 events in each session.
        let lost = self.lost_before(header.sequence);
        self.statistics.lost = self.statistics.lost.saturating_add(lost);
        self.statistics.delivered += 1;
        self.last_sequence = Some(header.sequence);
        self.read_pos += header.event_size;
    }

    /// 5.1.8.3, once the buffer is drained. True: check again.
    fn follow_generation(&mut self) -> Result<bool, Error> {
        let generation = self.ring().generation();
        if generation == self.generation && !self.is_replaced {
            return Ok(false); // E15: any difference is a change
        }
        // E10, E24: after the change was seen, write_pos is the last one of this buffer.
        if self.read_pos < self.ring().write_pos() {
            return Ok(true);
        }
        let attached = attach_alive(&mut self.platform, self.cpu)?;
        let (old, new) = (self.ring().mapping.identity, attached.ring.mapping.identity);
        self.is_replaced = false;
        if old == new {
            // A change without a successor: remember it, or every check would attach.
            // SAFETY: attach_alive got it from this platform, and nothing else refers to it.
            unsafe { self.platform.detach(attached.ring.mapping) };
            self.generation = generation;
            return Ok(true);
        }
        self.read_pos = attached.ring.tail_pos(); // E11: positions of two buffers are not compared
        if old.session != new.session {
            // E25: the numbers have nothing in common.
            let from_here = || attached.before_oldest(self.read_pos);
            self.last_sequence = before_first(new.session).or_else(from_here);
        }
        self.generation = attached.generation;
        self.statistics.switches += 1;
        if let Some(old) = self.ring.replace(attached.ring) {
            // SAFETY: of this platform; the new ring has replaced it, and no borrow of it remains.
            unsafe { self.platform.detach(old.mapping) };
        }
        Ok(true)
    }

    pub(crate) fn is_unread(&self) -> bool {
        self.read_pos < self.ring().write_pos()
    }

    /// The longest sleep that is right, and at most `left`.
    pub(crate) fn sleep_limit(&self, left: Option<Duration>) -> Option<Duration> {
        let is_of_a_process = self.ring().mapping.identity.session != 0;
        let own = match (self.options.exclusive, is_of_a_process) {
            (false, _) => Some(SHARED_LIMIT),
            (true, true) => Some(PROCESS_LIMIT),
            (true, false) => None,
        };
        own.map_or(left, |own| Some(left.map_or(own, |left| left.min(own))))
    }

    /// 5.1.8.2, once. None: there is something, it did not sleep.
    fn sleep(&mut self, limit: Option<Duration>) -> Result<Option<Wake>, Error> {
        let result = match self.begin_sleep() {
            None => Ok(None),
            Some(expected) => {
                let ring = self.ring.as_ref().expect("a reader has a ring until it is dropped");
                self.platform.sleep(ring.futex_word(), expected, limit).map(Some)
            }
        };
        self.end_sleep();
        result
    }

    /// 5.1.8.2 before the sleep: asks for a wake, and checks once more. The value of wake_word with
    /// which to sleep, or None if there is something. [`Reader::end_sleep`] follows in both cases.
    pub(crate) fn begin_sleep(&self) -> Option<u32> {
        let counter = self.ring().begin_sleep(self.read_pos, self.generation);
        counter.filter(|_| !self.is_replaced)
    }

    /// 5.1.8.2 step 6. E12: beside others it would erase their request.
    pub(crate) fn end_sleep(&self) {
        if self.options.exclusive {
            self.ring().clear_wake();
        }
    }

    /// E25: nothing in a buffer says that its producer was killed. False: it was asked, and did not
    /// answer.
    pub(crate) fn ask_after_sleep(&mut self, slept: Duration) -> bool {
        if self.ring().mapping.identity.session == 0 {
            return true;
        }
        self.unasked += slept.max(SLEEP_AT_LEAST);
        if self.unasked < ASK_INTERVAL {
            return true;
        }
        self.unasked = Duration::ZERO;
        let known = self.ring().mapping.identity;
        match self.platform.is_current(self.cpu, &known) {
            Ok(is_current) => self.is_replaced = !is_current,
            Err(_) => return false,
        }
        true
    }
}

/// A reader that sleeps, for another thread.
#[cfg(feature = "std")]
pub(crate) struct Watch {
    ring: Ring, // an alias
    pub(crate) cpu: u16,
    read_pos: u64,
    generation: u64,
    /// The longest sleep.
    pub(crate) limit: Option<Duration>,
    is_exclusive: bool,
    pub(crate) is_replaced: bool,
}

#[cfg(feature = "std")]
impl Watch {
    pub(crate) fn identity(&self) -> Identity {
        self.ring.mapping.identity
    }

    /// As [`Reader::begin_sleep`], with the address of the word.
    pub(crate) fn begin_sleep(&self) -> Option<(*const core::sync::atomic::AtomicU32, u32)> {
        let counter = self.ring.begin_sleep(self.read_pos, self.generation);
        let word: *const _ = self.ring.futex_word();
        counter.filter(|_| !self.is_replaced).map(|counter| (word, counter))
    }

    /// As [`Reader::end_sleep`].
    pub(crate) fn end_sleep(&self) {
        if self.is_exclusive {
            self.ring.clear_wake();
        }
    }
}

impl<P: Platform> Drop for Reader<P> {
    fn drop(&mut self) {
        if let Some(ring) = self.ring.take() {
            // SAFETY: of this platform, and the last use of it.
            unsafe { self.platform.detach(ring.mapping) };
        }
    }
}

/// A buffer after its attach.
struct Attached {
    ring: Ring,
    generation: u64,
    next_sequence: Option<u64>, // of the CPU, after the attach
}

impl Attached {
    /// The number before the events whose loss is counted (5.1.9): those that were in the ring at
    /// the attach, and later ones. `from` is the tail. None: unknown. Has no effect on a read.
    fn before_oldest(&self, from: u64) -> Option<u64> {
        let (oldest, write_pos) = self.oldest(from);
        let is_kernel = self.ring.mapping.identity.session == 0;
        let first = match (oldest, self.next_sequence) {
            // 5.1.2: never written, and the hand-over brought nothing either.
            (None, None) => (is_kernel && write_pos == 0 && self.generation == 1).then_some(1),
            // An oldest event that is later than the next one was: those between are lost.
            (oldest, next) => oldest.into_iter().chain(next).min(),
        };
        first.and_then(|first| first.checked_sub(1))
    }

    /// The number of the oldest event, None if its content is impossible, and write_pos. The order
    /// of the loads is that of [`Reader::load_header`] and [`Reader::recheck_tail`].
    fn oldest(&self, mut from: u64) -> (Option<u64>, u64) {
        loop {
            let write_pos = self.ring.write_pos();
            if from >= write_pos {
                return (None, write_pos);
            }
            let bytes = write_pos - from;
            let at = (bytes <= self.ring.capacity).then(|| self.ring.data(from, bytes));
            let header = at.and_then(Header::of);
            let tail_pos = self.ring.tail_pos_after_data();
            if tail_pos <= from {
                let sequence = header.map(|header| header.sequence);
                return (sequence.filter(|sequence| *sequence > 0), write_pos);
            }
            from = tail_pos;
        }
    }
}

/// A buffer that is alive, and its own generation (E19): a buffer that was retired before its
/// generation was read shows that of its successor, and no change would follow. If the CPU still
/// writes to it after that, it was alive.
fn attach_alive<P: Platform>(platform: &mut P, cpu: u16) -> Result<Attached, Error> {
    for attempt in 1.. {
        let ring = match Ring::check(platform.attach(cpu)?) {
            Ok(ring) => ring,
            Err((error, mapping)) => {
                // SAFETY: of this platform, and no ring has it.
                unsafe { platform.detach(mapping) };
                return Err(error);
            }
        };
        let generation = ring.generation();
        let now: Result<Identity, Error> = platform.identify(cpu);
        match now {
            Ok(now) if now == ring.mapping.identity => {
                let next_sequence = platform.next_sequence();
                return Ok(Attached { ring, generation, next_sequence });
            }
            Ok(_) if attempt == ATTACH_ATTEMPTS => {
                return Ok(Attached { ring, generation, next_sequence: None });
            }
            Ok(_) => {
                // SAFETY: of this platform, and the last use of it.
                unsafe { platform.detach(ring.mapping) };
            }
            Err(error) => {
                // SAFETY: as above.
                unsafe { platform.detach(ring.mapping) };
                return Err(error);
            }
        }
    }
    unreachable!("the last attempt returns")
}
