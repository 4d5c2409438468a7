// SPDX-License-Identifier: MIT
//! Emits an event for each line of the input, all of them by one emitter: `emit KIND`.
use kmes::Emitter;
use std::{env, error::Error, io};

fn main() -> Result<(), Box<dyn Error>> {
    let kind = env::args().nth(1).ok_or("emit KIND")?;
    let emitter = Emitter::by_libkmes()?;
    for line in io::stdin().lines() {
        let line = line?;
        emitter.emit(&kind, line.as_bytes())?;
        println!("emitted {} bytes", line.len());
    }
    Ok(())
}
