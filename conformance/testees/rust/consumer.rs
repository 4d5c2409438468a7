// SPDX-License-Identifier: MIT
//
// A KMES consumer in one file of Rust, with only std: copy from it what you need. It follows the
// specification (5.1), its errata (E..) and the testee contract. For each CPU, one thread drains
// the buffer, sleeps while it is empty, and takes the next one after a resize. Edition 2021.
use std::io::{Error, ErrorKind, Write};
use std::os::raw::{c_int, c_long};
use std::os::unix::{fs::MetadataExt, io::AsRawFd, io::FromRawFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{fence, AtomicU32, AtomicU64, AtomicU8};
use std::{env, fs::File, process, sync::Mutex, thread, time::Duration};

extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn mmap(at: usize, size: usize, access: c_int, flags: c_int, fd: c_int, from: i64) -> usize;
    fn munmap(at: usize, size: usize) -> c_int;
}
const SYS_KMES_ATTACH: c_long = 1091;
const SYS_FUTEX: c_long = if cfg!(target_arch = "x86_64") { 202 } else { 98 };
const METADATA_BYTES: u64 = 4096;
const HEADER_BYTES: u64 = 29; // of an event, before its type

#[repr(C)] // 5.1.6, the first page of the mapping
struct Metadata {
    magic: [u8; 8],
    version: u32,
    cpu_id: [u16; 2],
    capacity: u64,
    data_offset: u64,
    generation: AtomicU64, // changes once the buffer is retired: never cached (E9)
    reserved1: [u64; 3],
    write_pos: AtomicU64,
    tail_pos: AtomicU64,
    reserved2: [u64; 6],
    futex_counter: AtomicU32,
    need_wake: AtomicU8, // the only field that a consumer writes
}

fn die(what: &str) -> ! {
    eprintln!("{}: {}", what, Error::last_os_error());
    process::exit(1)
}

/// Calls kmes_attach: the CPU's current buffer, the capacity, the number of CPUs. Tries again after
/// EPERM, EAGAIN, ENOMEM, ENFILE or EMFILE, and adds slots after ERANGE. Closes the files of other
/// CPUs; the lock allows only one thread at a time to hold all of them.
fn attach(cpu: usize) -> (File, u64, usize) {
    static LOCK: Mutex<()> = Mutex::new(());
    let _guard = LOCK.lock();
    let (mut fds, mut count, mut capacity, mut tries) = (vec![-1], 1 as c_int, 0u64, 0);
    while unsafe { syscall(SYS_KMES_ATTACH, fds.as_mut_ptr(), &mut count, &mut capacity) } != 0 {
        let error = Error::last_os_error();
        tries += 1;
        match error.raw_os_error() {
            Some(1 | 11 | 12 | 23 | 24) if tries < 5000 => thread::sleep(Duration::from_millis(1)),
            Some(34) => fds = vec![-1; count as usize], // ERANGE
            _ => die("kmes_attach"),
        }
    }
    let fds = fds.into_iter().take(count as usize);
    let mut files: Vec<File> = fds.map(|fd| unsafe { File::from_raw_fd(fd) }).collect();
    (files.swap_remove(cpu), capacity, files.len() + 1)
}

struct Buffer {
    meta: &'static Metadata, // valid until the buffer is dropped
    size: usize,
    capacity: u64,
    generation: u64,
    replaced: bool, // known to have a successor, whatever its generation shows
}

impl Drop for Buffer {
    fn drop(&mut self) {
        unsafe { munmap(self.meta as *const Metadata as usize, self.size) };
    }
}

impl Buffer {
    /// 5.1.8.3 steps 2 to 4, for the first and each later buffer, or the reason to refuse it.
    /// Reserved bytes are no reason: later versions may use them.
    fn take(cpu: usize) -> Result<Buffer, &'static str> {
        let (file, capacity, _) = attach(cpu);
        let size = METADATA_BYTES.saturating_add(capacity.saturating_mul(2)) as usize;
        let (access, flags) = (3, 1); // PROT_READ | PROT_WRITE, MAP_SHARED
        let at = unsafe { mmap(0, size, access, flags, file.as_raw_fd(), 0) };
        if at == usize::MAX {
            return Err("cannot be mapped");
        }
        let meta = unsafe { &*(at as *const Metadata) };
        let generation = match capacity {
            _ if &meta.magic != b"KMESRING" => return Err("bad magic"),
            _ if meta.version != 1 => return Err("unknown version"),
            _ if meta.capacity != capacity => return Err("capacity is not what is mapped"), // E14
            _ if !capacity.is_power_of_two() || capacity < 32 => return Err("bad capacity"),
            _ if meta.data_offset != METADATA_BYTES => return Err("bad data_offset"),
            _ => meta.generation.load(Acquire),
        };
        // E19: a buffer retired since the attach already shows its successor's generation, so no
        // change would follow. If it still is the CPU's current buffer, the generation is its own.
        let inode = |file: File| file.metadata().map(|status| (status.dev(), status.ino())).ok();
        let replaced = inode(file) != inode(attach(cpu).0);
        Ok(Buffer { meta, size, capacity, generation, replaced })
    }

    fn is_retired(&self) -> bool {
        self.replaced || self.meta.generation.load(Acquire) != self.generation // any change (E15)
    }

    /// 5.1.8.1 step 4: a private copy of the event (E6). None if its sizes are impossible: they
    /// may be torn (E7). An event of more than half of the capacity can have survived a shrink.
    fn copy_event(&self, position: u64, readable: u64) -> Option<Vec<u8>> {
        let data = self.meta as *const Metadata as u64 + METADATA_BYTES;
        let from = data + (position & (self.capacity - 1)); // 5.1.4: in one piece from here
        let load = |at| unsafe { (*(at as *const AtomicU8)).load(Relaxed) };
        if readable < HEADER_BYTES || readable > self.capacity {
            return None;
        }
        let header: Vec<u8> = (from..from + HEADER_BYTES).map(load).collect();
        let (event_size, header_size) = (number(&header[0..4]), number(&header[4..8]));
        let type_len = number(&header[27..29]);
        let sound = type_len > 0 && header_size >= HEADER_BYTES + type_len;
        let sound = sound && event_size >= header_size && event_size <= readable;
        sound.then(|| (from..from + event_size).map(load).collect())
    }

    /// 5.1.8.2, alone on the buffer (E12). Returns when there may be work.
    fn sleep_until_woken(&self, read_pos: u64) {
        let word = &self.meta.futex_counter;
        let counter = word.load(Acquire); // E2: first, so that an event from here on ends the wait
        self.meta.need_wake.store(1, Relaxed);
        fence(SeqCst); // E1: we see the event or they see the flag
        if self.meta.write_pos.load(Acquire) <= read_pos && !self.is_retired() {
            // E3: both. Whatever ends the wait counts as a wake.
            let wait: c_int = 0; // FUTEX_WAIT: shared, not FUTEX_WAIT_PRIVATE (E17)
            let result = unsafe { syscall(SYS_FUTEX, word, wait, counter, 0usize) };
            let error = Error::last_os_error().kind();
            if result != 0 && error != ErrorKind::WouldBlock && error != ErrorKind::Interrupted {
                die("futex");
            }
        }
        self.meta.need_wake.store(0, Relaxed);
    }
}

fn number(little_endian: &[u8]) -> u64 {
    little_endian.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

struct Consumer {
    cpu: usize,
    read_pos: u64,      // in the current buffer
    last_sequence: u64, // over all buffers of this CPU (E21); 0: none delivered yet
    report: Vec<u8>,
    output: &'static File,
}

impl Consumer {
    fn flush(&mut self) {
        self.output.write_all(&self.report).unwrap_or_else(|_| die("cannot write the report"));
        self.report.clear();
    }

    /// Reports the event, unless an earlier buffer contained it too. False if it is the end event.
    fn deliver(&mut self, event: &[u8]) -> bool {
        let (timestamp, sequence) = (number(&event[8..16]), number(&event[16..24]));
        if sequence <= self.last_sequence {
            return true;
        }
        let (cpu, lost) = (self.cpu, sequence - self.last_sequence - 1); // 5.1.9
        if self.last_sequence != 0 && lost > 0 {
            self.report.extend(format!("L {cpu} {lost}\n").bytes());
        }
        self.last_sequence = sequence;
        let kind = &event[29..29 + number(&event[27..29]) as usize];
        let payload = &event[number(&event[4..8]) as usize..];
        let fnv = |digest: u64, byte: &u8| (digest ^ u64::from(*byte)).wrapping_mul(0x100000001b3);
        let digest = payload.iter().fold(0xcbf29ce484222325, fnv);
        let hex: String = kind.iter().map(|byte| format!("{byte:02x}")).collect();
        let (class, size) = (event[26], payload.len());
        let line = format!("E {cpu} {sequence} {timestamp} {class} {hex} {size} {digest:016x}\n");
        self.report.extend(line.bytes());
        if self.report.len() >= 65536 {
            self.flush();
        }
        kind != b"kmes.conformance.end"
    }

    /// 5.1.8.1. True once the buffer is empty, false if this CPU has ended. After each move of
    /// read_pos it loads write_pos again, as tail_pos may have reached it (E20).
    fn drain(&mut self, buffer: &Buffer) -> Result<bool, &'static str> {
        loop {
            let write_pos = buffer.meta.write_pos.load(Acquire); // step 1
            if self.read_pos >= write_pos {
                return Ok(true);
            }
            let lapped = buffer.meta.tail_pos.load(Acquire) > self.read_pos; // step 2
            let readable = if lapped { 0 } else { write_pos - self.read_pos };
            let event = buffer.copy_event(self.read_pos, readable);
            fence(Acquire); // E4: the copy is done before the next load
            let tail_pos = buffer.meta.tail_pos.load(Acquire); // step 5
            match event {
                _ if tail_pos > self.read_pos => self.read_pos = tail_pos, // lapped, or torn
                None => return Err("corrupt event"),
                Some(event) if !self.deliver(&event) => return Ok(false),
                Some(event) => self.read_pos += event.len() as u64, // step 6
            }
        }
    }

    /// Runs until this CPU has ended. The error is the reason to refuse a buffer.
    fn consume(&mut self) -> Result<(), &'static str> {
        loop {
            let buffer = Buffer::take(self.cpu)?;
            self.report.extend(format!("G {} {}\n", self.cpu, buffer.generation).bytes());
            // E11: positions of the old buffer say nothing about this one. Start at its oldest
            // event; sequence numbers show which events were delivered before (E21).
            self.read_pos = buffer.meta.tail_pos.load(Acquire);
            loop {
                // Before the drain, so that the drain sees the last write_pos of a retired buffer
                // (E24) and delivers all of it, even if the next buffer is too small (E10).
                let retired = buffer.is_retired();
                let more = self.drain(&buffer)?;
                self.flush();
                match (more, retired) {
                    (false, _) => return Ok(()),
                    (true, true) => break,
                    (true, false) => buffer.sleep_until_woken(self.read_pos),
                }
            }
        }
    }
}

fn main() {
    let fd = env::var("KMES_REPORT_FD").ok().and_then(|fd| fd.parse().ok()).unwrap_or(1);
    let output: &'static File = Box::leak(Box::new(unsafe { File::from_raw_fd(fd) }));
    let start = |cpu| {
        let mut consumer = Consumer { cpu, read_pos: 0, last_sequence: 0, report: vec![], output };
        thread::spawn(move || {
            if let Err(reason) = consumer.consume() {
                consumer.report.extend(format!("R {cpu} {reason}\n").bytes());
            }
            consumer.flush();
        })
    };
    let threads: Vec<_> = (0..attach(0).2).map(start).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap_or_else(|_| process::exit(1)));
}
