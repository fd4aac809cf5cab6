//! From words to fields: what the shell makes of a word before it runs a command.

mod arithmetic;
mod braces;
mod parameter;

use std::rc::Rc;

use crate::bounds;
use crate::globs::Globs;
use crate::number;
use crate::read::Reading;
use crate::state::{Certainty, Field, Output, State, Value};
use crate::syntax::{Parameter, Part, Quotes, Script, Word};

/// What an expansion came to.
pub(super) enum Got {
    /// One text, to be split if it stands outside of quotes.
    Text(Field),
    /// Several fields, also in quotes.
    List(Vec<Field>),
    /// Several fields, which are one in quotes.
    Joined(Vec<Field>),
    /// Not known; in the facts it stands as it is written.
    Unknown(String),
}

/// Whether `word` is one range of numbers, such as `{1..5000}`.
fn is_range(word: &Word) -> bool {
    let is_of_numbers = |text: &str| text.chars().all(|letter| letter.is_ascii_digit() || "{.}-".contains(letter));
    matches!(word.parts.as_slice(), [Part::Plain(text)] if is_of_numbers(text))
}

impl Reading<'_> {
    /// The fields that `words` become.
    pub(crate) fn fields(&mut self, words: &[Word], state: &mut State) -> Vec<Field> {
        let mut fields = Vec::new();
        for word in words {
            let expanded = match self.braces(word, state) {
                Some(words) => words,
                None => {
                    let why = format!("a word becomes more than {} words", bounds::WORDS);
                    // Numbers alone are no path, and what follows them is read.
                    if !is_range(word) {
                        self.cut(why);
                        return fields;
                    }
                    self.unknown(why);
                    fields.push(Field::unknown("0"));
                    continue;
                }
            };
            for word in expanded {
                self.word_fields(&word, state, &mut fields);
            }
            if !self.spend(fields.len() / 64 + 1) || fields.len() > bounds::WORDS {
                self.cut(format!("a command has more than {} words", bounds::WORDS));
                fields.truncate(bounds::WORDS);
                return fields;
            }
        }
        fields
    }

    /// The words that the braces in `word` stand for; nothing if there are too many.
    pub(crate) fn braces(&mut self, word: &Word, state: &State) -> Option<Vec<Word>> {
        let braced = word.parts.iter().any(|part| matches!(part, Part::Plain(text) if text.contains('{')));
        if !braced || !self.is_bash(state) {
            return Some(vec![word.clone()]);
        }
        braces::expand(word)
    }

    /// The one text that `word` becomes where nothing is split, as in an assignment or a redirection.
    pub(crate) fn one(&mut self, word: &Word, state: &mut State) -> Field {
        let mut fields = Fields::new(separators(state));
        self.parts(&word.parts, state, &mut fields, Split::Never);
        self.charge(&fields.current.text);
        let mut field = fields.current;
        if field.certainty == Certainty::Many {
            field.certainty = Certainty::Unknown;
        }
        field
    }

    fn word_fields(&mut self, word: &Word, state: &mut State, done: &mut Vec<Field>) {
        let mut fields = Fields::new(separators(state));
        self.parts(&word.parts, state, &mut fields, Split::Bare);
        fields.close();
        for field in &fields.done {
            self.charge(&field.text);
        }
        for field in fields.done {
            let twins = twins(&field, state);
            done.push(field);
            done.extend(twins);
        }
    }

    /// Pays for a text, and refuses one that grows without end.
    fn charge(&mut self, text: &str) {
        self.spend(text.len() / 64);
        if text.len() > bounds::VALUE_BYTES {
            self.unknown(format!("a word is longer than {} bytes", bounds::VALUE_BYTES));
            self.stop();
        }
    }

    fn parts(&mut self, parts: &[Part], state: &mut State, fields: &mut Fields, split: Split) {
        for part in parts {
            if fields.current.text.len() > bounds::VALUE_BYTES || self.is_spent() {
                return;
            }
            match part {
                Part::Plain(text) => {
                    let below = text.strip_prefix('~').filter(|_| !fields.begun);
                    let below = below.filter(|below| below.is_empty() || below.starts_with('/'));
                    // The text itself may say which folder is the home folder.
                    match (below, state.variables.get("HOME")) {
                        (Some(below), Some(Value::Text(home))) => {
                            fields.doubt(&home.text, home.certainty.min(Certainty::Unknown));
                            fields.plain(below);
                        }
                        (_, _) => fields.plain(text),
                    }
                }
                Part::Quoted(text) => fields.quoted(text),
                Part::Parameter(parameter, quotes) => {
                    let got = self.parameter(parameter, state);
                    fields.expanded(got, *quotes, split);
                }
                Part::Command(script, quotes) => {
                    let got = self.substitution(script, state);
                    fields.expanded(got, *quotes, split);
                }
                Part::ProcessOut(script) => {
                    let mut inner = state.deeper();
                    let output = self.script(script, &mut inner);
                    let path = self.process_file(output);
                    fields.quoted(&path);
                }
                Part::ProcessIn(script) => {
                    let mut inner = state.deeper();
                    inner.stdin = crate::state::Stdin::Unknown;
                    self.script(script, &mut inner);
                    let path = self.process_file(Output::Unknown);
                    fields.quoted(&path);
                }
                Part::Arithmetic(expression) => {
                    self.expression(expression, state);
                    self.forget_assigned(&expression.raw, state);
                    // A number, whichever; nothing that could be run comes of it.
                    fields.quoted(&number::of(&expression.raw));
                }
                Part::List(words) => {
                    for field in self.fields(words, state) {
                        fields.quoted(&field.text);
                        fields.current.certainty = fields.current.certainty.max(field.certainty);
                        fields.quoted(" ");
                    }
                }
            }
        }
    }

    fn substitution(&mut self, script: &Rc<Script>, state: &mut State) -> Got {
        let mut inner = state.deeper();
        inner.failing.ends = false;
        match self.script(script, &mut inner) {
            Output::Known(text) => Got::Text(Field::known(text.trim_end_matches('\n'))),
            Output::Files(files) => Got::List(files),
            Output::Unknown => Got::Unknown("$(…)".to_owned()),
        }
    }

    pub(super) fn parameter(&mut self, parameter: &Parameter, state: &mut State) -> Got {
        if let Some(index) = &parameter.index {
            self.index(&parameter.name, index, state);
        }
        self.parameter_value(parameter, state)
    }
}

/// What parts fields, by `IFS`; nothing if that cannot be known.
fn separators(state: &State) -> Option<String> {
    match state.variables.get("IFS") {
        None => Some(" \t\n".to_owned()),
        Some(Value::Text(field)) if field.is_exact() => Some(field.text.clone()),
        Some(_) => None,
    }
}

/// What `field` stands for besides what it says, as a pattern.
pub(crate) fn twins(field: &Field, state: &State) -> Vec<Field> {
    if field.certainty != Certainty::Glob {
        return Vec::new();
    }
    let globs = globs(state);
    let brackets =
        if field.text.contains('(') { crate::globs::without_brackets(&field.text) } else { Default::default() };
    let twins = if globs == Globs::default() { Vec::new() } else { globs.twins(&field.text) };
    brackets.into_iter().chain(twins).map(|text| Field { text, certainty: Certainty::Glob }).collect()
}

/// How the shell looks for files; `GLOBIGNORE` and `FIGNORE` let patterns stand for hidden ones too.
fn globs(state: &State) -> Globs {
    let ignores = |name: &str| match state.variables.get(name) {
        Some(Value::Text(field)) => !field.is_exact() || !field.text.is_empty(),
        Some(Value::List(_) | Value::Keyed | Value::Unknown) => true,
        None => false,
    };
    Globs { hidden: state.scope.globs.hidden || ignores("GLOBIGNORE") || ignores("FIGNORE"), ..state.scope.globs }
}

/// Whether unquoted expansions become several fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Split {
    Bare,
    Never,
}

/// Fields while they grow.
struct Fields {
    done: Vec<Field>,
    current: Field,
    /// Whether there is a field, though it may be empty.
    begun: bool,
    /// Whether a list without entries stood in it.
    voided: bool,
    separators: Option<String>,
}

impl Fields {
    fn new(separators: Option<String>) -> Fields {
        Fields { done: Vec::new(), current: Field::default(), begun: false, voided: false, separators }
    }

    fn close(&mut self) {
        // `"$@"` is nothing at all where there are no arguments.
        let gone = self.voided && self.current == Field::default();
        if self.begun && !gone && self.done.len() <= bounds::WORDS {
            self.done.push(std::mem::take(&mut self.current));
        }
        self.current = Field::default();
        self.begun = false;
        self.voided = false;
    }

    fn plain(&mut self, text: &str) {
        self.current.text.push_str(text);
        self.begun = true;
        if is_pattern(text) {
            self.current.certainty = self.current.certainty.max(Certainty::Glob);
        }
    }

    fn quoted(&mut self, text: &str) {
        self.current.text.push_str(text);
        self.begun = true;
    }

    fn doubt(&mut self, raw: &str, certainty: Certainty) {
        self.quoted(raw);
        self.current.certainty = self.current.certainty.max(certainty);
    }

    /// Adds what an expansion came to; where nothing is split, a list becomes one text.
    fn expanded(&mut self, got: Got, quotes: Quotes, split: Split) {
        match (got, split) {
            (Got::List(list) | Got::Joined(list), Split::Never) => self.joined(&list),
            (got, Split::Never) => self.got(got, Quotes::Double),
            (got, Split::Bare) => self.got(got, quotes),
        }
    }

    /// Adds a list as one text, with the first separator between its entries.
    fn joined(&mut self, list: &[Field]) {
        let separator = self.separators.as_deref().map(|separators| separators.chars().next());
        for (index, field) in list.iter().enumerate() {
            if index > 0 {
                match separator {
                    Some(first) => self.quoted(first.map(String::from).as_deref().unwrap_or_default()),
                    None => self.doubt(" ", Certainty::Unknown),
                }
            }
            self.doubt(&field.text, field.certainty.min(Certainty::Unknown));
        }
    }

    fn got(&mut self, got: Got, quotes: Quotes) {
        match (got, quotes) {
            (Got::Joined(list), Quotes::Double) => {
                // `"$*"` is an empty text where there are no arguments.
                self.quoted("");
                self.joined(&list);
            }
            (Got::List(list) | Got::Joined(list), _) if list.is_empty() => self.voided = true,
            (Got::Unknown(raw), Quotes::Bare) => self.doubt(&raw, Certainty::Many),
            (Got::Unknown(raw), Quotes::Double) => self.doubt(&raw, Certainty::Unknown),
            (Got::Text(field), Quotes::Double) => self.doubt(&field.text, field.certainty.min(Certainty::Unknown)),
            (Got::Text(field), Quotes::Bare) => self.split(&field),
            (Got::List(list) | Got::Joined(list), Quotes::Bare) => {
                for (index, field) in list.iter().enumerate() {
                    if index > 0 {
                        self.close();
                    }
                    self.split(field);
                }
            }
            (Got::List(list), Quotes::Double) => {
                for (index, field) in list.iter().enumerate() {
                    if index > 0 {
                        self.close();
                    }
                    self.doubt(&field.text, field.certainty);
                }
            }
        }
    }

    /// Adds a text of a bare expansion: split where the separators stand.
    fn split(&mut self, field: &Field) {
        let Some(separators) = self.separators.as_ref().filter(|_| field.is_known()) else {
            self.doubt(&field.text, Certainty::Many);
            return;
        };
        if number::is_hidden(&field.text) && separators.contains(|letter: char| letter.is_ascii_digit()) {
            self.doubt(&field.text, Certainty::Many);
            return;
        }
        let separators = separators.clone();
        let mut first = true;
        for piece in field.text.split(|letter| separators.contains(letter)) {
            if !first {
                self.close();
            }
            first = false;
            if !piece.is_empty() {
                self.quoted(piece);
                let glob = if is_pattern(piece) { Certainty::Glob } else { Certainty::Known };
                self.current.certainty = self.current.certainty.max(field.certainty).max(glob);
            }
        }
    }
}

/// Whether the shell would look for files that fit `text`.
fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
        || text.find('[').is_some_and(|open| text[open + 1..].contains(']'))
        || ["@(", "+(", "!("].iter().any(|sign| text.contains(sign))
}
