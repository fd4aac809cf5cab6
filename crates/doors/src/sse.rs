//! Server-sent events as they came, byte by byte, and the data in them.

use std::ops::Range;

/// Longest event that is waited for: an answer's largest events carry whole files as arguments.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

/// One event: all its bytes, up to and with the empty line behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its bytes.
    pub raw: Vec<u8>,
    /// Its data, the lines joined; none where it has none.
    pub data: Option<String>,
    /// Where the data stands, if on one line.
    place: Option<Range<usize>>,
    name: Option<String>,
}

impl Event {
    fn of(raw: Vec<u8>) -> Result<Self, SseError> {
        let text = std::str::from_utf8(&raw).map_err(|_| SseError::NotText)?;
        let (mut data, mut place, mut name, mut at) = (None::<String>, None, None, 0);
        for line in text.split(['\r', '\n']) {
            let start = at;
            at += line.len() + 1;
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let blank = usize::from(value.starts_with(' '));
            let value = &value[blank..];
            match field {
                "data" => {
                    let begins = start + line.len() - value.len();
                    place = data.is_none().then_some(begins..start + line.len());
                    data = Some(data.map_or_else(|| value.to_owned(), |before| format!("{before}\n{value}")));
                }
                "event" => name = Some(value.to_owned()),
                "" | "id" | "retry" => {}
                // What is not said as an event may be read as something else.
                _ => return Err(SseError::NoEvent),
            }
        }
        Ok(Self { data, place, name, raw })
    }

    /// The event with other data; everything else stays.
    pub fn with_data(&self, data: &str) -> Vec<u8> {
        match &self.place {
            Some(place) => [&self.raw[..place.start], data.as_bytes(), &self.raw[place.end..]].concat(),
            None => {
                let name = self.name.as_ref().map(|name| format!("event: {name}\n")).unwrap_or_default();
                format!("{name}data: {data}\n\n").into_bytes()
            }
        }
    }
}

/// Bytes that are no events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// Not UTF-8.
    #[error("an event of the answer is not UTF-8")]
    NotText,
    /// A line that no event has.
    #[error("a line of the answer belongs to no event")]
    NoEvent,
    /// More than [`MAX_EVENT_BYTES`].
    #[error("an event of the answer is larger than {MAX_EVENT_BYTES} bytes")]
    TooLong,
}

/// Cuts a stream of bytes into events.
#[derive(Debug, Default)]
pub struct Splitter {
    bytes: Vec<u8>,
    /// How much of them was looked at without finding an end.
    looked: usize,
    ended: bool,
}

impl Splitter {
    /// Takes more bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Says that no more bytes come: what is left is the last event.
    pub const fn end(&mut self) {
        self.ended = true;
    }

    /// Whether nothing is left and nothing comes.
    pub const fn is_over(&self) -> bool {
        self.ended && self.bytes.is_empty()
    }

    /// The next event that is whole.
    ///
    /// # Errors
    /// What came is none.
    pub fn cut(&mut self) -> Result<Option<Event>, SseError> {
        let end = match self.boundary() {
            Some(end) => end,
            None if self.bytes.len() > MAX_EVENT_BYTES => return Err(SseError::TooLong),
            None if self.ended && !self.bytes.is_empty() => self.bytes.len(),
            None => return Ok(None),
        };
        let rest = self.bytes.split_off(end);
        self.looked = 0;
        Event::of(std::mem::replace(&mut self.bytes, rest)).map(Some)
    }

    /// Where the empty line ends that closes an event. A carriage return at the very end may be half of a line's end:
    /// then it is waited for, so that events are the same however their bytes arrive.
    fn boundary(&mut self) -> Option<usize> {
        let line_end = |at: usize| match (self.bytes.get(at), self.bytes.get(at + 1)) {
            (Some(b'\n'), _) => Some(at + 1),
            (Some(b'\r'), Some(b'\n')) => Some(at + 2),
            (Some(b'\r'), Some(_)) => Some(at + 1),
            (Some(b'\r'), None) => self.ended.then_some(at + 1),
            (Some(_) | None, _) => None,
        };
        let mut at = self.looked;
        // Empty lines before an event belong to it.
        while let Some(end) = line_end(at).filter(|_| self.bytes[..at].iter().all(|byte| matches!(byte, b'\r' | b'\n')))
        {
            at = end;
        }
        while at < self.bytes.len() {
            let Some(found) = self.bytes[at..].iter().position(|byte| matches!(byte, b'\r' | b'\n')) else { break };
            let first = at + found;
            let Some(second) = line_end(first) else {
                self.looked = first;
                return None;
            };
            if second >= self.bytes.len() {
                self.looked = first;
                return None;
            }
            match line_end(second) {
                Some(end) => return Some(end),
                None if self.bytes[second] == b'\r' => {
                    self.looked = first;
                    return None;
                }
                None => at = second,
            }
        }
        self.looked = at.max(self.looked);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(chunks: &[&[u8]]) -> Vec<Event> {
        let (mut splitter, mut events) = (Splitter::default(), Vec::new());
        for chunk in chunks {
            splitter.feed(chunk);
            while let Some(event) = splitter.cut().unwrap() {
                events.push(event);
            }
        }
        splitter.end();
        while let Some(event) = splitter.cut().unwrap() {
            events.push(event);
        }
        events
    }

    #[test]
    fn data_is_read_and_replaced_where_it_stands() {
        let events = split(&[b"event: a\r\ndata: {1}\r\nid: 3\r\n\r\ndata:x\ndata: y\n\n: hi\n\n"]);
        let data: Vec<Option<&str>> = events.iter().map(|event| event.data.as_deref()).collect();
        assert_eq!(data, [Some("{1}"), Some("x\ny"), None]);
        assert_eq!(events[0].with_data("{2}"), b"event: a\r\ndata: {2}\r\nid: 3\r\n\r\n");
        assert_eq!(events[1].with_data("z"), b"data: z\n\n");
    }

    #[test]
    fn a_flood_is_cut_off() {
        let mut splitter = Splitter::default();
        splitter.feed(&vec![b'x'; MAX_EVENT_BYTES + 1]);
        assert_eq!(splitter.cut(), Err(SseError::TooLong));
        let mut splitter = Splitter::default();
        splitter.feed(b"data: \xff\n\n");
        assert_eq!(splitter.cut(), Err(SseError::NotText));
    }

    proptest! {
        #[test]
        fn events_are_the_same_however_their_bytes_arrive(text in "([:\r\n]|data: |id: a|:b){0,40}", at in 0..200_usize, two in 0..200_usize) {
            let bytes = text.as_bytes();
            let (one, two) = (at.min(bytes.len()), two.min(bytes.len()));
            let (first, second) = (one.min(two), one.max(two));
            let whole = split(&[bytes]);
            prop_assert_eq!(&split(&[&bytes[..first], &bytes[first..second], &bytes[second..]]), &whole);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&split(&single), &whole);
            let joined: Vec<u8> = whole.iter().flat_map(|event| event.raw.clone()).collect();
            prop_assert_eq!(joined, bytes);
        }
    }
}
