// SPDX-License-Identifier: MIT
//
// A correct consumer for the patches of this folder. A thread for each CPU reads the events in
// place, loads tail_pos after the last use of each, spins briefly when there are none, and sleeps
// with FUTEX_WAIT_BITSET until a deadline. Edition 2021, only std.
use std::io::{Error, Write};
use std::os::unix::{fs::MetadataExt, io::FromRawFd, io::IntoRawFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{fence, AtomicU32, AtomicU64, AtomicU8};
use std::{env, fs::File, process, ptr, sync::Mutex, thread, time::Duration};

extern "C" {
    fn syscall(number: i64, ...) -> i64;
    fn mmap(at: usize, size: usize, access: i32, flags: i32, fd: i32, from: i64) -> usize;
    fn munmap(at: usize, size: usize) -> i32;
    fn close(fd: i32) -> i32;
}
const ATTACH: i64 = 1091;
const FUTEX: i64 = 202;
const CLOCK_GETTIME: i64 = 228;
const WAIT_BITSET: i64 = 9; // shared
const PAGE: u64 = 4096;
const HEADER: u64 = 29;
const EINTR: i32 = 4;
const EAGAIN: i32 = 11;
const ERANGE: i32 = 34;
const ETIMEDOUT: i32 = 110;
const END: &[u8] = b"kmes.conformance.end";

#[repr(C)]
struct Metadata {
    magic: [u8; 8],
    version: u32,
    cpu_id: [u16; 2],
    capacity: u64,
    data_offset: u64,
    generation: AtomicU64,
    reserved1: [u64; 3],
    write_pos: AtomicU64,
    tail_pos: AtomicU64,
    reserved2: [u64; 6],
    futex_counter: AtomicU32,
    need_wake: AtomicU8,
}

fn die(what: &str) -> ! {
    eprintln!("{}: {}", what, Error::last_os_error());
    process::exit(1)
}

fn errno() -> i32 {
    Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn attach_all() -> (Vec<i32>, u64) {
    let (mut count, mut capacity, mut tries) = (0i32, 0u64, 0);
    let mut fds: Vec<i32> = Vec::new();
    while unsafe { syscall(ATTACH, fds.as_mut_ptr(), &mut count, &mut capacity) } != 0 {
        match errno() {
            ERANGE => fds = vec![-1; count as usize],
            EAGAIN if tries < 5000 => thread::sleep(Duration::from_millis(1)),
            _ => die("kmes_attach"),
        }
        tries += 1;
    }
    (fds, capacity)
}

/// Returns the file of the CPU's current buffer, and the capacity.
fn attach(cpu: usize) -> (File, u64) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    let (fds, capacity) = attach_all();
    for (i, fd) in fds.iter().enumerate() {
        if i != cpu {
            unsafe { close(*fd) };
        }
    }
    (unsafe { File::from_raw_fd(fds[cpu]) }, capacity)
}

/// Bytes in the ring may change while they are read, so each is read by a volatile access.
fn peek(at: *const u8, bytes: u64) -> u64 {
    let byte = |i: u64| unsafe { at.add(i as usize).read_volatile() };
    (0..bytes).rev().fold(0, |value, i| value << 8 | u64::from(byte(i)))
}

struct Event {
    size: u64,
    sequence: u64,
    is_end: bool,
    record: String,
}

struct Consumer {
    cpu: usize,
    meta: *mut Metadata,
    capacity: u64,
    generation: u64,
    replaced: bool,
    read_pos: u64,
    last_sequence: u64,
    report: String,
}

type Refused = &'static str;

impl Consumer {
    fn meta(&self) -> &Metadata {
        unsafe { &*self.meta }
    }

    fn tail_pos(&self) -> u64 {
        self.meta().tail_pos.load(Acquire)
    }

    fn flush(&mut self) {
        static OUTPUT: Mutex<Option<File>> = Mutex::new(None);
        let mut output = OUTPUT.lock().unwrap();
        let file = output.get_or_insert_with(|| {
            let fd = env::var("KMES_REPORT_FD").ok().and_then(|fd| fd.parse().ok());
            unsafe { File::from_raw_fd(fd.unwrap_or(1)) }
        });
        file.write_all(self.report.as_bytes()).unwrap_or_else(|_| die("write"));
        self.report.clear();
    }

    fn unmap(&mut self) {
        if !self.meta.is_null() {
            unsafe { munmap(self.meta as usize, (PAGE + 2 * self.capacity) as usize) };
        }
    }

    fn take_buffer(&mut self) -> Result<(), Refused> {
        let (file, capacity) = attach(self.cpu);
        let before = file.metadata().map(|status| (status.dev(), status.ino())).ok();
        let fd = file.into_raw_fd();
        let at = unsafe { mmap(0, (PAGE + 2 * capacity) as usize, 3, 1, fd, 0) };
        unsafe { close(fd) };
        if at == usize::MAX {
            return Err("cannot be mapped");
        }
        // Unmap the old buffer only after the new one is accepted.
        self.unmap();
        self.meta = at as *mut Metadata;
        self.capacity = capacity;
        match self.meta() {
            meta if &meta.magic != b"KMESRING" => return Err("magic"),
            meta if meta.version != 1 => return Err("version"),
            meta if meta.capacity != capacity => return Err("capacity"),
            _ if !capacity.is_power_of_two() || capacity < 64 => return Err("capacity"),
            meta if meta.data_offset != PAGE => return Err("data_offset"),
            meta => self.generation = meta.generation.load(Acquire),
        }
        let after = attach(self.cpu).0.metadata().map(|status| (status.dev(), status.ino())).ok();
        self.replaced = before != after;
        self.report += &format!("G {} {}\n", self.cpu, self.generation);
        self.read_pos = self.tail_pos();
        Ok(())
    }

    fn is_retired(&self) -> bool {
        self.replaced || self.meta().generation.load(Acquire) != self.generation
    }

    /// Reads the event in the ring. None if its sizes are impossible.
    fn read_event(&self, readable: u64) -> Option<Event> {
        let at = self.meta as u64 + PAGE + (self.read_pos & (self.capacity - 1));
        let at = at as *const u8;
        let field = |from: usize, bytes| peek(unsafe { at.add(from) }, bytes);
        if readable < HEADER {
            return None;
        }
        let (size, header, type_len) = (field(0, 4), field(4, 4), field(27, 2));
        if type_len == 0 || header < HEADER + type_len || size < header || size > readable {
            return None;
        }
        let (timestamp, sequence, class) = (field(8, 8), field(16, 8), field(26, 1));
        let mut kind = String::new();
        for i in 0..type_len {
            kind += &format!("{:02x}", field((HEADER + i) as usize, 1));
        }
        let mut digest = 0xcbf29ce484222325u64;
        for i in header..size {
            digest = (digest ^ field(i as usize, 1)).wrapping_mul(0x100000001b3);
        }
        let is_end = kind.len() == 40
            && END.iter().map(|byte| format!("{byte:02x}")).collect::<String>() == kind;
        let length = size - header;
        let record = format!(
            "E {} {sequence} {timestamp} {class} {kind} {length} {digest:016x}\n",
            self.cpu
        );
        Some(Event { size, sequence, is_end, record })
    }

    /// True if it is delivered, false if an earlier buffer held it too.
    fn deliver(&mut self, event: &Event) -> bool {
        let next = self.last_sequence.wrapping_add(1);
        if event.sequence <= self.last_sequence {
            return false;
        }
        if self.last_sequence != 0 && event.sequence != next {
            let lost = event.sequence.wrapping_sub(next);
            self.report += &format!("L {} {}\n", self.cpu, lost);
        }
        self.last_sequence = event.sequence;
        self.report += &event.record;
        if self.report.len() > 1 << 16 {
            self.flush();
        }
        true
    }

    /// True once it is empty, false once this CPU has ended.
    fn drain(&mut self) -> Result<bool, Refused> {
        loop {
            let written = self.meta().write_pos.load(Acquire);
            if self.read_pos >= written {
                return Ok(true);
            }
            let saved_tail = self.tail_pos();
            if saved_tail > self.read_pos {
                self.read_pos = saved_tail;
                continue;
            }
            let readable = match written.wrapping_sub(self.read_pos) {
                published if published <= self.capacity => published,
                _ => 0, // E26
            };
            let event = self.read_event(readable);
            fence(Acquire);
            let tail = self.tail_pos();
            if tail > self.read_pos {
                self.read_pos = tail;
                continue;
            }
            let event = event.ok_or("corrupt")?;
            self.read_pos += event.size;
            if self.deliver(&event) && event.is_end {
                return Ok(false);
            }
        }
    }

    fn has_news(&self) -> bool {
        let written = self.meta().write_pos.load(Acquire);
        written > self.read_pos || self.is_retired()
    }

    /// Returns 0 or an error number.
    fn wait(&self, counter: u32) -> i32 {
        let mut deadline = [0i64; 2];
        unsafe { syscall(CLOCK_GETTIME, 1, deadline.as_mut_ptr()) }; // CLOCK_MONOTONIC
        deadline[0] += 20;
        let word = &self.meta().futex_counter;
        let mask = u32::MAX;
        match unsafe { syscall(FUTEX, word, WAIT_BITSET, counter, deadline.as_ptr(), 0, mask) } {
            0 => 0,
            _ => errno(),
        }
    }

    fn set_flag(&self) {
        let flag = &self.meta().need_wake;
        flag.store(1, Relaxed);
        fence(SeqCst);
    }

    fn spin(&self) -> bool {
        (0..100).any(|_| {
            std::hint::spin_loop();
            self.has_news()
        })
    }

    fn sleep_until_woken(&mut self) {
        let counter = self.meta().futex_counter.load(Acquire);
        self.set_flag();
        if !self.has_news() && !self.spin() {
            self.wait_for_wake(counter);
        }
        self.meta().need_wake.store(0, Relaxed);
    }

    fn wait_for_wake(&self, counter: u32) {
        match self.wait(counter) {
            0 | EAGAIN | EINTR | ETIMEDOUT => {}
            _ => die("futex"),
        }
    }

    fn consume(&mut self) -> Result<(), Refused> {
        self.take_buffer()?;
        loop {
            let retired = self.is_retired();
            if !self.drain()? {
                return Ok(());
            }
            self.flush();
            if retired {
                self.take_buffer()?;
            } else {
                self.sleep_until_woken();
            }
        }
    }
}

fn run(cpu: usize) {
    let mut consumer = Consumer {
        cpu,
        meta: ptr::null_mut(),
        capacity: 0,
        generation: 0,
        replaced: false,
        read_pos: 0,
        last_sequence: 0,
        report: String::new(),
    };
    if let Err(reason) = consumer.consume() {
        consumer.report += &format!("R {cpu} {reason}\n");
    }
    consumer.flush();
}

fn main() {
    let (fds, _) = attach_all();
    fds.iter().for_each(|fd| unsafe {
        close(*fd);
    });
    let threads: Vec<_> = (0..fds.len()).map(|cpu| thread::spawn(move || run(cpu))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap_or_else(|_| process::exit(1)));
}
