// SPDX-License-Identifier: MIT
//! The merge of all CPUs by time: any timestamp at any moment. Most tests are those of the C
//! library (kmes/user/merge_test.cc).
use super::*;
use crate::{Merge, MergeOptions, Merged, OwnedEvent, Place, Resumed};
use std::collections::HashMap;

// Rings that never wrap here.
pub(super) const SMALL: usize = 16 << 10;
const LARGE: usize = 1 << 20;
pub(super) const HOUR_NS: u64 = 3_600_000_000_000;
/// Longer than the time since the Unix epoch: the age of a timestamp makes no event due.
pub(super) const FOREVER: Duration = Duration::from_nanos(u64::MAX / 2);

pub(super) fn worlds(cpus: usize, capacity: usize) -> Vec<Rc<World>> {
    let ring = |cpu| Fake { cpu, ..Fake::with_capacity(1, 1, capacity) };
    (0..cpus as u16).map(|cpu| World::of(ring(cpu))).collect()
}

struct Test {
    worlds: Vec<Rc<World>>,
    merge: Merge<Rc<World>>,
    merged: Vec<Merged<OwnedEvent>>,
}

impl Test {
    fn open(cpus: usize, hold: Duration, most_bytes: usize) -> Test {
        Test::of(worlds(cpus, SMALL), hold, most_bytes)
    }
    fn of(worlds: Vec<Rc<World>>, hold: Duration, most_bytes: usize) -> Test {
        let set = ReaderSet::open(worlds.iter().cloned(), Options::default()).unwrap();
        Test { worlds, merge: set.merge(MergeOptions { hold, most_bytes }), merged: vec![] }
    }
    fn emit(&self, cpu: usize, timestamp_ns: u64) {
        self.worlds[cpu].rings.borrow_mut().last_mut().unwrap().emit_at(timestamp_ns, b"");
    }
    /// False: no event is due.
    fn next(&mut self) -> bool {
        let merged: Merged<OwnedEvent> = match self.merge.next().unwrap() {
            Some(merged) => merged.into(),
            None => return false,
        };
        assert_eq!(b"t", &merged.event.kind[..]);
        let place = self.merge.place(merged.cpu).unwrap();
        assert_eq!(merged.event.sequence, place.last_sequence);
        self.merged.push(merged);
        true
    }
    fn drain(&mut self) {
        while self.next() {}
    }
    fn stamps(&mut self) -> String {
        let mark = |is_late| if is_late { "!" } else { "" };
        let text = |merged: Merged<OwnedEvent>| {
            format!("{}{}", merged.event.timestamp_ns, mark(merged.is_out_of_order))
        };
        self.merged.drain(..).map(text).collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn event_comes_at_once_where_every_cpu_has_a_later_one() {
    let mut test = Test::open(2, FOREVER, 0);
    test.emit(0, 10);
    test.emit(0, 30);
    test.drain();
    assert_eq!("", test.stamps());
    test.emit(1, 20);
    test.drain();
    assert_eq!("10 20", test.stamps());
    assert_eq!(Ok(false), test.merge.wait(Some(Duration::ZERO)), "30 is held");
    assert!(test.merge.due() > Some(Duration::from_secs(3600)));
    test.merge.flush();
    assert_eq!((Some(Duration::ZERO), Ok(true)), (test.merge.due(), test.merge.wait(None)));
    test.drain();
    assert_eq!("30", test.stamps());
    assert_eq!((0, None), (test.merge.statistics().out_of_order, test.merge.due()));
    test.emit(0, 40);
    test.drain();
    assert_eq!("", test.stamps(), "the flush is over");
}

/// The set is ahead of the merge: it has read the next buffers while the merge holds events.
#[test]
fn the_buffer_is_that_of_the_delivered_event() {
    let mut test = Test::open(2, FOREVER, 0);
    for stamp in [10, 30, 40, 50] {
        if stamp > 30 {
            test.worlds[0].swap();
        }
        test.emit(0, stamp);
        test.drain();
    }
    assert_eq!(("", 2), (&test.stamps()[..], test.merge.set().statistics(0).switches));
    test.merge.flush();
    test.drain();
    let of = |at: &Merged<OwnedEvent>| (at.event.timestamp_ns, at.buffer.switches);
    let found: Vec<_> = test.merged.iter().map(of).collect();
    assert_eq!(vec![(10, 0), (30, 0), (40, 1), (50, 2)], found);
    let generations: Vec<_> = test.merged.iter().map(|at| at.buffer.generation).collect();
    assert_eq!(vec![1, 1, 2, 3], generations);
    assert_eq!(test.merge.set().buffer(0), Some(test.merged[3].buffer));
}

#[test]
fn equal_timestamps_come_in_the_order_of_their_cpus() {
    let mut test = Test::open(3, FOREVER, 0);
    for cpu in [2, 0, 1] {
        test.emit(cpu, 5);
        test.emit(cpu, 5);
    }
    test.merge.flush();
    test.drain();
    let found: Vec<_> = test.merged.iter().map(|at| (at.cpu, at.is_out_of_order)).collect();
    assert_eq!([0, 0, 1, 1, 2, 2].map(|cpu| (cpu, false)).to_vec(), found);
}

fn realtime_ns() -> u64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64
}

#[test]
fn idle_cpu_stalls_nobody() {
    let mut test = Test::open(3, Duration::from_millis(1), 0);
    for stamp in [realtime_ns(), realtime_ns() + HOUR_NS] {
        test.emit(1, stamp); // the second clock is wrong
        let merged = test.merge.events().next().unwrap().unwrap();
        assert_eq!((1, stamp), (merged.cpu, merged.event.timestamp_ns));
        assert_eq!(None, test.merge.due());
    }
}

#[test]
fn cpu_that_fails_stalls_nobody() {
    let worlds: Vec<_> = (0..2).map(|_| World::new()).collect();
    worlds[0].rings.borrow()[0].bytes(0, b"X");
    let mut test = Test::of(worlds, Duration::from_millis(1), 0);
    assert_eq!(Some(Error::BadMagic), test.merge.set().error(0));
    test.emit(1, realtime_ns() + HOUR_NS);
    assert_eq!(1, test.merge.events().next().unwrap().unwrap().event.sequence);
}

#[test]
fn late_event_comes_at_once_and_is_out_of_order() {
    let mut test = Test::open(2, FOREVER, 0);
    test.emit(0, 100);
    test.merge.flush();
    test.drain();
    for stamp in [50, 100, 101] {
        test.emit(1, stamp);
    }
    test.drain();
    assert_eq!("100 50!", test.stamps(), "CPU 0 may have a second event of 100");
    assert_eq!(1, test.merge.statistics().out_of_order);
}

#[test]
fn small_step_back_keeps_its_place() {
    let mut test = Test::open(2, Duration::from_micros(1), 0);
    [5000, 4500, 5100].iter().for_each(|stamp| test.emit(0, *stamp));
    [4800, 5050, 6000].iter().for_each(|stamp| test.emit(1, *stamp));
    test.drain();
    assert_eq!("4800 5000 4500! 5050 5100 6000", test.stamps());
}

/// A step back of exactly the hold time is a small one.
#[test]
fn step_back_by_the_hold_time_keeps_its_place() {
    for (stamp, order) in
        [(4000, "4800 5000 4000! 5050 5100 6000"), (3999, "4800 5000 5050 6000 3999! 5100")]
    {
        let mut test = Test::open(2, Duration::from_micros(1), 0);
        [5000, stamp, 5100].iter().for_each(|stamp| test.emit(0, *stamp));
        [4800, 5050, 6000].iter().for_each(|stamp| test.emit(1, *stamp));
        test.drain();
        assert_eq!(order, test.stamps());
    }
}

#[test]
fn order_begins_anew_after_a_large_step_back() {
    let mut test = Test::open(2, Duration::from_micros(1), 0);
    for cpu in [0, 1] {
        [9000, 100, 300].iter().for_each(|stamp| test.emit(cpu, *stamp));
    }
    test.drain();
    assert_eq!("9000 9000 100! 100 300 300", test.stamps());
}

/// A CPU that is busy after the step must not hold back the event that an idle CPU stamped before
/// it. Nor may that event make every later one late.
#[test]
fn event_from_before_the_step_precedes_the_new_order() {
    let mut test = Test::open(2, Duration::from_micros(1), 0);
    [9000, 100].iter().for_each(|stamp| test.emit(0, *stamp));
    test.emit(1, 9100);
    test.drain();
    assert_eq!("9000 9100 100!", test.stamps());
    test.emit(0, 200);
    test.drain();
    assert_eq!("200", test.stamps());
}

/// The clock of one CPU went back, those of the others did not.
#[test]
fn cpu_whose_clock_stays_delays_nobody_forever() {
    let mut test = Test::open(2, Duration::from_millis(1), 0);
    [HOUR_NS, 100, 200].iter().for_each(|stamp| test.emit(0, *stamp));
    let mut of_cpu_0 = 0;
    for step in 0.. {
        test.emit(1, HOUR_NS + step);
        let merged = test.merge.events().next().unwrap().unwrap();
        of_cpu_0 += u32::from(merged.cpu == 0);
        if of_cpu_0 == 3 {
            break;
        }
    }
}

#[test]
fn memory_is_bounded() {
    const MOST: usize = 64 << 10;
    let mut test = Test::of(worlds(2, LARGE), FOREVER, MOST);
    (0..20000).for_each(|stamp| test.emit(0, stamp));
    test.drain();
    let statistics = test.merge.statistics();
    assert!((10001..20000).contains(&test.merged.len()), "{}", test.merged.len());
    assert_eq!(test.merged.len() as u64, statistics.forced);
    assert!(statistics.held_bytes <= MOST, "{statistics:?}");
    test.merge.flush();
    test.drain();
    assert_eq!((20000, 0), (test.merged.len(), test.merge.statistics().out_of_order));
    assert_eq!(0, test.merge.statistics().held_bytes);
}

/// An event that is larger than a bulk, and one of nearly half of the ring.
#[test]
fn large_events_are_delivered() {
    let mut test = Test::of(worlds(2, LARGE), FOREVER, 0);
    let sizes = [10, 100_000, 20, 16 << 10, 500_000, 30, 30, 16_354, 16_355];
    for (stamp, bytes) in sizes.iter().enumerate() {
        let payload = vec![stamp as u8; *bytes];
        let mut rings = test.worlds[0].rings.borrow_mut();
        rings[0].emit_at(stamp as u64, &payload);
    }
    test.merge.flush();
    for (stamp, bytes) in sizes.iter().enumerate() {
        let merged = test.merge.next().unwrap().unwrap();
        assert_eq!(stamp as u64, merged.event.timestamp_ns);
        assert_eq!(vec![stamp as u8; *bytes], merged.event.payload);
    }
    assert_eq!(None, test.merge.next().unwrap());
}

/// The place is that of the delivered event, and a later set continues with the held ones.
#[test]
fn place_counts_no_held_event() {
    let place = |last_sequence| Some(Place { session: 7, last_sequence });
    let worlds: Vec<_> = (0..2).map(|_| World::new()).collect();
    worlds.iter().for_each(|world| *world.session.borrow_mut() = 7);
    let mut test = Test::of(worlds.clone(), FOREVER, 0);
    (1..=3).for_each(|stamp| test.emit(0, stamp));
    test.emit(1, 1);
    test.drain();
    assert_eq!("1 1", test.stamps());
    assert_eq!((place(1), place(1)), (test.merge.place(0), test.merge.place(1)));
    assert_eq!((place(3), None), (test.merge.set().place(0), test.merge.place(2)));
    let places = [test.merge.place(0), test.merge.place(1)];
    let mut dropped = test.merge.into_set();
    assert_eq!(0, set_sequences(&mut dropped).len());
    let options = Options { places: &places, ..Options::default() };
    let mut set = ReaderSet::open(worlds, options).unwrap();
    assert_eq!(Some(Resumed::GoesOn), set.resumed(0));
    assert_eq!(vec![(0, 2), (0, 3)], set_sequences(&mut set));
}

/// Events of two producers in one bulk keep their sessions.
#[test]
fn place_has_the_session_of_the_delivered_event() {
    let worlds: Vec<_> = (0..2).map(|_| World::new()).collect();
    *worlds[0].session.borrow_mut() = 7;
    let mut test = Test::of(worlds.clone(), FOREVER, 0);
    test.emit(0, 1);
    worlds[0].rings.borrow()[0].set(32, 2);
    worlds[0].rings.borrow_mut().push(Fake::new(2, 1));
    *worlds[0].session.borrow_mut() = 8;
    test.emit(0, 2);
    test.merge.flush();
    for session in [7, 8] {
        assert!(test.next());
        assert_eq!(Some(Place { session, last_sequence: 1 }), test.merge.place(0));
        assert_eq!(Some(8), test.merge.set().session(0));
    }
}

#[test]
fn zero_options_are_the_defaults() {
    let mut test = Test::open(2, Duration::ZERO, 0);
    let is_held = |_| {
        test.emit(0, realtime_ns() + HOUR_NS);
        !test.next() // the machine may delay a call for longer than the event is held
    };
    assert!((0..500).any(is_held), "no event is held");
    assert!(test.merge.due() <= Some(Duration::from_millis(10)));
    assert_eq!(b"t"[..], test.merge.events().next().unwrap().unwrap().event.kind);
}

/// xorshift64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % end
    }
}

/// Random streams, read at random moments.
struct Stream {
    cpus: usize,
    is_held_forever: bool,
    most_bytes: usize,
    steps_back_of_256: u64, // of a CPU's clock
}

fn check_order(run: &Stream, test: &Test, emitted: usize) {
    assert_eq!(emitted, test.merged.len());
    let mut last = HashMap::new();
    for merged in &test.merged {
        let last = last.entry(merged.cpu).or_insert(0);
        *last += 1;
        assert_eq!((*last, 0), (merged.event.sequence, merged.event.lost_before));
    }
    let is_sorted = |key: fn(&Merged<OwnedEvent>) -> (u64, u16)| {
        test.merged.windows(2).all(|pair| key(&pair[0]) <= key(&pair[1]))
    };
    if run.is_held_forever && run.most_bytes == 0 && run.steps_back_of_256 == 0 {
        assert!(is_sorted(|merged| (merged.event.timestamp_ns, merged.cpu)));
    }
    if test.merge.statistics().out_of_order == 0 {
        assert!(is_sorted(|merged| (merged.event.timestamp_ns, 0)));
    }
}

#[test]
fn nothing_is_lost_or_repeated_and_the_order_holds() {
    let mut random = Random(1);
    for _ in 0..300 {
        let run = Stream {
            cpus: 1 + random.below(6) as usize,
            is_held_forever: random.below(2) == 0,
            most_bytes: if random.below(3) > 0 { 0 } else { 20000 },
            steps_back_of_256: random.below(2) * random.below(30),
        };
        let short = Duration::from_nanos(1 + random.below(100));
        let hold = if run.is_held_forever { FOREVER } else { short };
        let mut test = Test::open(run.cpus, hold, run.most_bytes);
        let (mut clocks, mut emitted) = (vec![1_000_000; run.cpus], 0);
        for _ in 0..400 {
            let cpu = random.below(run.cpus as u64) as usize;
            clocks[cpu] += random.below(4);
            if random.below(256) < run.steps_back_of_256 {
                clocks[cpu] -= random.below(300);
            }
            if random.below(3) > 0 {
                test.emit(cpu, clocks[cpu]);
                emitted += 1;
            } else {
                (0..random.below(5)).all(|_| test.next());
            }
        }
        test.merge.flush();
        test.drain();
        check_order(&run, &test, emitted);
    }
}
