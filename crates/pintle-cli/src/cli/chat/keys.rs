//! What a terminal sends, byte by byte, as keys. Nothing that it sends is an error: what is not a key is passed over.

/// Longest control sequence of a terminal that is waited for to its end; real ones are a third of it.
const MAX_SEQUENCE: usize = 32;

const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;

/// One key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A letter, or anything else that stands in a line.
    Char(char),
    Enter,
    /// Ctrl-C.
    Interrupt,
    Escape,
    /// Ctrl-D.
    End,
    /// Ctrl-\.
    Quit,
    /// Ctrl-L.
    Redraw,
    Backspace,
    Delete,
    Left,
    Right,
    /// The beginning of the line.
    First,
    /// The end of the line.
    Last,
    Up,
    Down,
    /// Ctrl-W.
    EraseWord,
    /// Ctrl-U.
    EraseBefore,
    /// Ctrl-K.
    EraseAfter,
    /// What follows is pasted.
    PasteBegins,
    PasteEnds,
}

/// Reads keys out of bytes, which may be cut anywhere.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    state: State,
    /// The beginning of a character.
    utf8: Vec<u8>,
    pasting: bool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Text,
    Escape,
    /// After `ESC [`.
    Csi(Vec<u8>),
    /// After `ESC O`.
    Ss3,
}

impl Decoder {
    /// Takes `bytes` in; the keys go to `out`.
    pub(super) fn feed(&mut self, bytes: &[u8], out: &mut impl Extend<Key>) {
        for byte in bytes {
            self.byte(*byte, out);
        }
    }

    /// Whether what came last is only complete if nothing follows soon.
    pub(super) fn is_waiting(&self) -> bool {
        !matches!(self.state, State::Text) || self.pasting
    }

    /// Whether a paste has not ended.
    pub(super) fn is_pasting(&self) -> bool {
        self.pasting
    }

    /// Nothing followed: an escape was the key of this name, and a paste without an end is over.
    pub(super) fn settle(&mut self, out: &mut impl Extend<Key>) {
        let alone = matches!(self.state, State::Escape) && !self.pasting;
        self.state = State::Text;
        if alone {
            out.extend([Key::Escape]);
        }
        if std::mem::take(&mut self.pasting) {
            out.extend([Key::PasteEnds]);
        }
    }

    fn byte(&mut self, byte: u8, out: &mut impl Extend<Key>) {
        match std::mem::take(&mut self.state) {
            State::Text => self.text(byte, out),
            State::Escape => match byte {
                b'[' => self.state = State::Csi(Vec::new()),
                b'O' => self.state = State::Ss3,
                ESCAPE => {
                    self.press(Key::Escape, out);
                    self.state = State::Escape;
                }
                // Escape and a letter at once is what Alt sends; a control character is a key of its own.
                0x20.. => {}
                _ => {
                    self.press(Key::Escape, out);
                    self.text(byte, out);
                }
            },
            State::Ss3 => match byte {
                0x20.. => self.named(&[], byte, out),
                _ => self.text(byte, out),
            },
            State::Csi(mut so_far) => match byte {
                0x40..=0x7e => self.named(&so_far, byte, out),
                0x20..=0x3f if so_far.len() < MAX_SEQUENCE => {
                    so_far.push(byte);
                    self.state = State::Csi(so_far);
                }
                // It is none: what it breaks off with counts for itself.
                _ => self.text(byte, out),
            },
        }
    }

    fn text(&mut self, byte: u8, out: &mut impl Extend<Key>) {
        if byte < 0x80 {
            if !std::mem::take(&mut self.utf8).is_empty() {
                out.extend([Key::Char(char::REPLACEMENT_CHARACTER)]);
            }
            return self.ascii(byte, out);
        }
        self.utf8.push(byte);
        match std::str::from_utf8(&self.utf8) {
            Ok(text) => {
                // Control characters of the second set move terminals too.
                out.extend(text.chars().filter(|c| !c.is_control()).map(Key::Char));
                self.utf8.clear();
            }
            // More bytes may make a character of it.
            Err(error) if error.error_len().is_none() => {}
            Err(_) => {
                out.extend([Key::Char(char::REPLACEMENT_CHARACTER)]);
                let first = self.utf8.len() == 1;
                self.utf8.clear();
                if !first {
                    // The byte that does not fit may begin the next character.
                    self.text(byte, out);
                }
            }
        }
    }

    fn ascii(&mut self, byte: u8, out: &mut impl Extend<Key>) {
        let key = match byte {
            b'\r' | b'\n' => return out.extend([Key::Enter]),
            b'\t' | 0x20..DELETE => return out.extend([Key::Char(byte.into())]),
            ESCAPE => {
                self.state = State::Escape;
                return;
            }
            0x01 => Key::First,
            0x02 => Key::Left,
            0x03 => Key::Interrupt,
            0x04 => Key::End,
            0x05 => Key::Last,
            0x06 => Key::Right,
            0x08 | DELETE => Key::Backspace,
            0x0b => Key::EraseAfter,
            0x0c => Key::Redraw,
            0x0e => Key::Down,
            0x10 => Key::Up,
            0x15 => Key::EraseBefore,
            0x17 => Key::EraseWord,
            0x1c => Key::Quit,
            _ => return,
        };
        self.press(key, out);
    }

    /// A key that does something; what is pasted does nothing.
    fn press(&self, key: Key, out: &mut impl Extend<Key>) {
        if !self.pasting {
            out.extend([key]);
        }
    }

    fn named(&mut self, parameters: &[u8], last: u8, out: &mut impl Extend<Key>) {
        let key = match (parameters, last) {
            (b"200", b'~') => {
                self.pasting = true;
                return out.extend([Key::PasteBegins]);
            }
            (b"201", b'~') => {
                self.pasting = false;
                return out.extend([Key::PasteEnds]);
            }
            (_, b'A') => Key::Up,
            (_, b'B') => Key::Down,
            (_, b'C') => Key::Right,
            (_, b'D') => Key::Left,
            (_, b'H') | (b"1" | b"7", b'~') => Key::First,
            (_, b'F') | (b"4" | b"8", b'~') => Key::Last,
            (b"3", b'~') => Key::Delete,
            ([], b'M') => Key::Enter,
            _ => return,
        };
        self.press(key, out);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The keys of `pieces`, after which nothing came; text stands together.
    fn keys(pieces: &[&[u8]]) -> String {
        let (mut decoder, mut out) = (Decoder::default(), Vec::new());
        pieces.iter().for_each(|piece| decoder.feed(piece, &mut out));
        decoder.settle(&mut out);
        let said = |key: &Key| if let Key::Char(c) = key { c.to_string() } else { format!("<{key:?}>") };
        out.iter().map(said).collect()
    }

    #[test]
    fn bytes_become_keys() {
        for (pieces, expected) in [
            (&[&b"hi\r"[..]][..], "hi<Enter>"),
            (&[b"\x1b"], "<Escape>"),
            (&[b"\x1b\x1b"], "<Escape><Escape>"),
            (&[b"\x1b", b"[", b"A"], "<Up>"),
            (&[b"\x1b\x03"], "<Escape><Interrupt>"),
            (&[b"\x1bb\x1bOAx"], "<Up>x"),
            (&[b"\x1b[1;5Cx\x1b[99;99;99Zx"], "<Right>xx"),
            (&[b"\x1b[\x03x"], "<Interrupt>x"),
            (&["\u{e9}".as_bytes()], "é"),
            (&[b"\xc3", b"\xa9"], "é"),
            (&[b"a\xff\xc3b\xe4\xbd\xa0\xed\xa0"], "a\u{fffd}\u{fffd}b你\u{fffd}\u{fffd}"),
            (&[b"a\x00\x1a\x11\x13b\xc2\x9b2J"], "ab2J"),
            (&[b"\x1b[200~a\x03\x1b\nb\x04\x1b[201~\x04"], "<PasteBegins>a<Enter>b<PasteEnds><End>"),
            (&[b"\x1b[200~a\x1b[A"], "<PasteBegins>a<PasteEnds>"),
            (&[b"\x7f\x08\x15\x17"], "<Backspace><Backspace><EraseBefore><EraseWord>"),
        ] {
            assert_eq!(keys(pieces), expected, "{pieces:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_wedge_it_and_cuts_change_nothing(bytes: Vec<u8>, cut: prop::sample::Index) {
            let cut = cut.index(bytes.len() + 1);
            prop_assert_eq!(keys(&[&bytes]), keys(&[&bytes[..cut], &bytes[cut..]]));
            // Whatever came before, after a moment's silence a key is a key.
            prop_assert!(keys(&[&bytes, b"\x1b[201~"]).len() >= keys(&[&bytes]).len().min(1));
            let (mut decoder, mut out) = (Decoder::default(), Vec::new());
            decoder.feed(&bytes, &mut out);
            decoder.settle(&mut out);
            out.clear();
            decoder.feed(b"\x03", &mut out);
            prop_assert_eq!(out.last(), Some(&Key::Interrupt));
        }

        #[test]
        fn no_control_character_is_ever_text(bytes: Vec<u8>) {
            let (mut decoder, mut out) = (Decoder::default(), Vec::new());
            decoder.feed(&bytes, &mut out);
            let moves = |key: &Key| matches!(key, Key::Char(c) if c.is_control() && *c != '\t');
            prop_assert!(!out.iter().any(moves));
        }
    }
}
