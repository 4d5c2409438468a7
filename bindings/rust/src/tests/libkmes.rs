// SPDX-License-Identifier: MIT
//! The parts that this crate shares with libkmes.
use crate::{places_from_bytes, places_to_bytes, Emitter, Entry, Libkmes, Place, ReaderSet};
use crate::{BatchError, Error, Options, OwnedEvent};
use std::os::raw::{c_int, c_uint};

mod merge;

/// struct kmes_reader_place of kmes/reader.h.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
struct CPlace {
    session: u64,
    last_sequence: u64,
    is_known: bool,
}

#[link(name = "kmes")]
extern "C" {
    fn kmes_places_bytes(count: c_uint) -> u64;
    fn kmes_places_write(places: *const CPlace, count: c_uint, bytes: *mut u8, room: u64) -> c_int;
    fn kmes_places_read(bytes: *const u8, count: u64, places: *mut CPlace, room: c_uint) -> c_int;
}

/// Both libraries write the same bytes, and each reads those of the other.
#[test]
fn places_are_those_of_the_c_library() {
    let known = |session, last_sequence| Some(Place { session, last_sequence });
    let places = [known(7, 513), None, known(0, 9), known(u64::MAX, u64::MAX), known(0, 0)];
    for count in 0..=places.len() {
        let places = &places[..count];
        let of_c = |place: &Option<Place>| {
            place.map_or(CPlace::default(), |Place { session, last_sequence }| CPlace {
                session,
                last_sequence,
                is_known: true,
            })
        };
        let c_places: Vec<_> = places.iter().map(of_c).collect();
        // SAFETY: as many places and bytes as each call names.
        let (bytes, read) = unsafe {
            let mut bytes = vec![0; kmes_places_bytes(count as c_uint) as usize];
            let room = bytes.len() as u64;
            let written =
                kmes_places_write(c_places.as_ptr(), count as c_uint, bytes.as_mut_ptr(), room);
            assert_eq!(room, written as u64);
            let own = places_to_bytes(places).unwrap();
            let mut read = vec![CPlace::default(); count];
            let found = kmes_places_read(own.as_ptr(), room, read.as_mut_ptr(), count as c_uint);
            assert_eq!((count as c_int, &bytes), (found, &own));
            (bytes, read)
        };
        assert_eq!((Ok(places.to_vec()), c_places), (places_from_bytes(&bytes), read));
    }
}

/// Opens a set after everything that the producer has emitted so far.
fn set_from_here() -> ReaderSet<Libkmes> {
    let mut set = ReaderSet::by_libkmes(Options::default()).unwrap();
    set.available().for_each(|event| drop(event.unwrap()));
    set
}

fn events(set: &mut ReaderSet<Libkmes>) -> Vec<OwnedEvent> {
    set.available().map(|event| event.unwrap().1).collect()
}

#[test]
#[ignore = "needs a producer with one CPU at KMES_SOCKET"]
fn emitter_emits_single_events_and_batches() {
    let mut set = set_from_here();
    let emitter = Emitter::by_libkmes().unwrap();
    emitter.emit("rust.one", b"payload").unwrap();
    emitter.emit(b"rust.two", b"").unwrap();
    let batch: Vec<_> = (0..=255u8).map(|byte| [byte]).collect();
    let entries: Vec<_> = batch.iter().map(|payload| Entry::new("rust.batch", payload)).collect();
    emitter.emit_batch(&entries).unwrap();
    let found = events(&mut set);
    let expected = [(&b"rust.one"[..], &b"payload"[..]), (b"rust.two", b"")].into_iter();
    let expected = expected.chain(entries.iter().map(|entry| (entry.kind, entry.payload)));
    assert!(found.iter().map(|event| (&event.kind[..], &event.payload[..])).eq(expected));
    assert!(found.iter().all(|event| event.origin == 0 && event.lost_before == 0));
    let stamp = found[2].timestamp_ns;
    assert!(found[2..].iter().all(|event| event.timestamp_ns == stamp), "one timestamp");
}

#[test]
#[ignore = "needs a producer with one CPU at KMES_SOCKET"]
fn emitter_returns_the_errors_of_the_producer() {
    let mut set = set_from_here();
    let emitter = Emitter::by_libkmes().unwrap();
    let large = vec![0; 64 << 20];
    for (kind, payload, error) in
        [(&b""[..], &b""[..], 22), (b"\xFF", b"", 22), (b"t", &large, 28), (&large, b"", 28)]
    {
        assert_eq!(Err(Error::Os(error)), emitter.emit(kind, payload));
        let sound = Entry::new("rust.sound", b"");
        let batch = [sound, sound, Entry { kind, payload }, sound];
        let failed = BatchError { emitted: 2, error: Error::Os(error) };
        assert_eq!(Err(failed), emitter.emit_batch(&batch));
        assert_eq!(2, events(&mut set).len());
    }
    let none = BatchError { emitted: 0, error: Error::Os(22) };
    assert_eq!(Err(none), emitter.emit_batch(&[]));
}

#[test]
#[ignore = "needs a producer with one CPU at KMES_SOCKET"]
fn threads_share_an_emitter() {
    let mut set = set_from_here();
    let emitter = Emitter::by_libkmes().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..25).for_each(|_| emitter.emit("rust.thread", b"").unwrap()));
        }
    });
    assert_eq!(100, events(&mut set).len());
}
