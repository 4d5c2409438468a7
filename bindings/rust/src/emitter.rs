// SPDX-License-Identifier: MIT
//! Emits events from this process. The system calls need nothing else. The device and the socket
//! are those of libkmes (kmes/user/emitter.h).
use crate::linux::{last_error, syscall, SYS_KMES_EMIT, SYS_KMES_EMIT_BATCH};
use crate::Error;
use std::fmt;
#[cfg(feature = "libkmes")]
use std::os::raw::c_int;
use std::ptr::null;

const BATCH_MAX: usize = 256; // entries of one call
const EPERM: i32 = 1;
const ENODEV: i32 = 19;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
const ENOSYS: i32 = 38;

#[cfg(feature = "libkmes")]
#[link(name = "kmes")]
extern "C" {
    fn kmes_emitter_open(emitter: *mut *mut CEmitter) -> c_int;
    fn kmes_emitter_close(emitter: *mut CEmitter);
    fn kmes_emitter_emit(
        emitter: *mut CEmitter,
        kind: *const u8,
        kind_bytes: u16,
        payload: *const u8,
        payload_bytes: u32,
    ) -> c_int;
    fn kmes_emitter_emit_batch(
        emitter: *mut CEmitter,
        entries: *const CEntry,
        count: u32,
        emitted: *mut u32,
    ) -> c_int;
}

/// struct kmes_emitter.
#[cfg(feature = "libkmes")]
#[repr(C)]
struct CEmitter {
    private: [u8; 0],
}

/// struct kmes_emit_entry of kmes/abi.h.
#[derive(Clone, Copy)]
#[repr(C)]
struct CEntry {
    kind: *const u8,
    kind_bytes: u16,
    payload: *const u8,
    payload_bytes: u32,
}

/// An event of [`Emitter::emit_batch`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry<'e> {
    /// 1 to 65535 bytes of UTF-8.
    pub kind: &'e [u8],
    /// The payload.
    pub payload: &'e [u8],
}

impl<'e> Entry<'e> {
    /// An event with this kind and payload.
    pub fn new(kind: &'e str, payload: &'e [u8]) -> Self {
        Entry { kind: kind.as_bytes(), payload }
    }

    /// None: the event is larger than any that exists.
    fn to_c(self) -> Option<CEntry> {
        Some(CEntry {
            kind: self.kind.as_ptr(),
            kind_bytes: self.kind.len().try_into().ok()?,
            payload: self.payload.as_ptr(),
            payload_bytes: self.payload.len().try_into().ok()?,
        })
    }
}

/// Why [`Emitter::emit_batch`] emitted only some of the events, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchError {
    /// The number of events that were emitted: those before the first bad entry.
    pub emitted: usize,
    /// The error of that entry, or of the call.
    pub error: Error,
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {} events of the batch", self.error, self.emitted)
    }
}

impl std::error::Error for BatchError {}

impl From<BatchError> for Error {
    fn from(batch: BatchError) -> Error {
        batch.error
    }
}

/// Emits events from this process, with origin class 0. Any number of threads may use it at a time.
///
/// ```no_run
/// let emitter = kmes::Emitter::by_system_call()?;
/// emitter.emit("door.opened", b"")?;
/// # Ok::<(), kmes::Error>(())
/// ```
///
/// # Errors
///
/// All functions return `Error::Os` with an error number:
///
/// | number | meaning |
/// |---|---|
/// | 22 (EINVAL) | the kind is empty, or is not UTF-8 |
/// | 28 (ENOSPC) | the event has over 50 % of the capacity, or is over the limit of the producer |
/// | 1 (EPERM) | this process may not emit |
/// | 16 (EBUSY) | the producer has ended, or the call is nested in an emission of the same CPU |
/// | 38 (ENOSYS) | no producer serves here now |
///
/// An emitter of `Emitter::by_libkmes` has these errors as well, if it uses the socket:
///
/// | number | meaning |
/// |---|---|
/// | 95 (EOPNOTSUPP) | the producer takes no events from other processes |
/// | 27 (EFBIG) | the event is passed as a file, and `RLIMIT_FSIZE` is below its size |
/// | 108 (ESHUTDOWN) | the producer ends |
/// | 104 (ECONNRESET) | the connection ended during the call, and the result is unknown |
/// | 110 (ETIMEDOUT) | the producer does not answer, and the result is unknown |
///
/// After all other errors the event was not emitted. After 38, 104 and 110 the next call connects
/// again.
pub struct Emitter {
    way: Way,
}

enum Way {
    SystemCall,
    #[cfg(feature = "libkmes")]
    Libkmes(std::ptr::NonNull<CEmitter>),
}

// SAFETY: any number of threads may emit by one emitter of libkmes (kmes/user/emitter.h), and any
// thread may close it. The system calls have no state.
unsafe impl Send for Emitter {}
unsafe impl Sync for Emitter {}

fn check(result: i64) -> Result<(), Error> {
    match result {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

impl Emitter {
    /// Emits by the system calls 1090 and 1092. Fails with `Error::Os(38)` if this kernel lacks
    /// them, and with `Error::Os(1)` if this process may not use them.
    pub fn by_system_call() -> Result<Emitter, Error> {
        let emitter = Emitter { way: Way::SystemCall };
        // Every producer that exists rejects an event without a kind.
        match emitter.emit("", &[]) {
            Err(Error::Os(ENODEV | ENOSYS)) => Err(Error::Os(ENOSYS)),
            Err(error @ Error::Os(EPERM)) => Err(error),
            _ => Ok(emitter),
        }
    }

    #[cfg(test)]
    pub(crate) fn for_test() -> Emitter {
        Emitter { way: Way::SystemCall }
    }

    /// Emits as libkmes does: by the system calls, the device of the module, or the socket that
    /// `KMES_SOCKET` names. The program links with `-lkmes`.
    ///
    /// The emitter keeps the device, or one connection to the socket. If the connection has ended,
    /// the next call connects again to the same address, so it continues with the next producer.
    /// After `fork`, parent and child may both continue. An emitter whose descriptor the program
    /// has closed opens another one. A handler of a signal may call no function of it.
    ///
    /// Fails with `Error::Os(38)` if no producer serves here. Fails with `Error::Os(1)`,
    /// `Error::Os(12)`, `Error::Os(23)`, `Error::Os(24)` or `Error::Os(110)` if the way to the
    /// producer cannot be opened. Fails with `Error::Os(22)` or `Error::Os(36)` if `KMES_SOCKET` is
    /// no address, or a too long one.
    #[cfg(feature = "libkmes")]
    pub fn by_libkmes() -> Result<Emitter, Error> {
        let mut emitter = std::ptr::null_mut();
        // SAFETY: the function writes the pointer.
        match unsafe { kmes_emitter_open(&mut emitter) } {
            0 => match std::ptr::NonNull::new(emitter) {
                Some(emitter) => Ok(Emitter { way: Way::Libkmes(emitter) }),
                None => Err(Error::Os(ENOSYS)),
            },
            error => Err(Error::Os(-error)),
        }
    }

    /// Emits one event. `kind` is 1 to 65535 bytes of UTF-8.
    pub fn emit(&self, kind: impl AsRef<[u8]>, payload: &[u8]) -> Result<(), Error> {
        let entry = Entry { kind: kind.as_ref(), payload };
        let CEntry { kind, kind_bytes, payload, payload_bytes } =
            entry.to_c().ok_or(Error::Os(ENOSPC))?;
        match self.way {
            // SAFETY: both pieces live until the call returns, and it only reads them. An integer
            // that is passed to a variadic function has at least the size of an int.
            Way::SystemCall => check(unsafe {
                syscall(SYS_KMES_EMIT, kind, u32::from(kind_bytes), payload, payload_bytes)
            }),
            #[cfg(feature = "libkmes")]
            // SAFETY: as above. The emitter lives until it is dropped.
            Way::Libkmes(emitter) => match unsafe {
                kmes_emitter_emit(emitter.as_ptr(), kind, kind_bytes, payload, payload_bytes)
            } {
                0 => Ok(()),
                error => Err(Error::Os(-error)),
            },
        }
    }

    /// Emits 1 to 256 events, which have one timestamp and are published together. With another
    /// number it emits nothing, and fails with `Error::Os(22)`.
    ///
    /// The call stops at the first bad entry. It emits the events before that entry, and fails with
    /// the error of that entry. After `Error::Os(104)` and `Error::Os(110)` the number of emitted
    /// events is unknown.
    ///
    /// ```no_run
    /// # use kmes::{Emitter, Entry};
    /// let emitter = Emitter::by_system_call()?;
    /// emitter.emit_batch(&[Entry::new("door.opened", b""), Entry::new("door.closed", b"")])?;
    /// # Ok::<(), kmes::Error>(())
    /// ```
    pub fn emit_batch(&self, entries: &[Entry<'_>]) -> Result<(), BatchError> {
        if entries.is_empty() || entries.len() > BATCH_MAX {
            return Err(BatchError { emitted: 0, error: Error::Os(EINVAL) });
        }
        let none = CEntry { kind: null(), kind_bytes: 0, payload: null(), payload_bytes: 0 };
        let mut sound = [none; BATCH_MAX];
        let mut count = 0;
        for entry in entries.iter().map_while(|entry| entry.to_c()) {
            sound[count] = entry;
            count += 1;
        }
        if count > 0 {
            self.emit_sound(&sound[..count])?;
        }
        match count == entries.len() {
            true => Ok(()),
            false => Err(BatchError { emitted: count, error: Error::Os(ENOSPC) }),
        }
    }

    fn emit_sound(&self, entries: &[CEntry]) -> Result<(), BatchError> {
        let mut emitted = 0u32;
        let (at, count) = (entries.as_ptr(), entries.len() as u32);
        let result = match self.way {
            // SAFETY: the entries and what they point to live until the call returns.
            Way::SystemCall => {
                check(unsafe { syscall(SYS_KMES_EMIT_BATCH, at, count, &mut emitted as *mut u32) })
            }
            #[cfg(feature = "libkmes")]
            // SAFETY: as above. The emitter lives until it is dropped.
            Way::Libkmes(emitter) => {
                match unsafe { kmes_emitter_emit_batch(emitter.as_ptr(), at, count, &mut emitted) }
                {
                    0 => Ok(()),
                    error => Err(Error::Os(-error)),
                }
            }
        };
        result.map_err(|error| BatchError { emitted: emitted as usize, error })
    }
}

#[cfg(feature = "libkmes")]
impl Drop for Emitter {
    fn drop(&mut self) {
        if let Way::Libkmes(emitter) = self.way {
            // SAFETY: the last use of it.
            unsafe { kmes_emitter_close(emitter.as_ptr()) };
        }
    }
}
