// SPDX-License-Identifier: MIT
//! Where a reader has stopped, for a later reader (E25).

/// The last event of a CPU that a reader has delivered, or the one before its first.
///
/// A later process gives the places to [`Options::places`](crate::Options::places), and its reader
/// continues after that event. Keep them together with the results, in one write or one
/// transaction. Then no event is processed twice or missed, also after a kill.
///
/// A place of a kernel's producer (session 0) is valid until the kernel boots again.
/// `places_to_bytes` keeps the number of the boot beside the places. A program with a form of its
/// own keeps `/proc/sys/kernel/random/boot_id`, and drops such a place if that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The producer of the event, as [`Identity::session`](crate::Identity::session).
    pub session: u64,
    /// The sequence number of the event; 0 before the first event of a producer.
    pub last_sequence: u64,
}

/// What became of a CPU's place when the reader attached first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resumed {
    /// There was none. Reading has begun at the oldest event.
    NoPlace,
    /// The reader continues after the place. `lost_before` of its first event is exactly what was
    /// lost between the two readers.
    GoesOn,
    /// Another producer has the CPU, and reading has begun at its oldest event. If it is a process,
    /// `lost_before` of the first event counts what that process emitted before. For a kernel it
    /// counts what was lost since the attach. The loss at the earlier producer is unknown.
    NewSession,
}

/// The number before the first event of a session. A process numbers the events of a new session
/// from 1 on, so the reader knows which ones it has missed. A kernel may have emitted for long: the
/// count begins with the attach.
pub(crate) fn before_first(session: u64) -> Option<u64> {
    (session != 0).then_some(0)
}
