// SPDX-License-Identifier: MIT
//! Prints the events that are there now, each one in one run only. A file keeps the places for the
//! next run, which continues there or says what was lost.
use kmes::{places_from_bytes, places_to_bytes, Options, Place, ReaderSet, Resumed};
use std::{env, error::Error, fs, io};

fn read(path: &str) -> Result<Vec<Option<Place>>, Box<dyn Error>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(vec![]),
        bytes => Ok(places_from_bytes(&bytes?).map_err(|error| format!("{path}: {error}"))?),
    }
}

/// A program that keeps its results in a file or a database writes the places there, in the same
/// transaction.
fn write(path: &str, places: &[Option<Place>]) -> Result<(), Box<dyn Error>> {
    let new = format!("{path}.new");
    fs::write(&new, places_to_bytes(places)?)?;
    Ok(fs::rename(&new, path)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("resume FILE")?;
    let places = read(&path)?;
    let mut set = ReaderSet::by_libkmes(Options { places: &places, ..Options::default() })?;
    for cpu in (0..set.cpus() as u16).filter(|cpu| set.resumed(*cpu) == Some(Resumed::NewSession)) {
        println!("CPU {cpu}: another producer");
    }
    while let Some((cpu, event)) = set.next()? {
        println!("CPU {cpu}, event {}, {} lost before it", event.sequence, event.lost_before);
    }
    let places: Vec<_> = (0..set.cpus()).map(|cpu| set.place(cpu as u16)).collect();
    write(&path, &places)
}
