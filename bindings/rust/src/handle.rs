// SPDX-License-Identifier: MIT
//! The descriptor of a set: an eventfd, and a thread that makes it readable.
//!
//! The rings have one owner at a time.
//!
//! - The caller: the descriptor is readable, and the thread accesses nothing.
//! - The thread: the descriptor is not readable. The thread asks for wakes and sleeps for all CPUs.
//!   The caller may check under the lock.
//!
//! Only a check of the caller that finds no event gives the rings to the thread. It makes the
//! descriptor unreadable before the thread asks each CPU for a wake and checks it again (5.1.8.2).
//! So an event at any time after the check makes the descriptor readable.
//!
//! The thread accesses a ring only with the lock, as the owner. It sleeps without the lock, and
//! passes only addresses to the kernel, so the caller may unmap a buffer meanwhile. It asks for the
//! producer without the lock, too.
use crate::linux::{readable_eventfd, sleep_on_each, wake_all, without_signals};
use crate::reader::{Watch, ASK_INTERVAL};
use crate::{Error, Identity, Platform, Wake};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::{fs::MetadataExt, io::AsRawFd, io::FromRawFd, io::RawFd};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const EAGAIN: i32 = 11;
const AFTER_AN_ERROR: Duration = Duration::from_millis(10);
pub(crate) const SLEPT_AT_LEAST: Duration = Duration::from_millis(1);

/// What the lock protects.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) watches: Vec<Watch>,       // for the thread as the owner
    pub(crate) retry_at: Option<Instant>, // the first CPU that failed is due
    pub(crate) replaced: Vec<(u16, Identity)>, // what the thread has found out (E25)
    is_of_thread: bool,
    is_asking: bool,
    is_closing: bool,
}

impl State {
    /// Asks each CPU for a wake. Returns the longest sleep; None: a CPU has something, or is due.
    fn begin_sleeps(&self, words: &mut Vec<(*const AtomicU32, u32)>) -> Option<Option<Duration>> {
        let mut limit = match self.retry_at {
            Some(at) => Some(at.checked_duration_since(Instant::now())?),
            None => None,
        };
        for watch in &self.watches {
            words.push(watch.begin_sleep()?);
            limit = watch.limit.map_or(limit, |own| Some(limit.map_or(own, |left| left.min(own))));
        }
        Some(limit)
    }

    fn end_sleeps(&self) {
        self.watches.iter().for_each(Watch::end_sleep);
    }
}

pub(crate) struct Shared {
    state: Mutex<State>,
    changes: AtomicU32, // ends a sleep of the thread; changed with the lock
    event: File,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the sleep of the thread, with the lock.
    fn end_sleep(&self) {
        self.changes.store(self.changes.load(Relaxed).wrapping_add(1), Relaxed);
        wake_all(&self.changes);
    }

    fn make_readable(&self) {
        let _ = (&self.event).write(&1u64.to_ne_bytes()); // EAGAIN: it is readable
    }

    fn make_unreadable(&self) {
        let _ = (&self.event).read(&mut [0; 8]); // EAGAIN: it is not readable
    }

    /// The thread: sleeps while it is the owner, and until it is the owner.
    fn watch<P: Platform>(&self, platforms: &mut [P]) {
        let mut asker = Asker { unasked: Duration::ZERO, first: 0 };
        loop {
            let mut state = self.lock();
            let before = self.changes.load(Relaxed);
            let mut words = vec![(&self.changes as *const AtomicU32, before)];
            let mut limit = None;
            if state.is_closing {
                return;
            }
            if state.is_of_thread {
                limit = match state.begin_sleeps(&mut words) {
                    Some(limit) => limit,
                    None => {
                        state.end_sleeps();
                        state.is_of_thread = false;
                        self.make_readable();
                        continue;
                    }
                };
            }
            drop(state);
            let begin = Instant::now();
            let wake = sleep_on_each(words.iter().copied(), limit);
            let slept = begin.elapsed();
            let state = self.lock();
            let is_changed = self.changes.load(Relaxed) != before;
            if state.is_of_thread && !is_changed {
                state.end_sleeps();
            }
            drop(state);
            match wake {
                Ok(Wake::TimedOut) => asker.ask_after_sleep(slept, self, platforms),
                // A caller that checks all the time must not keep the thread from asking.
                Ok(_) if is_changed => asker.ask_after_sleep(SLEPT_AT_LEAST, self, platforms),
                Ok(_) => {}
                Err(_) if is_changed => {} // the buffer was unmapped
                Err(_) => thread::sleep(AFTER_AN_ERROR),
            }
        }
    }
}

/// Asks for the producers of all CPUs, from the CPU `first` on, until one does not answer. The CPUs
/// mostly have one producer, and each would wait for it. The next one asks first the next time.
pub(crate) fn ask_in_turn(first: &mut usize, count: usize, mut answers: impl FnMut(usize) -> bool) {
    let begin = *first;
    let silent = (0..count).map(|offset| (begin + offset) % count).find(|id| !answers(*id));
    *first = silent.map_or(begin, |id| id + 1);
}

/// Asks for the producers after sleeps without an event (E25).
struct Asker {
    unasked: Duration,
    first: usize,
}

impl Asker {
    fn ask_after_sleep<P: Platform>(
        &mut self,
        slept: Duration,
        shared: &Shared,
        platforms: &mut [P],
    ) {
        self.unasked += slept;
        if self.unasked < ASK_INTERVAL {
            return;
        }
        self.unasked = Duration::ZERO;
        let mut state = shared.lock();
        let watched = state.watches.iter().filter(|_| state.is_of_thread);
        let known = watched.map(|watch| (watch.cpu, watch.identity()));
        let asked: Vec<_> = known.filter(|(_, identity)| identity.session != 0).collect();
        if asked.is_empty() || state.is_closing {
            return;
        }
        state.is_asking = true;
        drop(state);
        let mut replaced = vec![];
        ask_in_turn(&mut self.first, asked.len(), |index| {
            let (cpu, identity) = asked[index];
            let is_current = platforms[usize::from(cpu)].is_current(cpu, &identity);
            if is_current == Ok(false) {
                replaced.push((cpu, identity));
            }
            is_current.is_ok()
        });
        let mut state = shared.lock();
        state.is_asking = false;
        for watch in &mut state.watches {
            watch.is_replaced |= replaced.contains(&(watch.cpu, watch.identity()));
        }
        state.replaced.extend(replaced);
    }
}

/// Device and inode; zeros for a descriptor that was closed.
fn identity_of(file: &File) -> (u64, u64) {
    file.metadata().map_or((0, 0), |file| (file.dev(), file.ino()))
}

/// The descriptor, and the thread.
pub(crate) struct Handle {
    pub(crate) shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    process: u32,     // a child of fork has no thread
    file: (u64, u64), // device and inode of the eventfd
    is_mine: bool,    // the caller is the owner, and knows it without the lock
}

impl Handle {
    /// `platforms`: that of each CPU.
    pub(crate) fn new<P: Platform + Send + 'static>(
        mut platforms: Vec<P>,
    ) -> Result<Handle, Error> {
        let (state, changes) = (Mutex::default(), AtomicU32::new(0));
        let event = readable_eventfd()?;
        let file = identity_of(&event);
        let shared = Arc::new(Shared { state, changes, event });
        let watched = shared.clone();
        let watch = move || watched.watch(&mut platforms);
        let thread =
            without_signals(|| thread::Builder::new().name("kmes-set".into()).spawn(watch))
                .map_err(|error| Error::Os(error.raw_os_error().unwrap_or(EAGAIN)))?;
        let process = std::process::id();
        Ok(Handle { shared, thread: Some(thread), process, file, is_mine: true })
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.shared.event.as_raw_fd()
    }

    pub(crate) fn is_of_parent(&self) -> bool {
        self.process != std::process::id()
    }

    /// None: the caller owns the rings, without the lock.
    pub(crate) fn with_thread(&self) -> Option<Arc<Shared>> {
        (!self.is_mine && !self.is_of_parent()).then(|| self.shared.clone())
    }

    /// The state, if the thread is the owner.
    pub(crate) fn lock_out<'s>(
        &mut self,
        state: MutexGuard<'s, State>,
    ) -> Option<MutexGuard<'s, State>> {
        self.is_mine = !state.is_of_thread;
        state.is_of_thread.then_some(state)
    }

    /// Nothing drops the memory of the parent's thread here, which has the eventfd, too. The child
    /// may have closed all descriptors, and opened another file with this number.
    fn close_in_child(&self) {
        if identity_of(&self.shared.event) == self.file {
            // SAFETY: `event` is never used or dropped again in this process.
            drop(unsafe { File::from_raw_fd(self.fd()) });
        }
    }

    /// The caller becomes the owner.
    pub(crate) fn take(&mut self, state: &mut State) {
        state.is_of_thread = false;
        self.is_mine = true;
        self.shared.make_readable();
        self.shared.end_sleep();
    }

    /// The thread becomes or stays the owner, with other watches.
    pub(crate) fn give(&mut self, state: &mut State) {
        if self.is_mine {
            self.shared.make_unreadable();
        }
        state.is_of_thread = true;
        self.is_mine = false;
        self.shared.end_sleep();
    }
}

impl Drop for Handle {
    /// The thread accesses no ring after that. A thread that asks for a producer ends by itself,
    /// because the producer may not answer for long.
    fn drop(&mut self) {
        let thread = self.thread.take();
        if self.is_of_parent() {
            self.close_in_child();
            return std::mem::forget(thread);
        }
        let mut state = self.shared.lock();
        state.is_closing = true;
        self.shared.end_sleep();
        let is_asking = state.is_asking;
        if state.is_of_thread {
            state.end_sleeps();
            state.is_of_thread = false;
        }
        drop(state);
        if let Some(thread) = thread.filter(|_| !is_asking) {
            let _ = thread.join();
        }
    }
}
