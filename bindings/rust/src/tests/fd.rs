// SPDX-License-Identifier: MIT
//! The descriptor of a set, with a thread of the crate between the rings and the event loop.
use super::*;
use crate::{Event, MergeOptions, Merged};
use core::sync::atomic::{fence, AtomicBool, AtomicI32};
use std::os::raw::{c_int, c_short, c_ulong};
use std::sync::{Arc, Mutex};

const FOREVER: c_int = 60_000; // of a test that fails

/// A CPU whose producer may be another thread.
#[derive(Default)]
struct Live {
    rings: Mutex<Vec<Fake>>,
    session: AtomicU64,
    attach_fails: AtomicU32,
    is_silent: AtomicBool, // identify takes until it is not, and fails
    asks: AtomicU32,
    mapped: AtomicI32,
}

impl Live {
    fn new(session: u64) -> Arc<Live> {
        let live = Live { session: session.into(), ..Live::default() };
        live.rings.lock().unwrap().push(Fake::new(1, 1));
        Arc::new(live)
    }
    fn word(&self) -> AtomicWord {
        AtomicWord(self.rings.lock().unwrap().last().unwrap().base())
    }
    fn emit(&self) {
        self.rings.lock().unwrap().last_mut().unwrap().emit(b"abc");
        self.word().wake();
    }
    /// A resize that keeps nothing.
    fn swap(&self) {
        let word = self.word();
        {
            let mut rings = self.rings.lock().unwrap();
            let (count, old) = (rings.len() as u64, rings.last().unwrap());
            let mut next = Fake::new(count + 1, old.get(32) + 1);
            next.sequence = old.sequence;
            old.set(32, old.get(32) + 1);
            rings.push(next);
        }
        word.wake();
    }
    /// Another process is the producer; the old ring says nothing of it.
    fn replace(&self) {
        let mut rings = self.rings.lock().unwrap();
        let next = Fake::new(rings.len() as u64 + 1, 1);
        rings.push(next);
        self.session.fetch_add(1, SeqCst);
    }
    fn identity(&self) -> Identity {
        let inode = self.rings.lock().unwrap().last().unwrap().inode;
        Identity { device: 1, inode, session: self.session.load(SeqCst) }
    }
    fn need_wake(&self) -> u8 {
        self.word().need_wake().load(SeqCst)
    }
}

/// The second line of the metadata of a ring that lives as long as the test.
struct AtomicWord(*mut u8);

impl AtomicWord {
    fn counter(&self) -> &AtomicU32 {
        // SAFETY: rings are not freed before the end of the test.
        unsafe { &*self.0.add(128).cast() }
    }
    fn need_wake(&self) -> &AtomicU8 {
        // SAFETY: as above.
        unsafe { &*self.0.add(132).cast() }
    }
    /// 5.1.7 step 9.
    fn wake(&self) {
        fence(SeqCst);
        if self.need_wake().load(SeqCst) != 0 {
            self.counter().fetch_add(1, SeqCst);
            wake_all(self.counter());
        }
    }
}

// SAFETY: the rings live as long as the CPU; their accesses are atomic.
unsafe impl Platform for Arc<Live> {
    fn attach(&mut self, _: u16) -> Result<Mapping, Error> {
        if self.attach_fails.load(SeqCst) > 0 {
            self.attach_fails.fetch_sub(1, SeqCst);
            return Err(Error::Os(24));
        }
        let identity = self.identity();
        let (base, mapped_bytes) = self.rings.lock().unwrap().last().unwrap().mapping();
        self.mapped.fetch_add(1, SeqCst);
        Ok(Mapping { base, mapped_bytes, identity, owner: 0 })
    }
    fn identify(&mut self, _: u16) -> Result<Identity, Error> {
        self.asks.fetch_add(1, SeqCst);
        let mut is_silent = false;
        while self.is_silent.load(SeqCst) {
            is_silent = true;
            std::thread::sleep(PARTIAL);
        }
        (!is_silent).then(|| self.identity()).ok_or(Error::Os(38))
    }
    unsafe fn detach(&mut self, mapping: Mapping) {
        self.mapped.fetch_sub(1, SeqCst);
        AtomicWord(mapping.base.as_ptr()).need_wake().store(DETACHED, SeqCst);
    }
    fn sleep(
        &mut self,
        word: &AtomicU32,
        expected: u32,
        limit: Option<Duration>,
    ) -> Result<Wake, Error> {
        sleep_on(word, expected, limit)
    }
}

/// A value of need_wake that nothing may change.
const DETACHED: u8 = 0xD0;

fn open_live(cpus: usize, exclusive: bool) -> (Vec<Arc<Live>>, ReaderSet<Arc<Live>>) {
    let cpus: Vec<_> = (0..cpus).map(|_| Live::new(7)).collect();
    let options = Options { exclusive, ..Options::default() };
    let set = ReaderSet::open(cpus.iter().cloned(), options).unwrap();
    (cpus, set)
}

fn poll_fd(fd: c_int, limit_ms: c_int) -> bool {
    /// struct pollfd.
    #[repr(C)]
    struct PollFd(c_int, c_short, c_short);
    extern "C" {
        fn poll(fds: *mut PollFd, count: c_ulong, limit_ms: c_int) -> c_int;
    }
    const POLLIN: c_short = 1;
    let mut wanted = PollFd(fd, POLLIN, 0);
    // SAFETY: one structure, which lives until the call returns.
    unsafe { poll(&mut wanted, 1, limit_ms) == 1 && wanted.2 & POLLIN != 0 }
}

fn is_readable(set: &mut ReaderSet<Arc<Live>>) -> bool {
    poll_fd(set.fd().unwrap(), 0)
}

fn becomes_readable(set: &mut ReaderSet<Arc<Live>>) -> bool {
    poll_fd(set.fd().unwrap(), FOREVER)
}

fn read(set: &mut ReaderSet<Arc<Live>>) -> Vec<(u16, u64)> {
    set.available().map(|event| event.map(|(cpu, event)| (cpu, event.sequence)).unwrap()).collect()
}

/// All detached rings are as the detach left them, and the thread has ended.
fn close(set: ReaderSet<Arc<Live>>, cpus: Vec<Arc<Live>>) {
    drop(set);
    for cpu in cpus {
        assert_eq!(0, cpu.mapped.load(SeqCst));
        for ring in &*cpu.rings.lock().unwrap() {
            let need_wake = (ring.get(128) >> 32) as u8;
            assert!([0, DETACHED].contains(&need_wake), "a detached ring has changed");
        }
        assert_eq!(1, Arc::strong_count(&cpu), "the thread has not ended");
    }
}

#[test]
fn is_readable_while_there_is_something() {
    for exclusive in [false, true] {
        let (cpus, mut set) = open_live(2, exclusive);
        assert!(is_readable(&mut set)); // at first
        assert_eq!(0, read(&mut set).len());
        assert!(!is_readable(&mut set));
        for sequence in 1..=3 {
            cpus[1].emit();
            assert!(becomes_readable(&mut set));
            cpus[0].emit();
            assert!(set.next().unwrap().is_some());
            assert!(is_readable(&mut set)); // one is left
            assert_eq!(1, read(&mut set).len());
            assert!(!is_readable(&mut set));
            assert_eq!(
                (sequence, sequence),
                (set.statistics(0).delivered, set.statistics(1).delivered)
            );
        }
        close(set, cpus);
    }
}

#[test]
fn read_without_a_poll_takes_the_rings() {
    let (cpus, mut set) = open_live(1, true);
    set.fd().unwrap();
    for sequence in 1..=100 {
        assert_eq!(None, set.next().unwrap());
        cpus[0].emit();
        assert_eq!(sequence, set.next().unwrap().unwrap().1.sequence);
        assert!(is_readable(&mut set));
    }
    close(set, cpus);
}

#[test]
fn read_takes_back_the_request_for_a_wake() {
    let (cpus, mut set) = open_live(2, true);
    set.fd().unwrap();
    for _ in 0..20 {
        assert_eq!(0, read(&mut set).len());
        while cpus[1].need_wake() == 0 {
            std::thread::sleep(PARTIAL);
        }
        cpus[1].rings.lock().unwrap()[0].emit(b"abc"); // without a wake
        assert!(set.next().unwrap().is_some());
        assert_eq!((0, 0), (cpus[0].need_wake(), cpus[1].need_wake()));
    }
    close(set, cpus);
}

#[test]
fn wait_gives_and_takes_the_rings() {
    let (cpus, mut set) = open_live(2, true);
    set.fd().unwrap();
    assert_eq!(Ok(false), set.wait(Some(PARTIAL)));
    assert!(!is_readable(&mut set));
    cpus[1].emit();
    assert!(becomes_readable(&mut set));
    assert_eq!(Ok(true), set.wait(None));
    assert!(is_readable(&mut set));
    assert_eq!((vec![(1, 1)], false), (read(&mut set), is_readable(&mut set)));
    cpus[0].emit();
    assert_eq!(Ok(true), set.wait(None));
    assert_eq!((true, 0, 0), (is_readable(&mut set), cpus[0].need_wake(), cpus[1].need_wake()));
    close(set, cpus);
}

/// An event at any time after the scan that found nothing makes it readable.
#[test]
fn no_event_is_missed() {
    const EVENTS: u64 = 3000;
    for exclusive in [false, true] {
        let (cpus, mut set) = open_live(2, exclusive);
        let taken = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for count in 0..EVENTS {
                    while taken.load(SeqCst) < count {
                        std::hint::spin_loop();
                        std::thread::yield_now();
                    }
                    cpus[count as usize % 2].emit();
                }
            });
            while taken.load(SeqCst) < EVENTS {
                assert!(becomes_readable(&mut set), "event {taken:?} was missed");
                while set.next().unwrap().is_some() {
                    taken.fetch_add(1, SeqCst);
                }
            }
        });
        close(set, cpus);
    }
}

#[test]
fn change_of_buffers_makes_it_readable() {
    let (cpus, mut set) = open_live(2, false);
    for sequence in 1..=50 {
        assert_eq!(0, read(&mut set).len());
        let before = set.statistics(0).switches;
        (0..=sequence % 2).for_each(|_| cpus[0].swap());
        while set.statistics(0).switches == before {
            // Each third scan finds the change while the thread has the rings.
            assert!(sequence % 3 == 0 || becomes_readable(&mut set));
            assert_eq!(0, read(&mut set).len());
        }
        cpus[0].emit();
        assert!(becomes_readable(&mut set));
        assert_eq!(vec![(0, sequence)], read(&mut set));
    }
    close(set, cpus);
}

/// The program sees the change before the thread sleeps in the new buffer.
#[test]
fn stays_readable_after_a_read_that_changes_the_buffer() {
    let (cpus, mut set) = open_live(2, false);
    assert!(is_readable(&mut set));
    assert_eq!(0, read(&mut set).len());
    for generation in 2..=20 {
        cpus[1].swap();
        while set.generation(1) != Some(generation) {
            assert_eq!(0, read(&mut set).len());
        }
        assert_eq!((true, 0), (is_readable(&mut set), cpus[1].need_wake()));
        assert_eq!(0, read(&mut set).len());
        assert!(!is_readable(&mut set));
    }
    close(set, cpus);
}

#[test]
fn another_producer_makes_it_readable() {
    let (cpus, mut set) = open_live(2, true);
    assert_eq!((0, Some(7)), (read(&mut set).len(), set.session(1)));
    cpus[1].replace(); // E25: nothing in the old buffer says so
    while set.session(1) != Some(8) {
        assert!(becomes_readable(&mut set));
        assert_eq!(0, read(&mut set).len());
    }
    cpus[1].emit();
    assert!(becomes_readable(&mut set));
    assert_eq!((vec![(1, 1)], Some(7)), (read(&mut set), set.session(0)));
    close(set, cpus);
}

/// A loop that reads again and again must not keep the thread from asking.
#[test]
fn another_producer_is_noticed_by_reads() {
    let (cpus, mut set) = open_live(1, true);
    set.fd().unwrap();
    cpus[0].replace();
    while set.session(0) != Some(8) {
        assert_eq!(0, read(&mut set).len());
        std::thread::sleep(PARTIAL);
    }
    close(set, cpus);
}

#[test]
fn producer_that_does_not_answer_delays_nothing() {
    let (cpus, mut set) = open_live(2, true);
    set.fd().unwrap();
    cpus[0].is_silent.store(true, SeqCst);
    let before = cpus[0].asks.load(SeqCst);
    assert_eq!(0, read(&mut set).len());
    while cpus[0].asks.load(SeqCst) == before {
        std::thread::sleep(PARTIAL);
    }
    cpus[1].emit();
    assert_eq!(vec![(1, 1)], read(&mut set)); // the lock is free
    drop(set); // without an answer
    assert_eq!((0, 0), (cpus[0].mapped.load(SeqCst), cpus[1].mapped.load(SeqCst)));
    cpus[0].is_silent.store(false, SeqCst);
    while Arc::strong_count(&cpus[0]) > 1 {
        std::thread::sleep(PARTIAL); // the thread ends by itself
    }
}

#[test]
fn cpu_that_failed_is_tried_again() {
    let cpus: Vec<_> = (0..2).map(|_| Live::new(0)).collect();
    cpus[0].attach_fails.store(3, SeqCst);
    let mut set = ReaderSet::open(cpus.iter().cloned(), Options::default()).unwrap();
    cpus[0].emit();
    assert_eq!((0, Some(Error::Os(24))), (read(&mut set).len(), set.error(0)));
    let mut found = vec![];
    while found.is_empty() {
        assert!(becomes_readable(&mut set));
        found = read(&mut set);
    }
    assert_eq!((vec![(0, 1)], None), (found, set.error(0)));
    close(set, cpus);
}

/// As the task of an event loop with several threads.
#[test]
fn set_moves_to_another_thread() {
    let (cpus, mut set) = open_live(1, false);
    set.fd().unwrap();
    assert_eq!((0, false), (read(&mut set).len(), is_readable(&mut set)));
    let mut set = std::thread::spawn(move || {
        cpus[0].emit();
        assert!(becomes_readable(&mut set));
        assert_eq!(vec![(0, 1)], read(&mut set));
        (cpus, set)
    })
    .join()
    .unwrap();
    assert!(!is_readable(&mut set.1));
    close(set.1, set.0);
}

#[test]
fn set_is_closed_in_any_state() {
    for turn in 0..40 {
        let (cpus, mut set) = open_live(2, turn % 2 == 0);
        set.fd().unwrap();
        if turn % 4 > 1 {
            read(&mut set);
        }
        if turn % 8 > 3 {
            cpus[1].emit();
        }
        if turn % 5 == 0 {
            std::thread::sleep(PARTIAL);
        }
        close(set, cpus);
    }
}

/// The eventfd is shared with the parent. The child closes its copy, so that the file does not
/// outlive the parent's set.
#[test]
fn child_of_fork_leaves_the_descriptor_alone() {
    extern "C" {
        fn fork() -> c_int;
        fn _exit(status: c_int) -> !;
        fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    }
    let (cpus, mut set) = open_live(1, true);
    let fd = set.fd().unwrap();
    let mut status = -1;
    for is_read in [false, true] {
        if is_read {
            assert_eq!(0, read(&mut set).len());
        }
        // SAFETY: the child does little, and ends by _exit.
        let child = unsafe { fork() };
        if child == 0 {
            cpus[0].swap(); // of the child's memory: its set is the only one that sees it
            let is_empty = matches!(set.next(), Ok(None));
            // The child has closed its copy in that call.
            let link = format!("/proc/self/fd/{fd}");
            let is_closed = std::fs::symlink_metadata(link).is_err();
            let is_anew = set.fd().is_ok();
            unsafe { _exit(if is_empty && is_closed && is_anew { 0 } else { 1 }) };
        }
        // SAFETY: the status lives until the call returns.
        assert_eq!(child, unsafe { waitpid(child, &mut status, 0) });
        assert_eq!((0, !is_read), (status, is_readable(&mut set)));
    }
    cpus[0].emit();
    assert!(becomes_readable(&mut set));
    close(set, cpus);
}

/// The sleeps of a caller that polls have no length: the time between them counts.
#[test]
fn caller_that_polls_asks_for_the_producer() {
    const MOST_CALLS: u32 = 100; // 50 of at least 1 ms each are due
    let (cpus, mut set) = open_live(1, true);
    cpus[0].replace();
    let mut calls = 0;
    while set.session(0) != Some(8) {
        assert!(set.wait(Some(Duration::ZERO)).is_ok());
        assert_eq!(0, read(&mut set).len());
        std::thread::sleep(PARTIAL);
        calls += 1;
        assert!(calls < MOST_CALLS, "{calls} calls without a question");
    }
    close(set, cpus);
}

/// The descriptor of a merge is readable while a ring has something, also while events are held. A
/// held event becomes due without it.
#[test]
fn descriptor_of_a_merge_is_that_of_the_rings() {
    let (cpus, set) = open_live(2, true);
    let options = MergeOptions { hold: Duration::from_secs(1 << 33), most_bytes: 0 };
    let mut merge = set.merge(options);
    let fd = merge.fd().unwrap();
    assert!(poll_fd(fd, 0));
    for sequence in 1..=3 {
        assert_eq!(None, merge.next().unwrap());
        assert!(!poll_fd(fd, 0));
        cpus[0].emit(); // without an event of the other CPU it is held
        assert!(poll_fd(fd, FOREVER));
        assert_eq!(None, merge.next().unwrap());
        assert!(!poll_fd(fd, 0) && merge.due().is_some());
        cpus[1].emit();
        assert!(poll_fd(fd, FOREVER));
        assert_eq!((0, sequence), place_of(merge.next().unwrap().unwrap()));
        assert!(poll_fd(fd, 0), "only a call that finds every CPU empty makes it unreadable");
        merge.flush();
        assert_eq!((1, sequence), place_of(merge.next().unwrap().unwrap()));
    }
    close(merge.into_set(), cpus);
}

fn place_of(merged: Merged<Event<'_>>) -> (u16, u64) {
    (merged.cpu, merged.event.sequence)
}
