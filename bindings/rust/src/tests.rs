// SPDX-License-Identifier: MIT
//! Tests the reader with rings in this process. The producer acts in the reader's platform calls.
use crate::linux::{refuse, sleep_on, sleep_on_any, wake_all, SYS_FUTEX_WAITV};
use crate::{Error, Identity, Mapping, Options, Platform, Reader, ReaderSet, Wake};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering::SeqCst};
use core::time::Duration;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

mod emitter;
mod fd;
#[cfg(feature = "libkmes")]
mod libkmes;
mod merge;
mod place;
mod places;

const CAPACITY: usize = 256;
const PARTIAL: Duration = Duration::from_millis(1);

/// One buffer. raw() writes each byte to both mappings of the data.
struct Fake {
    words: Vec<AtomicU64>,
    capacity: usize,
    inode: u64,
    cpu: u16, // in the headers of the events
    sequence: u64,
}

impl Fake {
    fn new(inode: u64, generation: u64) -> Fake {
        Fake::with_capacity(inode, generation, CAPACITY)
    }
    fn with_capacity(inode: u64, generation: u64, capacity: usize) -> Fake {
        let words = (0..(4096 + 2 * capacity) / 8).map(|_| 0.into()).collect();
        let fake = Fake { words, capacity, inode, cpu: 0, sequence: 0 };
        fake.bytes(0, b"KMESRING\x01");
        fake.set(16, capacity as u64);
        fake.set(24, 4096);
        fake.set(32, generation);
        fake
    }
    fn base(&self) -> *mut u8 {
        self.words.as_ptr() as *mut u8
    }
    fn mapping(&self) -> (NonNull<u8>, u64) {
        (NonNull::new(self.base()).unwrap(), self.words.len() as u64 * 8)
    }
    fn bytes(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.words.len() * 8);
        for (index, byte) in bytes.iter().enumerate() {
            // SAFETY: inside of `words`, whose accesses are all atomic.
            unsafe { (*self.base().add(at + index).cast::<AtomicU8>()).store(*byte, SeqCst) };
        }
    }
    fn set(&self, at: usize, value: u64) {
        self.words[at / 8].store(value, SeqCst);
    }
    fn get(&self, at: usize) -> u64 {
        self.words[at / 8].load(SeqCst)
    }
    fn raw(&mut self, event: &[u8]) {
        let from = self.get(64);
        for (index, byte) in event.iter().enumerate() {
            let at = 4096 + (from as usize + index) % self.capacity;
            self.bytes(at, &[*byte]);
            self.bytes(at + self.capacity, &[*byte]);
        }
        self.set(64, from + event.len() as u64);
    }
    /// Moves the tail until the event fits. In a test with laps all events have the same size.
    fn emit(&mut self, payload: &[u8]) {
        self.emit_at(7, payload);
    }
    fn emit_at(&mut self, timestamp_ns: u64, payload: &[u8]) {
        self.sequence += 1;
        let size = 30 + payload.len();
        while self.get(64) + size as u64 - self.get(72) > self.capacity as u64 {
            self.set(72, self.get(72) + size as u64);
        }
        let mut event = vec![];
        event.extend((size as u32).to_le_bytes());
        event.extend(30u32.to_le_bytes());
        event.extend(timestamp_ns.to_le_bytes());
        event.extend(self.sequence.to_le_bytes());
        event.extend(self.cpu.to_le_bytes());
        event.extend([2, 1, 0, b't']);
        event.extend(payload);
        self.raw(&event);
    }
}

type Action = Box<dyn FnOnce(&World)>;

/// The buffers of one CPU, the newest last.
#[derive(Default)]
struct World {
    rings: RefCell<Vec<Fake>>,
    at_sleep: RefCell<Option<Action>>,
    at_attach: RefCell<Option<Action>>,
    limits: RefCell<Vec<Option<Duration>>>,
    session: RefCell<u64>,
    next_sequence: RefCell<u64>, // what the producer says; 0: nothing
    is_silent: RefCell<bool>,    // an identify would block
    asks: RefCell<u32>,          // calls of is_current
    attach_fails: RefCell<u32>,
    is_wake_taken: RefCell<bool>, // by another consumer: the sleep times out
    mapped: RefCell<i32>,
}

impl World {
    fn new() -> Rc<World> {
        World::of(Fake::new(1, 1))
    }
    fn of(ring: Fake) -> Rc<World> {
        let world = World::default();
        world.rings.borrow_mut().push(ring);
        Rc::new(world)
    }
    fn emit(&self, payload: &[u8]) {
        self.rings.borrow_mut().last_mut().unwrap().emit(payload);
    }
    /// A resize that keeps nothing.
    fn swap(&self) {
        let mut rings = self.rings.borrow_mut();
        let (count, old) = (rings.len() as u64, rings.last().unwrap());
        let mut next = Fake::new(count + 1, old.get(32) + 1);
        next.sequence = old.sequence;
        old.set(32, old.get(32) + 1);
        rings.push(next);
    }
    fn run(&self, action: &RefCell<Option<Action>>) {
        let action = action.borrow_mut().take();
        if let Some(action) = action {
            action(self);
        }
    }
    fn sleep_with(&self, limit: Option<Duration>) -> Wake {
        self.limits.borrow_mut().push(limit);
        let action = self.at_sleep.borrow_mut().take();
        match action {
            Some(action) => action(self),
            None => return Wake::TimedOut,
        }
        match *self.is_wake_taken.borrow() {
            true => Wake::TimedOut,
            false => Wake::Woken,
        }
    }
    fn identity(&self) -> Identity {
        let inode = self.rings.borrow().last().unwrap().inode;
        Identity { device: 1, inode, session: *self.session.borrow() }
    }
}

// SAFETY: the rings live as long as the world; their accesses are atomic.
unsafe impl Platform for Rc<World> {
    fn attach(&mut self, _: u16) -> Result<Mapping, Error> {
        let fails = *self.attach_fails.borrow();
        if fails > 0 {
            *self.attach_fails.borrow_mut() = fails - 1;
            return Err(Error::Os(24));
        }
        let (base, mapped_bytes) = self.rings.borrow().last().unwrap().mapping();
        let identity = self.identity();
        self.run(&self.at_attach);
        *self.mapped.borrow_mut() += 1;
        Ok(Mapping { base, mapped_bytes, identity, owner: 0 })
    }
    fn identify(&mut self, _: u16) -> Result<Identity, Error> {
        assert!(!*self.is_silent.borrow());
        Ok(self.identity())
    }
    fn is_current(&mut self, _: u16, known: &Identity) -> Result<bool, Error> {
        *self.asks.borrow_mut() += 1;
        match *self.is_silent.borrow() {
            true => Err(Error::Os(110)),
            false => Ok(self.identity() == *known),
        }
    }
    fn next_sequence(&self) -> Option<u64> {
        Some(*self.next_sequence.borrow()).filter(|next| *next > 0)
    }
    unsafe fn detach(&mut self, _: Mapping) {
        *self.mapped.borrow_mut() -= 1;
    }
    fn sleep(
        &mut self,
        word: &AtomicU32,
        expected: u32,
        limit: Option<Duration>,
    ) -> Result<Wake, Error> {
        assert_eq!(expected, word.load(SeqCst));
        Ok(self.sleep_with(limit))
    }
    fn sleep_any(
        &self,
        words: &[(&AtomicU32, u32)],
        limit: Option<Duration>,
    ) -> Result<Wake, Error> {
        words.iter().for_each(|(word, expected)| assert_eq!(*expected, word.load(SeqCst)));
        let wake = self.sleep_with(limit);
        if wake == Wake::TimedOut {
            std::thread::sleep(PARTIAL); // less than the limit, as without futex_waitv
        }
        Ok(wake)
    }
}

fn open(world: &Rc<World>) -> Reader<Rc<World>> {
    let options = Options { exclusive: true, ..Options::default() };
    Reader::open(world.clone(), 0, options).unwrap()
}

fn sequences(reader: &mut Reader<Rc<World>>) -> Vec<u64> {
    let mut buffer = [0; CAPACITY];
    let mut found = vec![];
    while let Some(event) = reader.next(&mut buffer).unwrap() {
        found.push(event.sequence);
    }
    found
}

/// A producer that is stopped answers nothing, and identify has a longer limit than is_current.
#[test]
fn waits_ask_by_the_call_that_answers_soon() {
    let world = World::new();
    *world.session.borrow_mut() = 7;
    let mut reader = open(&world);
    let mut set = ReaderSet::open([world.clone()], Options::default()).unwrap();
    *world.is_silent.borrow_mut() = true;
    assert_eq!(Ok(false), reader.wait(Some(Duration::from_secs(1))));
    assert_eq!(1, *world.asks.borrow());
    while *world.asks.borrow() == 1 {
        assert_eq!(Ok(false), set.wait(Some(PARTIAL)));
    }
}

#[test]
fn delivers_every_field() {
    let world = World::new();
    let mut reader = open(&world);
    world.emit(b"payload");
    let mut buffer = [0; CAPACITY];
    let event = reader.next(&mut buffer).unwrap().unwrap();
    assert_eq!((event.sequence, event.timestamp_ns, event.origin), (1, 7, 2));
    assert_eq!((event.kind, event.payload), (&b"t"[..], &b"payload"[..]));
    assert_eq!(None, reader.next(&mut buffer).unwrap());
}

#[test]
fn too_small_buffer_consumes_nothing() {
    let world = World::new();
    let mut reader = open(&world);
    world.emit(b"payload");
    assert_eq!(Err(Error::TooSmall(37)), reader.next(&mut [0; 36]).map(|_| ()));
    assert!(reader.next(&mut [0; 37]).unwrap().is_some());
}

#[test]
fn wraps_at_every_offset_and_counts_laps() {
    let world = World::new();
    let mut reader = open(&world);
    for _ in 0..300 {
        world.emit(b"abc"); // 33 bytes: every offset
        assert_eq!(1, sequences(&mut reader).len());
    }
    for _ in 0..20 {
        world.emit(b"abc");
    }
    assert_eq!((314..=320).collect::<Vec<_>>(), sequences(&mut reader));
    assert_eq!((13, 1), (reader.statistics().lost, reader.statistics().laps));
}

#[test]
fn overwritten_peek_is_not_released() {
    let world = World::new();
    let mut reader = open(&world);
    world.emit(b"one");
    let peek = reader.peek().unwrap().unwrap();
    assert_eq!(b"one".to_vec(), peek.payload().iter().collect::<Vec<_>>());
    assert_eq!(Some(b't'), peek.kind().get(0));
    for _ in 0..9 {
        world.emit(b"two");
    }
    assert!(!peek.release());
    assert_eq!(1, reader.statistics().torn);
    let peek = reader.peek().unwrap().unwrap();
    assert_eq!(4, peek.sequence());
    assert!(peek.release());
    assert!(reader.peek().unwrap().is_some());
    assert_eq!((5..=10).collect::<Vec<_>>(), sequences(&mut reader));
}

#[test]
fn corrupt_content_is_skipped_or_stops() {
    for (size, header_size, type_len) in [
        (0u32, 30u32, 1u16),
        (31, 32, 1),
        (30, 29, 1),
        (30, 30, 0),
        (300, 30, 1),
        (u32::MAX, 30, 9),
    ] {
        let world = World::new();
        let mut reader = open(&world);
        let mut stopping =
            Reader::open(world.clone(), 0, Options { stop_on_corrupt: true, ..Options::default() })
                .unwrap();
        let mut event = vec![0; 31];
        event[0..4].copy_from_slice(&size.to_le_bytes());
        event[4..8].copy_from_slice(&header_size.to_le_bytes());
        event[27..29].copy_from_slice(&type_len.to_le_bytes());
        world.rings.borrow_mut()[0].raw(&event);
        assert_eq!(0, sequences(&mut reader).len());
        assert_eq!(1, reader.statistics().corrupt);
        world.emit(b"");
        assert_eq!(vec![1], sequences(&mut reader));
        for _ in 0..2 {
            assert_eq!(Err(Error::Corrupt), stopping.next(&mut [0; 99]).map(|_| ()));
        }
        assert_eq!(Err(Error::Corrupt), stopping.wait(None));
    }
}

#[test]
fn far_write_pos_is_corrupt() {
    let world = World::new();
    let mut reader = open(&world);
    world.emit(b"");
    world.rings.borrow()[0].set(64, 1 << 62); // E26
    assert_eq!(0, sequences(&mut reader).len());
    assert_eq!(1, reader.statistics().corrupt);
}

#[test]
fn tail_at_write_pos_is_empty() {
    let world = World::new();
    let mut reader = open(&world);
    world.emit(b"");
    world.rings.borrow()[0].set(72, 30); // E20
    assert_eq!(0, sequences(&mut reader).len());
}

#[test]
fn drains_the_old_buffer_before_the_next() {
    let world = World::new();
    let mut reader = open(&world);
    world.emit(b"old");
    world.swap();
    world.emit(b"new");
    *world.attach_fails.borrow_mut() = 1;
    let mut buffer = [0; CAPACITY];
    assert_eq!(b"old", reader.next(&mut buffer).unwrap().unwrap().payload);
    assert_eq!(Err(Error::Os(24)), reader.next(&mut buffer).map(|_| ()));
    assert_eq!(b"new", reader.next(&mut buffer).unwrap().unwrap().payload);
    assert_eq!(
        (1, 2, 1),
        (reader.statistics().switches, reader.generation(), *world.mapped.borrow())
    );
    drop(reader);
    assert_eq!(0, *world.mapped.borrow());
}

#[test]
fn buffer_that_is_retired_during_the_attach_is_not_taken() {
    let world = World::new();
    *world.at_attach.borrow_mut() = Some(Box::new(World::swap)); // E19
    let mut reader = open(&world);
    world.emit(b"new");
    assert_eq!(vec![1], sequences(&mut reader));
    assert_eq!(1, *world.mapped.borrow());
}

#[test]
fn sleep_asks_for_a_wake_and_ends_with_an_event() {
    let world = World::new();
    let mut reader = open(&world);
    let need_wake = |world: &World| world.rings.borrow()[0].get(128) >> 32 & 0xFF;
    *world.at_sleep.borrow_mut() = Some(Box::new(move |world| {
        assert_eq!(1, need_wake(world));
        world.emit(b"");
    }));
    assert_eq!(Ok(true), reader.wait(None));
    assert_eq!(0, need_wake(&world));
    assert_eq!(Ok(true), reader.wait(None)); // it is still unread: no sleep
    assert_eq!(vec![1], sequences(&mut reader));
    world.swap();
    assert_eq!(Ok(true), reader.wait(None)); // E3: no sleep either
    assert_eq!(1, world.limits.borrow().len());
}

#[test]
fn shared_reader_sleeps_with_a_limit_and_keeps_the_flag() {
    let world = World::new();
    let mut reader = Reader::open(world.clone(), 0, Options::default()).unwrap();
    assert_eq!(Ok(false), reader.wait(Some(Duration::from_millis(250))));
    let limits: Vec<_> =
        world.limits.borrow().iter().map(|limit| limit.unwrap().as_millis()).collect();
    assert_eq!(vec![100, 100, 50], limits);
    assert_eq!(1, world.rings.borrow()[0].get(128) >> 32 & 0xFF); // E12
}

#[test]
fn producer_that_was_replaced_is_left() {
    let world = World::new();
    *world.session.borrow_mut() = 1;
    let mut reader = open(&world);
    world.emit(b"");
    assert_eq!(vec![1], sequences(&mut reader));
    world.rings.borrow_mut().push(Fake::new(2, 1)); // E25: nothing in the old buffer says so
    *world.session.borrow_mut() = 2;
    assert_eq!(Ok(true), reader.wait(None));
    world.emit(b"");
    assert_eq!(vec![1], sequences(&mut reader));
}

/// A process numbers the events of a new session from 1 on (E25). A kernel may have emitted before.
#[test]
fn counts_what_it_misses_of_the_next_producer() {
    for (session, lost) in [(2, 4), (0, 0)] {
        let world = World::new();
        *world.session.borrow_mut() = 1;
        let mut reader = open(&world);
        world.emit(b"");
        assert_eq!(vec![1], sequences(&mut reader));
        let mut next = Fake::new(2, 1);
        next.sequence = 4; // those of the events that it has overwritten
        world.rings.borrow_mut().push(next);
        *world.session.borrow_mut() = session;
        assert_eq!(Ok(true), reader.wait(None));
        world.emit(b"");
        let event = reader.events().next().unwrap().unwrap();
        assert_eq!((5, lost), (event.sequence, event.lost_before));
        assert_eq!(lost, reader.statistics().lost);
    }
}

#[test]
fn refuses_other_layouts() {
    let refusal = |at: usize, bytes: &[u8]| {
        let world = World::new();
        world.rings.borrow()[0].bytes(at, bytes);
        let error = Reader::open(world.clone(), 0, Options::default()).err().unwrap();
        assert_eq!(0, *world.mapped.borrow());
        error
    };
    assert_eq!(Error::BadMagic, refusal(7, b"g"));
    assert_eq!(Error::UnknownVersion(2), refusal(8, &[2]));
    assert_eq!(Error::BadLayout, refusal(17, &[2]));
    assert_eq!(Error::BadLayout, refusal(16, &[1]));
    assert_eq!(Error::BadLayout, refusal(24, &[1]));
}

/// Worlds of several CPUs, and a set of their readers.
fn open_set(cpus: usize, exclusive: bool) -> (Vec<Rc<World>>, ReaderSet<Rc<World>>) {
    let worlds: Vec<_> = (0..cpus).map(|_| World::new()).collect();
    let options = Options { exclusive, ..Options::default() };
    let set = ReaderSet::open(worlds.iter().cloned(), options).unwrap();
    (worlds, set)
}

fn set_sequences(set: &mut ReaderSet<Rc<World>>) -> Vec<(u16, u64)> {
    set.available().map(|event| event.map(|(cpu, event)| (cpu, event.sequence)).unwrap()).collect()
}

#[test]
fn set_delivers_all_cpus_and_grows_its_buffer() {
    let (worlds, mut set) = open_set(3, true);
    worlds[2].emit(b"two");
    worlds[0].emit(b"zero");
    worlds[2].emit(&[7; 128]);
    set.buffer_of_test(40);
    assert_eq!(vec![(0, 1), (2, 1), (2, 2)], set_sequences(&mut set));
    assert_eq!((3, 2, 0), (set.cpus(), set.statistics(2).delivered, set.statistics(1).delivered));
    assert_eq!((Some(1), None), (set.generation(1), set.generation(3)));
}

#[test]
fn set_gives_each_cpu_its_turn() {
    let (worlds, mut set) = open_set(2, true);
    let mut cpus = vec![];
    for _ in 0..600 {
        worlds[0].emit(b""); // never empty
        worlds[1].emit(b"");
        cpus.push(set.next().unwrap().unwrap().0);
    }
    let longest = cpus.split(|cpu| *cpu == 1).map(<[u16]>::len).max().unwrap();
    assert!(longest <= 256, "{longest} events of CPU 0 in a row");
    assert!(cpus.contains(&1));
}

#[test]
fn set_sleeps_on_all_cpus() {
    let (worlds, mut set) = open_set(2, true);
    let need_wake = |world: &World| world.rings.borrow()[0].get(128) >> 32 & 0xFF;
    let other = worlds[1].clone();
    *worlds[0].at_sleep.borrow_mut() = Some(Box::new(move |world| {
        assert_eq!((1, 1), (need_wake(world), need_wake(&other)));
        other.emit(b"");
    }));
    assert_eq!(Ok(true), set.wait(None));
    assert_eq!((0, 0), (need_wake(&worlds[0]), need_wake(&worlds[1])));
    assert_eq!(Ok(true), set.wait(None)); // it is still unread: no sleep
    assert_eq!(vec![(1, 1)], set_sequences(&mut set));
    worlds[1].swap();
    assert_eq!(Ok(true), set.wait(None)); // E3: no sleep either
    assert_eq!(1, worlds[0].limits.borrow().len());
}

#[test]
fn set_checks_again_where_another_consumer_took_the_wake() {
    let (worlds, mut set) = open_set(2, false);
    let other = worlds[1].clone();
    *worlds[0].at_sleep.borrow_mut() = Some(Box::new(move |world| {
        other.emit(b"");
        *world.is_wake_taken.borrow_mut() = true;
    }));
    assert_eq!(Ok(true), set.wait(None));
    assert_eq!(vec![Some(Duration::from_millis(100))], *worlds[0].limits.borrow());
    assert_eq!(1, worlds[1].rings.borrow()[0].get(128) >> 32 & 0xFF); // E12
    assert_eq!(vec![(1, 1)], set_sequences(&mut set));
    assert_eq!(Ok(false), set.wait(Some(Duration::from_millis(250))));
}

#[test]
fn set_goes_on_without_a_cpu_that_fails() {
    let worlds: Vec<_> = (0..2).map(|_| World::new()).collect();
    *worlds[0].attach_fails.borrow_mut() = 1;
    let mut set = ReaderSet::open(worlds.iter().cloned(), Options::default()).unwrap();
    assert_eq!((Some(Error::Os(24)), None), (set.error(0), set.error(1)));
    worlds[0].emit(b"");
    worlds[1].emit(b"");
    assert_eq!(Some((1, 1)), set_sequences(&mut set).into_iter().find(|event| event.0 == 1));
    while set.error(0).is_some() {
        assert!(set.wait(None).unwrap()); // until the next attempt
        set_sequences(&mut set);
    }
    assert_eq!((1, 1), (set.statistics(0).delivered, *worlds[0].mapped.borrow()));
    drop(set);
    assert_eq!((0, 0), (*worlds[0].mapped.borrow(), *worlds[1].mapped.borrow()));
}

#[test]
fn set_of_refused_cpus_is_not_opened() {
    let worlds: Vec<_> = (0..2).map(|_| World::new()).collect();
    for world in &worlds {
        world.rings.borrow()[0].bytes(0, b"X");
    }
    let refused = ReaderSet::open(worlds.iter().cloned(), Options::default());
    assert_eq!(Some(Error::BadMagic), refused.err());
    let none = ReaderSet::<Rc<World>>::open([], Options::default());
    assert_eq!(Some(Error::Os(19)), none.err());
}

#[test]
fn set_leaves_a_producer_that_was_replaced() {
    let (worlds, mut set) = {
        let worlds: Vec<_> = (0..2).map(|_| World::new()).collect();
        worlds.iter().for_each(|world| *world.session.borrow_mut() = 1);
        let set = ReaderSet::open(worlds.iter().cloned(), Options::default()).unwrap();
        (worlds, set)
    };
    worlds[1].rings.borrow_mut().push(Fake::new(2, 1)); // E25: nothing in the old buffer says so
    *worlds[1].session.borrow_mut() = 2;
    assert_eq!(Ok(true), set.wait(None));
    worlds[1].emit(b"");
    assert_eq!(vec![(1, 1)], set_sequences(&mut set));
}

#[test]
fn set_waits_until_its_limit_in_partial_sleeps() {
    let (_worlds, mut set) = open_set(2, true);
    let (begin, limit) = (Instant::now(), 20 * PARTIAL);
    assert_eq!(Ok(false), set.wait(Some(limit)));
    assert!(begin.elapsed() >= limit, "it returns too early");
}

#[test]
fn limits_of_any_length_are_valid() {
    let word = AtomicU32::new(0);
    assert_eq!(Ok(Wake::Woken), sleep_on(&word, 1, Some(Duration::MAX)));
    assert_eq!(Ok(Wake::Woken), sleep_on_any(&[(&word, 0), (&word, 1)], Some(Duration::MAX)));
}

/// ENOSYS of an old kernel, and EPERM of a filter of system calls.
#[test]
fn sleep_on_any_word_needs_no_waitv() {
    for error in [1, 38] {
        let sleeper = std::thread::spawn(move || {
            if !refuse(SYS_FUTEX_WAITV, error) {
                return; // a kernel without filters
            }
            let word = AtomicU32::new(0);
            assert_eq!(Ok(Wake::TimedOut), sleep_on_any(&[(&word, 0), (&word, 0)], None));
        });
        sleeper.join().unwrap();
    }
}

/// The kernel's part: words of this process.
#[test]
fn sleep_on_any_word_ends_as_it_should() {
    let words: Vec<_> = (0..200).map(AtomicU32::new).collect();
    let short = Some(Duration::from_millis(1));
    for count in [0, 1, 2, 128, 200] {
        let waits: Vec<_> = words.iter().zip(0..count).collect();
        assert_eq!(Ok(Wake::TimedOut), sleep_on_any(&waits, short), "{count} words");
        if count > 0 {
            let mut changed = waits.clone();
            changed[(count as usize - 1).min(127)].1 += 1;
            assert_eq!(Ok(Wake::Woken), sleep_on_any(&changed, None), "{count} words");
        }
    }
    let word = AtomicU32::new(0);
    let never = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            while word.load(SeqCst) == 0 {
                assert_eq!(Ok(Wake::Woken), sleep_on_any(&[(&never, 0), (&word, 0)], None));
            }
        });
        word.store(1, SeqCst);
        while !sleeper.is_finished() {
            wake_all(&word);
        }
    });
}
