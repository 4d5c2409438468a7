// SPDX-License-Identifier: MIT
//! One mapped buffer: its fields, its data, and the order of every access to them.
use crate::{Error, Mapping};
use core::marker::PhantomData;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{fence, AtomicU32, AtomicU64, AtomicU8};

pub(crate) const HEADER_BYTES: u64 = 29; // of an event, before its type
const METADATA_BYTES: u64 = 4096;
const CAPACITIES: Range<u64> = 256..(1 << 31) + 1;

/// 5.1.6, the first page.
#[repr(C)]
pub(crate) struct Metadata {
    magic: [AtomicU8; 8],
    version: AtomicU32,
    cpu_id: AtomicU32, // and reserved bytes, which are no reason to refuse
    capacity: AtomicU64,
    data_offset: AtomicU64,
    generation: AtomicU64,
    reserved1: [u64; 3],
    write_pos: AtomicU64,
    tail_pos: AtomicU64,
    reserved2: [u64; 6],
    futex_counter: AtomicU32,
    need_wake: AtomicU8,
}

/// A buffer that was checked.
pub(crate) struct Ring {
    pub(crate) mapping: Mapping,
    pub(crate) capacity: u64, // taken once, with the check; never read again (E14)
}

// SAFETY: a mapping belongs to no thread, and all accesses to it are atomic.
unsafe impl Send for Ring {}

impl Ring {
    /// 5.1.6.1, and E14 for the capacity. Relaxed loads: these fields are written once, before
    /// anybody can attach. After an error the mapping is the caller's again.
    pub(crate) fn check(mapping: Mapping) -> Result<Ring, (Error, Mapping)> {
        if mapping.mapped_bytes < METADATA_BYTES + 2 * CAPACITIES.start {
            return Err((Error::BadLayout, mapping));
        }
        let mut ring = Ring { mapping, capacity: 0 };
        let page = ring.page();
        let capacity = page.capacity.load(Relaxed);
        let magic = page.magic.iter().map(|byte| byte.load(Relaxed));
        let version = page.version.load(Relaxed);
        let is_sound = CAPACITIES.contains(&capacity)
            && capacity.is_power_of_two()
            && ring.mapping.mapped_bytes == METADATA_BYTES + 2 * capacity
            && page.data_offset.load(Relaxed) == METADATA_BYTES;
        let error = if !magic.eq(*b"KMESRING") {
            Error::BadMagic
        } else if version != 1 {
            Error::UnknownVersion(version)
        } else if !is_sound {
            Error::BadLayout
        } else {
            ring.capacity = capacity;
            return Ok(ring);
        };
        Err((error, ring.mapping))
    }

    /// The same ring once more.
    ///
    /// # Safety
    ///
    /// Nothing may access the result after the mapping was detached.
    #[cfg(feature = "std")]
    pub(crate) unsafe fn alias(&self) -> Ring {
        let Mapping { base, mapped_bytes, identity, owner } = self.mapping;
        Ring { mapping: Mapping { base, mapped_bytes, identity, owner }, capacity: self.capacity }
    }

    /// 5.1.8.2 before the sleep of a reader that has read up to `read_pos` and has seen
    /// `generation`: asks for a wake, and checks once more. The value of the futex word with which
    /// to sleep, or None if there is something.
    pub(crate) fn begin_sleep(&self, read_pos: u64, generation: u64) -> Option<u32> {
        let counter = self.futex_counter(); // E2: first
        self.ask_for_wake();
        // E1: a full fence between the store of need_wake and the loads of the check. It pairs with
        // the producer's between write_pos and its load of need_wake: one of them sees the
        // other.
        fence(SeqCst);
        // E3: the generation together with write_pos, and both after the fence.
        let has_something = read_pos < self.write_pos() || self.generation() != generation;
        (!has_something).then_some(counter)
    }

    fn page(&self) -> &Metadata {
        // SAFETY: Platform::attach promises a mapping of at least a page, which is aligned, and
        // which lives until detach takes `self.mapping`. Shared fields are atomics.
        unsafe { self.mapping.base.cast().as_ref() }
    }

    /// Acquire (5.1.8.1 step 1): pairs with the release store of 5.1.7 step 8, so the bytes of all
    /// events below the result are visible.
    pub(crate) fn write_pos(&self) -> u64 {
        self.page().write_pos.load(Acquire)
    }

    /// Acquire (5.1.8.1 step 2): pairs with the release store of 5.1.7 step 6.
    pub(crate) fn tail_pos(&self) -> u64 {
        self.page().tail_pos.load(Acquire)
    }

    /// 5.1.8.1 step 5. The fence keeps the loads of the data before the load of the tail, which an
    /// acquire load would not do (E4). It pairs with the producer's fence between its store of
    /// tail_pos and the new bytes (E5): whoever saw one of these bytes sees that tail.
    pub(crate) fn tail_pos_after_data(&self) -> u64 {
        fence(Acquire);
        self.page().tail_pos.load(Relaxed)
    }

    /// Acquire (E24): pairs with the release store of 5.1.8.4 step 4. A write_pos that is loaded
    /// after a change was seen is the last one of this buffer. Never cached (E9).
    pub(crate) fn generation(&self) -> u64 {
        self.page().generation.load(Acquire)
    }

    pub(crate) fn futex_word(&self) -> &AtomicU32 {
        &self.page().futex_counter
    }

    /// Acquire (E2): the loads of the check before the sleep come after it. An event that the check
    /// does not see changes the word after this load, and so ends the sleep.
    fn futex_counter(&self) -> u32 {
        self.page().futex_counter.load(Acquire)
    }

    /// 5.1.8.2 step 1. Release, as the text says; the order that matters is that of the full fence
    /// which must follow (E1).
    fn ask_for_wake(&self) {
        self.page().need_wake.store(1, Release);
    }

    /// 5.1.8.2 step 6. Relaxed: a producer that still sees 1 wakes nobody, which is harmless.
    pub(crate) fn clear_wake(&self) {
        self.page().need_wake.store(0, Relaxed);
    }

    /// The bytes from a position on. `bytes` is at most the capacity: with the second mapping of
    /// the data that is one piece (5.1.4).
    pub(crate) fn data(&self, position: u64, bytes: u64) -> Bytes<'_> {
        assert!(bytes <= self.capacity);
        let offset = METADATA_BYTES + (position & (self.capacity - 1));
        // SAFETY: offset + bytes < 4096 + 2 x capacity, which is the size of the mapping.
        let start =
            unsafe { NonNull::new_unchecked(self.mapping.base.as_ptr().add(offset as usize)) };
        Bytes { start, bytes: bytes as usize, ring: PhantomData }
    }
}

/// Bytes in a ring. The producer may change them between any two loads, so there is no `&[u8]` of
/// them: each access is a relaxed atomic load.
#[derive(Clone, Copy)]
pub struct Bytes<'a> {
    start: NonNull<u8>,
    bytes: usize,
    ring: PhantomData<&'a Ring>,
}

impl<'a> Bytes<'a> {
    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// True: there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The byte at an index.
    pub fn get(&self, index: usize) -> Option<u8> {
        // SAFETY: inside of the mapping, which lives for 'a; all accesses to it are atomic.
        let load =
            |index| unsafe { (*self.start.as_ptr().add(index).cast::<AtomicU8>()).load(Relaxed) };
        (index < self.bytes).then(|| load(index))
    }

    /// A part. Panics where `range` is not inside.
    pub fn slice(&self, range: Range<usize>) -> Bytes<'a> {
        assert!(range.start <= range.end && range.end <= self.bytes);
        // SAFETY: range.start is at most the number of bytes.
        let start = unsafe { NonNull::new_unchecked(self.start.as_ptr().add(range.start)) };
        Bytes { start, bytes: range.end - range.start, ring: PhantomData }
    }

    /// The bytes one by one.
    pub fn iter(&self) -> impl Iterator<Item = u8> + 'a {
        let bytes = *self;
        (0..self.bytes).map_while(move |index| bytes.get(index))
    }

    /// Copies all bytes. Panics where `to` has another length. Words of 8 bytes where the ring is
    /// aligned for them; the order does not matter, since tail_pos_after_data comes after all.
    pub fn copy_to(&self, to: &mut [u8]) {
        assert!(to.len() == self.bytes);
        let unaligned = self.start.as_ptr().align_offset(8).min(self.bytes);
        let (head, rest) = to.split_at_mut(unaligned);
        let words = rest.len() / 8;
        head.iter_mut().zip(self.iter()).for_each(|(to, byte)| *to = byte);
        // SAFETY: from the first aligned byte on, words x 8 bytes are inside; all accesses to the
        // mapping are atomic.
        let first = unsafe { self.start.as_ptr().add(unaligned).cast::<AtomicU64>() };
        let mut chunks = rest.chunks_exact_mut(8);
        for (index, chunk) in chunks.by_ref().enumerate() {
            // SAFETY: index < words.
            let word = unsafe { (*first.add(index)).load(Relaxed) };
            chunk.copy_from_slice(&word.to_ne_bytes());
        }
        let tail = self.slice(unaligned + words * 8..self.bytes);
        chunks.into_remainder().iter_mut().zip(tail.iter()).for_each(|(to, byte)| *to = byte);
    }
}
