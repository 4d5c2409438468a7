// SPDX-License-Identifier: MIT
//! Shared by the testees: the records of docs/testee-contract.md.
use kmes::{Error, Event};
use std::collections::BTreeSet;
use std::os::unix::io::FromRawFd;
use std::{env, fmt::Write as _, fs::File, io::Write as _, process, thread, time::Duration};

pub const END: &[u8] = b"kmes.conformance.end";
const RETRIES: u32 = 5000;

/// Repeats a call that fails with a temporary error: no permission yet, no rings, memory or files.
pub fn retried<T>(mut call: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 0..RETRIES {
        match call() {
            Err(Error::Os(1 | 11 | 12 | 23 | 24)) => thread::sleep(Duration::from_millis(1)),
            result => return result,
        }
    }
    call()
}

pub struct Report {
    output: &'static File,
    lines: String,
    begun: BTreeSet<u16>, // CPUs with an event
}

impl Report {
    /// Returns the file of the report, whose descriptor the runner chooses.
    pub fn open() -> &'static File {
        let fd = env::var("KMES_REPORT_FD").ok().and_then(|fd| fd.parse().ok()).unwrap_or(1);
        // SAFETY: the descriptor is open for the life of the program.
        Box::leak(Box::new(unsafe { File::from_raw_fd(fd) }))
    }

    pub fn new(output: &'static File) -> Report {
        Report { output, lines: String::new(), begun: BTreeSet::new() }
    }

    pub fn flush(&mut self) {
        let mut output = self.output; // whole lines in one write: the threads do not mix
        output.write_all(self.lines.as_bytes()).unwrap_or_else(|error| fail(&error));
        self.lines.clear();
    }

    pub fn record(&mut self, kind: char, cpu: u16, text: impl std::fmt::Display) {
        let _ = writeln!(self.lines, "{kind} {cpu} {text}"); // a String never fails
        if self.lines.len() >= 65536 {
            self.flush();
        }
    }

    pub fn event(&mut self, cpu: u16, event: &Event) {
        // The contract counts from the first delivered event on, the reader from the attach on.
        let is_first = self.begun.insert(cpu);
        if event.lost_before > 0 && !is_first {
            self.record('L', cpu, event.lost_before);
        }
        let fnv = |digest: u64, byte: &u8| (digest ^ u64::from(*byte)).wrapping_mul(0x100000001b3);
        let digest = event.payload.iter().fold(0xcbf29ce484222325, fnv);
        let kind: String = event.kind.iter().map(|byte| format!("{byte:02x}")).collect();
        let Event { sequence, timestamp_ns, origin, payload, .. } = event;
        let length = payload.len();
        self.record(
            'E',
            cpu,
            format_args!("{sequence} {timestamp_ns} {origin} {kind} {length} {digest:016x}"),
        );
    }
}

pub fn fail(error: &dyn std::fmt::Display) -> ! {
    eprintln!("consumer: {error}");
    process::exit(1)
}
