//! Words and their quotes.

use std::rc::Rc;

use super::{Escapes, Parser, Problem, unescape};
use crate::syntax::{Part, Quotes, Script, Word};

impl Parser<'_> {
    /// The word that begins here, if one does.
    pub(super) fn word(&mut self) -> Result<Option<Word>, Problem> {
        let start = self.at;
        let mut parts = Vec::new();
        loop {
            if self.take("\\\n") {
                continue;
            }
            let Some(letter) = self.peek() else { break };
            match letter {
                '<' | '>' if self.rest()[1..].starts_with('(') => self.process(&mut parts)?,
                '(' if awaits_list(&parts) => self.list(&mut parts)?,
                '(' if awaits_pattern(&parts) => self.pattern(&mut parts)?,
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                _ => self.piece(&mut parts, Quotes::Bare)?,
            }
        }
        if self.at == start || parts.is_empty() {
            return Ok(None);
        }
        Ok(Some(Word { parts, raw: self.text[start..self.at].to_owned() }))
    }

    /// One piece of a word: a letter, a quote or an expansion.
    pub(super) fn piece(&mut self, parts: &mut Vec<Part>, quotes: Quotes) -> Result<(), Problem> {
        match self.next() {
            Some('\'') if quotes == Quotes::Bare => {
                let text = self.up_to('\'')?;
                push_quoted(parts, text);
            }
            Some('"') if quotes == Quotes::Bare => self.nested(|parser| parser.double_quotes(parts))?,
            Some('\\') => self.backslash(parts, quotes),
            Some('$') => self.dollar(parts, quotes)?,
            Some('`') => self.backticks(parts, quotes)?,
            Some(letter) => match quotes {
                Quotes::Bare => push_plain(parts, letter),
                Quotes::Double => push_quoted(parts, letter.encode_utf8(&mut [0; 4])),
            },
            None => {}
        }
        Ok(())
    }

    /// The text up to `end`, which is taken too.
    pub(super) fn up_to(&mut self, end: char) -> Result<&str, Problem> {
        let rest = self.rest();
        let length =
            rest.find(end).ok_or_else(|| format!("the shell text is not understood: a closing `{end}` is missing"))?;
        self.at += length + end.len_utf8();
        Ok(&rest[..length])
    }

    fn double_quotes(&mut self, parts: &mut Vec<Part>) -> Result<(), Problem> {
        push_quoted(parts, "");
        loop {
            match self.peek() {
                None => return Err("the shell text is not understood: a closing `\"` is missing".to_owned()),
                Some('"') => {
                    self.next();
                    return Ok(());
                }
                Some(_) => self.piece(parts, Quotes::Double)?,
            }
        }
    }

    fn backslash(&mut self, parts: &mut Vec<Part>, quotes: Quotes) {
        let Some(letter) = self.next() else {
            push_quoted(parts, "\\");
            return;
        };
        if letter == '\n' {
            return;
        }
        if quotes == Quotes::Double && !"$`\"\\".contains(letter) {
            push_quoted(parts, "\\");
        }
        push_quoted(parts, letter.encode_utf8(&mut [0; 4]));
    }

    fn backticks(&mut self, parts: &mut Vec<Part>, quotes: Quotes) -> Result<(), Problem> {
        let mut inner = String::new();
        loop {
            match self.next() {
                None => return Err("the shell text is not understood: a closing backtick is missing".to_owned()),
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(letter @ ('`' | '\\' | '$')) => inner.push(letter),
                    Some('"') if quotes == Quotes::Double => inner.push('"'),
                    Some(letter) => inner.extend(['\\', letter]),
                    None => inner.push('\\'),
                },
                Some(letter) => inner.push(letter),
            }
        }
        let script = self.nested(|parser| {
            let mut within = parser.within(&inner);
            let mut script = Script::default();
            let read = within.whole(&mut script);
            parser.after(&within);
            read.map(|()| script)
        })?;
        parts.push(Part::Command(Rc::new(script), quotes));
        Ok(())
    }

    fn process(&mut self, parts: &mut Vec<Part>) -> Result<(), Problem> {
        self.only_bash("<(")?;
        let reads = self.next() == Some('<');
        self.next();
        let script = self.nested(|parser| {
            let script = parser.script(&[")"])?;
            parser.close(")")?;
            Ok(Rc::new(script))
        })?;
        parts.push(if reads { Part::ProcessOut(script) } else { Part::ProcessIn(script) });
        Ok(())
    }

    /// `(a b c)` of an array.
    fn list(&mut self, parts: &mut Vec<Part>) -> Result<(), Problem> {
        self.only_bash("(")?;
        self.next();
        let words = self.nested(|parser| {
            let mut words = Vec::new();
            loop {
                parser.lines()?;
                match parser.word()? {
                    Some(word) => words.push(word),
                    None => break,
                }
            }
            parser.close(")")?;
            Ok(words)
        })?;
        parts.push(Part::List(Rc::new(words)));
        Ok(())
    }

    /// The brackets of a pattern such as `@(a|b)`.
    fn pattern(&mut self, parts: &mut Vec<Part>) -> Result<(), Problem> {
        self.only_bash("(")?;
        let mut open = 0_usize;
        loop {
            match self.peek() {
                None => return Err("the shell text is not understood: `)` is missing".to_owned()),
                Some(bracket @ ('(' | ')')) => {
                    self.next();
                    push_plain(parts, bracket);
                    open = if bracket == '(' { open + 1 } else { open - 1 };
                    if open == 0 {
                        return Ok(());
                    }
                }
                Some(_) => self.piece(parts, Quotes::Bare)?,
            }
        }
    }

    /// `$'…'`, whose `$'` is taken.
    pub(super) fn ansi_quotes(&mut self, parts: &mut Vec<Part>) -> Result<(), Problem> {
        let start = self.at;
        loop {
            match self.next() {
                None => return Err("the shell text is not understood: a closing `'` is missing".to_owned()),
                Some('\'') => break,
                Some('\\') => {
                    self.next();
                }
                Some(_) => {}
            }
        }
        let text = unescape(&self.text[start..self.at - 1], Escapes::Quote);
        // A zero byte ends such a text in the shell.
        push_quoted(parts, text.split('\0').next().unwrap_or_default());
        Ok(())
    }
}

fn awaits_list(parts: &[Part]) -> bool {
    let [Part::Plain(first), rest @ ..] = parts else { return false };
    let last = match rest.last() {
        None => first,
        Some(Part::Plain(last)) => last,
        Some(_) => return false,
    };
    last.ends_with('=') && first.starts_with(|letter: char| letter == '_' || letter.is_ascii_alphabetic())
}

fn awaits_pattern(parts: &[Part]) -> bool {
    matches!(parts.last(), Some(Part::Plain(text)) if text.ends_with(['@', '?', '*', '+', '!']))
}

pub(super) fn push_plain(parts: &mut Vec<Part>, letter: char) {
    match parts.last_mut() {
        Some(Part::Plain(text)) => text.push(letter),
        _ => parts.push(Part::Plain(letter.to_string())),
    }
}

pub(super) fn push_quoted(parts: &mut Vec<Part>, piece: &str) {
    match parts.last_mut() {
        Some(Part::Quoted(text)) => text.push_str(piece),
        _ => parts.push(Part::Quoted(piece.to_owned())),
    }
}
