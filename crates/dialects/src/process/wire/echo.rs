//! What a hook sends back unchanged stays the host's own: its private data and its digits.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;

use pintle_domain::json::{Number, Rendered, Value, parse};
use pintle_domain::llm::ToolDef;
use pintle_domain::message::Message;
use serde::Serialize;

/// Something of which a hook gets a list and returns a list.
pub(super) trait Element: Serialize {
    /// A text that equal elements share, cheap to tell.
    fn mark(&self) -> &str;

    /// The same text in JSON; `None` if `json` is no element of the host.
    fn mark_in(json: &Value) -> Option<&str>;
}

impl Element for Message {
    fn mark(&self) -> &str {
        &self.content
    }

    fn mark_in(json: &Value) -> Option<&str> {
        json.get("content")?.as_str()
    }
}

impl Element for ToolDef {
    fn mark(&self) -> &str {
        &self.function.name
    }

    fn mark_in(json: &Value) -> Option<&str> {
        json.get("function")?.get("name")?.as_str()
    }
}

/// How many originals that were passed over are compared with one that is spelled alike: as many as a hook changes at
/// once, as a rule.
const LOOK_BACK: usize = 64;

/// The elements that the hook was sent. Each can be taken back once.
///
/// An original is parsed at most once, and only if something with its mark came back spelled in another way.
pub(super) struct Originals<'a, T> {
    all: &'a [Rendered<T>],
    taken: Vec<bool>,
    /// All before it are taken.
    first: usize,
    /// The one behind the last that was taken: what comes back comes in order, as a rule.
    next: usize,
    /// The originals by mark, as far as they are not in `by_key`; made when first needed.
    by_mark: Option<HashMap<&'a str, Vec<usize>>>,
    /// The originals by [`key`], in list order.
    by_key: HashMap<String, VecDeque<usize>>,
}

impl<'a, T: Element> Originals<'a, T> {
    pub(super) fn new(all: &'a [Rendered<T>]) -> Self {
        Self { all, taken: vec![false; all.len()], first: 0, next: 0, by_mark: None, by_key: HashMap::new() }
    }

    /// Takes the first original, in list order, that is not taken and equals `text`.
    ///
    /// # Errors
    /// `text` cannot be parsed.
    pub(super) fn take(&mut self, text: &str) -> Result<Option<Rendered<T>>, String> {
        while self.taken.get(self.first) == Some(&true) {
            self.first += 1;
        }
        let at = match self.spelled_alike(text) {
            _ if self.first == self.all.len() => None,
            Some(at) => Some(at),
            None => self.find(&parse(text)?)?,
        };
        Ok(at.map(|at| {
            self.taken[at] = true;
            self.next = at + 1;
            self.all[at].clone()
        }))
    }

    /// The next original if it is spelled as `text` and none before it that is not taken can be equal.
    fn spelled_alike(&self, text: &str) -> Option<usize> {
        let is_at = |at: usize| !self.taken[at] && self.all[at].json() == text.as_bytes();
        let at = [self.next.max(self.first), self.first].into_iter().find(|at| *at < self.all.len() && is_at(*at))?;
        let mark = self.all[at].get().mark();
        let mut passed = self.first..at;
        let is_first =
            passed.len() <= LOOK_BACK && passed.all(|at| self.taken[at] || self.all[at].get().mark() != mark);
        is_first.then_some(at)
    }

    fn find(&mut self, value: &Value) -> Result<Option<usize>, String> {
        let Some(mark) = T::mark_in(value) else { return Ok(None) };
        self.parse_marked(mark)?;
        let Some(equal) = self.by_key.get_mut(&key(value)) else { return Ok(None) };
        while let Some(at) = equal.pop_front() {
            if !self.taken[at] {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Moves the originals with `mark` to `by_key`.
    fn parse_marked(&mut self, mark: &str) -> Result<(), String> {
        let all = self.all;
        let by_mark = self.by_mark.get_or_insert_with(|| {
            let mut by_mark: HashMap<&str, Vec<usize>> = HashMap::with_capacity(all.len());
            for (at, original) in all.iter().enumerate() {
                by_mark.entry(original.get().mark()).or_default().push(at);
            }
            by_mark
        });
        for at in by_mark.remove(mark).unwrap_or_default() {
            let value = parse(&String::from_utf8_lossy(all[at].json()))?;
            self.by_key.entry(key(&value)).or_default().push_back(at);
        }
        Ok(())
    }
}

/// A text that two values share exactly if they are equal regardless of member order and of how a number is
/// spelled, as long as both spellings denote the same double.
pub(super) fn key(value: &Value) -> String {
    let mut out = String::with_capacity(KEY_BYTES);
    write_key(value, &mut out);
    out
}

/// Room for the key of a usual message, so that building one rarely moves it.
const KEY_BYTES: usize = 1024;

fn write_key(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push('n'),
        Value::Bool(true) => out.push('t'),
        Value::Bool(false) => out.push('f'),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push('[');
            items.iter().for_each(|item| write_key(item, out));
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (name, member) in sorted {
                write_text(name, out);
                write_key(member, out);
            }
            out.push('}');
        }
    }
}

/// A text after its length, so that nothing in it looks like something else.
fn write_text(text: &str, out: &mut String) {
    write!(out, "\"{}:{text}", text.len()).expect("a string takes every write");
}

fn write_number(number: &Number, out: &mut String) {
    match number.as_f64() {
        // Minus nought is nought.
        Some(0.0) => out.push('0'),
        Some(double) => {
            write!(out, "#{:x};", double.to_bits()).expect("a string takes every write");
        }
        // Beyond all doubles only the same digits are the same number.
        None => {
            out.push('!');
            out.push_str(number.as_str());
            out.push(';');
        }
    }
}
