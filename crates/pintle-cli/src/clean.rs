//! Strangers' text with everything in it visible, so that it cannot show something else than what it is.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _};

use pintle_domain::unseen::{is_blank, is_unseen_in_line, turns_direction};

/// Whether a terminal would act on `c`, or show what follows in another order. Joiners and marks of direction stay:
/// texts in many languages need them, and they only concern the letters beside them.
fn acts(c: char) -> bool {
    let control = c.is_control() && !matches!(c, '\n' | '\t');
    control || turns_direction(c)
}

/// Whether `c` is spelled out within a line.
pub fn is_hidden(c: char) -> bool {
    acts(c) || is_unseen_in_line(c) || matches!(c, '\n' | '\t')
}

/// A name or a line: all is spelled out that is not seen, moves a terminal or turns the direction of reading around.
pub fn clean(text: &str) -> String {
    spelled(text, is_hidden)
}

/// A text of several lines as one: its breaks are spaces, the rest is [clean](clean()).
pub fn line(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    spelled(&text.replace(['\n', '\t'], " "), is_hidden)
}

/// Prose of several lines in any language: only what a terminal would act on is spelled out.
pub fn prose(text: &str) -> String {
    // Windows ends lines with both; alone the first one would go back over what is there.
    spelled(&text.replace("\r\n", "\n"), acts)
}

/// How many blanks in a row are shown as they are: more may stand there to move what follows out of sight.
const MAX_BLANKS: usize = 8;

/// Whether `c` moves what follows and shows nothing.
fn is_space(c: char) -> bool {
    c.is_whitespace() || is_blank(c)
}

/// A [clean](clean()) line with its indentation, in which a longer run of blanks is its number.
pub fn spaced(text: &str) -> String {
    let text = clean(text);
    let (indentation, mut rest) = text.split_at(text.len() - text.trim_start_matches(' ').len());
    let mut shown = indentation.to_owned();
    while let Some(at) = rest.find(is_space) {
        let (before, run) = rest.split_at(at);
        let (run, behind) = run.split_at(run.find(|c| !is_space(c)).unwrap_or(run.len()));
        shown.push_str(before);
        let many = run.chars().count();
        shown.push_str(&if many > MAX_BLANKS { format!("[{many} spaces]") } else { run.to_owned() });
        rest = behind;
    }
    shown + rest
}

fn spelled(text: &str, hidden: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) {
            shown.extend(c.escape_debug());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Words of ours with their colours, and whatever of others stands in between: the last look at all that goes to a
/// terminal. Colours are all that it may act on.
pub fn styled(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(acts) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(colour) = colour(rest) {
            shown.push_str(&rest[..colour]);
            rest = &rest[colour..];
        } else if rest.starts_with("\r\n") {
            rest = &rest[1..];
        } else if let Some(c) = rest.chars().next() {
            shown.extend(c.escape_debug());
            rest = &rest[c.len_utf8()..];
        }
    }
    Cow::Owned(shown + rest)
}

/// The length of the colour that `text` begins with: the escape, `[`, numbers, `m`.
fn colour(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !matches!(c, '0'..='9' | ';'))?;
    numbers[end..].starts_with('m').then_some(2 + end + 1)
}

/// What a model, a tool or a hook wrote, as it may stand on stdout: a terminal does not get to act on it.
pub fn foreign(text: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() { Cow::Owned(prose(text)) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_strangers_text_is_hidden() {
        for (text, shown) in [
            (r#"say "hi" \ it's"#, r#"say "hi" \ it's"#),
            ("\u{1b}[2Jgone", r"\u{1b}[2Jgone"),
            ("a\u{202e}b\r\n", r"a\u{202e}b\r\n"),
            ("\u{9b}31m é", r"\u{9b}31m é"),
            ("a\u{200b}b\u{feff}\u{ad}\u{2028}", r"a\u{200b}b\u{feff}\u{ad}\u{2028}"),
            ("ok\u{e0100}\u{e01ef}\u{1d173}", r"ok\u{e0100}\u{e01ef}\u{1d173}"),
            ("नमस्ते 👩‍💻 ❤\u{fe0f} e\u{301}", "नमस्ते 👩‍💻 ❤\u{fe0f} e\u{301}"),
            ("a\u{200c}b\u{200e}c\u{200f}\u{3164}d", "a\u{200c}b\u{200e}c\u{200f}\u{3164}d"),
        ] {
            assert_eq!(clean(text), shown);
        }
        assert_eq!(line("one\r\ntwo\tthree\u{9b}2J\n"), r"one two three\u{9b}2J ");
    }

    #[test]
    fn nothing_is_moved_out_of_sight() {
        let many = " ".repeat(300);
        for (text, shown) in [
            (format!("rm a #{many}; touch b"), "rm a #[300 spaces]; touch b"),
            (format!("a{}b", "\u{2003}".repeat(9)), "a[9 spaces]b"),
            (format!("a{}b", "\u{2800}".repeat(9)), "a[9 spaces]b"),
            (format!("a{}b", " ".repeat(8)), "a        b"),
            (format!("{}\"a\": 1", " ".repeat(12)), "            \"a\": 1"),
            ("a\u{202e}b".to_owned(), r"a\u{202e}b"),
        ] {
            assert_eq!(spaced(&text), shown);
        }
    }

    #[test]
    fn prose_keeps_its_lines_and_loses_what_moves_a_terminal() {
        for (text, shown) in [
            ("one\ttwo\r\nthree\n", "one\ttwo\nthree\n"),
            ("\u{1b}[2J\u{1b}]0;title\u{7}\u{8}", r"\u{1b}[2J\u{1b}]0;title\u{7}\u{8}"),
            ("\u{9d}52;c;eA==\u{9c}", r"\u{9d}52;c;eA==\u{9c}"),
            ("नमस्ते 👩‍💻 e\u{301}", "नमस्ते 👩‍💻 e\u{301}"),
            ("paid\rfree", r"paid\rfree"),
            ("\u{7f}\u{0}", r"\u{7f}\0"),
            ("\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}", r"\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}"),
            ("\u{2066}\u{2067}\u{2068}\u{2069}", r"\u{2066}\u{2067}\u{2068}\u{2069}"),
            ("a\u{200c}b\u{200d}c\u{200e}d\u{200f}", "a\u{200c}b\u{200d}c\u{200e}d\u{200f}"),
        ] {
            assert_eq!(prose(text), shown);
        }
    }

    #[test]
    fn of_what_a_terminal_acts_on_only_colours_are_left() {
        for (text, shown) in [
            ("\u{1b}[1;31merror:\u{1b}[0m no\n", "\u{1b}[1;31merror:\u{1b}[0m no\n"),
            ("\u{1b}[m", "\u{1b}[m"),
            ("\u{1b}[2J\u{1b}[1;1H\u{1b}[31", r"\u{1b}[2J\u{1b}[1;1H\u{1b}[31"),
            ("\u{1b}]0;t\u{7}\u{9b}2J\u{202e}x\r\n", "\\u{1b}]0;t\\u{7}\\u{9b}2J\\u{202e}x\n"),
            ("plain\ttext", "plain\ttext"),
        ] {
            assert_eq!(styled(text), shown);
        }
    }
}
