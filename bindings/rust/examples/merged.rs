// SPDX-License-Identifier: MIT
//! Prints the events that are there now, those of all CPUs in the order of their timestamps.
use kmes::{Error, MergeOptions, Options, ReaderSet};

fn main() -> Result<(), Error> {
    let mut merge = ReaderSet::by_libkmes(Options::default())?.merge(MergeOptions::default());
    merge.flush(); // no event is held for a CPU that is empty
    for merged in merge.available() {
        let merged = merged?;
        let (event, late) = (&merged.event, if merged.is_out_of_order { ", late" } else { "" });
        println!("{} CPU {}, event {}{late}", event.timestamp_ns, merged.cpu, event.sequence);
    }
    Ok(())
}
