// SPDX-License-Identifier: MIT
//! The emitter by the system calls, which a filter answers here.
use crate::linux::{refuse_if, SYS_KMES_EMIT, SYS_KMES_EMIT_BATCH};
use crate::{BatchError, Emitter, Entry, Error};
use std::os::raw::c_long;

/// Runs `test` in a thread whose system call `number` fails with `error`, if its arguments with
/// these indices have these values.
fn with_answer(
    number: c_long,
    arguments: &'static [(u32, u32)],
    error: u32,
    test: impl FnOnce() + Send + 'static,
) {
    let thread = std::thread::spawn(move || {
        if refuse_if(number, arguments, error) {
            test();
        } // else a kernel without filters
    });
    thread.join().unwrap();
}

/// None: a kernel without filters.
fn opened(error: u32) -> Option<Result<(), Error>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    with_answer(SYS_KMES_EMIT, &[], error, move || {
        sender.send(Emitter::by_system_call().map(|_| ())).unwrap();
    });
    receiver.recv().ok()
}

#[test]
fn opens_where_the_system_call_rejects_an_event_without_a_kind() {
    for (answer, expected) in [(22, None), (14, None), (16, None), (28, None)].into_iter().chain([
        (38, Some(38)),
        (19, Some(38)),
        (1, Some(1)),
    ]) {
        let expected = expected.map_or(Ok(()), |error| Err(Error::Os(error)));
        assert!(opened(answer).map_or(true, |result| result == expected), "{answer}");
    }
}

/// The lengths are the second and the fourth argument, and not those of the first call.
#[test]
fn emits_by_the_system_call() {
    with_answer(SYS_KMES_EMIT, &[(1, 11), (3, 7)], 75, || {
        let emitter = Emitter::for_test();
        assert_eq!(Err(Error::Os(75)), emitter.emit("door.opened", b"payload"));
        assert_ne!(Err(Error::Os(75)), emitter.emit("door.opened", b""));
    });
    with_answer(SYS_KMES_EMIT_BATCH, &[(1, 3)], 75, || {
        let emitter = Emitter::for_test();
        let failed = Err(BatchError { emitted: 0, error: Error::Os(75) });
        assert_eq!(failed, emitter.emit_batch(&[Entry::new("t", b""); 3]));
        assert_ne!(failed, emitter.emit_batch(&[Entry::new("t", b""); 2]));
    });
}

#[test]
fn batch_has_1_to_256_events() {
    with_answer(SYS_KMES_EMIT_BATCH, &[], 75, || {
        let emitter = Emitter::for_test();
        let failed = |error| Err(BatchError { emitted: 0, error: Error::Os(error) });
        for (count, error) in [(0, 22), (1, 75), (256, 75), (257, 22)] {
            assert_eq!(failed(error), emitter.emit_batch(&vec![Entry::new("t", b""); count]));
        }
    });
}

/// The call has 16 bits for the length of the kind.
#[test]
fn kind_that_is_too_long_is_refused_before_the_call() {
    let emitter = Emitter::for_test();
    let long = "t".repeat(65536);
    assert_eq!(Err(Error::Os(28)), emitter.emit(&long, b""));
    let refused = BatchError { emitted: 0, error: Error::Os(28) };
    assert_eq!(Err(refused), emitter.emit_batch(&[Entry::new(&long, b"")]));
    with_answer(SYS_KMES_EMIT_BATCH, &[(1, 2)], 75, move || {
        let sound = Entry::new("t", b"");
        let batch = [sound, sound, Entry::new(&long, b""), sound];
        let failed = BatchError { emitted: 0, error: Error::Os(75) };
        assert_eq!(Err(failed), Emitter::for_test().emit_batch(&batch), "those before it first");
    });
}

#[test]
fn error_of_a_batch_names_the_events_before_it() {
    let error = BatchError { emitted: 2, error: Error::Os(28) };
    assert_eq!("error number 28 after 2 events of the batch", error.to_string());
    assert_eq!(Error::Os(28), error.into());
}
