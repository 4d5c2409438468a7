// SPDX-License-Identifier: MIT
//! Prints the events of all CPUs that are there now.
use kmes::{Error, Options, ReaderSet};

fn main() -> Result<(), Error> {
    let mut set = ReaderSet::by_libkmes(Options::default())?;
    for event in set.available() {
        let (cpu, event) = event?;
        let kind = String::from_utf8_lossy(&event.kind);
        println!("CPU {cpu}, event {}: {kind}, {} bytes", event.sequence, event.payload.len());
    }
    Ok(())
}
