// SPDX-License-Identifier: MIT
use crate::{Error, Event, Platform, Reader};

const ENOMEM: i32 = 12;

/// An event that owns its bytes. The fields are those of [`Event`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedEvent {
    /// As [`Event::sequence`].
    pub sequence: u64,
    /// As [`Event::timestamp_ns`].
    pub timestamp_ns: u64,
    /// As [`Event::origin`].
    pub origin: u8,
    /// As [`Event::lost_before`].
    pub lost_before: u64,
    /// As [`Event::kind`].
    pub kind: Vec<u8>,
    /// As [`Event::payload`].
    pub payload: Vec<u8>,
}

impl From<Event<'_>> for OwnedEvent {
    fn from(event: Event<'_>) -> Self {
        OwnedEvent {
            sequence: event.sequence,
            timestamp_ns: event.timestamp_ns,
            origin: event.origin,
            lost_before: event.lost_before,
            kind: event.kind.to_vec(),
            payload: event.payload.to_vec(),
        }
    }
}

impl OwnedEvent {
    /// The same event, which borrows its bytes from this one.
    pub fn as_event(&self) -> Event<'_> {
        Event {
            sequence: self.sequence,
            timestamp_ns: self.timestamp_ns,
            origin: self.origin,
            lost_before: self.lost_before,
            kind: &self.kind,
            payload: &self.payload,
        }
    }
}

/// An iterator over the events of a reader. See [`Reader::events`] and [`Reader::available`].
pub struct Events<'r, P: Platform> {
    reader: &'r mut Reader<P>,
    buffer: Vec<u8>,
    sleeps: bool,
}

impl<P: Platform> Reader<P> {
    /// All events, with sleeps between them. It never ends; after an error the next item may be an
    /// event again, unless [`Error::is_refusal`].
    pub fn events(&mut self) -> Events<'_, P> {
        Events { reader: self, buffer: vec![0; 4096], sleeps: true }
    }

    /// The events that are there now.
    pub fn available(&mut self) -> Events<'_, P> {
        Events { sleeps: false, ..self.events() }
    }
}

impl<P: Platform> Iterator for Events<'_, P> {
    type Item = Result<OwnedEvent, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.reader.next(&mut self.buffer) {
                Ok(Some(event)) => return Some(Ok(event.into())),
                Ok(None) if !self.sleeps => return None,
                Ok(None) => {
                    if let Err(error) = self.reader.wait(None) {
                        return Some(Err(error));
                    }
                }
                // A hostile ring can ask for as much as its capacity.
                Err(Error::TooSmall(bytes)) => {
                    let more = bytes - self.buffer.len();
                    if self.buffer.try_reserve(more).is_err() {
                        return Some(Err(Error::Os(ENOMEM)));
                    }
                    self.buffer.resize(bytes, 0);
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
