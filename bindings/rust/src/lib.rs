// SPDX-License-Identifier: MIT
//! A reader of KMES per-CPU event rings, and an emitter.
//!
//! A [`Reader`] drains the ring of one CPU, sleeps while it is empty, and follows the CPU to its
//! next buffer after a resize. It implements section 5.1.8 of the KMES specification with its
//! errata (`E1` and so on, see `docs/errata.md`). It needs neither `std` nor memory allocation: a
//! [`Platform`] attaches to buffers and sleeps.
//!
//! With the feature `std` (the default), [`SystemCall`] is such a platform for Linux, and
//! [`Reader::events`] iterates over events that own their bytes:
//!
//! ```no_run
//! let mut reader = kmes::Reader::open(kmes::SystemCall, 0, kmes::Options::default())?;
//! for event in reader.events() {
//!     let event = event?;
//!     println!("{} {} bytes", event.sequence, event.payload.len());
//! }
//! # Ok::<(), kmes::Error>(())
//! ```
//!
//! A [`Reader`] reads one CPU. A [`ReaderSet`] reads all of them in one thread, and a [`Merge`] of
//! it delivers the events by time. An [`Emitter`] emits events from this process.
//!
//! # What a ring may contain
//!
//! Everything in a mapping is hostile: the reader stays inside of it, ends every call, and never
//! moves back, whatever is written there. A producer may overwrite an event at any time. So an
//! [`Event`] is a copy that was checked, and a [`Peek`] shows bytes in place through atomic loads,
//! which are to be believed only after [`Peek::release`] has returned true.
#![cfg_attr(not(any(feature = "std", test)), no_std)]
#![deny(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

mod error;
mod place;
mod platform;
mod reader;
mod ring;

#[cfg(test)]
mod tests;

#[cfg(feature = "std")]
mod emitter;
#[cfg(feature = "std")]
mod handle;
#[cfg(feature = "libkmes")]
mod libkmes;
#[cfg(feature = "std")]
mod linux;
#[cfg(feature = "std")]
mod merge;
#[cfg(feature = "std")]
mod owned;
#[cfg(feature = "std")]
mod places;
#[cfg(feature = "std")]
mod set;

#[cfg(feature = "std")]
pub use emitter::{BatchError, Emitter, Entry};
pub use error::Error;
#[cfg(feature = "libkmes")]
pub use libkmes::Libkmes;
#[cfg(feature = "std")]
pub use linux::{cpu_count, SystemCall};
#[cfg(feature = "std")]
pub use merge::{Merge, MergeEvents, MergeOptions, MergeStatistics, Merged};
#[cfg(feature = "std")]
pub use owned::{Events, OwnedEvent};
pub use place::{Place, Resumed};
#[cfg(feature = "std")]
pub use places::{places_from_bytes, places_to_bytes};
pub use platform::{Identity, Mapping, Platform, Wake};
pub use reader::{Buffer, Event, Options, Peek, Reader, Statistics};
pub use ring::Bytes;
#[cfg(feature = "std")]
pub use set::{ReaderSet, SetEvents};
