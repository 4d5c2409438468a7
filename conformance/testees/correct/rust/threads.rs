// SPDX-License-Identifier: MIT
//
// A scoped thread for each CPU, std only: atomics through raw pointers, the C library's syscall().
// The inode of a second attachment says whether the buffer was alive when it was mapped (E19).

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::io::FromRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{fence, AtomicU32, AtomicU64, AtomicU8, Ordering::*};
use std::sync::Mutex;

extern "C" {
    fn syscall(number: i64, ...) -> i64;
    fn mmap(at: *mut u8, length: usize, protect: i32, flags: i32, fd: i32, from: i64) -> *mut u8;
    fn munmap(at: *mut u8, length: usize) -> i32;
}

const ATTACH: i64 = 1091;
const FUTEX: i64 = 202;
const EAGAIN: i32 = 11;
static ATTACHING: Mutex<()> = Mutex::new(());

fn attach(cpus: usize) -> (Vec<File>, u64) {
    loop {
        let mut fds = vec![-1i32; cpus];
        let (mut count, mut capacity) = (cpus as i32, 0u64);
        if unsafe { syscall(ATTACH, fds.as_mut_ptr(), &mut count, &mut capacity) } == 0 {
            let files = fds.iter().map(|&fd| unsafe { File::from_raw_fd(fd) });
            return (files.collect(), capacity);
        }
        let error = std::io::Error::last_os_error();
        if error.raw_os_error() != Some(EAGAIN) {
            eprintln!("kmes_attach: {error}");
            std::process::exit(1);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

struct Ring {
    base: *mut u8,
    capacity: u64,
    generation: u64,
    position: u64,
    _file: File,
}

impl Drop for Ring {
    fn drop(&mut self) {
        unsafe { munmap(self.base, 4096 + 2 * self.capacity as usize) };
    }
}

enum Taken {
    Event(Vec<u8>),
    Nothing,
    Corrupt,
}

fn u32_at(bytes: &[u8], at: usize) -> u64 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as u64
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn type_len(bytes: &[u8]) -> u64 {
    u16::from_le_bytes([bytes[27], bytes[28]]) as u64
}

impl Ring {
    fn open(cpu: usize, cpus: usize) -> Result<Ring, &'static str> {
        let _lock = ATTACHING.lock().unwrap();
        loop {
            let (mut files, capacity) = attach(cpus);
            let file = files.swap_remove(cpu);
            drop(files);
            let fd = std::os::unix::io::AsRawFd::as_raw_fd(&file);
            let length = 4096 + 2 * capacity as usize;
            let base = unsafe { mmap(std::ptr::null_mut(), length, 3, 1, fd, 0) };
            if base as isize == -1 {
                panic!("mmap: {}", std::io::Error::last_os_error());
            }
            let mut ring = Ring { base, capacity, generation: 0, position: 0, _file: file };
            ring.check()?;
            ring.generation = ring.word(32).load(Acquire);
            let (again, _) = attach(cpus);
            let inode = |file: &File| file.metadata().expect("fstat").ino();
            if inode(&again[cpu]) == inode(&ring._file) {
                ring.position = ring.word(72).load(Acquire);
                return Ok(ring);
            }
        }
    }

    fn check(&self) -> Result<(), &'static str> {
        let head = unsafe { std::slice::from_raw_parts(self.base, 32) };
        if &head[..8] != b"KMESRING" {
            return Err("magic");
        }
        if u32_at(head, 8) != 1 {
            return Err("version");
        }
        let capacity = u64_at(head, 16);
        if !capacity.is_power_of_two() || capacity != self.capacity {
            return Err("capacity");
        }
        if u64_at(head, 24) != 4096 { Err("data_offset") } else { Ok(()) }
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        unsafe { &*(self.base.add(at) as *const AtomicU64) }
    }

    fn counter(&self) -> &AtomicU32 {
        unsafe { &*(self.base.add(128) as *const AtomicU32) }
    }

    fn flag(&self) -> &AtomicU8 {
        unsafe { &*(self.base.add(132) as *const AtomicU8) }
    }

    fn take(&mut self) -> Taken {
        loop {
            let end = self.word(64).load(Acquire);
            if self.position >= end {
                return Taken::Nothing;
            }
            let tail = self.word(72).load(Acquire);
            if tail > self.position {
                self.position = tail;
                continue;
            }
            // More than the capacity is corrupt content (E26): no event fits.
            let published = end - self.position;
            let room = if published > self.capacity { 0 } else { published };
            let at = 4096 + (self.position & (self.capacity - 1)) as usize;
            let from = unsafe { self.base.add(at) };
            let mut head = [0u8; 29];
            if room >= 30 {
                unsafe { std::ptr::copy_nonoverlapping(from, head.as_mut_ptr(), 29) };
            }
            let (size, header) = (u32_at(&head, 0), u32_at(&head, 4));
            let length = type_len(&head);
            let fits = length > 0 && 29 + length <= header && header <= size && size <= room;
            let mut event = Vec::new();
            if fits {
                event.reserve_exact(size as usize);
                unsafe {
                    std::ptr::copy_nonoverlapping(from, event.as_mut_ptr(), size as usize);
                    event.set_len(size as usize);
                }
            }
            fence(Acquire);
            let tail = self.word(72).load(Acquire);
            if tail > self.position {
                self.position = tail;
                continue;
            }
            // The head was read before the copy, but tail_pos has not passed it since.
            if !fits {
                return Taken::Corrupt;
            }
            self.position += size;
            return Taken::Event(event);
        }
    }

    fn sleep(&self) {
        let seen = self.counter().load(Acquire);
        self.flag().store(1, SeqCst);
        let empty = self.word(64).load(SeqCst) <= self.position;
        if empty && self.word(32).load(SeqCst) == self.generation {
            let counter = self.counter() as *const AtomicU32;
            unsafe { syscall(FUTEX, counter, 0, seen, 0usize, 0usize, 0) };
        }
        self.flag().store(0, Relaxed);
    }
}

fn record(cpu: usize, event: &[u8]) -> String {
    let (size, header) = (u32_at(event, 0) as usize, u32_at(event, 4) as usize);
    let mut digest = 0xcbf29ce484222325u64;
    for byte in &event[header..size] {
        digest = (digest ^ *byte as u64).wrapping_mul(0x100000001b3);
    }
    let mut line = format!("E {cpu} {} {} {} ", u64_at(event, 16), u64_at(event, 8), event[26]);
    for byte in &event[29..29 + type_len(event) as usize] {
        write!(line, "{byte:02x}").unwrap();
    }
    writeln!(line, " {} {digest:016x}", size - header).unwrap();
    line
}

fn report(text: &mut String) {
    let fd = std::env::var("KMES_REPORT_FD").map_or(1, |text| text.parse().expect("a number"));
    let file = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    (&*file).write_all(text.as_bytes()).expect("the report");
    text.clear();
}

fn consume(cpu: usize, cpus: usize) {
    let (mut last, mut text) = (0u64, String::new());
    let mut ring = match Ring::open(cpu, cpus) {
        Ok(ring) => ring,
        Err(reason) => return report(&mut format!("R {cpu} {reason}\n")),
    };
    loop {
        let retired = ring.word(32).load(Acquire) != ring.generation;
        loop {
            match ring.take() {
                Taken::Nothing => break,
                Taken::Corrupt => return report(&mut (text + &format!("R {cpu} corrupt\n"))),
                Taken::Event(event) if u64_at(&event, 16) > last => {
                    let sequence = u64_at(&event, 16);
                    if last != 0 && sequence > last + 1 {
                        text += &format!("L {cpu} {}\n", sequence - last - 1);
                    }
                    last = sequence;
                    text += &record(cpu, &event);
                    if &event[29..29 + type_len(&event) as usize] == b"kmes.conformance.end" {
                        return report(&mut text);
                    }
                }
                Taken::Event(_) => {}
            }
        }
        if !text.is_empty() {
            report(&mut text);
        }
        if !retired {
            ring.sleep();
            continue;
        }
        ring = match Ring::open(cpu, cpus) {
            Ok(ring) => ring,
            Err(reason) => return report(&mut format!("R {cpu} {reason}\n")),
        };
        text += &format!("G {cpu} {}\n", ring.generation);
    }
}

fn main() {
    let (mut count, mut capacity) = (0i32, 0u64);
    while count == 0 {
        unsafe { syscall(ATTACH, 0usize, &mut count, &mut capacity) };
    }
    let cpus = count as usize;
    std::thread::scope(|scope| {
        for cpu in 0..cpus {
            scope.spawn(move || consume(cpu, cpus));
        }
    });
}
