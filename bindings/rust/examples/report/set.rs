// SPDX-License-Identifier: MIT
//! What the testees on a `kmes::ReaderSet` have in common.
use crate::report::{fail, retried, Report, END};
use kmes::{cpu_count, Buffer, Error, Options, OwnedEvent, ReaderSet, SystemCall};

pub type Set = ReaderSet<SystemCall>;

/// What was reported of a CPU.
#[derive(Clone, Default)]
struct Cpu {
    switches: Option<u64>,
    has_ended: bool,
}

/// The records of all CPUs.
pub struct Records {
    report: Report,
    cpus: Vec<Cpu>,
}

impl Records {
    pub fn event(&mut self, id: u16, event: &OwnedEvent, buffer: Option<Buffer>) {
        if !self.cpus[usize::from(id)].has_ended {
            self.buffer(id, buffer);
            self.report.event(id, &event.as_event());
            self.cpus[usize::from(id)].has_ended = event.kind == END;
        }
    }

    /// Another buffer of a CPU, if it has one.
    fn buffer(&mut self, id: u16, buffer: Option<Buffer>) {
        let cpu = &mut self.cpus[usize::from(id)];
        if let Some(buffer) = buffer.filter(|buffer| cpu.switches != Some(buffer.switches)) {
            cpu.switches = Some(buffer.switches);
            self.report.record('G', id, buffer.generation);
        }
    }

    /// What is true of each CPU without an event. True: all have ended.
    pub fn state(&mut self, set: &Set) -> bool {
        for id in 0..self.cpus.len() as u16 {
            if self.cpus[usize::from(id)].has_ended {
                continue;
            }
            self.buffer(id, set.buffer(id));
            if let Some(error) = set.error(id).filter(Error::is_refusal) {
                self.report.record('R', id, error);
                self.cpus[usize::from(id)].has_ended = true;
            }
        }
        self.flush();
        self.cpus.iter().all(|cpu| cpu.has_ended)
    }

    pub fn flush(&mut self) {
        self.report.flush();
    }
}

/// Opens the set of a testee, calls `consume` with it, and ends the program.
pub fn run(consume: impl FnOnce(Set, &mut Records) -> Result<(), Error>) {
    let mut records = Records { report: Report::new(Report::open()), cpus: vec![] };
    // Alone on the rings (E12).
    let options = Options { exclusive: true, stop_on_corrupt: true, ..Options::default() };
    let result = match retried(|| ReaderSet::by_system_call(options)) {
        Ok(set) => {
            records.cpus = vec![Cpu::default(); set.cpus()];
            consume(set, &mut records)
        }
        // No CPU has a buffer that can be read.
        Err(error) if error.is_refusal() => {
            let cpus = retried(cpu_count).unwrap_or_else(|error| fail(&error));
            (0..cpus).for_each(|id| records.report.record('R', id, error));
            Ok(())
        }
        Err(error) => Err(error),
    };
    result.unwrap_or_else(|error| fail(&error));
    records.flush();
}
