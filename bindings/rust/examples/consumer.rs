// SPDX-License-Identifier: MIT
//! A KMES consumer on the crate `kmes`, a thread for each CPU, and a testee of the conformance
//! suite: it writes the records of docs/testee-contract.md.
mod report;

use kmes::{cpu_count, Error, Options, Reader, SystemCall};
use report::{fail, retried, Report, END};
use std::{process, thread, time::Duration};

/// Until the last event of the CPU. An error is the reason to refuse a buffer.
fn consume(cpu: u16, report: &mut Report) -> Result<(), Error> {
    // Alone on the ring (E12).
    let options = Options { exclusive: true, stop_on_corrupt: true, ..Options::default() };
    let mut reader = retried(|| Reader::open(SystemCall, cpu, options))?;
    let (mut buffer, mut switches) = (vec![0; 4096], None);
    loop {
        let mut has_rested = false;
        let found = match reader.next(&mut buffer) {
            Err(Error::TooSmall(bytes)) => {
                buffer.resize(bytes, 0);
                continue;
            }
            // A change of buffers failed: nothing is lost, try again after a rest.
            Err(Error::Os(_)) => {
                report.flush();
                thread::sleep(Duration::from_millis(10));
                has_rested = true;
                None
            }
            result => result?,
        };
        let now = Some(reader.statistics().switches);
        if switches != now {
            switches = now;
            report.record('G', cpu, reader.generation());
        }
        match found {
            Some(event) => {
                report.event(cpu, &event);
                if event.kind == END {
                    return Ok(());
                }
            }
            None if has_rested => {}
            None => {
                report.flush();
                reader.wait(None)?;
            }
        }
    }
}

fn main() {
    let output = Report::open();
    let cpus = retried(cpu_count).unwrap_or_else(|error| fail(&error));
    let start = |cpu| {
        thread::spawn(move || {
            let mut report = Report::new(output);
            match consume(cpu, &mut report) {
                Ok(()) => {}
                Err(error @ Error::Os(_)) => fail(&error),
                Err(error) => report.record('R', cpu, error),
            }
            report.flush();
        })
    };
    let threads: Vec<_> = (0..cpus).map(start).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap_or_else(|_| process::exit(1)));
}
