// SPDX-License-Identifier: MIT
//! A KMES consumer on an `epoll` loop, and a testee of the conformance suite: it writes the records
//! of docs/testee-contract.md. An event loop of a crate takes the same descriptor.
mod report;
#[path = "report/set.rs"]
mod set;

use kmes::{Error, OwnedEvent};
use report::retried;
use set::{Records, Set};
use std::io;
use std::os::raw::c_int;
use std::os::unix::io::RawFd;

extern "C" {
    fn epoll_create1(flags: c_int) -> c_int;
    fn epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut EpollEvent) -> c_int;
    fn epoll_wait(epoll: c_int, events: *mut EpollEvent, most: c_int, limit_ms: c_int) -> c_int;
}

/// struct epoll_event.
#[cfg_attr(target_arch = "x86_64", repr(C, packed))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C))]
#[derive(Clone, Copy, Default)]
struct EpollEvent {
    events: u32,
    data: u64,
}

const EPOLL_CLOEXEC: c_int = 0o2000000;
const EPOLL_CTL_ADD: c_int = 1;
const EPOLLIN: u32 = 1;
const EINTR: i32 = 4;
const EINVAL: i32 = 22;

fn check(result: c_int) -> Result<c_int, Error> {
    let error = || io::Error::last_os_error().raw_os_error().unwrap_or(EINVAL);
    if result < 0 {
        Err(Error::Os(error()))
    } else {
        Ok(result)
    }
}

/// An epoll that waits for one descriptor.
fn epoll_of(fd: RawFd) -> Result<RawFd, Error> {
    // SAFETY: the event lives until the calls return.
    unsafe {
        let epoll = check(epoll_create1(EPOLL_CLOEXEC))?;
        let mut event = EpollEvent { events: EPOLLIN, data: 0 };
        check(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &mut event))?;
        Ok(epoll)
    }
}

fn wait(epoll: RawFd) -> Result<(), Error> {
    let mut event = EpollEvent::default();
    // SAFETY: room for one event.
    match check(unsafe { epoll_wait(epoll, &mut event, 1, -1) }) {
        Ok(_) | Err(Error::Os(EINTR)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Until the last event of each CPU, or its refusal.
fn consume(mut set: Set, records: &mut Records) -> Result<(), Error> {
    let fd = retried(|| set.fd())?;
    let epoll = retried(|| epoll_of(fd))?;
    loop {
        wait(epoll)?;
        while let Some((id, event)) = set.next()? {
            let event = OwnedEvent::from(event); // the set can then be asked for the buffer
            records.event(id, &event, set.buffer(id));
            // The thread of the set sleeps once `next` finds nothing, and a testee writes its
            // records before it sleeps.
            records.flush();
        }
        if records.state(&set) {
            return Ok(());
        }
    }
}

fn main() {
    set::run(consume);
}
