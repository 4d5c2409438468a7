// SPDX-License-Identifier: MIT
//! A KMES consumer on the crate `kmes`, a thread for each CPU, and a testee of the conformance
//! suite: it writes the records of docs/testee-contract.md.
use kmes::{cpu_count, Error, Event, Options, Reader, SystemCall};
use std::os::unix::io::FromRawFd;
use std::{env, fmt::Write as _, fs::File, io::Write as _, process, thread, time::Duration};

const END: &[u8] = b"kmes.conformance.end";
const RETRIES: u32 = 5000;

/// Tries again, with rests, while the system lacks a means.
fn retried<T>(mut call: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 0..RETRIES {
        match call() {
            Err(Error::Os(1 | 11 | 12 | 23 | 24)) => thread::sleep(Duration::from_millis(1)),
            result => return result,
        }
    }
    call()
}

struct Report {
    cpu: u16,
    output: &'static File,
    lines: String,
}

impl Report {
    fn flush(&mut self) {
        let mut output = self.output; // whole lines in one write: the threads do not mix
        output.write_all(self.lines.as_bytes()).unwrap_or_else(|error| fail(&error));
        self.lines.clear();
    }

    fn record(&mut self, kind: char, text: impl std::fmt::Display) {
        let _ = writeln!(self.lines, "{kind} {} {text}", self.cpu); // a String never fails
        if self.lines.len() >= 65536 {
            self.flush();
        }
    }

    fn event(&mut self, event: &Event) {
        if event.lost_before > 0 {
            self.record('L', event.lost_before);
        }
        let fnv = |digest: u64, byte: &u8| (digest ^ u64::from(*byte)).wrapping_mul(0x100000001b3);
        let digest = event.payload.iter().fold(0xcbf29ce484222325, fnv);
        let kind: String = event.kind.iter().map(|byte| format!("{byte:02x}")).collect();
        let Event { sequence, timestamp_ns, origin, payload, .. } = event;
        let length = payload.len();
        self.record(
            'E',
            format_args!("{sequence} {timestamp_ns} {origin} {kind} {length} {digest:016x}"),
        );
    }
}

fn fail(error: &dyn std::fmt::Display) -> ! {
    eprintln!("consumer: {error}");
    process::exit(1)
}

/// Until the last event of the CPU. An error is the reason to refuse a buffer.
fn consume(cpu: u16, report: &mut Report) -> Result<(), Error> {
    let options = Options { exclusive: true, stop_on_corrupt: true }; // alone on the ring (E12)
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
            report.record('G', reader.generation());
        }
        match found {
            Some(event) => {
                report.event(&event);
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
    let fd = env::var("KMES_REPORT_FD").ok().and_then(|fd| fd.parse().ok()).unwrap_or(1);
    // SAFETY: the descriptor is open for the life of the program.
    let output: &'static File = Box::leak(Box::new(unsafe { File::from_raw_fd(fd) }));
    let cpus = retried(cpu_count).unwrap_or_else(|error| fail(&error));
    let start = |cpu| {
        thread::spawn(move || {
            let mut report = Report { cpu, output, lines: String::new() };
            match consume(cpu, &mut report) {
                Ok(()) => {}
                Err(error @ Error::Os(_)) => fail(&error),
                Err(error) => report.record('R', error),
            }
            report.flush();
        })
    };
    let threads: Vec<_> = (0..cpus).map(start).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap_or_else(|_| process::exit(1)));
}
