//! The line that is being typed.

use unicode_width::UnicodeWidthChar as _;

use super::keys::Key;

/// Longest line, in bytes: a long page of text. More than that belongs into a file.
pub(super) const MAX_LINE_BYTES: usize = 1 << 20;

/// How many lines Up goes back: what a person remembers to have typed.
const MAX_HISTORY: usize = 100;

/// How many characters of no width are looked at for each column, so that a flood of them is not measured again with
/// every key.
const MAX_CHARS_A_COLUMN: usize = 8;

/// A line with a place in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    text: String,
    /// Where the next character goes, in bytes.
    at: usize,
}

/// A line as far as it fits on the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    /// What is seen of it.
    pub(super) text: String,
    /// The column in it where the next character goes.
    pub(super) column: usize,
}

/// Lines that were typed before.
#[derive(Debug, Default)]
pub(super) struct History {
    lines: Vec<String>,
    /// Which one is shown; past the end it is the one that is new.
    at: usize,
    new: String,
}

impl Line {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Takes the line, and leaves an empty one.
    pub(super) fn take(&mut self) -> String {
        self.at = 0;
        std::mem::take(&mut self.text)
    }

    /// Puts another text in its place, to be gone on with at its end.
    pub(super) fn set(&mut self, text: String) {
        self.at = text.len();
        self.text = text;
    }

    /// Does what `key` says. `false`: the line is full.
    pub(super) fn edit(&mut self, key: Key) -> bool {
        match key {
            Key::Char(c) if self.text.len() + c.len_utf8() > MAX_LINE_BYTES => return false,
            Key::Char(c) => {
                self.text.insert(self.at, c);
                self.at += c.len_utf8();
            }
            Key::Backspace => self.cut(self.before(), self.at),
            Key::Delete => self.cut(self.at, self.after()),
            Key::Left => self.at = self.before(),
            Key::Right => self.at = self.after(),
            Key::First => self.at = 0,
            Key::Last => self.at = self.text.len(),
            Key::EraseWord => {
                let rest = self.text[..self.at].trim_end();
                let word = rest
                    .rfind(char::is_whitespace)
                    .map_or(0, |space| space + rest[space..].chars().next().map_or(0, char::len_utf8));
                self.cut(word, self.at);
            }
            Key::EraseBefore => self.cut(0, self.at),
            Key::EraseAfter => self.cut(self.at, self.text.len()),
            Key::Enter | Key::Interrupt | Key::Escape | Key::End | Key::Quit | Key::Redraw => {}
            Key::Up | Key::Down | Key::PasteBegins | Key::PasteEnds => {}
        }
        true
    }

    fn cut(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.at = from;
    }

    fn before(&self) -> usize {
        self.text[..self.at].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.text[self.at..].chars().next().map_or(self.at, |c| self.at + c.len_utf8())
    }

    /// The part around the place, at most `columns` wide, with one of them left for the cursor.
    pub(super) fn view(&self, columns: usize) -> View {
        let columns = columns.saturating_sub(1);
        let most = columns.saturating_mul(MAX_CHARS_A_COLUMN);
        let (mut column, mut from) = (0, self.at);
        for (at, c) in self.text[..self.at].char_indices().rev().take(most) {
            if column + width(c) > columns {
                break;
            }
            column += width(c);
            from = at;
        }
        let (mut whole, mut to) = (column, self.at);
        for (at, c) in self.text[self.at..].char_indices().take(most) {
            if whole + width(c) > columns {
                break;
            }
            whole += width(c);
            to = self.at + at + c.len_utf8();
        }
        View { text: self.text[from..to].replace('\t', " "), column }
    }
}

/// How many columns of a terminal `c` takes.
pub(super) fn width(c: char) -> usize {
    // A tab is shown as one space while it is typed.
    if c == '\t' { 1 } else { c.width().unwrap_or(0) }
}

impl History {
    /// Keeps a line that was sent.
    pub(super) fn keep(&mut self, line: &str) {
        if self.lines.last().is_none_or(|last| last != line) {
            self.lines.push(line.to_owned());
        }
        if self.lines.len() > MAX_HISTORY {
            self.lines.remove(0);
        }
        self.at = self.lines.len();
    }

    /// Goes one line back.
    pub(super) fn back(&mut self, line: &mut Line) {
        if self.at == 0 {
            return;
        }
        if self.at >= self.lines.len() {
            self.new.clone_from(&line.text);
        }
        self.at -= 1;
        line.set(self.lines[self.at].clone());
    }

    /// Goes one line forward.
    pub(super) fn forward(&mut self, line: &mut Line) {
        if self.at >= self.lines.len() {
            return;
        }
        self.at += 1;
        line.set(self.lines.get(self.at).unwrap_or(&self.new).clone());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn typed(keys: impl IntoIterator<Item = Key>) -> Line {
        let mut line = Line::default();
        keys.into_iter().for_each(|key| assert!(line.edit(key)));
        line
    }

    fn text(text: &str) -> impl Iterator<Item = Key> {
        text.chars().map(Key::Char).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn keys_change_the_line_where_the_place_is() {
        for (keys, expected) in [
            (vec![Key::Left, Key::Char('x')], "ein Stücxk"),
            (vec![Key::Left, Key::Left, Key::Left, Key::Backspace], "ein Sück"),
            (vec![Key::First, Key::Delete, Key::Backspace, Key::Left], "in Stück"),
            (vec![Key::EraseWord], "ein "),
            (vec![Key::EraseWord, Key::EraseWord, Key::EraseWord], ""),
            (vec![Key::First, Key::Right, Key::EraseAfter], "e"),
            (vec![Key::Left, Key::EraseBefore, Key::Last, Key::Right, Key::Delete, Key::Char('e')], "ke"),
        ] {
            assert_eq!(typed(text("ein Stück").chain(keys.clone())).take(), expected, "{keys:?}");
        }
    }

    #[test]
    fn a_view_holds_the_place_and_nothing_that_wraps() {
        let view = |line: &Line, columns| (line.view(columns).text, line.view(columns).column);
        let line = typed(text("hello"));
        assert_eq!(view(&line, 80), ("hello".into(), 5));
        assert_eq!(view(&line, 4), ("llo".into(), 3));
        let line = typed(text("日本語x").chain([Key::Left]));
        assert_eq!(view(&line, 80), ("日本語x".into(), 6));
        assert_eq!(view(&line, 6), ("本語x".into(), 4));
        assert_eq!(view(&line, 0), (String::new(), 0));
    }

    #[test]
    fn a_line_has_an_end() {
        let mut line = Line::default();
        line.set("x".repeat(MAX_LINE_BYTES - 1));
        assert!(!line.edit(Key::Char('é')));
        assert!(line.edit(Key::Char('e')));
        assert_eq!(line.take().len(), MAX_LINE_BYTES);
    }

    #[test]
    fn up_and_down_go_through_what_was_sent_and_back_to_what_is_new() {
        let (mut history, mut line) = (History::default(), typed(text("new")));
        ["one", "two", "two"].iter().for_each(|sent| history.keep(sent));
        let mut seen = Vec::new();
        for back in [true, true, true, false, false, false] {
            if back {
                history.back(&mut line)
            } else {
                history.forward(&mut line)
            }
            seen.push(line.clone().take());
        }
        assert_eq!(seen, ["two", "one", "one", "two", "new", "new"]);
    }

    const EDITS: [Key; 10] = [
        Key::Backspace,
        Key::Delete,
        Key::Left,
        Key::Right,
        Key::First,
        Key::Last,
        Key::EraseWord,
        Key::EraseBefore,
        Key::EraseAfter,
        Key::Char('\u{3000}'),
    ];

    proptest! {
        #[test]
        fn the_place_is_always_between_characters(
            keys in prop::collection::vec(prop_oneof![any::<char>().prop_map(Key::Char), prop::sample::select(&EDITS)], 0..40),
            columns in 0_usize..30,
        ) {
            let mut line = Line::default();
            for key in keys {
                prop_assert!(line.edit(key));
                let view = line.view(columns);
                prop_assert!(view.text.chars().map(width).sum::<usize>() <= columns);
                prop_assert!(view.column <= columns);
            }
        }
    }
}
