//! Reads the members of a reply: names in any case, the last duplicate wins, `null` is absent, wrong types are faults.

use std::fmt;

use pintle_domain::fault::Fault;
use pintle_domain::json::{Object, Value, parse};

use super::echo::key;
use super::hint::{Shape, not_read};
use crate::process::frame::skim::{self, KnownList};

/// How many likely mistakes of one reply are listed: enough to mend a hook, too few to fill a record.
const MAX_WARNINGS: usize = 32;

/// Where in a reply something stands. Written only when something is wrong there.
#[derive(Clone, Copy)]
pub(super) struct Path<'p> {
    above: Option<&'p Path<'p>>,
    step: Step,
}

#[derive(Clone, Copy)]
enum Step {
    Name(&'static str),
    Index(usize),
}

/// The whole reply.
pub(super) const RESULT: Path<'static> = Path { above: None, step: Step::Name("result") };

impl Path<'_> {
    pub(super) fn name(&self, name: &'static str) -> Path<'_> {
        Path { above: Some(self), step: Step::Name(name) }
    }

    pub(super) fn index(&self, index: usize) -> Path<'_> {
        Path { above: Some(self), step: Step::Index(index) }
    }

    /// The fault for a value of a wrong type.
    pub(super) fn wrong(&self, expected: &str, text: &str) -> Fault {
        self.unreadable(&format!("expected {expected}, got {}", skim::kind(text)))
    }

    pub(super) fn unreadable(&self, why: &str) -> Fault {
        Fault::Unreadable { cause: format!("{self}: {why}").into() }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.above, self.step) {
            (None, Step::Name(name)) => f.write_str(name),
            (Some(above), Step::Name(name)) => write!(f, "{above}.{name}"),
            (None, Step::Index(index)) => write!(f, "[{index}]"),
            (Some(above), Step::Index(index)) => write!(f, "{above}[{index}]"),
        }
    }
}

/// Reads one reply and collects likely mistakes in it.
pub(super) struct Reader<'a> {
    /// Likely mistakes so far.
    pub(super) warnings: Vec<String>,
    /// The params that were sent, where they are at hand.
    pub(super) sent: Option<&'a [u8]>,
    /// What of the reply is the host's own.
    pub(super) known: &'a KnownList,
    /// Whether the reply claims to answer in the tool's place.
    pub(super) responds: bool,
}

impl Default for Reader<'_> {
    fn default() -> Self {
        Self { warnings: Vec::new(), sent: None, known: &skim::NOTHING, responds: false }
    }
}

impl Reader<'_> {
    pub(super) fn warn(&mut self, warning: String) {
        match self.warnings.len() {
            0..MAX_WARNINGS => self.warnings.push(warning),
            MAX_WARNINGS => self.warnings.push("further likely mistakes are not listed".into()),
            _ => {}
        }
    }

    /// The members of the object `text`, in the order of `shape`; each other member is warned about.
    pub(super) fn fields<'t, const N: usize>(
        &mut self,
        path: &Path<'_>,
        text: &'t str,
        shape: &Shape<N>,
    ) -> Result<[Option<&'t str>; N], Fault> {
        let members = skim::members(text, self.known).ok_or_else(|| path.wrong("an object", text))?;
        let mut found = [None; N];
        for (name, value) in members {
            match shape.names.iter().position(|known| known.eq_ignore_ascii_case(&name)) {
                Some(at) => found[at] = Some(value).filter(|value| *value != "null"),
                None if self.warnings.len() > MAX_WARNINGS => {}
                None => self.warn(not_read(path, &name, &shape.names, shape.elsewhere)),
            }
        }
        Ok(found)
    }

    /// Warns if a read-only member came back as something else than `was`, JSON too.
    pub(super) fn read_only(&mut self, path: &Path<'_>, echoed: Option<&str>, was: impl FnOnce() -> Option<String>) {
        if let Some(echoed) = echoed
            && let Some(was) = was()
            && !same(echoed, &was)
        {
            self.warn(format!("{path} is read-only; the change is ignored"));
        }
    }

    /// The same for the members that every call carries: `meta`, `context`, `channel`, `chat_id`.
    pub(super) fn stamped(&mut self, path: &Path<'_>, echoed: [Option<&str>; 4]) {
        let (Some(sent), [Some(meta), Some(context), Some(channel), Some(chat_id)]) = (self.sent, echoed) else {
            return self.stamped_one_by_one(path, echoed);
        };
        // The four are what params begin with, so that they need not be looked for.
        let head = format!(r#"{{"meta":{meta},"context":{context},"channel":{channel},"chat_id":{chat_id},"#);
        if !sent.starts_with(head.as_bytes()) {
            self.stamped_one_by_one(path, echoed);
        }
    }

    fn stamped_one_by_one(&mut self, path: &Path<'_>, echoed: [Option<&str>; 4]) {
        for (name, echoed) in STAMPED.into_iter().zip(echoed) {
            let sent = self.sent;
            self.read_only(&path.name(name), echoed, || {
                let mut members = skim::members(std::str::from_utf8(sent?).ok()?, &skim::NOTHING)?;
                members.find(|(sent, _)| sent == name).map(|(_, value)| value.to_owned())
            });
        }
    }
}

const STAMPED: [&str; 4] = ["meta", "context", "channel", "chat_id"];

/// Whether two JSON texts are the same value.
fn same(a: &str, b: &str) -> bool {
    a == b || parse(a).is_ok_and(|a| parse(b).is_ok_and(|b| key(&a) == key(&b)))
}

/// A string, if it is there.
pub(super) fn string(path: &Path<'_>, text: Option<&str>) -> Result<Option<String>, Fault> {
    let Some(text) = text else { return Ok(None) };
    if !text.starts_with('"') {
        return Err(path.wrong("a string", text));
    }
    serde_json::from_str(text).map(Some).map_err(|error| path.unreadable(&error.to_string()))
}

/// A string; empty if it is not there.
pub(super) fn text(path: &Path<'_>, text: Option<&str>) -> Result<String, Fault> {
    string(path, text).map(Option::unwrap_or_default)
}

/// A boolean; false if it is not there.
pub(super) fn flag(path: &Path<'_>, text: Option<&str>) -> Result<bool, Fault> {
    match text {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(text) => Err(path.wrong("a boolean", text)),
    }
}

/// The elements of an array, if it is there.
pub(super) fn list<'t>(
    path: &Path<'_>,
    text: Option<&'t str>,
    known: &KnownList,
) -> Result<Option<Vec<&'t str>>, Fault> {
    text.map(|text| skim::elements(text, known).ok_or_else(|| path.wrong("an array", text))).transpose()
}

/// The strings of an array; none if it is not there.
pub(super) fn strings(path: &Path<'_>, text: Option<&str>) -> Result<Vec<String>, Fault> {
    let elements = list(path, text, &skim::NOTHING)?.unwrap_or_default();
    elements.into_iter().enumerate().map(|(i, element)| self::text(&path.index(i), Some(element))).collect()
}

/// Any value, digits as they came, if it is there.
pub(super) fn value(path: &Path<'_>, text: Option<&str>) -> Result<Option<Value>, Fault> {
    text.map(|text| parse(text).map_err(|why| path.unreadable(&why))).transpose()
}

/// An object, digits as they came, if it is there.
pub(super) fn object(path: &Path<'_>, text: Option<&str>) -> Result<Option<Object>, Fault> {
    match (value(path, text)?, text) {
        (None, _) | (_, None) => Ok(None),
        (Some(Value::Object(members)), _) => Ok(Some(members)),
        (Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)), Some(text)) => {
            Err(path.wrong("an object", text))
        }
    }
}
