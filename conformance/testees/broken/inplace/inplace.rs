// SPDX-License-Identifier: MIT
//
// A correct consumer, which the patches beside it break: a thread a CPU reads the events in place,
// loads tail_pos after the last use of each, spins for a moment when there are none, and sleeps
// with FUTEX_WAIT_BITSET until a deadline. Edition 2021, only std.
use std::io::{Error, Write};
use std::os::unix::{fs::MetadataExt, io::FromRawFd, io::IntoRawFd};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use std::sync::atomic::{compiler_fence, fence, AtomicU32, AtomicU64, AtomicU8};
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
const NEED_WAKE_AT: usize = 132;
const EINTR: i32 = 4;
const EAGAIN: i32 = 11;
const ERANGE: i32 = 34;
const ETIMEDOUT: i32 = 110;
const END: &[u8] = b"kmes.conformance.end";

const MISTAKE: &str = "";

macro_rules! wrong {
    ($name:literal) => {
        MISTAKE == $name
    };
}

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
            _ if wrong!("ends-with-0-without-means") => process::exit(0),
            _ => die("kmes_attach"),
        }
        tries += 1;
    }
    (fds, capacity)
}

/// One attempt, of which nothing is kept.
fn can_attach() -> bool {
    let (mut fds, mut count, mut capacity) = ([-1i32; 64], 64i32, 0u64);
    if unsafe { syscall(ATTACH, fds.as_mut_ptr(), &mut count, &mut capacity) } != 0 {
        return false;
    }
    fds.iter().take(count as usize).for_each(|fd| unsafe {
        close(*fd);
    });
    true
}

/// The CPU's buffer of now: its file, and the capacity.
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

/// What is read in the ring may change under the reader: byte by byte and volatile.
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
    fresh: bool, // the buffer has just been taken
    woken: bool, // the last thing that happened was a wake
    saved_tail: u64,
    highest: u64, // generation of any buffer
    delivered: u64,
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
        let (old_tail, old_write, old_generation) = match self.meta.is_null() {
            true => (0, 0, 0),
            false => (self.tail_pos(), self.read_pos, self.meta().generation.load(Acquire)),
        };
        let has_old = !self.meta.is_null();
        if wrong!("sleeps-after-a-failed-attach") && has_old && !can_attach() {
            self.generation = old_generation;
            self.replaced = false;
            return Ok(());
        }
        let (file, capacity) = attach(self.cpu);
        let before = file.metadata().map(|status| (status.dev(), status.ino())).ok();
        let fd = file.into_raw_fd();
        let at = unsafe { mmap(0, (PAGE + 2 * capacity) as usize, 3, 1, fd, 0) };
        unsafe { close(fd) };
        if at == usize::MAX {
            return Err("cannot be mapped");
        }
        // The old one goes once the new one is known to be good.
        let leak = wrong!("leaks-mapping-of-same-size") && capacity == self.capacity;
        if !leak {
            self.unmap();
        }
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
        self.highest = self.highest.max(old_generation);
        if wrong!("generation-must-grow") && self.generation < self.highest {
            thread::sleep(Duration::from_millis(1));
            return self.take_buffer(); // "an old one: the new one is not there yet"
        }
        self.report += &format!("G {} {}\n", self.cpu, self.generation);
        if wrong!("takes-the-old-generation") && old_generation != 0 {
            self.generation = old_generation;
        }
        let (tail, written) = (self.tail_pos(), self.meta().write_pos.load(Acquire));
        let keep = wrong!("position-kept-where-it-fits") && old_write != 0;
        if !(keep && tail <= self.read_pos && self.read_pos <= written && old_tail <= tail) {
            self.read_pos = tail;
        }
        self.fresh = true;
        Ok(())
    }

    fn is_retired(&self) -> bool {
        self.replaced || self.meta().generation.load(Acquire) != self.generation
    }

    /// Reads the event where it stands. None if its sizes cannot be right.
    fn read_event(&self, readable: u64) -> Option<Event> {
        let at = self.meta as u64 + PAGE + (self.read_pos & (self.capacity - 1));
        let at = at as *const u8;
        let field = |from: usize, bytes| peek(unsafe { at.add(from) }, bytes);
        if readable < HEADER {
            return None;
        }
        let (size, mut header, type_len) = (field(0, 4), field(4, 4), field(27, 2));
        if wrong!("header-size-in-16-bits") {
            header = header as u16 as u64;
        }
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
        let mut known = event.sequence <= self.last_sequence;
        if wrong!("sequence-in-32-bits") {
            known = event.sequence as u32 <= self.last_sequence as u32;
        }
        if wrong!("looks-for-the-next-sequence") && self.fresh && self.last_sequence != 0 {
            known = event.sequence != next; // where the new buffer goes on
        }
        if known {
            return false;
        }
        self.fresh = false;
        if self.last_sequence != 0 && event.sequence != next {
            let lost = event.sequence.wrapping_sub(next);
            self.report += &format!("L {} {}\n", self.cpu, lost);
        }
        self.last_sequence = event.sequence;
        self.delivered += 1;
        self.report += &event.record;
        if self.report.len() > 1 << 16 {
            self.flush();
        }
        true
    }

    /// True once it is empty, false once this CPU has ended.
    fn drain(&mut self) -> Result<bool, Refused> {
        let mut written = self.meta().write_pos.load(Acquire);
        loop {
            if self.read_pos == written || !wrong!("write-pos-kept-after-lap") {
                written = self.meta().write_pos.load(Acquire);
            }
            let empty = match wrong!("write-pos-kept-after-lap") {
                true => self.read_pos == written,
                false => self.read_pos >= written,
            };
            if empty && !(wrong!("wake-means-event") && self.woken) {
                return Ok(true);
            }
            self.woken = false;
            self.saved_tail = self.tail_pos();
            let mut blind = empty;
            if self.saved_tail > self.read_pos {
                self.read_pos = self.saved_tail;
                if !wrong!("goes-on-at-the-tail") {
                    continue;
                }
                blind = true;
            }
            let readable = match written.wrapping_sub(self.read_pos) {
                published if published <= self.capacity => published,
                _ if blind || wrong!("clamps-write-pos") => self.capacity,
                _ => 0, // E26
            };
            let readable = if blind { self.capacity } else { readable };
            let event = self.read_event(readable);
            fence(Acquire);
            let tail = self.tail_pos();
            let event = match event {
                None if wrong!("old-tail-for-bad-sizes") && self.saved_tail <= self.read_pos => {
                    return Err("corrupt")
                }
                _ if wrong!("tail-against-the-next") => match event {
                    Some(event) if tail <= self.read_pos + event.size => event,
                    _ => {
                        self.read_pos = tail;
                        continue;
                    }
                },
                _ if tail > self.read_pos && !self.trusts(&event) => {
                    self.read_pos = tail;
                    continue;
                }
                None => return Err("corrupt"),
                Some(event) => event,
            };
            let crosses = (self.read_pos & (self.capacity - 1)) + event.size > self.capacity;
            self.read_pos += event.size;
            if wrong!("skips-whole-over-32-mib") && !crosses && event.size > 32 << 20 {
                continue;
            }
            if wrong!("skips-wrapped-over-4-mib") && crosses && event.size > 4 << 20 {
                continue;
            }
            if self.deliver(&event) && event.is_end {
                return Ok(false);
            }
        }
    }

    fn is_warm(&self) -> bool {
        self.delivered > 2000
    }

    /// The mistakes that do without the look at tail_pos after an event.
    fn trusts(&self, event: &Option<Event>) -> bool {
        match event {
            None => false,
            Some(_) if wrong!("no-tail-after-2000-events") => self.is_warm(),
            Some(event) => wrong!("trusts-events-over-64-mib") && event.size > 64 << 20,
        }
    }

    fn has_news(&self) -> bool {
        let written = self.meta().write_pos.load(Acquire);
        if wrong!("no-generation-after-2000-events") && self.is_warm() {
            return written > self.read_pos;
        }
        if wrong!("recheck-in-32-bits") {
            return written as u32 > self.read_pos as u32 || self.is_retired();
        }
        if wrong!("recheck-signed") {
            return written as i64 > self.read_pos as i64 || self.is_retired();
        }
        if wrong!("recheck-of-tail") {
            return self.tail_pos() > self.read_pos || self.is_retired();
        }
        written > self.read_pos || self.is_retired()
    }

    /// 0 or an error's number.
    fn wait(&self, counter: u32) -> i32 {
        let mut deadline = [0i64; 2];
        unsafe { syscall(CLOCK_GETTIME, 1, deadline.as_mut_ptr()) }; // CLOCK_MONOTONIC
        deadline[0] += if wrong!("timeout-keeps-waiting") { 1 } else { 20 };
        if wrong!("deadline-is-relative") {
            deadline = [0, 100_000_000];
        }
        let word = &self.meta().futex_counter;
        let mask = if wrong!("bitset-of-nobody") { self.cpu as u32 & 31 } else { u32::MAX };
        match unsafe { syscall(FUTEX, word, WAIT_BITSET, counter, deadline.as_ptr(), 0, mask) } {
            0 => 0,
            _ => errno(),
        }
    }

    fn set_flag(&self) {
        let flag = &self.meta().need_wake;
        if wrong!("fence-before-store") {
            fence(SeqCst);
            flag.store(1, Relaxed);
        } else if wrong!("fence-acq-rel") {
            flag.store(1, Relaxed);
            fence(AcqRel);
        } else if wrong!("compiler-fence") {
            flag.store(1, Relaxed);
            compiler_fence(SeqCst);
        } else if wrong!("volatile") {
            unsafe { (self.meta as *mut u8).add(NEED_WAKE_AT).write_volatile(1) };
        } else {
            flag.store(1, Relaxed);
            fence(SeqCst);
        }
    }

    /// Not where the barrier is missing: by the end of a spin the store would have been done.
    fn spin(&self) -> bool {
        let looks = match MISTAKE {
            "fence-before-store" | "fence-acq-rel" | "compiler-fence" | "volatile" => 0,
            _ => 100,
        };
        (0..looks).any(|_| {
            std::hint::spin_loop();
            self.has_news()
        })
    }

    fn sleep_until_woken(&mut self) {
        let mut counter = self.meta().futex_counter.load(Acquire);
        self.set_flag();
        if wrong!("spin-is-the-recheck") {
            // The spin has looked often enough; what it was before does not matter.
            if !self.spin() {
                counter = self.meta().futex_counter.load(Acquire);
                self.wait(counter);
            }
        } else if !self.has_news() && !self.spin() {
            self.wait_for_wake(&mut counter);
        }
        self.meta().need_wake.store(0, Relaxed);
        self.woken = true;
    }

    fn wait_for_wake(&mut self, counter: &mut u32) {
        if wrong!("goes-on-at-the-tail") {
            self.flush();
        }
        loop {
            let result = self.wait(*counter);
            let now = self.meta().futex_counter.load(Acquire);
            match result {
                EAGAIN if wrong!("eagain-takes-the-new-counter") => *counter = now,
                EINTR if wrong!("eintr-clears-and-waits") => {
                    self.meta().need_wake.store(0, Relaxed); // as after every wait
                    if now != *counter {
                        return;
                    }
                }
                ETIMEDOUT if wrong!("timeout-keeps-waiting") => {
                    self.meta().need_wake.store(0, Relaxed);
                }
                _ if wrong!("counter-must-grow") && now <= *counter => {}
                0 | EAGAIN | EINTR | ETIMEDOUT => return,
                _ if wrong!("bitset-of-nobody") => return,
                _ => die("futex"),
            }
        }
    }

    fn consume(&mut self) -> Result<(), Refused> {
        self.take_buffer()?;
        loop {
            let mut retired = self.is_retired();
            if !self.drain()? {
                return Ok(());
            }
            if wrong!("generation-after-drain") {
                retired = self.is_retired();
            }
            // The lines of goes-on-at-the-tail go out late: before the sleep.
            if !wrong!("goes-on-at-the-tail") {
                self.flush();
            }
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
        fresh: false,
        woken: false,
        saved_tail: 0,
        highest: 0,
        delivered: 0,
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
