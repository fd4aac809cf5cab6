//! Server-sent events as they came, byte by byte, and the data in them.

use std::ops::Range;

/// Longest event that is waited for: an answer's largest events carry whole files as arguments.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

/// What ends a line for some readers of text, and for none of events.
const ALSO_ENDS: [char; 8] = ['\x0b', '\x0c', '\x1c', '\x1d', '\x1e', '\u{85}', '\u{2028}', '\u{2029}'];

/// One event: all its bytes, up to and with the empty line behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its bytes.
    pub raw: Vec<u8>,
    /// Its data; none where it has none.
    pub data: Option<String>,
    /// Where the data stands.
    place: Option<Range<usize>>,
    name: Option<String>,
}

impl Event {
    fn of(raw: Vec<u8>) -> Result<Self, SseError> {
        let text = std::str::from_utf8(&raw).map_err(|_| SseError::NotText)?;
        let (mut data, mut place, mut name, mut at) = (None, None, None, 0);
        for line in text.split(['\r', '\n']) {
            let start = at;
            at += line.len() + 1;
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let blank = usize::from(value.starts_with(' '));
            let value = &value[blank..];
            // Some readers end a line there, too; what stands in data is JSON, where they would find nothing whole.
            if field != "data" && line.contains(ALSO_ENDS) {
                return Err(SseError::NoEvent);
            }
            match field {
                // Readers differ in how they join several lines.
                "data" if data.is_some() => return Err(SseError::TwoData),
                "data" => {
                    let begins = start + line.len() - value.len();
                    place = Some(begins..start + line.len());
                    data = Some(value.to_owned());
                }
                "event" => name = Some(value.to_owned()),
                "" | "id" | "retry" => {}
                // What is not said as an event may be read as something else.
                _ => return Err(SseError::NoEvent),
            }
        }
        Ok(Self { data, place, name, raw })
    }

    /// What it is called, if it is.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref().filter(|name| !name.is_empty())
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
    /// More than one line of data.
    #[error("an event of the answer has its data on several lines")]
    TwoData,
    /// More than [`MAX_EVENT_BYTES`].
    #[error("an event of the answer is larger than {MAX_EVENT_BYTES} bytes")]
    TooLong,
}

/// Cuts a stream of bytes into events.
#[derive(Debug, Default)]
pub struct Splitter {
    bytes: Vec<u8>,
    /// How many of them were cut off as events: the others are the rest.
    cut: usize,
    /// How much of the rest was looked at without finding an end.
    looked: usize,
    /// How much of the rest, at its beginning, is empty lines.
    lead: usize,
    ended: bool,
}

impl Splitter {
    /// Takes more bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        // The rest moves when it is the smaller part, so that each byte moves about once.
        if self.cut > self.bytes.len() / 2 {
            self.bytes.drain(..self.cut);
            self.cut = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.cut..]
    }

    /// Says that no more bytes come: what is left is the last event.
    pub const fn end(&mut self) {
        self.ended = true;
    }

    /// Whether nothing is left and nothing comes.
    pub const fn is_over(&self) -> bool {
        self.ended && self.bytes.len() == self.cut
    }

    /// The next event that is whole.
    ///
    /// # Errors
    /// What came is none.
    pub fn cut(&mut self) -> Result<Option<Event>, SseError> {
        let left = self.rest().len();
        let end = match self.boundary() {
            Some(end) => end,
            None if left > MAX_EVENT_BYTES => return Err(SseError::TooLong),
            None if self.ended && left > 0 => left,
            None => return Ok(None),
        };
        let event = self.rest()[..end].to_vec();
        self.cut += end;
        (self.looked, self.lead) = (0, 0);
        Event::of(event).map(Some)
    }

    /// Where the empty line ends that closes an event. A carriage return at the very end may be half of a line's end:
    /// then it is waited for, so that events are the same however their bytes arrive.
    fn boundary(&mut self) -> Option<usize> {
        let rest = &self.bytes[self.cut..];
        let line_end = |at: usize| match (rest.get(at), rest.get(at + 1)) {
            (Some(b'\n'), _) => Some(at + 1),
            (Some(b'\r'), Some(b'\n')) => Some(at + 2),
            (Some(b'\r'), Some(_)) => Some(at + 1),
            (Some(b'\r'), None) => self.ended.then_some(at + 1),
            (Some(_) | None, _) => None,
        };
        let mut at = self.looked;
        // Empty lines before an event belong to it.
        if at == self.lead {
            while let Some(end) = line_end(at) {
                at = end;
            }
            self.lead = at;
        }
        while at < rest.len() {
            let Some(found) = rest[at..].iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
                at = rest.len();
                break;
            };
            let first = at + found;
            let Some(second) = line_end(first) else {
                self.looked = first;
                return None;
            };
            if second >= rest.len() {
                self.looked = first;
                return None;
            }
            match line_end(second) {
                Some(end) => return Some(end),
                None if rest[second] == b'\r' => {
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

    fn split(chunks: &[&[u8]]) -> Result<Vec<Event>, SseError> {
        let (mut splitter, mut events) = (Splitter::default(), Vec::new());
        for chunk in chunks {
            splitter.feed(chunk);
            while let Some(event) = splitter.cut()? {
                events.push(event);
            }
        }
        splitter.end();
        while let Some(event) = splitter.cut()? {
            events.push(event);
        }
        Ok(events)
    }

    #[test]
    fn what_readers_cut_differently_is_refused() {
        for end in ALSO_ENDS {
            assert_eq!(split(&[format!("id: x{end}data: y\n\n").as_bytes()]), Err(SseError::NoEvent), "{end:?}");
            assert_eq!(split(&[format!(": x{end}data: y\n\n").as_bytes()]), Err(SseError::NoEvent), "{end:?}");
        }
        assert_eq!(split(&[b"data: a\ndata: b\n\n"]), Err(SseError::TwoData));
        assert_eq!(split(&["data: \u{2028}\n\n".as_bytes()]).unwrap()[0].data.as_deref(), Some("\u{2028}"));
    }

    #[test]
    fn empty_lines_before_an_event_are_looked_at_once() {
        let mut splitter = Splitter::default();
        for _ in 0..1 << 20 {
            splitter.feed(b"\n\n");
            assert_eq!(splitter.cut(), Ok(None));
        }
        splitter.feed(b"data: x\n\n");
        assert_eq!(splitter.cut().unwrap().unwrap().data.as_deref(), Some("x"));
    }

    #[test]
    fn what_is_left_of_a_large_piece_moves_seldom() {
        let mut splitter = Splitter::default();
        let events = b"data: x\n\n".repeat(1 << 18);
        splitter.feed(&events);
        splitter.feed(b"data: y\n\n");
        let mut cut = 0;
        // Each event copied the whole rest once: 2 MB a quarter of a million times.
        while let Some(event) = splitter.cut().unwrap() {
            cut += event.raw.len();
            if cut == events.len() {
                splitter.feed(b"data: z\n\n");
            }
        }
        assert_eq!(cut, events.len() + 18);
        splitter.end();
        assert!(splitter.is_over());
    }

    #[test]
    fn data_is_read_and_replaced_where_it_stands() {
        let events = split(&[b"event: a\r\ndata: {1}\r\nid: 3\r\n\r\ndata:x\n\n: hi\n\n"]).unwrap();
        let data: Vec<Option<&str>> = events.iter().map(|event| event.data.as_deref()).collect();
        assert_eq!(data, [Some("{1}"), Some("x"), None]);
        assert_eq!(events[0].with_data("{2}"), b"event: a\r\ndata: {2}\r\nid: 3\r\n\r\n");
        assert_eq!(events[1].with_data("z"), b"data:z\n\n");
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
            let Ok(whole) = whole else { return Ok(()) };
            let joined: Vec<u8> = whole.iter().flat_map(|event| event.raw.clone()).collect();
            prop_assert_eq!(joined, bytes);
        }
    }
}
