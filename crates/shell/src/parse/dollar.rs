//! What begins with `$`.

use std::rc::Rc;

use super::word::{push_plain, push_quoted};
use super::{Parser, Problem};
use crate::syntax::{Dialect, Parameter, Part, Prefix, Quotes, Word};

/// Operators of `${name…}`, the longer ones first.
const OPERATORS: &[&str] =
    &[":-", ":=", ":+", ":?", "##", "%%", "//", "^^", ",,", "-", "=", "+", "?", "#", "%", "/", "^", ",", "@", ":"];

impl Parser<'_> {
    /// What stands after a `$`, which is taken.
    pub(super) fn dollar(&mut self, parts: &mut Vec<Part>, quotes: Quotes) -> Result<(), Problem> {
        while self.take("\\\n") {}
        if self.looks_at("((") {
            let start = self.at;
            self.at += 2;
            match self.nested(|parser| parser.arithmetic("))")) {
                Ok(expression) => {
                    parts.push(Part::Arithmetic(Rc::new(expression)));
                    return Ok(());
                }
                Err(problem) if self.detours >= super::compound::DETOURS || !self.is_bash() => return Err(problem),
                Err(_) => {
                    self.detours += 1;
                    self.at = start;
                }
            }
        }
        match self.peek() {
            Some('(') => {
                self.next();
                let script = self.nested(|parser| {
                    let script = parser.script(&[")"])?;
                    parser.close(")")?;
                    Ok(Rc::new(script))
                })?;
                parts.push(Part::Command(script, quotes));
            }
            Some('{') => {
                self.next();
                self.nested(|parser| parser.parameter(parts, quotes))?;
            }
            Some('[') if self.is_bash() => {
                self.next();
                let expression = self.nested(|parser| parser.arithmetic("]"))?;
                parts.push(Part::Arithmetic(Rc::new(expression)));
            }
            Some('\'') if quotes == Quotes::Bare && self.quotes_by_dollar() => {
                self.next();
                self.ansi_quotes(parts)?;
            }
            // `$"…"` is a text to be translated; without a catalogue it is the text.
            Some('"') if quotes == Quotes::Bare && self.is_bash() => self.piece(parts, quotes)?,
            Some(letter) if letter == '_' || letter.is_ascii_alphabetic() => {
                let name = self.name();
                push_parameter(parts, name, quotes);
            }
            Some(letter) if letter.is_ascii_digit() || "@*#?-$!".contains(letter) => {
                self.next();
                push_parameter(parts, letter.to_string(), quotes);
            }
            _ => match quotes {
                Quotes::Bare => push_plain(parts, '$'),
                Quotes::Double => push_quoted(parts, "$"),
            },
        }
        Ok(())
    }

    /// Whether `$'…'` is a text with escapes, and not a dollar before a plain one.
    fn quotes_by_dollar(&mut self) -> bool {
        self.told_apart = true;
        self.dialect != Dialect::Dash
    }

    fn name(&mut self) -> String {
        let rest = self.rest();
        let end = rest.find(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_owned()
    }

    /// `${…}`, whose `${` is taken.
    fn parameter(&mut self, parts: &mut Vec<Part>, quotes: Quotes) -> Result<(), Problem> {
        let start = self.at;
        let prefix = self.prefix();
        let mut name = self.name();
        if name.is_empty()
            && let Some(letter) = self.peek()
            && "@*#?-$!".contains(letter)
        {
            self.next();
            name.push(letter);
        }
        if name.is_empty() {
            return Err("the shell text is not understood at `${`".to_owned());
        }
        let mut index = None;
        if self.take("[") {
            index = Some(self.word_to("]", quotes)?);
        }
        let mut operation = None;
        if !self.take("}") {
            let operator = OPERATORS.iter().find(|operator| self.looks_at(operator));
            // `${!name*}` lists names.
            let operator = operator.copied().or_else(|| self.looks_at("*").then_some("*"));
            let operator = operator.ok_or("the shell text is not understood inside `${…}`")?;
            self.at += operator.len();
            operation = Some((operator.to_owned(), self.word_to("}", quotes)?));
        }
        let raw = format!("${{{}", &self.text[start..self.at]);
        parts.push(Part::Parameter(Rc::new(Parameter { name, index, prefix, operation, raw }), quotes));
        Ok(())
    }

    fn prefix(&mut self) -> Prefix {
        let next = self.rest().chars().nth(1);
        let named = next.is_some_and(|next| next == '_' || next.is_ascii_alphanumeric() || "@*#?$!-".contains(next));
        // `${#}` and `${#-default}` are the number of arguments, `${#name}` a length.
        if named && self.looks_at("#") && !self.looks_at("#-") {
            self.next();
            return Prefix::Length;
        }
        if named && self.looks_at("!") {
            self.next();
            return Prefix::Indirect;
        }
        Prefix::None
    }

    /// A word that ends at `end`, which is taken, and may hold blanks.
    fn word_to(&mut self, end: &str, quotes: Quotes) -> Result<Word, Problem> {
        let start = self.at;
        let mut parts = Vec::new();
        loop {
            if self.looks_at(end) {
                let raw = self.text[start..self.at].to_owned();
                self.at += end.len();
                return Ok(Word { parts, raw });
            }
            match self.peek() {
                None => return Err(format!("the shell text is not understood: `{end}` is missing")),
                // Double quotes inside of double quotes only hide a closing bracket here.
                Some('"') => self.piece(&mut parts, Quotes::Bare)?,
                Some(_) => self.piece(&mut parts, quotes)?,
            }
        }
    }
}

fn push_parameter(parts: &mut Vec<Part>, name: String, quotes: Quotes) {
    let raw = format!("${name}");
    parts.push(Part::Parameter(
        Rc::new(Parameter { name, index: None, prefix: Prefix::None, operation: None, raw }),
        quotes,
    ));
}
