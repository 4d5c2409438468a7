// SPDX-License-Identifier: MIT
//! Prints the events of CPU 0 that are there now.
use kmes::{Error, Libkmes, Options, Reader};

fn main() -> Result<(), Error> {
    let mut reader = Reader::open(Libkmes::new(0), 0, Options::default())?;
    for event in reader.available() {
        let event = event?;
        let kind = String::from_utf8_lossy(&event.kind);
        println!("event {}: {kind}, {} bytes", event.sequence, event.payload.len());
    }
    Ok(())
}
