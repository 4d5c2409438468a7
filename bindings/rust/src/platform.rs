// SPDX-License-Identifier: MIT
use crate::Error;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
use core::time::Duration;

/// Which buffer a mapping is (E19). Two buffers never have the same identity at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `st_dev` of the buffer's file.
    pub device: u64,
    /// `st_ino` of the buffer's file.
    pub inode: u64,
    /// Which producer; 0 where there is only one, as in a kernel. Any other value says that the
    /// producer is a process, which may be killed (E25).
    pub session: u64,
}

/// A mapped buffer.
#[derive(Debug)]
pub struct Mapping {
    /// The first byte: a page of metadata, and the data twice in a row (5.1.5).
    pub base: NonNull<u8>,
    /// 4096 + 2 x capacity.
    pub mapped_bytes: u64,
    /// Which buffer this is.
    pub identity: Identity,
    /// For the platform alone.
    pub owner: usize,
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A wake, or the word had changed before the sleep.
    Woken,
    /// The time is over.
    TimedOut,
    /// A signal.
    Interrupted,
}

/// How a reader gets at buffers, and sleeps.
///
/// # Safety
///
/// A mapping that `attach` returns must be aligned to 8 bytes, readable for `mapped_bytes` bytes
/// and writable in its first 4096, until `detach` has it. Other processes may write to it at any
/// time; code of this program only by atomic accesses. The second half of the data must be an alias
/// of the first (5.1.4).
pub unsafe trait Platform {
    /// Maps the buffer that the producer of this CPU writes to now.
    fn attach(&mut self, cpu: u16) -> Result<Mapping, Error>;
    /// Says which buffer `attach` would map.
    fn identify(&mut self, cpu: u16) -> Result<Identity, Error>;
    /// Unmaps.
    ///
    /// # Safety
    ///
    /// `mapping` came from `attach` of this platform, is given once, and no reference to it
    /// remains.
    unsafe fn detach(&mut self, mapping: Mapping);
    /// Sleeps while `*word` is `expected`, by a futex that other processes share (E17). No limit
    /// where `limit` is `None`.
    fn sleep(
        &mut self,
        word: &AtomicU32,
        expected: u32,
        limit: Option<Duration>,
    ) -> Result<Wake, Error>;
    /// Sleeps while each word has the value beside it, as [`Platform::sleep`], for a
    /// [`ReaderSet`](crate::ReaderSet). Without words it sleeps for `limit`. The default calls
    /// `futex_waitv`, and waits for at most 10 ms where the kernel cannot wait for all words.
    #[cfg(feature = "std")]
    fn sleep_any(
        &self,
        words: &[(&AtomicU32, u32)],
        limit: Option<Duration>,
    ) -> Result<Wake, Error> {
        crate::linux::sleep_on_any(words, limit)
    }
}
