// SPDX-License-Identifier: MIT
//
// One thread for all CPUs, without library calls for the protocol: it uses the `syscall`
// instruction, volatile reads and fences. It polls all rings, then waits on one for at most 30 ms.

use std::arch::asm;
use std::io::Write;
use std::os::unix::io::FromRawFd;
use std::ptr::{read_unaligned, read_volatile, write_volatile};
use std::sync::atomic::{compiler_fence, fence, Ordering::*};

unsafe fn call(number: u64, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> i64 {
    let result: i64;
    asm!("syscall", inlateout("rax") number => result, in("rdi") a, in("rsi") b, in("rdx") c,
         in("r10") d, in("r8") e, in("r9") f, out("rcx") _, out("r11") _);
    result
}

#[derive(Default)]
struct Source {
    base: u64,
    capacity: u64,
    generation: u64,
    at: u64,
    last: u64,
    over: bool,
}

impl Source {
    fn word(&self, at: u64) -> u64 {
        let value = unsafe { read_volatile((self.base + at) as *const u64) };
        // Loads stay in order on x86-64; the compiler keeps to it, too.
        compiler_fence(AcqRel);
        value
    }

    fn flag(&self, value: u8) {
        unsafe { write_volatile((self.base + 132) as *mut u8, value) };
    }

    fn close(&self) {
        unsafe { call(11, self.base, 4096 + 2 * self.capacity, 0, 0, 0, 0) };
    }
}

struct Consumer {
    sources: Vec<Source>,
    out: Vec<u8>,
}

impl Consumer {
    fn open(&mut self, cpu: usize) {
        let mut fds = vec![0i32; self.sources.len()];
        let (mut count, mut capacity) = (fds.len() as i32, 0u64);
        loop {
            let (slots, size) = (&mut count as *mut i32 as u64, &mut capacity as *mut u64 as u64);
            match unsafe { call(1091, fds.as_mut_ptr() as u64, slots, size, 0, 0, 0) } {
                0 => break,
                // There are no rings yet, or memory or files are short.
                -1 | -11 | -12 | -23 | -24 => {
                    std::thread::sleep(std::time::Duration::from_millis(20))
                }
                error => panic!("kmes_attach: {error}"),
            }
        }
        let length = 4096 + 2 * capacity;
        let base = unsafe { call(9, 0, length, 3, 1, fds[cpu] as u64, 0) };
        assert!(base > 0, "mmap: {base}");
        for fd in fds {
            unsafe { call(3, fd as u64, 0, 0, 0, 0, 0) };
        }
        let source = &mut self.sources[cpu];
        source.base = base as u64;
        source.capacity = capacity;
        let magic = unsafe { *(base as *const [u8; 8]) };
        let version = unsafe { read_volatile((base + 8) as *const u32) };
        let said = source.word(16);
        let right = magic == *b"KMESRING" && version == 1 && source.word(24) == 4096;
        if !right || !said.is_power_of_two() || said != capacity {
            self.refuse(cpu, "this is no ring of version 1");
            return;
        }
        let source = &mut self.sources[cpu];
        source.generation = source.word(32);
        source.at = source.word(72);
    }

    fn refuse(&mut self, cpu: usize, reason: &str) {
        writeln!(self.out, "R {cpu} {reason}").unwrap();
        self.sources[cpu].over = true;
    }

    /// Delivers one event of this CPU. False if there was none.
    fn one(&mut self, cpu: usize) -> bool {
        let source = &mut self.sources[cpu];
        let end = source.word(64);
        let tail = source.word(72);
        if source.at >= end {
            return false;
        }
        if tail > source.at {
            source.at = tail;
            return true;
        }
        let from = source.base + 4096 + (source.at & (source.capacity - 1));
        // More than the capacity is corrupt content (E26): no event fits.
        let room = if end - source.at > source.capacity { 0 } else { end - source.at };
        let (mut size, mut header, mut length) = (0u32, 0u32, 0u16);
        if room >= 30 {
            unsafe {
                size = read_unaligned(from as *const u32);
                header = read_unaligned((from + 4) as *const u32);
                length = read_unaligned((from + 27) as *const u16);
            }
        }
        compiler_fence(AcqRel);
        let fits = length > 0 && 29 + length as u32 <= header && header <= size;
        let fits = fits && size as u64 <= room;
        let mut event = vec![0u8; if fits { size as usize } else { 0 }];
        for (i, byte) in event.iter_mut().enumerate() {
            *byte = unsafe { read_volatile((from + i as u64) as *const u8) };
        }
        fence(Acquire);
        let tail = source.word(72);
        if tail > source.at {
            source.at = tail;
            return true;
        }
        if !fits {
            self.refuse(cpu, "corrupt content");
            return false;
        }
        source.at += size as u64;
        let sequence = u64::from_le_bytes(event[16..24].try_into().unwrap());
        if sequence <= source.last {
            return true;
        }
        source.last = sequence;
        let kind = &event[29..29 + length as usize];
        source.over = kind == b"kmes.conformance.end";
        let time = u64::from_le_bytes(event[8..16].try_into().unwrap());
        write!(self.out, "E {cpu} {sequence} {time} {} ", event[26]).unwrap();
        kind.iter().for_each(|byte| write!(self.out, "{byte:02x}").unwrap());
        let payload = &event[header as usize..];
        let digest = payload.iter().fold(0xcbf29ce484222325u64, |digest, byte| {
            (digest ^ *byte as u64).wrapping_mul(0x100000001b3)
        });
        writeln!(self.out, " {} {digest:016x}", payload.len()).unwrap();
        true
    }

    fn quiet(&self) -> bool {
        self.sources.iter().all(|source| {
            source.over || (source.word(64) <= source.at && source.word(32) == source.generation)
        })
    }

    fn rest(&self, cpu: usize) {
        let source = &self.sources[cpu];
        let counter = source.base + 128;
        source.flag(1);
        fence(SeqCst);
        let seen = unsafe { read_volatile(counter as *const u32) };
        compiler_fence(SeqCst);
        let limit = [0u64, 30_000_000];
        if self.quiet() {
            unsafe { call(202, counter, 0, seen as u64, limit.as_ptr() as u64, 0, 0) };
        }
        source.flag(0);
    }
}

fn main() {
    let fd = std::env::var("KMES_REPORT_FD").map_or(1, |text| text.parse().expect("a number"));
    let mut report = unsafe { std::fs::File::from_raw_fd(fd) };
    let (mut count, mut capacity) = (0i32, 0u64);
    while count == 0 {
        let (slots, size) = (&mut count as *mut i32 as u64, &mut capacity as *mut u64 as u64);
        unsafe { call(1091, 0, slots, size, 0, 0, 0) };
    }
    let sources = (0..count).map(|_| Source::default()).collect();
    let mut consumer = Consumer { sources, out: Vec::new() };
    let cpus = count as usize;
    (0..cpus).for_each(|cpu| consumer.open(cpu));
    let mut place = 0;
    loop {
        let mut any = false;
        for cpu in 0..cpus {
            if consumer.sources[cpu].over {
                continue;
            }
            let retired = consumer.sources[cpu].word(32) != consumer.sources[cpu].generation;
            for _ in 0..5 {
                any |= !consumer.sources[cpu].over && consumer.one(cpu);
            }
            if !retired {
                continue;
            }
            while !consumer.sources[cpu].over && consumer.one(cpu) {}
            if !consumer.sources[cpu].over {
                consumer.sources[cpu].close();
                consumer.open(cpu);
                let generation = consumer.sources[cpu].generation;
                if !consumer.sources[cpu].over {
                    writeln!(consumer.out, "G {cpu} {generation}").unwrap();
                }
            }
            any = true;
        }
        report.write_all(&consumer.out).expect("the report");
        consumer.out.clear();
        if consumer.sources.iter().all(|source| source.over) {
            return;
        }
        if any {
            continue;
        }
        place = (place + 1) % cpus;
        while consumer.sources[place].over {
            place = (place + 1) % cpus;
        }
        consumer.rest(place);
    }
}
