// SPDX-License-Identifier: MIT
//! The readers of all CPUs, in one thread.
use crate::handle::{ask_in_turn, Handle, Shared, State, SLEPT_AT_LEAST};
use crate::reader::Copied;
use crate::{cpu_count, Buffer, Error, Event, Options, OwnedEvent, Place, Platform, Reader};
use crate::{Resumed, Statistics, SystemCall, Wake};
use core::sync::atomic::AtomicU32;
use core::time::Duration;
use std::os::unix::io::RawFd;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

const TURN_EVENTS: u32 = 256; // of one CPU, before the turn of the others
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MOST: Duration = Duration::from_secs(1);
const RETRY_CHANGE_MOST: Duration = Duration::from_millis(100); // new events wait for a change
const SLEPT_AT_MOST_UNSEEN: Duration = Duration::from_millis(10); // of a caller that polls
const ENOMEM: i32 = 12;
const ENODEV: i32 = 19;
const EINVAL: i32 = 22;

/// One CPU of a set.
struct Cpu<P: Platform> {
    platform: P,
    place: Option<Place>,      // where an earlier set has stopped
    reader: Option<Reader<P>>, // None until the first attach
    error: Option<Error>,
    retry: Duration,
    retry_at: Instant,
    seen: (u64, u64), // session and generation at the last note_buffer
}

impl<P: Platform + Clone> Cpu<P> {
    fn new(platform: P, place: Option<Place>) -> Self {
        let retry_at = Instant::now();
        let (retry, seen) = (RETRY_FIRST, (0, 0));
        Cpu { platform, place, reader: None, error: None, retry, retry_at, seen }
    }

    /// Notes its buffer. True: it is another one than at the last call.
    fn note_buffer(&mut self) -> bool {
        let buffer = |reader: &Reader<P>| (reader.session(), reader.generation());
        let now = self.reader.as_ref().map_or((0, 0), buffer);
        std::mem::replace(&mut self.seen, now) != now
    }

    /// An error delays the next attempt.
    fn note(&mut self, error: Option<Error>) {
        let most = if self.reader.is_some() { RETRY_CHANGE_MOST } else { RETRY_MOST };
        self.retry = if self.error.is_some() { most.min(self.retry * 2) } else { RETRY_FIRST };
        self.error = error;
        if error.is_some() {
            self.retry_at = Instant::now() + self.retry;
        }
    }

    /// The reader, unless it failed and must not be tried again yet.
    fn readable(&mut self, id: u16, options: Options<'static>) -> Option<&mut Reader<P>> {
        if self.error.is_some() && Instant::now() < self.retry_at {
            return None;
        }
        if self.reader.is_none() {
            match Reader::open_at(self.platform.clone(), id, options, self.place) {
                Ok(reader) => self.reader = Some(reader),
                Err(error) => self.note(Some(error)),
            }
        }
        self.reader.as_mut()
    }

    /// Corrupt content has ended it, so another attempt will not help.
    fn is_stopped(&self) -> bool {
        self.reader.is_some() && self.error == Some(Error::Corrupt)
    }

    /// The reader, if it has no error.
    fn sound(&self) -> Option<&Reader<P>> {
        self.reader.as_ref().filter(|_| self.error.is_none())
    }
}

/// A reader of the events of all CPUs, for one thread.
///
/// The events of one CPU come in their order, and the CPUs take turns. [`ReaderSet::merge`] orders
/// the events of all CPUs by their timestamps instead. A CPU whose ring is never
/// empty thus does not starve the others. A CPU that cannot be read has an [error of its
/// own](ReaderSet::error), and the set tries it again after 50 ms to 1 s. The others continue.
///
/// ```no_run
/// let mut set = kmes::ReaderSet::by_system_call(kmes::Options::default())?;
/// for event in set.events() {
///     let (cpu, event) = event?;
///     println!("CPU {cpu}, event {}: {} bytes", event.sequence, event.payload.len());
/// }
/// # Ok::<(), kmes::Error>(())
/// ```
pub struct ReaderSet<P: Platform> {
    handle: Option<Handle>, // before the readers, which it watches, is dropped before them
    cpus: Vec<Cpu<P>>,      // never empty, at most 65536
    options: Options<'static>,
    buffer: Vec<u8>,
    turn: usize,
    taken: u32,         // in this turn
    slept_at: Instant,  // the end of the last sleep
    asked_first: usize, // the CPU that asks first for its producer
}

impl ReaderSet<SystemCall> {
    /// All CPUs of the kernel, by system call 1091.
    pub fn by_system_call(options: Options<'_>) -> Result<Self, Error> {
        ReaderSet::open((0..cpu_count()?).map(|_| SystemCall), options)
    }
}

#[cfg(feature = "libkmes")]
impl ReaderSet<crate::Libkmes> {
    /// All CPUs of the producer that libkmes finds.
    pub fn by_libkmes(options: Options<'_>) -> Result<Self, Error> {
        ReaderSet::open((0..crate::Libkmes::cpu_count()?).map(crate::Libkmes::new), options)
    }
}

impl<P: Platform + Clone + Send + 'static> ReaderSet<P> {
    /// A descriptor for `epoll`, `poll` and event loops, which is readable while a CPU has unread
    /// events. The first call makes it, and a thread that waits for the set. The descriptor belongs
    /// to the set: do not read it, write it or close it.
    ///
    /// It is readable at first. It becomes unreadable only in a call of this set that finds every
    /// CPU empty: a [`ReaderSet::next`] that returns `Ok(None)`, the end of
    /// [`ReaderSet::available`], or a [`ReaderSet::wait`] that does not return `Ok(true)`. Each
    /// event after that makes it readable, even if it comes before the call returns. A loop that is
    /// edge-triggered must therefore read until `None`. It may be readable without an event: after
    /// a change of buffers, after the end of a producer, and when a CPU with an
    /// [error](ReaderSet::error) is due for another attempt.
    ///
    /// All functions of the set may be used together with it. The thread blocks all signals, sleeps
    /// by `futex_waitv` as [`Platform::sleep_any`] does by default, and ends with the set. It calls
    /// [`Platform::is_current`] of a clone of each platform.
    ///
    /// A child of `fork` has no such thread, and calls this function for a descriptor of its own.
    /// The child closes its copy of the parent's descriptor in that call, in a call that finds
    /// every CPU empty, and when it drops the set.
    ///
    /// Fails with `Error::Os(23)` or `Error::Os(24)` if there is no descriptor, and
    /// `Error::Os(11)` if there is no thread.
    ///
    /// ```no_run
    /// # fn poll(_: std::os::unix::io::RawFd) {}
    /// let mut set = kmes::ReaderSet::by_system_call(kmes::Options::default())?;
    /// let fd = set.fd()?;
    /// loop {
    ///     poll(fd); // the program's event loop
    ///     while let Some((cpu, event)) = set.next()? {
    ///         println!("CPU {cpu}, event {}", event.sequence);
    ///     }
    /// }
    /// # #[allow(unreachable_code)]
    /// # Ok::<(), kmes::Error>(())
    /// ```
    pub fn fd(&mut self) -> Result<RawFd, Error> {
        self.leave_handle_of_parent();
        if self.handle.is_none() {
            let platforms = self.cpus.iter().map(|cpu| cpu.platform.clone()).collect();
            self.handle = Some(Handle::new(platforms)?);
            self.cpus.iter_mut().for_each(|cpu| _ = cpu.note_buffer());
        }
        Ok(self.handle.as_ref().map_or(-1, Handle::fd))
    }
}

impl<P: Platform + Clone> ReaderSet<P> {
    /// Attaches to as many CPUs as there are platforms, CPU 0 by the first one. Fails with the
    /// error of CPU 0 if none of them can be read.
    pub fn open(
        platforms: impl IntoIterator<Item = P>,
        options: Options<'_>,
    ) -> Result<Self, Error> {
        let numbered = platforms.into_iter().enumerate();
        let place = |id| options.places.get(id).copied().flatten();
        let mut cpus: Vec<_> = numbered.map(|(id, cpu)| Cpu::new(cpu, place(id))).collect();
        let options = options.without_places();
        if cpus.len() > usize::from(u16::MAX) + 1 {
            return Err(Error::Os(EINVAL));
        }
        for (id, cpu) in cpus.iter_mut().enumerate() {
            cpu.readable(id as u16, options);
        }
        if cpus.iter().all(|cpu| cpu.error.is_some()) {
            return Err(cpus.first().and_then(|cpu| cpu.error).unwrap_or(Error::Os(ENODEV)));
        }
        let (buffer, slept_at) = (vec![0; 4096], Instant::now());
        let (turn, taken, asked_first) = (0, 0, 0);
        Ok(ReaderSet { handle: None, cpus, options, buffer, turn, taken, slept_at, asked_first })
    }

    /// The next event of any CPU that is there now, with the number of its CPU. The event is a copy
    /// in the set. Fails with `Error::Os(12)` if there is no memory for it; nothing is consumed
    /// then.
    pub fn next(&mut self) -> Result<Option<(u16, Event<'_>)>, Error> {
        let copied = self.copy_next()?;
        Ok(copied.map(|copied| (self.turn as u16, copied.event(&self.buffer))))
    }

    /// Sleeps until a CPU may have something new, for at most `limit`. False: the time is over, or
    /// a signal came during a sleep. A signal between two sleeps is missed. Call it after
    /// [`ReaderSet::next`] has returned `None`. Fails with the error of CPU 0 if every CPU has an
    /// error when the time is over.
    pub fn wait(&mut self, limit: Option<Duration>) -> Result<bool, Error> {
        let shared = self.handle.as_ref().and_then(Handle::with_thread);
        if let Some(mut state) = self.lock_out(&shared) {
            self.take(&mut state);
        }
        let result = self.wait_for_any(limit);
        if result != Ok(true) {
            self.give();
        }
        result
    }

    fn wait_for_any(&mut self, limit: Option<Duration>) -> Result<bool, Error> {
        let begin = Instant::now();
        loop {
            // The platform may sleep for less than it was asked for.
            let left = limit.map(|limit| limit.saturating_sub(begin.elapsed()));
            let (wake, slept) = match self.sleep(left)? {
                Some(slept) => slept,
                None => return Ok(true),
            };
            if wake == Wake::Woken || self.end_fruitless_sleep(wake, slept) {
                return Ok(true);
            }
            if wake == Wake::Interrupted {
                return Ok(false);
            }
            if limit.map_or(false, |limit| begin.elapsed() >= limit) {
                return match self.cpus[0].error {
                    Some(error) if self.cpus.iter().all(|cpu| cpu.error.is_some()) => Err(error),
                    _ => Ok(false),
                };
            }
        }
    }

    /// All events, with sleeps between them. It never ends, also not by a signal. A program that
    /// must end loops over [`ReaderSet::next`] and [`ReaderSet::wait`] with a limit. An error is
    /// not the end: the next item may be an event again.
    pub fn events(&mut self) -> SetEvents<'_, P> {
        SetEvents { set: self, sleeps: true }
    }

    /// The events that are there now.
    pub fn available(&mut self) -> SetEvents<'_, P> {
        SetEvents { set: self, sleeps: false }
    }

    /// The number of CPUs, which is constant.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Why a CPU cannot be read now.
    pub fn error(&self, cpu: u16) -> Option<Error> {
        self.cpus.get(usize::from(cpu)).and_then(|cpu| cpu.error)
    }

    /// The counts of a CPU; zeros before its first attach.
    pub fn statistics(&self, cpu: u16) -> Statistics {
        self.reader(cpu).map_or(Statistics::default(), Reader::statistics)
    }

    /// The generation of the buffer of a CPU, as it was when reading began there. None before its
    /// first attach.
    pub fn generation(&self, cpu: u16) -> Option<u64> {
        self.reader(cpu).map(Reader::generation)
    }

    /// The buffer of a CPU ([`Reader::buffer`]). None before the first attach.
    pub fn buffer(&self, cpu: u16) -> Option<Buffer> {
        self.reader(cpu).map(Reader::buffer)
    }

    /// The producer of a CPU's ring ([`Reader::session`]). None before the first attach.
    pub fn session(&self, cpu: u16) -> Option<u64> {
        self.reader(cpu).map(Reader::session)
    }

    /// The last event of a CPU that the set has delivered ([`Reader::place`]), for
    /// [`Options::places`] of a later set. Before the first attach it is the place of the options.
    ///
    /// ```no_run
    /// # let set = kmes::ReaderSet::by_system_call(kmes::Options::default())?;
    /// let places: Vec<_> = (0..set.cpus()).map(|cpu| set.place(cpu as u16)).collect();
    /// drop(set); // and in a later process
    /// let options = kmes::Options { places: &places, ..kmes::Options::default() };
    /// let set = kmes::ReaderSet::by_system_call(options)?;
    /// # Ok::<(), kmes::Error>(())
    /// ```
    pub fn place(&self, cpu: u16) -> Option<Place> {
        let cpu = self.cpus.get(usize::from(cpu))?;
        cpu.reader.as_ref().map_or(cpu.place, Reader::place)
    }

    /// What became of a CPU's place in the options ([`Reader::resumed`]). None before the first
    /// attach.
    pub fn resumed(&self, cpu: u16) -> Option<Resumed> {
        self.reader(cpu).map(Reader::resumed)
    }

    #[cfg(test)]
    pub(crate) fn buffer_of_test(&mut self, bytes: usize) {
        self.buffer = vec![0; bytes];
    }

    fn reader(&self, cpu: u16) -> Option<&Reader<P>> {
        self.cpus.get(usize::from(cpu)).and_then(|cpu| cpu.reader.as_ref())
    }

    /// After Some, `turn` is the CPU of the event.
    fn copy_next(&mut self) -> Result<Option<Copied>, Error> {
        self.scan_by(Self::scan)
    }

    /// Calls `scan` as the owner of the rings. Its `Ok(None)` says that it has found every CPU
    /// empty.
    pub(crate) fn scan_by<T>(
        &mut self,
        scan: impl FnOnce(&mut Self) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let shared = self.handle.as_ref().and_then(Handle::with_thread);
        let mut state = match self.lock_out(&shared) {
            Some(state) => state,
            None => {
                let found = scan(self);
                if let Ok(None) = found {
                    self.give();
                }
                return found;
            }
        };
        state.watches.clear(); // the check may detach their buffers
        let found = scan(self);
        match found {
            Ok(None) => self.give_locked(&mut state),
            _ => self.take(&mut state),
        }
        found
    }

    /// The state, if the thread of the descriptor is the owner of the rings.
    fn lock_out<'s>(&mut self, shared: &'s Option<Arc<Shared>>) -> Option<MutexGuard<'s, State>> {
        let mut state = shared.as_ref()?.lock();
        self.note_replaced(&mut state);
        self.handle.as_mut()?.lock_out(state)
    }

    /// A child of fork closes its copy of the descriptor.
    fn leave_handle_of_parent(&mut self) {
        if self.handle.as_ref().map_or(false, Handle::is_of_parent) {
            self.handle = None;
        }
    }

    /// The thread of the descriptor becomes the owner of the rings, if there is one.
    fn give(&mut self) {
        self.leave_handle_of_parent();
        let shared = match &self.handle {
            Some(handle) => handle.shared.clone(),
            None => return,
        };
        let mut state = shared.lock();
        self.note_replaced(&mut state);
        self.give_locked(&mut state);
    }

    /// After a change of buffers the caller stays the owner once more, and the descriptor stays
    /// readable. The program can then see the change before the thread sleeps in the new buffer.
    fn give_locked(&mut self, state: &mut State) {
        let mut is_changed = false;
        self.cpus.iter_mut().for_each(|cpu| is_changed |= cpu.note_buffer());
        if is_changed {
            return self.take(state);
        }
        let sound = self.cpus.iter().filter_map(Cpu::sound);
        state.watches.clear();
        // SAFETY: the thread accesses them as the owner alone. Each call that reads or drops a
        // reader locks it out first, and clears them or makes them anew.
        state.watches.extend(sound.filter_map(|reader| unsafe { reader.watch() }));
        let failed = self.cpus.iter().filter(|cpu| cpu.error.is_some() && !cpu.is_stopped());
        state.retry_at = failed.map(|cpu| cpu.retry_at).min();
        if let Some(handle) = &mut self.handle {
            handle.give(state);
        }
    }

    /// The caller becomes the owner of the rings.
    fn take(&mut self, state: &mut State) {
        self.note_replaced(state);
        state.watches.clear();
        self.cpus.iter().filter_map(Cpu::sound).for_each(Reader::end_sleep);
        if let Some(handle) = &mut self.handle {
            handle.take(state);
        }
    }

    fn note_replaced(&mut self, state: &mut State) {
        for (cpu, identity) in state.replaced.drain(..) {
            if let Some(reader) = &mut self.cpus[usize::from(cpu)].reader {
                reader.note_replaced(&identity);
            }
        }
    }

    fn scan(&mut self) -> Result<Option<Copied>, Error> {
        // One check more than there are CPUs: of the first one only the turn may have ended.
        for _ in 0..=self.cpus.len() {
            if self.taken < TURN_EVENTS {
                if let Some(copied) = self.copy_of_turn()? {
                    self.taken += 1;
                    return Ok(Some(copied));
                }
            }
            self.turn = (self.turn + 1) % self.cpus.len();
            self.taken = 0;
        }
        Ok(None)
    }

    /// Calls `read` with the reader of a CPU, unless it must not be tried again yet. `Ok` of its
    /// result is the error of the reader.
    pub(crate) fn read_cpu(
        &mut self,
        id: usize,
        read: impl FnOnce(&mut Reader<P>) -> Result<Option<Error>, Error>,
    ) -> Result<(), Error> {
        let cpu = &mut self.cpus[id];
        if let Some(reader) = cpu.readable(id as u16, self.options) {
            let error = read(reader)?;
            cpu.note(error);
        }
        Ok(())
    }

    fn copy_of_turn(&mut self) -> Result<Option<Copied>, Error> {
        let cpu = &mut self.cpus[self.turn];
        let reader = match cpu.readable(self.turn as u16, self.options) {
            Some(reader) => reader,
            None => return Ok(None),
        };
        let result = loop {
            match reader.copy_next(&mut self.buffer) {
                Err(Error::TooSmall(bytes)) => {
                    let more = bytes - self.buffer.len();
                    self.buffer.try_reserve(more).map_err(|_| Error::Os(ENOMEM))?;
                    self.buffer.resize(bytes, 0);
                }
                result => break result,
            }
        };
        cpu.note(result.as_ref().err().copied());
        Ok(result.unwrap_or(None))
    }

    /// One sleep on all CPUs: how it ended, and its length. None: there is something.
    fn sleep(&self, left: Option<Duration>) -> Result<Option<(Wake, Duration)>, Error> {
        let mut limit = left;
        let words = self.begin_sleeps(&mut limit);
        let result = match &words {
            Some(words) => {
                let begin = Instant::now();
                let wake = self.cpus[0].platform.sleep_any(words, limit);
                wake.map(|wake| Some((wake, begin.elapsed())))
            }
            None => Ok(None),
        };
        self.cpus.iter().filter_map(Cpu::sound).for_each(Reader::end_sleep);
        result
    }

    /// Asks each CPU for a wake. None: one has something, or it is time to try one again.
    fn begin_sleeps(&self, limit: &mut Option<Duration>) -> Option<Vec<(&AtomicU32, u32)>> {
        let now = Instant::now();
        let mut words = Vec::with_capacity(self.cpus.len());
        let is_over = self.cpus.iter().all(Cpu::is_stopped);
        for cpu in &self.cpus {
            if let Some(reader) = cpu.sound() {
                words.push((reader.wake_word(), reader.begin_sleep()?));
                *limit = reader.sleep_limit(*limit);
            } else if is_over || !cpu.is_stopped() {
                let until = cpu.retry_at.checked_duration_since(now)?;
                *limit = Some(limit.map_or(until, |limit| limit.min(until)));
            }
        }
        Some(words)
    }

    /// True: check again. Where others clear the flag, a wake may have gone to them (E12), and the
    /// sleep may not have covered all words.
    fn end_fruitless_sleep(&mut self, wake: Wake, slept: Duration) -> bool {
        let now = Instant::now();
        let unseen = now.duration_since(self.slept_at).min(SLEPT_AT_MOST_UNSEEN);
        self.slept_at = now;
        // A caller that polls never sleeps, so the time since its previous sleep counts.
        let slept = if wake == Wake::TimedOut { slept.max(unseen) } else { SLEPT_AT_LEAST };
        let cpus = &mut self.cpus;
        ask_in_turn(&mut self.asked_first, cpus.len(), |id| {
            let is_sound = cpus[id].error.is_none();
            let reader = cpus[id].reader.as_mut().filter(|_| is_sound);
            reader.map_or(true, |reader| reader.ask_after_sleep(slept))
        });
        let mut sound = self.cpus.iter().filter_map(Cpu::sound);
        sound.any(|reader| reader.is_replaced() || reader.is_unread())
    }
}

/// An iterator over the events of a set. See [`ReaderSet::events`] and [`ReaderSet::available`].
pub struct SetEvents<'s, P: Platform> {
    set: &'s mut ReaderSet<P>,
    sleeps: bool,
}

impl<P: Platform + Clone> Iterator for SetEvents<'_, P> {
    type Item = Result<(u16, OwnedEvent), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.set.next() {
                Ok(Some((cpu, event))) => return Some(Ok((cpu, event.into()))),
                Ok(None) if !self.sleeps => return None,
                Ok(None) => {
                    if let Err(error) = self.set.wait(None) {
                        return Some(Err(error));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
