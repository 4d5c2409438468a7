// SPDX-License-Identifier: MIT
//! A KMES consumer on `kmes::Merge`, one thread for all CPUs, and a testee of the conformance
//! suite: it writes the records of docs/testee-contract.md.
mod report;
#[path = "report/set.rs"]
mod set;

use kmes::{Error, MergeOptions, Merged, OwnedEvent};
use set::{Records, Set};

/// Until the last event of each CPU, or its refusal.
fn consume(set: Set, records: &mut Records) -> Result<(), Error> {
    // The contract wants every record before a sleep, so the merge must not hold an event while it
    // waits for an idle CPU. With a limit of one byte it holds none: each event is due after one
    // check of the empty CPUs.
    let mut merge = set.merge(MergeOptions { most_bytes: 1, ..MergeOptions::default() });
    loop {
        while let Some(merged) = merge.next()? {
            let Merged { cpu, event, buffer, .. } = Merged::<OwnedEvent>::from(merged);
            records.event(cpu, &event, Some(buffer)); // the set reads ahead
        }
        if records.state(merge.set()) {
            return Ok(());
        }
        merge.wait(None)?;
    }
}

fn main() {
    set::run(consume);
}
