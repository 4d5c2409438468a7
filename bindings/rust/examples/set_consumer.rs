// SPDX-License-Identifier: MIT
//! A KMES consumer on `kmes::ReaderSet`, one thread for all CPUs, and a testee of the conformance
//! suite: it writes the records of docs/testee-contract.md.
mod report;
#[path = "report/set.rs"]
mod set;

use kmes::{Error, OwnedEvent};
use set::{Records, Set};

/// Until the last event of each CPU, or its refusal.
fn consume(mut set: Set, records: &mut Records) -> Result<(), Error> {
    loop {
        while let Some((id, event)) = set.next()? {
            let event = OwnedEvent::from(event); // the set can then be asked for the buffer
            records.event(id, &event, set.buffer(id));
        }
        if records.state(&set) {
            return Ok(());
        }
        set.wait(None)?;
    }
}

fn main() {
    set::run(consume);
}
