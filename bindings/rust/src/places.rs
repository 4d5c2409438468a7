// SPDX-License-Identifier: MIT
//! Places as bytes, which a file keeps for a later process. The format is that of libkmes
//! (kmes/user/places.c). All numbers are little-endian.
//!
//! ```text
//!    0   8   magic
//!    8   4   version
//!   12   4   count
//!   16  16   boot of the kernel: after it the sequence numbers of session 0 restart
//!   32  24   each place: session, last sequence, 4 bytes whether it is known, 4 bytes zero
//!   end  4   CRC-32 of all bytes before
//! ```
use crate::{Error, Place};
use std::fs::File;
use std::io::Read;

const MAGIC: &[u8; 8] = b"KMESKEPT";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 32;
const PLACE_BYTES: usize = 24;
const CHECKSUM_BYTES: usize = 4;
const PLACES_MAX: usize = 65536; // CPUs
/// No producer has it: 0 is the kernel's session, and others are random.
const OTHER_SESSION: u64 = u64::MAX;
const ENOMEM: i32 = 12;
const EINVAL: i32 = 22;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

type Boot = [u8; 16];

/// Writes places as bytes, which a file keeps for a later process. The place of CPU 0 comes first.
///
/// Store the bytes together with the results, in one write or one transaction. No event is then
/// processed twice or missed, also after a kill. Replace a file by a new one and a rename.
///
/// The C library reads these bytes with `kmes_places_read`, and [`places_from_bytes`] reads those
/// of `kmes_places_write`.
///
/// Fails with `Error::Os(22)` if there are more than 65536 places. Fails with `Error::Os(12)`,
/// `Error::Os(23)` or `Error::Os(24)` if there is no memory, or if the number of the kernel's boot
/// cannot be read now.
///
/// ```
/// use kmes::{places_from_bytes, places_to_bytes, Place};
///
/// let places = [Some(Place { session: 7, last_sequence: 1 }), None];
/// let bytes = places_to_bytes(&places)?;
/// assert_eq!(places[..], places_from_bytes(&bytes)?);
/// # Ok::<(), kmes::Error>(())
/// ```
pub fn places_to_bytes(places: &[Option<Place>]) -> Result<Vec<u8>, Error> {
    if places.len() > PLACES_MAX {
        return Err(Error::Os(EINVAL));
    }
    let mut bytes = room_for(HEAD_BYTES + places.len() * PLACE_BYTES + CHECKSUM_BYTES)?;
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(places.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&read_boot()?);
    for place in places {
        let Place { session, last_sequence } =
            place.unwrap_or(Place { session: 0, last_sequence: 0 });
        for number in [session, last_sequence, place.is_some().into()] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
    bytes.extend_from_slice(&checksum(&bytes).to_le_bytes());
    Ok(bytes)
}

/// Reads the bytes of [`places_to_bytes`], or of `kmes_places_write`, for
/// [`Options::places`](crate::Options::places). Bytes of any content are safe.
///
/// If the kernel has booted again since, its places become places of another session. A reader
/// then begins at the oldest event, and [`Resumed::NewSession`](crate::Resumed::NewSession) says
/// so.
///
/// Fails with [`Error::BadPlaces`] if the bytes are damaged, or are something else. Fails with
/// [`Error::UnknownPlaces`] if a later version has written them. `Error::Os` is as that of
/// [`places_to_bytes`].
pub fn places_from_bytes(bytes: &[u8]) -> Result<Vec<Option<Place>>, Error> {
    let slots = check(bytes)?;
    let mut places = room_for(slots.len() / PLACE_BYTES)?;
    let is_same_boot = read_boot()? == bytes[16..HEAD_BYTES];
    for slot in slots.chunks_exact(PLACE_BYTES) {
        let mut place = Place { session: number(&slot[..8]), last_sequence: number(&slot[8..16]) };
        if place.session == 0 && !is_same_boot {
            place.session = OTHER_SESSION;
        }
        places.push(Some(place).filter(|_| is_known(slot)));
    }
    Ok(places)
}

fn room_for<T>(count: usize) -> Result<Vec<T>, Error> {
    let mut room = vec![];
    room.try_reserve_exact(count).map_err(|_| Error::Os(ENOMEM))?;
    Ok(room)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn is_known(slot: &[u8]) -> bool {
    number(&slot[16..]) == 1
}

/// CRC-32.
fn checksum(bytes: &[u8]) -> u32 {
    let of_bit = |sum: u32, _| sum >> 1 ^ if sum & 1 == 1 { 0xEDB88320 } else { 0 };
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), of_bit))
}

/// Returns the bytes of all places.
fn check(bytes: &[u8]) -> Result<&[u8], Error> {
    if bytes.len() < HEAD_BYTES + CHECKSUM_BYTES || !bytes.starts_with(MAGIC) {
        return Err(Error::BadPlaces);
    }
    let (content, sum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
    if number(sum) != u64::from(checksum(content)) {
        return Err(Error::BadPlaces);
    }
    let version = number(&content[8..12]) as u32;
    if version != VERSION {
        return Err(Error::UnknownPlaces(version));
    }
    let (count, slots) = (number(&content[12..16]), &content[HEAD_BYTES..]);
    // The count has 32 bits, so the product does not overflow.
    let is_sound = count <= PLACES_MAX as u64
        && slots.len() as u64 == count * PLACE_BYTES as u64
        && slots.chunks_exact(PLACE_BYTES).all(|slot| number(&slot[16..]) <= 1);
    if is_sound {
        Ok(slots)
    } else {
        Err(Error::BadPlaces)
    }
}

/// The number of the kernel's boot, or zeros if the kernel does not provide it. After a lack of
/// descriptors or memory it is an error: zeros would make every later place that of another boot.
fn read_boot() -> Result<Boot, Error> {
    let mut boot = [0; 16];
    let mut text = [0; 36];
    let length = match File::open("/proc/sys/kernel/random/boot_id") {
        Ok(mut file) => file.read(&mut text).unwrap_or(0),
        Err(error) => match error.raw_os_error() {
            Some(lack @ (ENOMEM | ENFILE | EMFILE)) => return Err(Error::Os(lack)),
            _ => 0,
        },
    };
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    for (at, digit) in text[..length].iter().filter_map(digit).take(32).enumerate() {
        boot[at / 2] = boot[at / 2] << 4 | digit;
    }
    Ok(boot)
}
