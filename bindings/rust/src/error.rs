// SPDX-License-Identifier: MIT
use core::fmt;

/// Why a call of a reader failed. Nothing is lost by any of them but [`Error::Corrupt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The buffer is not one of KMES (5.1.6.1).
    BadMagic,
    /// A version of the ring format that this crate does not know.
    UnknownVersion(u32),
    /// A capacity that is no power of two or does not fit the mapping (E14), or another
    /// `data_offset` than that of the version.
    BadLayout,
    /// Content that no producer writes, in a reader with [`Options::stop_on_corrupt`]. Every later
    /// call fails in the same way.
    ///
    /// [`Options::stop_on_corrupt`]: crate::Options::stop_on_corrupt
    Corrupt,
    /// The next event has so many bytes, and the buffer of the caller fewer. It is not consumed.
    TooSmall(usize),
    /// The bytes hold no places, or are damaged. `places_from_bytes` returns it.
    BadPlaces,
    /// Places of a later version, which this crate does not know. `places_from_bytes` returns it.
    UnknownPlaces(u32),
    /// The platform failed with this error number. Call again later.
    Os(i32),
}

impl Error {
    /// True: the fault is in the content that was read, and another attempt will not help.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Error::TooSmall(_) | Error::Os(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::BadMagic => f.write_str("bad magic"),
            Error::UnknownVersion(version) => write!(f, "unknown version {version}"),
            Error::BadLayout => f.write_str("bad capacity or data_offset"),
            Error::Corrupt => f.write_str("corrupt content"),
            Error::TooSmall(bytes) => write!(f, "the next event has {bytes} bytes"),
            Error::BadPlaces => f.write_str("no places, or damaged ones"),
            Error::UnknownPlaces(version) => write!(f, "places of unknown version {version}"),
            Error::Os(number) => write!(f, "error number {number}"),
        }
    }
}

#[cfg(feature = "std")]
impl std::error::Error for Error {}
