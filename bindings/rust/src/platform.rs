// SPDX-License-Identifier: MIT
use crate::Error;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
use core::time::Duration;

/// Identifies the buffer of a mapping (E19). Two existing buffers never have the same identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `st_dev` of the buffer's file.
    pub device: u64,
    /// `st_ino` of the buffer's file.
    pub inode: u64,
    /// Identifies the producer. 0: a kernel, which has only one. Any other value: a process, which
    /// may be killed (E25).
    pub session: u64,
}

/// A mapped buffer.
#[derive(Debug)]
pub struct Mapping {
    /// The first byte: a page of metadata, and the data twice in a row (5.1.5).
    pub base: NonNull<u8>,
    /// 4096 + 2 x capacity.
    pub mapped_bytes: u64,
    /// Identifies the buffer.
    pub identity: Identity,
    /// Only the platform uses it.
    pub owner: usize,
}

/// The reason for the end of a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A wake, or the word had changed before the sleep.
    Woken,
    /// The time is over.
    TimedOut,
    /// A signal.
    Interrupted,
}

/// Gives a reader its buffers, and lets it sleep.
///
/// # Safety
///
/// A mapping that `attach` returns must be aligned to 8 bytes, readable for `mapped_bytes` bytes
/// and writable in its first 4096, until `detach` has it. Other processes may write to it at any
/// time; code of this program only by atomic accesses. The second half of the data must be an alias
/// of the first (5.1.4). If the platform is `Send`, any thread may use the mapping and detach it.
pub unsafe trait Platform {
    /// Maps the buffer that the producer of this CPU writes to now.
    fn attach(&mut self, cpu: u16) -> Result<Mapping, Error>;
    /// Returns the identity of the buffer that `attach` would map.
    fn identify(&mut self, cpu: u16) -> Result<Identity, Error>;
    /// True if the producer of this CPU still writes to the buffer `known`. Only waits call it, for
    /// a buffer of a process, so it must not block for long: a producer that is stopped does not
    /// answer. The default asks [`Platform::identify`].
    fn is_current(&mut self, cpu: u16, known: &Identity) -> Result<bool, Error> {
        Ok(self.identify(cpu)? == *known)
    }
    /// The number of the CPU's next event when `identify` was called last. A reader that attaches
    /// to an empty ring counts what is lost from there on. The default is `None`: unknown.
    fn next_sequence(&self) -> Option<u64> {
        None
    }
    /// Unmaps.
    ///
    /// # Safety
    ///
    /// `mapping` came from `attach` of this platform, is given once, and no reference to it
    /// remains.
    unsafe fn detach(&mut self, mapping: Mapping);
    /// Sleeps while `*word` is `expected`, by a futex that other processes share (E17). If `limit`
    /// is `None`, there is no limit.
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
