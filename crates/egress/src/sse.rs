//! Server-sent events as they came, byte by byte, and the data in them. One reader for every stream that Pintle reads: of
//! model servers, behind the doors, and of MCP servers.
//!
//! Source: <https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream>.

use std::ops::Range;

/// Longest event that is waited for: an answer's largest events carry whole files as arguments.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

/// What a stream may begin with, and no event has.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

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
    /// The event in `raw` if every reader finds the same in it.
    fn strict(raw: Vec<u8>) -> Result<Self, SseError> {
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

/// What one event says to a reader that follows the standard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlainEvent {
    /// Its data, the lines joined by line feeds; none where it has none.
    pub data: Option<String>,
    /// The id that whoever reads on later names.
    pub id: Option<String>,
    /// After how many milliseconds the server wants to be asked again.
    pub retry_ms: Option<u64>,
}

impl PlainEvent {
    /// What `raw` says. Fields that nobody knows are left out.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub fn parse(raw: &[u8]) -> Result<Self, SseError> {
        let text = std::str::from_utf8(raw).map_err(|_| SseError::NotText)?;
        let mut event = Self::default();
        // A line that ends in CR LF is followed by an empty one here, which says nothing.
        for line in text.split(['\r', '\n']) {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "data" => match &mut event.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                    none => *none = Some(value.to_owned()),
                },
                "id" if !value.contains('\0') => event.id = Some(value.to_owned()),
                "retry" => event.retry_ms = value.parse().ok().or(event.retry_ms),
                _ => {}
            }
        }
        Ok(event)
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
    /// More than may be.
    #[error("an event of the answer is larger than {0} bytes")]
    TooLong(usize),
}

/// Cuts a stream of bytes into events.
#[derive(Debug)]
pub struct Splitter {
    /// Most bytes of one event.
    limit: usize,
    /// Whether the first bytes were looked at, which may be a mark of the order of bytes.
    begun: bool,
    bytes: Vec<u8>,
    /// How many of them were cut off as events: the others are the rest.
    cut: usize,
    /// How much of the rest was looked at without finding an end.
    looked: usize,
    /// How much of the rest, at its beginning, is empty lines.
    lead: usize,
    ended: bool,
}

impl Default for Splitter {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }
}

impl Splitter {
    /// Cuts events of at most `limit` bytes.
    pub const fn with_limit(limit: usize) -> Self {
        Self { limit, begun: false, bytes: Vec::new(), cut: 0, looked: 0, lead: 0, ended: false }
    }

    /// Takes more bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        // The rest moves when it is the smaller part, so that each byte moves about once.
        if self.cut > self.bytes.len() / 2 {
            self.bytes.drain(..self.cut);
            self.cut = 0;
        }
        self.bytes.extend_from_slice(bytes);
        if !self.begun && !BYTE_ORDER_MARK.starts_with(&self.bytes) {
            self.begun = true;
            if self.bytes.starts_with(BYTE_ORDER_MARK) {
                self.cut = BYTE_ORDER_MARK.len();
            }
        }
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.cut..]
    }

    /// Says that no more bytes come: what is left is the last event, since some servers leave out the empty line behind it.
    pub fn end(&mut self) {
        self.ended = true;
        if !self.begun && self.bytes == BYTE_ORDER_MARK {
            self.cut = self.bytes.len();
        }
    }

    /// Whether nothing is left and nothing comes.
    pub const fn is_over(&self) -> bool {
        self.ended && self.bytes.len() == self.cut
    }

    /// The next event that is whole and that every reader reads alike.
    ///
    /// # Errors
    /// What came is none.
    pub fn cut(&mut self) -> Result<Option<Event>, SseError> {
        self.cut_raw()?.map(Event::strict).transpose()
    }

    /// The next event that is whole, as a reader reads it that follows the standard.
    ///
    /// # Errors
    /// It is too long, or not UTF-8.
    pub fn cut_plain(&mut self) -> Result<Option<PlainEvent>, SseError> {
        self.cut_raw()?.map(|raw| PlainEvent::parse(&raw)).transpose()
    }

    fn cut_raw(&mut self) -> Result<Option<Vec<u8>>, SseError> {
        let left = self.rest().len();
        let end = match self.boundary() {
            Some(end) => end,
            None if left > self.limit => return Err(SseError::TooLong(self.limit)),
            None if self.ended && left > 0 => left,
            None => return Ok(None),
        };
        if end > self.limit {
            return Err(SseError::TooLong(self.limit));
        }
        let event = self.rest()[..end].to_vec();
        self.cut += end;
        (self.looked, self.lead) = (0, 0);
        Ok(Some(event))
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

    /// What a reader that follows the standard finds.
    fn plain(chunks: &[&[u8]]) -> Result<Vec<PlainEvent>, SseError> {
        let (mut splitter, mut events) = (Splitter::default(), Vec::new());
        for chunk in chunks {
            splitter.feed(chunk);
            while let Some(event) = splitter.cut_plain()? {
                events.push(event);
            }
        }
        splitter.end();
        while let Some(event) = splitter.cut_plain()? {
            events.push(event);
        }
        Ok(events)
    }

    #[test]
    fn a_byte_order_mark_at_the_beginning_is_no_part_of_an_event() {
        let marked = "\u{feff}data: {1}\n\n\u{feff}data: {2}\n\n".as_bytes();
        for cut in 0..marked.len() {
            let (first, rest) = marked.split_at(cut);
            let events = plain(&[first, rest]).unwrap();
            let data: Vec<Option<&str>> = events.iter().map(|event| event.data.as_deref()).collect();
            assert_eq!(data, [Some("{1}"), None], "only at the beginning, cut at {cut}");
        }
        let only = split(&["\u{feff}data: x\n\n".as_bytes()]).unwrap();
        assert_eq!(only[0].raw, b"data: x\n\n");
        for piece in [&b"\xef\xbb\xbf"[..], b""] {
            assert_eq!(split(&[piece]), Ok(vec![]));
        }
        assert_eq!(plain(&[b"\xef", b"\xbb"]), Err(SseError::NotText), "half a mark is none");
    }

    #[test]
    fn a_reader_by_the_standard_joins_lines_and_leaves_out_what_it_does_not_know() {
        let text = b"\r: hi\rfoo: 1\revent: a\rid: 7\rretry: 20\rretry: x\rdata\rdata:  b\r\nid: 8\n\n";
        let events = plain(&[text]).unwrap();
        let expected = PlainEvent { data: Some("\n b".into()), id: Some("8".into()), retry_ms: Some(20) };
        assert_eq!(events, [expected]);
    }

    #[test]
    fn a_flood_is_cut_off() {
        let mut splitter = Splitter::default();
        splitter.feed(&vec![b'x'; MAX_EVENT_BYTES + 1]);
        assert_eq!(splitter.cut(), Err(SseError::TooLong(MAX_EVENT_BYTES)));
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
            prop_assert_eq!(&plain(&bytes.chunks(1).collect::<Vec<_>>()), &plain(&[bytes]));
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
