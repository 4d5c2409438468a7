// SPDX-License-Identifier: MIT
//! Places: a later reader goes on without delivering an event twice, or says what was lost.
use super::*;
use crate::{Event, Place, Resumed};

const PROCESS: u64 = 7;

fn world_of(session: u64) -> Rc<World> {
    let world = World::new();
    *world.session.borrow_mut() = session;
    world
}

fn emit(world: &World, count: u64) {
    (0..count).for_each(|_| world.emit(b"abc"));
}

fn open_at(world: &Rc<World>, place: Option<Place>) -> Result<Reader<Rc<World>>, Error> {
    Reader::open(world.clone(), 0, Options { places: &[place], ..Options::default() })
}

fn place(session: u64, last_sequence: u64) -> Option<Place> {
    Some(Place { session, last_sequence })
}

/// The sequence number and the loss of the next event.
fn next(reader: &mut Reader<Rc<World>>) -> Option<(u64, u64)> {
    let found = |event: Event| (event.sequence, event.lost_before);
    reader.next(&mut [0; CAPACITY]).unwrap().map(found)
}

#[test]
fn goes_on_after_the_place() {
    for session in [0, PROCESS] {
        let world = world_of(session);
        emit(&world, 3);
        let mut reader = open_at(&world, None).unwrap();
        assert_eq!(
            (place(session, 0), Resumed::NoPlace, session),
            (reader.place(), reader.resumed(), reader.session())
        );
        assert_eq!((Some((1, 0)), Some((2, 0))), (next(&mut reader), next(&mut reader)));
        let kept = reader.place();
        assert_eq!(place(session, 2), kept);
        drop(reader);
        let mut reader = open_at(&world, kept).unwrap();
        assert_eq!((Resumed::GoesOn, kept), (reader.resumed(), reader.place()));
        assert_eq!((Some((3, 0)), None), (next(&mut reader), next(&mut reader)));
        drop(reader);
        let mut reader = open_at(&world, place(session, 3)).unwrap();
        assert_eq!((Resumed::GoesOn, None), (reader.resumed(), next(&mut reader)));
        emit(&world, 1);
        assert_eq!(Some((4, 0)), next(&mut reader));
    }
}

#[test]
fn event_in_place_moves_the_place_by_its_release() {
    let world = world_of(PROCESS);
    emit(&world, 1);
    let mut reader = open_at(&world, None).unwrap();
    drop(reader.peek().unwrap().unwrap());
    assert_eq!(place(PROCESS, 0), reader.place());
    assert!(reader.peek().unwrap().unwrap().release());
    assert_eq!(place(PROCESS, 1), reader.place());
}

#[test]
fn counts_what_was_lost_since_the_place() {
    for session in [0, PROCESS] {
        let world = world_of(session);
        emit(&world, 20); // of which 14 to 20 are left
        let mut reader = open_at(&world, place(session, 4)).unwrap();
        assert_eq!((Resumed::GoesOn, Some((14, 9))), (reader.resumed(), next(&mut reader)));
        assert_eq!((Some((15, 0)), 9), (next(&mut reader), reader.statistics().lost));
    }
}

#[test]
fn counts_what_is_lost_since_the_attach() {
    for session in [0, PROCESS] {
        let world = world_of(session);
        emit(&world, 20); // of which 14 to 20 are left
        let mut reader = open_at(&world, None).unwrap();
        assert_eq!(place(session, 13), reader.place());
        emit(&world, 20);
        assert_eq!(Some((34, 20)), next(&mut reader));
        assert_eq!((Some((35, 0)), 20), (next(&mut reader), reader.statistics().lost));
        assert_eq!(1, reader.statistics().laps, "the open is no read");
    }
}

/// An empty ring begins at the number that the producer reports. A never-written ring of a kernel
/// begins at 1.
#[test]
fn counts_from_the_next_number_of_an_empty_ring() {
    let rows = [(0, 1, 0, true), (0, 2, 0, false), (PROCESS, 1, 0, false)];
    let reported = [(0, 2, 1, true), (PROCESS, 1, 1, true)];
    for (session, generation, next_sequence, is_known) in rows.into_iter().chain(reported) {
        let world = world_of(session);
        world.rings.borrow()[0].set(32, generation);
        *world.next_sequence.borrow_mut() = next_sequence;
        let mut reader = open_at(&world, None).unwrap();
        assert_eq!(place(session, 0).filter(|_| is_known), reader.place());
        emit(&world, 20);
        assert_eq!(Some((14, if is_known { 13 } else { 0 })), next(&mut reader));
    }
    let world = world_of(0);
    world.rings.borrow()[0].set(64, 4096);
    world.rings.borrow()[0].set(72, 4096);
    assert_eq!(None, open_at(&world, None).unwrap().place());
}

/// The oldest event comes before the next number, or the events between them were lost.
#[test]
fn counts_from_the_earlier_of_both_numbers() {
    for (next_sequence, last) in [(21, 13), (14, 13), (13, 12), (1, 0)] {
        let world = world_of(PROCESS);
        emit(&world, 20);
        *world.next_sequence.borrow_mut() = next_sequence;
        let mut reader = open_at(&world, None).unwrap();
        assert_eq!(place(PROCESS, last), reader.place());
        assert_eq!(Some((14, 13 - last)), next(&mut reader));
    }
}

#[test]
fn counts_from_the_change_to_a_kernel() {
    let world = world_of(PROCESS);
    let mut reader = open_at(&world, None).unwrap();
    let mut kernel = Fake::new(2, 1);
    (0..20).for_each(|_| kernel.emit(b"abc"));
    world.rings.borrow()[0].set(32, 2);
    world.rings.borrow_mut().push(kernel);
    *world.session.borrow_mut() = 0;
    assert_eq!(Some((14, 0)), next(&mut reader));
}

#[test]
fn corrupt_content_is_left_to_the_first_read() {
    let world = world_of(0);
    world.rings.borrow_mut()[0].raw(&[0; 40]);
    let mut reader = open_at(&world, None).unwrap();
    assert_eq!((None, 0), (reader.place(), reader.statistics().corrupt));
    assert_eq!((None, 1), (next(&mut reader), reader.statistics().corrupt));
}

#[test]
fn resize_keeps_the_place_of_a_process() {
    let world = world_of(PROCESS);
    emit(&world, 3);
    world.swap();
    emit(&world, 2);
    let mut reader = open_at(&world, place(PROCESS, 2)).unwrap();
    assert_eq!((Resumed::GoesOn, Some((4, 1))), (reader.resumed(), next(&mut reader)));
}

/// What a kernel emitted before the attach is not counted; a process begins at 1.
#[test]
fn place_of_another_session_begins_at_the_oldest_event() {
    for (session, lost) in [(0, 0), (PROCESS, 13)] {
        for other in [0, 1, u64::MAX].into_iter().filter(|other| *other != session) {
            for sequence in [0, 16, 20, u64::MAX] {
                let world = world_of(session);
                emit(&world, 20);
                let mut reader = open_at(&world, place(other, sequence)).unwrap();
                assert_eq!(Resumed::NewSession, reader.resumed());
                assert_eq!(Some((14, lost)), next(&mut reader));
                assert_eq!((15..=20).collect::<Vec<_>>(), sequences(&mut reader));
            }
        }
    }
}

#[test]
fn kernel_that_has_not_reached_the_place_is_another_one() {
    for (emitted, oldest) in [(3, 1), (20, 14)] {
        let world = world_of(0);
        emit(&world, emitted);
        let mut reader = open_at(&world, place(0, emitted + 1)).unwrap();
        assert_eq!((Resumed::NewSession, place(0, oldest - 1)), (reader.resumed(), reader.place()));
        assert_eq!((oldest..=emitted).collect::<Vec<_>>(), sequences(&mut reader));
        assert_eq!((0, 0), (reader.statistics().laps, reader.statistics().lost));
    }
    let world = world_of(0);
    let mut reader = open_at(&world, place(0, 1)).unwrap(); // an empty ring
    emit(&world, 1);
    assert_eq!((Resumed::NewSession, Some((1, 0))), (reader.resumed(), next(&mut reader)));
}

#[test]
fn corrupt_content_before_a_kernels_place_is_counted_once_or_refused() {
    for reached in [1, 9] {
        let world = world_of(0);
        world.rings.borrow_mut()[0].raw(&[0; 40]);
        let options =
            Options { stop_on_corrupt: true, places: &[place(0, reached)], ..Options::default() };
        let refused = Reader::open(world.clone(), 0, options).map(|_| ());
        assert_eq!((Err(Error::Corrupt), 0), (refused, *world.mapped.borrow()));
        let mut reader = open_at(&world, place(0, reached)).unwrap();
        assert_eq!(0, sequences(&mut reader).len());
        emit(&world, 1);
        assert_eq!((vec![1], 1), (sequences(&mut reader), reader.statistics().corrupt));
    }
}

#[test]
fn place_follows_to_the_next_producer() {
    let world = world_of(PROCESS);
    emit(&world, 2);
    let mut reader = open_at(&world, place(PROCESS, 1)).unwrap();
    assert_eq!(vec![2], sequences(&mut reader));
    world.rings.borrow_mut().push(Fake::new(2, 1));
    *world.session.borrow_mut() = 8;
    assert_eq!((Ok(true), None), (reader.wait(None), next(&mut reader)));
    assert_eq!((place(8, 0), 8), (reader.place(), reader.session()));
    let mut later = open_at(&world, reader.place()).unwrap();
    emit(&world, 1);
    assert_eq!((Resumed::GoesOn, Some((1, 0))), (later.resumed(), next(&mut later)));
    assert_eq!((Resumed::GoesOn, Some((1, 0))), (reader.resumed(), next(&mut reader)));
}

const SOUND_RINGS: usize = 2;

/// Two sound rings, and rings that no producer makes.
fn rings() -> Vec<fn(&World)> {
    fn last(world: &World, sequence: u64) {
        world.rings.borrow_mut()[0].sequence = sequence - 1;
        world.emit(b"abc");
    }
    vec![
        |_| {},
        |world| emit(world, 20),
        |world| last(world, u64::MAX),
        |world| (last(world, u64::MAX), last(world, 3)).0,
        |world| (emit(world, 3), world.rings.borrow()[0].set(64, 1 << 62)).0,
        |world| (emit(world, 20), world.rings.borrow()[0].set(72, 447)).0,
        |world| (emit(world, 3), world.rings.borrow()[0].set(72, u64::MAX)).0,
        |world| (emit(world, 3), world.rings.borrow()[0].set(64, u64::MAX)).0,
    ]
}

#[test]
fn any_place_is_safe() {
    let numbers = [0, 1, 2, 3, 14, 20, 21, 1 << 32, 1 << 63, u64::MAX - 1, u64::MAX];
    for (at, ring) in rings().iter().enumerate() {
        for session in [0, PROCESS] {
            for (other, sequence) in [0, PROCESS, u64::MAX]
                .iter()
                .flat_map(|other| numbers.map(|number| (*other, number)))
            {
                let world = world_of(session);
                ring(&world);
                let mut reader = open_at(&world, place(other, sequence)).unwrap();
                let resumed = reader.resumed();
                let mut found = sequences(&mut reader);
                if at < SOUND_RINGS {
                    emit(&world, 2);
                    found.extend(sequences(&mut reader));
                }
                let what = format!("ring {at}, {session}, place {other} {sequence}: {found:?}");
                assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{what}");
                assert!(
                    resumed != Resumed::GoesOn || found.iter().all(|found| *found > sequence),
                    "{what}"
                );
                assert!(resumed != Resumed::GoesOn || other == session, "{what}");
                assert!(resumed != Resumed::NoPlace, "{what}");
            }
        }
    }
}

#[test]
fn losses_of_several_sessions_do_not_overflow() {
    let world = world_of(PROCESS);
    let mut reader = open_at(&world, None).unwrap();
    for session in [8, 9] {
        let mut next_ring = Fake::new(session, 1);
        next_ring.sequence = u64::MAX - 1;
        world.rings.borrow_mut().push(next_ring);
        *world.session.borrow_mut() = session;
        assert_eq!(Ok(true), reader.wait(None));
        emit(&world, 1);
        assert_eq!(Some((u64::MAX, u64::MAX - 1)), next(&mut reader));
    }
    assert_eq!(u64::MAX, reader.statistics().lost);
}

#[test]
fn set_goes_on_after_the_place_of_each_cpu() {
    let worlds: Vec<_> = [PROCESS, PROCESS, 0].into_iter().map(world_of).collect();
    worlds.iter().for_each(|world| emit(world, 3));
    *worlds[1].attach_fails.borrow_mut() = 1;
    let places = [place(PROCESS, 2), place(PROCESS, 1), None, place(PROCESS, 1)];
    let options = Options { places: &places, ..Options::default() };
    let mut set = ReaderSet::open(worlds.iter().cloned(), options).unwrap();
    assert_eq!(
        (Some(Resumed::GoesOn), place(PROCESS, 2), Some(PROCESS)),
        (set.resumed(0), set.place(0), set.session(0))
    );
    assert_eq!((None, place(PROCESS, 1), None), (set.resumed(1), set.place(1), set.session(1)));
    assert_eq!(
        (Some(Resumed::NoPlace), place(0, 0), Some(0)),
        (set.resumed(2), set.place(2), set.session(2))
    );
    assert_eq!((None, None, None), (set.resumed(3), set.place(3), set.session(3)));
    let mut found = set_sequences(&mut set);
    while set.error(1).is_some() {
        assert!(set.wait(None).unwrap()); // until the next attempt
        found.extend(set_sequences(&mut set));
    }
    found.sort_unstable();
    assert_eq!(vec![(0, 3), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)], found);
    assert_eq!((Some(Resumed::GoesOn), place(PROCESS, 3)), (set.resumed(1), set.place(1)));
}
