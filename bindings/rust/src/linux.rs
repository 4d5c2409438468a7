// SPDX-License-Identifier: MIT
//! Linux: the system calls of KMES, mmap and futex.
use crate::{Error, Identity, Mapping, Platform, Wake};
use std::fs::File;
use std::io;
use std::os::raw::{c_int, c_long, c_uint, c_void};
use std::os::unix::{fs::MetadataExt, io::AsRawFd, io::FromRawFd};
use std::ptr::{null, NonNull};
use std::sync::atomic::AtomicU32;
use std::sync::Mutex;
use std::time::Duration;

extern "C" {
    pub(crate) fn syscall(number: c_long, ...) -> c_long;
    fn mmap(
        at: *mut c_void,
        size: usize,
        access: c_int,
        flags: c_int,
        fd: c_int,
        from: i64,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, size: usize) -> c_int;
    fn eventfd(count: c_uint, flags: c_int) -> c_int;
    fn sigfillset(signals: *mut SignalSet) -> c_int;
    fn pthread_sigmask(how: c_int, signals: *const SignalSet, before: *mut SignalSet) -> c_int;
    fn clock_gettime(clock: c_int, now: *mut [i64; 2]) -> c_int;
}

pub(crate) const SYS_KMES_EMIT: c_long = 1090;
const SYS_KMES_ATTACH: c_long = 1091;
pub(crate) const SYS_KMES_EMIT_BATCH: c_long = 1092;
const SYS_FUTEX: c_long = if cfg!(target_arch = "x86_64") { 202 } else { 98 };
pub(crate) const SYS_FUTEX_WAITV: c_long = 449;
#[cfg(test)]
pub(crate) const SYS_OPENAT: c_long = if cfg!(target_arch = "x86_64") { 257 } else { 56 };
const FUTEX_WAIT: c_int = 0; // shared: without FUTEX_PRIVATE_FLAG (E17)
const FUTEX_WAKE: c_int = 1;
const FUTEX_32: u32 = 2; // of futex_waitv, and shared as well
const FUTEX_WAITV_MAX: usize = 128;
const CLOCK_MONOTONIC: c_int = 1;
const NS_PER_SECOND: i64 = 1_000_000_000;
/// Longest sleep that does not cover all words.
const PARTIAL_LIMIT: Duration = Duration::from_millis(10);
const PROT_READ_WRITE: c_int = 3;
const MAP_SHARED: c_int = 1;
const EPERM: i32 = 1;
const EINTR: i32 = 4;
const EAGAIN: i32 = 11;
const ENODEV: i32 = 19;
const EINVAL: i32 = 22;
pub(crate) const EOVERFLOW: i32 = 75;
const ERANGE: i32 = 34;
const ENOSYS: i32 = 38;
const ETIMEDOUT: i32 = 110;

pub(crate) fn last_error() -> Error {
    Error::Os(io::Error::last_os_error().raw_os_error().unwrap_or(EINVAL))
}

/// sigset_t, or more.
type SignalSet = [u64; 16];

/// An eventfd that is readable.
pub(crate) fn readable_eventfd() -> Result<File, Error> {
    const EFD_CLOEXEC: c_int = 0o2000000;
    const EFD_NONBLOCK: c_int = 0o4000;
    // SAFETY: the call makes a descriptor, and nobody else knows it.
    match unsafe { eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK) } {
        -1 => Err(last_error()),
        fd => Ok(unsafe { File::from_raw_fd(fd) }),
    }
}

/// Calls `make` with all signals blocked, as a thread inherits it: the handlers of the program run
/// in its own threads.
pub(crate) fn without_signals<T>(make: impl FnOnce() -> T) -> T {
    const SIG_SETMASK: c_int = 2;
    let (mut all, mut before): (SignalSet, SignalSet) = ([0; 16], [0; 16]);
    // SAFETY: both sets are as large as a sigset_t.
    unsafe {
        sigfillset(&mut all);
        pthread_sigmask(SIG_SETMASK, &all, &mut before);
    }
    let made = make();
    // SAFETY: as above.
    unsafe { pthread_sigmask(SIG_SETMASK, &before, null::<SignalSet>() as *mut SignalSet) };
    made
}

fn seconds_of(limit: Duration) -> i64 {
    i64::try_from(limit.as_secs()).unwrap_or(i64::MAX)
}

/// A futex that other processes share.
pub(crate) fn sleep_on(
    word: *const AtomicU32,
    expected: u32,
    limit: Option<Duration>,
) -> Result<Wake, Error> {
    // struct timespec
    let time = limit.map(|limit| [seconds_of(limit), i64::from(limit.subsec_nanos())]);
    let time = time.as_ref().map_or(null(), |time| time.as_ptr());
    // SAFETY: the time lives until the call returns. Only the kernel reads the word, and it refuses
    // an address that is not mapped.
    if unsafe { syscall(SYS_FUTEX, word, FUTEX_WAIT, expected, time) } == 0 {
        return Ok(Wake::Woken);
    }
    wake_of(last_error())
}

fn wake_of(error: Error) -> Result<Wake, Error> {
    match error {
        Error::Os(EAGAIN) => Ok(Wake::Woken),
        Error::Os(ETIMEDOUT) => Ok(Wake::TimedOut),
        Error::Os(EINTR) => Ok(Wake::Interrupted),
        error => Err(error),
    }
}

/// struct futex_waitv.
#[derive(Clone, Copy)]
#[repr(C)]
struct FutexWaitv {
    expected: u64,
    word: u64,
    flags: u32,
    reserved: u32,
}

/// The end of a limit that begins now, as struct timespec.
fn deadline(limit: Duration) -> [i64; 2] {
    let mut now = [0i64; 2];
    // SAFETY: `now` has the layout of struct timespec.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &mut now) };
    let ns = now[1] + i64::from(limit.subsec_nanos());
    let seconds = seconds_of(limit);
    [seconds.saturating_add(now[0]).saturating_add(ns / NS_PER_SECOND), ns % NS_PER_SECOND]
}

/// Several futexes that other processes share.
pub(crate) fn sleep_on_any(
    words: &[(&AtomicU32, u32)],
    limit: Option<Duration>,
) -> Result<Wake, Error> {
    sleep_on_each(words.iter().map(|(word, expected)| (*word as *const _, *expected)), limit)
}

/// As sleep_on_any. A word may be unmapped meanwhile: only the kernel reads it.
pub(crate) fn sleep_on_each(
    mut words: impl ExactSizeIterator<Item = (*const AtomicU32, u32)> + Clone,
    limit: Option<Duration>,
) -> Result<Wake, Error> {
    let partial = Some(limit.map_or(PARTIAL_LIMIT, |limit| limit.min(PARTIAL_LIMIT)));
    let (count, all) = (words.len(), words.clone());
    let (first, expected) = match words.next() {
        None => {
            std::thread::sleep(limit.unwrap_or(PARTIAL_LIMIT));
            return Ok(Wake::TimedOut);
        }
        Some((word, expected)) if count == 1 => return sleep_on(word, expected, limit),
        Some(first) => first,
    };
    let limit = if count > FUTEX_WAITV_MAX { partial } else { limit };
    let wait = |(word, expected)| FutexWaitv {
        expected: u64::from(expected),
        word: word as u64,
        flags: FUTEX_32,
        reserved: 0,
    };
    let waits: Vec<_> = all.take(FUTEX_WAITV_MAX).map(wait).collect();
    let end = limit.map(deadline);
    let end = end.as_ref().map_or(null(), |end| end.as_ptr());
    // SAFETY: the waits and the time live until the call returns. The words as above.
    let result =
        unsafe { syscall(SYS_FUTEX_WAITV, waits.as_ptr(), waits.len(), 0, end, CLOCK_MONOTONIC) };
    if result >= 0 {
        return Ok(Wake::Woken);
    }
    match last_error() {
        // A filter of system calls that does not know it refuses it by EPERM.
        Error::Os(ENOSYS | EPERM) => sleep_on(first, expected, partial),
        error => wake_of(error),
    }
}

/// Wakes all sleepers of a word.
pub(crate) fn wake_all(word: &AtomicU32) {
    // SAFETY: the word lives until the call returns.
    unsafe { syscall(SYS_FUTEX, word as *const AtomicU32, FUTEX_WAKE, i32::MAX) };
}

/// Makes the system call `number` fail with `error` in this thread (seccomp). False: the kernel has
/// no filters.
#[cfg(test)]
pub(crate) fn refuse(number: c_long, error: u32) -> bool {
    refuse_if(number, &[], error)
}

/// As refuse, only for calls whose arguments with these indices have these values.
#[cfg(test)]
pub(crate) fn refuse_if(number: c_long, arguments: &[(u32, u32)], error: u32) -> bool {
    extern "C" {
        fn prctl(option: c_int, ...) -> c_int;
    }
    /// struct sock_filter.
    #[repr(C)]
    struct Instruction(u16, u8, u8, u32);
    /// struct sock_fprog.
    #[repr(C)]
    struct Program(u16, *const Instruction);
    const PR_SET_SECCOMP: c_int = 22;
    const PR_SET_NO_NEW_PRIVS: c_int = 38;
    const MODE_FILTER: usize = 2;
    const ARGUMENTS: u32 = 16; // offset in struct seccomp_data
    let mut instructions = vec![];
    let numbers = [(0, number as u32)].into_iter();
    let checks = numbers.chain(arguments.iter().map(|(at, is)| (ARGUMENTS + 8 * at, *is)));
    let mut left = 2 * arguments.len() as u8 + 1; // instructions from the check to the last one
    for (offset, value) in checks {
        instructions.push(Instruction(0x20, 0, 0, offset)); // load the low half
        instructions.push(Instruction(0x15, 0, left, value)); // go to the last one if it differs
        left = left.saturating_sub(2);
    }
    instructions.push(Instruction(0x06, 0, 0, 0x0005_0000 | error)); // fail
    instructions.push(Instruction(0x06, 0, 0, 0x7FFF_0000)); // allow
    let program = Program(instructions.len() as u16, instructions.as_ptr());
    // SAFETY: the program lives until the calls return.
    unsafe {
        prctl(PR_SET_NO_NEW_PRIVS, 1usize, 0usize, 0usize, 0usize) == 0
            && prctl(PR_SET_SECCOMP, MODE_FILTER, &program as *const Program) == 0
    }
}

/// The buffers of all CPUs, and the capacity of each. The lock keeps the threads of a program from
/// holding descriptors for all CPUs each.
fn attach_all() -> Result<(Vec<File>, u64), Error> {
    static LOCK: Mutex<()> = Mutex::new(());
    let _guard = LOCK.lock();
    let (mut fds, mut capacity) = (vec![-1], 0u64);
    loop {
        let mut count = fds.len() as c_int;
        // SAFETY: `fds` has `count` slots.
        let result = unsafe {
            syscall(
                SYS_KMES_ATTACH,
                fds.as_mut_ptr(),
                &mut count as *mut c_int,
                &mut capacity as *mut u64,
            )
        };
        if result == 0 {
            fds.truncate(usize::try_from(count).unwrap_or(0));
            // SAFETY: the call has made these descriptors, and nobody else knows them.
            return Ok((
                fds.iter().map(|fd| unsafe { File::from_raw_fd(*fd) }).collect(),
                capacity,
            ));
        }
        match last_error() {
            Error::Os(ERANGE) if count > fds.len() as c_int => fds = vec![-1; count as usize],
            error => return Err(error),
        }
    }
}

fn attach_cpu(cpu: u16) -> Result<(File, u64, Identity), Error> {
    let (mut files, capacity) = attach_all()?;
    if usize::from(cpu) >= files.len() {
        return Err(Error::Os(ENODEV));
    }
    let file = files.swap_remove(cpu.into());
    let status =
        file.metadata().map_err(|error| Error::Os(error.raw_os_error().unwrap_or(EINVAL)))?;
    let identity = Identity { device: status.dev(), inode: status.ino(), session: 0 };
    Ok((file, capacity, identity))
}

/// The number of CPUs, by the system call.
pub fn cpu_count() -> Result<u16, Error> {
    let (files, _) = attach_all()?;
    u16::try_from(files.len()).map_err(|_| Error::Os(EOVERFLOW))
}

/// The system call `kmes_attach` (1091) and nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemCall;

// SAFETY: mmap of whole pages, as 5.1.5 says; the kernel lays the data out twice.
unsafe impl Platform for SystemCall {
    fn attach(&mut self, cpu: u16) -> Result<Mapping, Error> {
        let (file, capacity, identity) = attach_cpu(cpu)?;
        let size = capacity.checked_mul(2).and_then(|data| data.checked_add(4096));
        let size = size.and_then(|size| usize::try_from(size).ok()).ok_or(Error::BadLayout)?;
        // SAFETY: a new mapping. The descriptor may be closed afterwards, the mapping stays.
        let base = unsafe {
            mmap(
                null::<c_void>() as *mut c_void,
                size,
                PROT_READ_WRITE,
                MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr() as isize != -1 => {
                Ok(Mapping { base, mapped_bytes: size as u64, identity, owner: 0 })
            }
            _ => Err(last_error()),
        }
    }

    fn identify(&mut self, cpu: u16) -> Result<Identity, Error> {
        attach_cpu(cpu).map(|(_, _, identity)| identity)
    }

    unsafe fn detach(&mut self, mapping: Mapping) {
        // SAFETY: attach has made the mapping, and the caller has no reference to it.
        unsafe { munmap(mapping.base.as_ptr().cast(), mapping.mapped_bytes as usize) };
    }

    fn sleep(
        &mut self,
        word: &AtomicU32,
        expected: u32,
        limit: Option<Duration>,
    ) -> Result<Wake, Error> {
        sleep_on(word, expected, limit)
    }
}
