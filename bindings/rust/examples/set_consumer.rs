// SPDX-License-Identifier: MIT
//! A KMES consumer on `kmes::ReaderSet`, one thread for all CPUs, and a testee of the conformance
//! suite: it writes the records of docs/testee-contract.md.
mod report;

use kmes::{cpu_count, Error, Options, OwnedEvent, ReaderSet, SystemCall};
use report::{fail, retried, Report, END};

/// What was reported of a CPU.
#[derive(Clone, Default)]
struct Cpu {
    switches: Option<u64>,
    has_ended: bool,
}

/// Reports another buffer of a CPU, if it has one.
fn note_buffer(set: &ReaderSet<SystemCall>, id: u16, cpu: &mut Cpu, report: &mut Report) {
    let switches = set.generation(id).map(|_| set.statistics(id).switches);
    if switches.is_some() && cpu.switches != switches {
        cpu.switches = switches;
        report.record('G', id, set.generation(id).unwrap_or_default());
    }
}

/// Until the last event of each CPU, or its refusal.
fn consume(mut set: ReaderSet<SystemCall>, report: &mut Report) -> Result<(), Error> {
    let mut cpus = vec![Cpu::default(); set.cpus()];
    loop {
        while let Some((id, event)) = set.next()? {
            let event = OwnedEvent::from(event); // the set can then be asked for the buffer
            let cpu = &mut cpus[usize::from(id)];
            if !cpu.has_ended {
                note_buffer(&set, id, cpu, report);
                report.event(id, &event.as_event());
                cpu.has_ended = event.kind == END;
            }
        }
        for (cpu, id) in cpus.iter_mut().zip(0..).filter(|(cpu, _)| !cpu.has_ended) {
            note_buffer(&set, id, cpu, report);
            if let Some(error) = set.error(id).filter(Error::is_refusal) {
                report.record('R', id, error);
                cpu.has_ended = true;
            }
        }
        report.flush();
        if cpus.iter().all(|cpu| cpu.has_ended) {
            return Ok(());
        }
        set.wait(None)?;
    }
}

fn main() {
    let mut report = Report::new(Report::open());
    let options = Options { exclusive: true, stop_on_corrupt: true }; // alone on the rings (E12)
    let result = match retried(|| ReaderSet::by_system_call(options)) {
        Ok(set) => consume(set, &mut report),
        // No CPU has a buffer that can be read.
        Err(error) if error.is_refusal() => {
            let cpus = retried(cpu_count).unwrap_or_else(|error| fail(&error));
            (0..cpus).for_each(|id| report.record('R', id, error));
            Ok(())
        }
        Err(error) => Err(error),
    };
    result.unwrap_or_else(|error| fail(&error));
    report.flush();
}
