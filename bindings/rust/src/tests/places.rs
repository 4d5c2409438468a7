// SPDX-License-Identifier: MIT
//! Places as bytes: every content comes back, and any damage is one error.
use crate::linux::{refuse, SYS_OPENAT};
use crate::{places_from_bytes, places_to_bytes, Error, Place};

fn place(session: u64, last_sequence: u64) -> Option<Place> {
    Some(Place { session, last_sequence })
}

fn good() -> Vec<u8> {
    places_to_bytes(&[place(0, 9), place(8, 2)]).unwrap()
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = !0;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0xEDB88320 } else { sum >> 1 };
        }
    }
    !sum
}

/// The bytes with `value` at `at`, and a checksum that fits.
fn changed(mut bytes: Vec<u8>, at: usize, value: u8) -> Vec<u8> {
    bytes[at] = value;
    let end = bytes.len() - 4;
    let sum = crc32(&bytes[..end]).to_le_bytes();
    bytes[end..].copy_from_slice(&sum);
    bytes
}

#[test]
fn bytes_hold_every_place() {
    let places = [place(7, 1), None, place(0, u64::MAX), place(u64::MAX, 5), place(0, 0)];
    for count in 0..=places.len() {
        let bytes = places_to_bytes(&places[..count]).unwrap();
        assert_eq!(32 + 24 * count + 4, bytes.len());
        assert_eq!(Ok(places[..count].to_vec()), places_from_bytes(&bytes));
    }
    let most = vec![place(1, 2); 65536];
    assert_eq!(Ok(&most), places_from_bytes(&places_to_bytes(&most).unwrap()).as_ref());
    assert_eq!(Err(Error::Os(22)), places_to_bytes(&vec![None; 65537]));
}

/// The C library has written these bytes, on a kernel with another boot.
#[test]
fn bytes_are_those_of_the_c_library() {
    let mut bytes = b"KMESKEPT\x01\0\0\0\x03\0\0\0".to_vec();
    bytes.extend((1..=16).chain([7, 0, 0, 0, 0, 0, 0, 0, 1, 2]));
    bytes.extend([0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([0; 24]);
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(0xCBF43926, crc32(b"123456789"));
    bytes.extend(crc32(&bytes).to_le_bytes());
    let places = [place(7, 513), None, place(u64::MAX, 9)];
    assert_eq!(Ok(places.to_vec()), places_from_bytes(&bytes));
    let own = places_to_bytes(&[place(7, 513), None, place(0, 9)]).unwrap();
    assert_eq!((&own[..16], &own[32..104]), (&bytes[..16], &bytes[32..104]));
}

#[test]
fn any_damage_is_one_error() {
    let good = good();
    for bit in 0..8 * good.len() {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Err(Error::BadPlaces), places_from_bytes(&bad), "bit {bit}");
    }
    for length in 0..good.len() {
        assert_eq!(Err(Error::BadPlaces), places_from_bytes(&good[..length]), "{length} bytes");
    }
    assert_eq!(Err(Error::BadPlaces), places_from_bytes(&[&good[..], &[0]].concat()));
    assert_eq!(Err(Error::BadPlaces), places_from_bytes(&[b'x'; 1 << 20]));
}

#[test]
fn contents_with_a_right_checksum_are_checked_too() {
    assert_eq!(good(), changed(good(), 8, 1));
    assert_eq!(Err(Error::UnknownPlaces(2)), places_from_bytes(&changed(good(), 8, 2)));
    let counts = [(12, 1), (12, 3), (14, 1), (15, 0x80)];
    for (at, value) in counts.into_iter().chain([(32 + 16, 2), (32 + 20, 1), (32 + 23, 1)]) {
        let bad = changed(good(), at, value);
        assert_eq!(Err(Error::BadPlaces), places_from_bytes(&bad), "{value} at {at}");
    }
    let mut many = good();
    many.truncate(32);
    many.extend(vec![0; 24 * 65537 + 4]);
    many[12..16].copy_from_slice(&65537u32.to_le_bytes());
    assert_eq!(Err(Error::BadPlaces), places_from_bytes(&changed(many, 8, 1)));
}

/// The sequence numbers of a kernel restart with it.
#[test]
fn place_of_an_earlier_boot_is_of_another_session() {
    let boot = good()[16];
    let read = places_from_bytes(&changed(good(), 16, boot ^ 1));
    assert_eq!(Ok(vec![place(u64::MAX, 9), place(8, 2)]), read);
}

/// Zeros in the place of the boot would make a later place that of another boot.
#[test]
fn process_without_a_descriptor_gets_an_error() {
    let good = good();
    let without = std::thread::spawn(move || {
        if !refuse(SYS_OPENAT, 24) {
            return; // a kernel without filters
        }
        assert_eq!(Err(Error::Os(24)), places_to_bytes(&[place(0, 1)]));
        assert_eq!(Err(Error::Os(24)), places_from_bytes(&good));
        assert_eq!(Err(Error::BadPlaces), places_from_bytes(&good[1..]));
    });
    without.join().unwrap();
}
