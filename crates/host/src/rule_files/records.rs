//! A file with records, each of which knows where it stands.

use std::fmt;
use std::path::{Path, PathBuf};

use pintle_dialects::process::config::MemberPart;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::json::Value;
use pintle_domain::nearest::nearest;
use pintle_domain::rule::AGENT_EVENTS;
use pintle_rules::record;

use super::folder::{MAX_BYTES, bounded, is_look_alike};
use crate::config::document::Document;
use crate::config::{Diagnostic, Location, diagnostic::dotted};
use crate::error::HostError;

/// The file that stands for standard input.
const STDIN: &str = "-";

/// The member under which files keep several records.
const TABLES: &str = "hook";

/// The text that a document that is a bare array is put into: places are looked up in tables. All of it stands on the
/// first line.
const WRAP: &str = "{\"hook\":";

/// Parts of messages about a member that they do not name.
const ABOUT: [(&str, &str); 4] = [
    ("ssrf check", "url"),
    ("script compile error", "source"),
    ("script source", "source"),
    ("agent not found", "agent_ids"),
];

/// Said of a record in which one of these is missing.
const REQUIRED: &str = "handler_type, event, and scope are required";
const REQUIRED_MEMBERS: [&str; 3] = ["handler_type", "event", "scope"];

/// In which form a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Toml,
}

/// A file with records.
#[derive(Debug)]
pub struct RecordsFile {
    records: Vec<Value>,
    /// All of the file.
    whole: Value,
    /// The member that has them, if they are not the whole file.
    under: Option<&'static str>,
    document: Document,
    /// How far columns of the first line are off.
    shift: usize,
    name: PathBuf,
}

/// Why a file with records cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordsError {
    file: PathBuf,
    /// Line and column; none if it is about the whole file.
    at: Option<(usize, usize)>,
    message: String,
}

impl RecordsError {
    pub(super) fn new(file: &Path, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), at: None, message: message.into() }
    }

    /// This error as a diagnostic for a linter, and for whoever starts.
    pub fn diagnostic(self) -> Diagnostic {
        let (line, column) = self.at.unwrap_or((1, 1));
        let place = Location { file: self.file, line, column };
        Diagnostic { place, path: String::new(), message: self.message, nearest: None, guard: true }
    }
}

impl fmt::Display for RecordsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some((line, column)) => write!(f, "{}:{line}:{column}: {}", self.file.display(), self.message),
            None => write!(f, "{}: {}", self.file.display(), self.message),
        }
    }
}

impl From<RecordsError> for HostError {
    fn from(unread: RecordsError) -> Self {
        Self::usage(unread.to_string())
    }
}

impl RecordsFile {
    /// Reads `file`, or standard input for `-`.
    ///
    /// # Errors
    /// It is not there, or it does not parse, or holds no record.
    pub fn read(file: &str) -> Result<Self, HostError> {
        let records = match file {
            STDIN => Self::of_bytes(Path::new("standard input"), bounded(std::io::stdin().lock())),
            file => Self::open(Path::new(file)),
        };
        let records = records.map_err(|unread| match is_look_alike(Path::new(file)) {
            true => HostError::from(unread).hint("records are written in JSON or TOML, and read as such"),
            false => HostError::from(unread),
        })?;
        if records.records.is_empty() {
            let error = HostError::usage(format!("{}: there is no record in it", records.name.display()));
            return Err(error.hint("write one as a JSON object, or as a table [[hook]] in TOML"));
        }
        Ok(records)
    }

    /// Reads `file`, which may hold no record.
    ///
    /// # Errors
    /// It is not there, or it does not parse.
    pub fn open(file: &Path) -> Result<Self, RecordsError> {
        Self::of_bytes(file, std::fs::File::open(file).and_then(bounded))
    }

    fn of_bytes(name: &Path, bytes: std::io::Result<Vec<u8>>) -> Result<Self, RecordsError> {
        let bytes = bytes.map_err(|why| RecordsError::new(name, why.to_string()))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(RecordsError::new(name, format!("longer than {MAX_BYTES} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|why| {
            let at = why.utf8_error().valid_up_to();
            RecordsError::new(name, format!("not valid UTF-8, from byte {at} on"))
        })?;
        Self::parse(name, &text)
    }

    /// Reads the records of `text`, which is what the file `name` holds.
    fn parse(name: &Path, text: &str) -> Result<Self, RecordsError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let form = form(name, text);
        let bare = form == Form::Json && text.trim_start().starts_with('[');
        if bare {
            // What is wrong with it by itself must not be mended by what it is put into.
            alone(name, text)?;
        }
        let (whole, shift) = if bare { (format!("{WRAP}{text}}}"), WRAP.len()) } else { (text.to_owned(), 0) };
        let suffix = match form {
            Form::Json => "file.json",
            Form::Toml => "file.toml",
        };
        let at = |place: &Location, message: String| {
            let place = shifted(name, shift, place);
            RecordsError { at: Some((place.line, place.column)), ..RecordsError::new(name, message) }
        };
        let document =
            Document::parse(Path::new(suffix), whole.as_bytes()).map_err(|found| at(&found.place, found.said()))?;
        if let Some(twice) = document.twice.first() {
            return Err(at(&document.place(&twice.path, twice.at), twice.message.clone()));
        }
        let value = document.root.to_json();
        let found = record::records(&value).map_err(|refused| RecordsError::new(name, refused.message))?;
        let under = value.get(TABLES).is_some_and(Value::is_array).then_some(TABLES);
        let records = found.into_iter().cloned().collect();
        Ok(Self { records, whole: value, under, document, shift, name: name.to_owned() })
    }

    /// The records, in the order of the file.
    pub fn all(&self) -> &[Value] {
        &self.records
    }

    /// All of the file.
    pub fn whole(&self) -> &Value {
        &self.whole
    }

    /// `message`, which is about these records, with the place of what it is about, as far as that is known.
    pub fn located(&self, index: Option<usize>, message: &str) -> String {
        let only = (self.records.len() == 1).then_some(0);
        match index.or(only).filter(|index| *index < self.records.len()) {
            Some(index) => {
                let Location { file, line, column } = self.place(&self.path(index, message), message);
                format!("{}:{line}:{column}: {}", file.display(), completed(message, &self.records[index]))
            }
            None => format!("{}: {message}", self.name.display()),
        }
    }

    /// The problem of the record `index`, with its place. The nearest name stays in the message.
    ///
    /// # Panics
    /// There is no such record.
    pub fn diagnostic(&self, index: usize, message: &str) -> Diagnostic {
        let path = self.path(index, message);
        let place = self.place(&path, message);
        let message = completed(message, &self.records[index]);
        Diagnostic { place, path: dotted(&path), message, nearest: None, guard: false }
    }

    /// The keys that lead to what `message` says of a record.
    fn path(&self, index: usize, message: &str) -> Vec<String> {
        let mut path: Vec<String> = Vec::new();
        if let Some(under) = self.under {
            path.extend([under.to_owned(), index.to_string()]);
        }
        path.extend(member(&self.records[index], unnamed(message, index, &self.records[index])));
        path
    }

    fn place(&self, path: &[String], message: &str) -> Location {
        let at = if message.contains("unknown field") { MemberPart::Key } else { MemberPart::Value };
        shifted(&self.name, self.shift, &self.document.place(path, at))
    }
}

/// `message` without the words that name the record.
fn unnamed<'a>(message: &'a str, index: usize, record: &Value) -> &'a str {
    let number = format!("record {}", index + 1);
    let name = record["name"].as_str().map(|name| format!(" ({name:?})")).unwrap_or_default();
    let rest = message.strip_prefix(&number).map(|rest| rest.strip_prefix(&name).unwrap_or(rest));
    rest.unwrap_or(message)
}

/// `message`, and which members `record` lacks, where it only names all that are required; with an event that is none.
fn completed(message: &str, record: &Value) -> String {
    if !message.ends_with(REQUIRED) {
        return message.to_owned();
    }
    let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
    let missing: Vec<&str> = REQUIRED_MEMBERS.into_iter().filter(|name| text(name).is_empty()).collect();
    let (event, known) = (text("event"), AGENT_EVENTS.map(CheckpointKind::name));
    let unknown = match nearest(event, known) {
        _ if event.is_empty() || known.contains(&event) => String::new(),
        Some(near) => format!("; unknown event {event:?} (did you mean \"{near}\"?)"),
        None => format!("; unknown event {event:?}"),
    };
    format!("{message}; missing: {}{unknown}", missing.join(", "))
}

/// The path, within `record`, of the member that `message` is about.
fn member(record: &Value, message: &str) -> Vec<String> {
    // What is missing stands nowhere.
    if message.ends_with(REQUIRED) {
        return Vec::new();
    }
    let has = |name: &str| record.get(name).map(|_| vec![name.to_owned()]);
    let in_config = |name: &str| record["config"].get(name).map(|_| vec!["config".to_owned(), name.to_owned()]);
    let about = ABOUT
        .iter()
        .find(|(part, _)| message.contains(part))
        .and_then(|(_, name)| in_config(name).or_else(|| has(name)));
    let quoted = message.split('"').nth(1).filter(|_| message.contains("field \""));
    let named = quoted.and_then(|name| if message.contains("in config") { in_config(name) } else { has(name) });
    let mut words = message.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    about.or(named).or_else(|| words.find_map(|word| has(word).or_else(|| in_config(word)))).unwrap_or_default()
}

/// What a name does not say is said by how the text begins.
fn form(name: &Path, text: &str) -> Form {
    let suffix = name.extension().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
    if suffix.eq_ignore_ascii_case("json") {
        return Form::Json;
    }
    if suffix.eq_ignore_ascii_case("toml") {
        return Form::Toml;
    }
    let text = text.trim_start();
    let second = text.get(1..).unwrap_or_default().trim_start();
    let json =
        text.starts_with('{') || (text.starts_with('[') && (second.is_empty() || second.starts_with(['{', ']'])));
    if json { Form::Json } else { Form::Toml }
}

fn alone(name: &Path, text: &str) -> Result<(), RecordsError> {
    pintle_domain::json::parse(text).map(drop).map_err(|why| {
        let placed = why.rsplit_once(" at line ").and_then(|(what, place)| {
            let (line, column) = place.split_once(" column ")?;
            Some((what, (line.parse().ok()?, column.parse().ok()?)))
        });
        match placed {
            Some((what, at)) => RecordsError { at: Some(at), ..RecordsError::new(name, what) },
            None => RecordsError::new(name, why),
        }
    })
}

/// A place of the document as one of the file `name`.
fn shifted(name: &Path, shift: usize, place: &Location) -> Location {
    let off = if place.line == 1 { shift } else { 0 };
    Location { file: name.to_owned(), line: place.line, column: place.column.saturating_sub(off).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str, text: &str) -> RecordsFile {
        RecordsFile::parse(Path::new(name), text).unwrap()
    }

    #[test]
    fn one_record_or_several_in_either_form() {
        let check = |name: &str, text: &str| {
            let names: Vec<String> = parsed(name, text).all().iter().map(|record| record["name"].to_string()).collect();
            names.join(" ")
        };
        assert_eq!(check("a.json", r#"{"name": "a"}"#), r#""a""#);
        assert_eq!(check("a.json", "\u{feff} [{\"name\": \"a\"}, {\"name\": \"b\"}]"), r#""a" "b""#);
        assert_eq!(check("a.toml", "name = 'a'\n"), r#""a""#);
        assert_eq!(check("a.toml", "[[hook]]\nname = 'a'\n[[hook]]\nname = 'b'"), r#""a" "b""#);
        for text in ["[[hook]]\nname = 'a'", r#" [ {"name": "a"}]"#, r#"{"hook": [{"name": "a"}]}"#, "name = 'a'"] {
            assert_eq!(check("standard input", text), r#""a""#, "{text}");
        }
    }

    #[test]
    fn what_is_no_document_says_where() {
        let check = |name: &str, text: &str, expected: &str| {
            let error = RecordsFile::parse(Path::new(name), text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        };
        check("a.json", "[\n {\"name\": }]", "a.json:2:11: expected value");
        check("a.json", "[{\"name\": 1}], \"x\": {}", "a.json:1:14: trailing characters");
        check("a.json", "[{\"name\": \"a\", \"name\": 2}]", "a.json:1:16: duplicate key \"name\"");
        check("a.json", "{\"name\": \"a\"", "a.json:1:");
        check("a.json", "7", "a.json:1:1: expected a table of keys");
        check("a.toml", "name = 'a'\nname = 'b'", "a.toml:2:1: ");
        check("a.JSON", "null", "a.JSON:1:1: expected a table of keys");
        check("a.toml", "hook = 5", "a.toml: invalid request: invalid config: field \"hook\" must be an array");
    }

    #[test]
    fn a_file_without_records_is_one_but_nobody_can_want_to_add_it() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("a.json", "[]"), ("a.toml", "")] {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            assert!(RecordsFile::open(&file).unwrap().all().is_empty());
            let error = RecordsFile::read(file.to_str().unwrap()).unwrap_err();
            assert_eq!(
                (error.kind, error.message),
                (crate::error::ErrorKind::Usage, format!("{}: there is no record in it", file.display()))
            );
        }
    }

    #[test]
    fn a_mistake_is_shown_where_it_stands() {
        let records = parsed(
            "a.json",
            "[{\"name\": \"a\"},\n {\"name\": \"b\", \"timeout_ms\": 99999,\n  \"config\": {\"url\": \"x\", \"ur\": 1}}]",
        );
        let check = |index: Option<usize>, message: &str| records.located(index, message);
        assert_eq!(
            check(Some(1), "hook: timeout_ms 99999 exceeds max 10000"),
            "a.json:2:30: hook: timeout_ms 99999 exceeds max 10000"
        );
        assert!(check(Some(1), "hook: http handler: ssrf check: ssrf: empty host").starts_with("a.json:3:21: "));
        assert!(
            check(Some(1), "invalid request: invalid config: unknown field \"ur\" in config")
                .starts_with("a.json:3:26: ")
        );
        assert!(check(Some(0), "hook: unknown field \"name\"").starts_with("a.json:1:3: "));
        assert!(check(Some(0), "handler_type, event, and scope are required").starts_with("a.json:1:2: "));
        let lacking = parsed("a.toml", "[[hook]]\nname = 'a'\nhandler_type = 'script'\nevent = 'pre_tol_use'\n");
        let said = lacking.located(None, REQUIRED);
        let missing = "are required; missing: scope; unknown event \"pre_tol_use\" (did you mean \"pre_tool_use\"?)";
        assert!(said.starts_with("a.toml:1:") && said.ends_with(missing), "{said}");
        assert_eq!(check(None, "something"), "a.json: something");
        assert_eq!(check(Some(9), "something"), "a.json: something");
        let toml = parsed("a.toml", "[[hook]]\nname = 'a'\nmatcher = '('\n");
        let found = toml.diagnostic(0, "hook: matcher invalid: x");
        assert_eq!(found.to_string(), "a.toml:3:11: hook.0.matcher: hook: matcher invalid: x");
        assert!(toml.located(None, "hook: matcher invalid: x").starts_with("a.toml:3:11: "));
    }
}
