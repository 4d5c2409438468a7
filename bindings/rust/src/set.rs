// SPDX-License-Identifier: MIT
//! The readers of all CPUs, in one thread.
use crate::reader::Copied;
use crate::{cpu_count, Error, Event, Options, OwnedEvent, Platform, Reader, Statistics};
use crate::{SystemCall, Wake};
use core::sync::atomic::AtomicU32;
use core::time::Duration;
use std::time::Instant;

const TURN_EVENTS: u32 = 256; // of one CPU, before the turn of the others
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MOST: Duration = Duration::from_secs(1);
const RETRY_CHANGE_MOST: Duration = Duration::from_millis(100); // new events wait for a change
const SLEPT_AT_LEAST: Duration = Duration::from_millis(1);
const ENOMEM: i32 = 12;
const ENODEV: i32 = 19;
const EINVAL: i32 = 22;

/// One CPU of a set.
struct Cpu<P: Platform> {
    platform: P,
    reader: Option<Reader<P>>, // None until the first attach
    error: Option<Error>,
    retry: Duration,
    retry_at: Instant,
}

impl<P: Platform + Clone> Cpu<P> {
    fn new(platform: P) -> Self {
        Cpu { platform, reader: None, error: None, retry: RETRY_FIRST, retry_at: Instant::now() }
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
    fn readable(&mut self, id: u16, options: Options) -> Option<&mut Reader<P>> {
        if self.error.is_some() && Instant::now() < self.retry_at {
            return None;
        }
        if self.reader.is_none() {
            match Reader::open(self.platform.clone(), id, options) {
                Ok(reader) => self.reader = Some(reader),
                Err(error) => self.note(Some(error)),
            }
        }
        self.reader.as_mut()
    }

    /// The reader, if it has no error.
    fn sound(&self) -> Option<&Reader<P>> {
        self.reader.as_ref().filter(|_| self.error.is_none())
    }
}

/// A reader of the events of all CPUs, for one thread.
///
/// The events of one CPU come in their order, and the CPUs take turns. A CPU whose ring is never
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
    cpus: Vec<Cpu<P>>, // never empty, at most 65536
    options: Options,
    buffer: Vec<u8>,
    turn: usize,
    taken: u32, // in this turn
}

impl ReaderSet<SystemCall> {
    /// All CPUs of the kernel, by system call 1091.
    pub fn by_system_call(options: Options) -> Result<Self, Error> {
        ReaderSet::open((0..cpu_count()?).map(|_| SystemCall), options)
    }
}

#[cfg(feature = "libkmes")]
impl ReaderSet<crate::Libkmes> {
    /// All CPUs of the producer that libkmes finds.
    pub fn by_libkmes(options: Options) -> Result<Self, Error> {
        ReaderSet::open((0..crate::Libkmes::cpu_count()?).map(crate::Libkmes::new), options)
    }
}

impl<P: Platform + Clone> ReaderSet<P> {
    /// Attaches to as many CPUs as there are platforms, CPU 0 by the first one. Fails with the
    /// error of CPU 0 if none of them can be read.
    pub fn open(platforms: impl IntoIterator<Item = P>, options: Options) -> Result<Self, Error> {
        let mut cpus: Vec<_> = platforms.into_iter().map(Cpu::new).collect();
        if cpus.len() > usize::from(u16::MAX) + 1 {
            return Err(Error::Os(EINVAL));
        }
        for (id, cpu) in cpus.iter_mut().enumerate() {
            cpu.readable(id as u16, options);
        }
        if cpus.iter().all(|cpu| cpu.error.is_some()) {
            return Err(cpus.first().and_then(|cpu| cpu.error).unwrap_or(Error::Os(ENODEV)));
        }
        Ok(ReaderSet { cpus, options, buffer: vec![0; 4096], turn: 0, taken: 0 })
    }

    /// The next event of any CPU that is there now, with the number of its CPU. The event is a copy
    /// in the set. Fails with `Error::Os(12)` if there is no memory for it; nothing is consumed
    /// then.
    pub fn next(&mut self) -> Result<Option<(u16, Event<'_>)>, Error> {
        let copied = self.copy_next()?;
        Ok(copied.map(|copied| (self.turn as u16, copied.event(&self.buffer))))
    }

    /// Sleeps until a CPU may have something new, for at most `limit`. False: the time is over, or
    /// a signal came. Call it after [`ReaderSet::next`] has returned `None`. Fails with the error
    /// of CPU 0 if every CPU has an error when the time is over.
    pub fn wait(&mut self, limit: Option<Duration>) -> Result<bool, Error> {
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

    /// All events, with sleeps between them. It never ends. An error is not the end: the next item
    /// may be an event again.
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

    #[cfg(test)]
    pub(crate) fn buffer_of_test(&mut self, bytes: usize) {
        self.buffer = vec![0; bytes];
    }

    fn reader(&self, cpu: u16) -> Option<&Reader<P>> {
        self.cpus.get(usize::from(cpu)).and_then(|cpu| cpu.reader.as_ref())
    }

    /// After Some, `turn` is the CPU of the event.
    fn copy_next(&mut self) -> Result<Option<Copied>, Error> {
        // One look more than there are CPUs: of the first one only the turn may have ended.
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
        for cpu in &self.cpus {
            if let Some(reader) = cpu.sound() {
                words.push((reader.wake_word(), reader.begin_sleep()?));
                *limit = reader.sleep_limit(*limit);
            } else {
                let until = cpu.retry_at.checked_duration_since(now)?;
                *limit = Some(limit.map_or(until, |limit| limit.min(until)));
            }
        }
        Some(words)
    }

    /// True: look again. Where others clear the flag, a wake may have gone to them (E12), and the
    /// sleep may not have covered all words.
    fn end_fruitless_sleep(&mut self, wake: Wake, slept: Duration) -> bool {
        let slept = if wake == Wake::TimedOut { slept } else { SLEPT_AT_LEAST };
        let sound = self.cpus.iter_mut().filter(|cpu| cpu.error.is_none());
        let mut looks_again = false;
        for reader in sound.filter_map(|cpu| cpu.reader.as_mut()) {
            reader.ask_after_sleep(slept);
            looks_again |= reader.is_replaced() || reader.is_unread();
        }
        looks_again
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
