//! JSON as people write it into settings, with comments and trailing commas: where each value stands.

use pintle_domain::json::{self, Object, Value};

use super::others::NotEdited;

/// A value and its place: bytes of the text.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Object(Vec<Element>),
    Array(Vec<Element>),
    Plain(Value),
}

/// An element of an array or a member of an object, with the comma behind it.
#[derive(Clone, Debug)]
pub(super) struct Element {
    /// The name; empty in arrays.
    pub(super) name: String,
    /// Where it begins: a member at its name.
    pub(super) start: usize,
    pub(super) value: Node,
    pub(super) comma: Option<usize>,
}

/// Deepest nesting that is read: settings stay far below.
const MAX_DEPTH: usize = 64;

/// Reads the one value of `text`.
pub(super) fn parse(text: &str, comments: bool) -> Result<Node, NotEdited> {
    let mut reader = Reader { text, at: 0, comments };
    let node = (|| {
        reader.at = text.len() - text.trim_start_matches('\u{feff}').len();
        reader.blank()?;
        let node = reader.value(0)?;
        reader.blank()?;
        if reader.at < text.len() { Err("something stands behind the value".to_owned()) } else { Ok(node) }
    })();
    node.map_err(|why| NotEdited::Unreadable { line: text[..reader.at].matches('\n').count() + 1, why })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    comments: bool,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn next(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes blanks and comments over.
    fn blank(&mut self) -> Result<(), String> {
        loop {
            while matches!(self.byte(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
                self.at += 1;
            }
            if self.byte() != Some(b'/') {
                return Ok(());
            }
            let rest = self.rest();
            let long = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").ok_or("a comment without its end")? + 2
            } else {
                return Ok(());
            };
            if !self.comments {
                return Err("a comment, which this agent does not read".to_owned());
            }
            self.at += long;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, String> {
        if depth > MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        let start = self.at;
        let kind = match self.next() {
            Some('{') => Kind::Object(self.elements('}', depth)?),
            Some('[') => Kind::Array(self.elements(']', depth)?),
            Some('"') => Kind::Plain(self.string()?),
            Some(_) => {
                while !matches!(self.byte(), None | Some(b',' | b'}' | b']' | b'/' | b' ' | b'\t' | b'\r' | b'\n')) {
                    self.at += 1;
                }
                let read = json::parse(&self.text[start..self.at]);
                let value = read.inspect_err(|_| self.at = start)?;
                Kind::Plain(value)
            }
            None => return Err("a value is missing".to_owned()),
        };
        Ok(Node { start, end: self.at, kind })
    }

    fn string(&mut self) -> Result<Value, String> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => {
                    self.at = start;
                    return Err("a text without its end".to_owned());
                }
            }
        }
        self.at += 1;
        let read = json::parse(&self.text[start..self.at]);
        read.inspect_err(|_| self.at = start)
    }

    fn elements(&mut self, close: char, depth: usize) -> Result<Vec<Element>, String> {
        let mut elements: Vec<Element> = Vec::new();
        self.at += 1;
        loop {
            self.blank()?;
            let may_go_on = elements.last().is_none_or(|last| last.comma.is_some());
            match self.next() {
                Some(c) if c == close => {
                    if !self.comments && elements.last().is_some_and(|last| last.comma.is_some()) {
                        return Err("a comma behind the last element, which this agent does not read".to_owned());
                    }
                    self.at += 1;
                    return Ok(elements);
                }
                Some(_) if may_go_on => elements.push(self.element(close == '}', depth)?),
                Some(_) => return Err("a comma is missing".to_owned()),
                None => return Err(format!("`{close}` is missing")),
            }
        }
    }

    fn element(&mut self, is_member: bool, depth: usize) -> Result<Element, String> {
        let start = self.at;
        let mut name = String::new();
        if is_member {
            if self.next() != Some('"') {
                return Err("a name in quotes is missing".to_owned());
            }
            name = self.string()?.as_str().unwrap_or_default().to_owned();
            self.blank()?;
            if self.next() != Some(':') {
                return Err(format!("a colon is missing behind `{name}`"));
            }
            self.at += 1;
            self.blank()?;
        }
        let value = self.value(depth + 1)?;
        self.blank()?;
        let comma = (self.next() == Some(',')).then_some(self.at);
        self.at += usize::from(comma.is_some());
        Ok(Element { name, start, value, comma })
    }
}

impl Node {
    /// The value itself.
    pub(super) fn value(&self) -> Value {
        match &self.kind {
            Kind::Plain(value) => value.clone(),
            Kind::Array(elements) => elements.iter().map(|element| element.value.value()).collect::<Vec<_>>().into(),
            Kind::Object(members) => {
                let members = members.iter().map(|member| (member.name.clone(), member.value.value()));
                Value::Object(members.collect::<Object>())
            }
        }
    }

    /// The member `name`, if this is an object that has it once.
    pub(super) fn member(&self, name: &str) -> Result<Option<&Element>, NotEdited> {
        let Kind::Object(members) = &self.kind else { return Ok(None) };
        let mut found = members.iter().filter(|member| member.name == name);
        let first = found.next();
        if found.next().is_some() { Err(NotEdited::Twice(name.to_owned())) } else { Ok(first) }
    }
}

/// The value that stands at `names` in `text`.
pub(super) fn at(text: &str, names: &[&str]) -> Result<Option<Value>, NotEdited> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let root = parse(text, true)?;
    let mut node = &root;
    for name in names {
        match node.member(name)? {
            Some(member) => node = &member.value,
            None => return Ok(None),
        }
    }
    Ok(Some(node.value()))
}

/// `value` over several lines, each level `unit` deeper than `indent`; the first line has no indent.
pub fn pretty(value: &Value, unit: &str, line: &str, indent: &str) -> String {
    let deeper = format!("{indent}{unit}");
    let lines = |open: char, parts: Vec<String>, close: char| {
        let parts = parts.join(&format!(",{line}{deeper}"));
        format!("{open}{line}{deeper}{parts}{line}{indent}{close}")
    };
    match value {
        Value::Object(members) if !members.is_empty() => {
            let member = |(name, value): (&String, &Value)| {
                format!("{}: {}", Value::from(name.as_str()), pretty(value, unit, line, &deeper))
            };
            lines('{', members.iter().map(member).collect(), '}')
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            lines('[', items.iter().map(|item| pretty(item, unit, line, &deeper)).collect(), ']')
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => value.to_string(),
    }
}
