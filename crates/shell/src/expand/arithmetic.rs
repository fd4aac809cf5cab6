//! What bash calculates: a value is read as an expression once more, and an index in it may run a command.

use crate::bounds;
use crate::expand::Got;
use crate::number::is_number;
use crate::parse;
use crate::read::Reading;
use crate::state::{Certainty, Field, State, Value};
use crate::syntax::{Part, Word, is_name};

/// Variables of bash itself that are calculated whenever they are set.
const CALCULATED: &[&str] = &["RANDOM", "SRANDOM", "OPTIND", "HISTCMD", "SECONDS", "LINENO", "BASHPID", "EPOCHSECONDS"];

/// Operators of `[[` whose sides are calculated.
const COMPARES: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl Reading<'_> {
    /// Reads an arithmetic expression with all that it would run, now or when its values are calculated.
    pub(crate) fn expression(&mut self, expression: &Word, state: &mut State) {
        let mut text = String::new();
        for part in &expression.parts {
            match part {
                Part::Plain(piece) | Part::Quoted(piece) => text.push_str(piece),
                Part::Parameter(parameter, _) => {
                    let set = is_name(&parameter.name) && !state.variables.contains_key(&parameter.name);
                    match self.parameter(parameter, state) {
                        // What the text does not set is the environment's, and that is nobody's trick.
                        Got::Unknown(_) if set => text.push('0'),
                        Got::Text(field) if set && field.certainty == Certainty::Many => text.push_str(&field.text),
                        got @ (Got::Text(_) | Got::List(_) | Got::Joined(_) | Got::Unknown(_)) => {
                            self.calculated_piece(got, &mut text, state)
                        }
                    }
                }
                Part::Command(script, _) => {
                    let got = self.substitution(script, state);
                    self.calculated_piece(got, &mut text, state);
                }
                Part::Arithmetic(inner) => {
                    self.expression(inner, state);
                    text.push('0');
                }
                Part::ProcessOut(_) | Part::ProcessIn(_) | Part::List(_) => {}
            }
        }
        self.calculated(&Field::known(text), state);
    }

    /// Adds what an expansion came to to the `text` that is calculated.
    fn calculated_piece(&mut self, got: Got, text: &mut String, state: &mut State) {
        let fields = match got {
            Got::Text(field) => vec![field],
            Got::List(fields) | Got::Joined(fields) => fields,
            Got::Unknown(raw) => vec![Field::unknown(raw)],
        };
        for field in fields {
            if is_number(&field.text) {
                text.push('0');
            } else if field.is_known() {
                text.push_str(&field.text);
            } else {
                self.calculated(&field, state);
            }
            text.push(' ');
        }
        text.pop();
    }

    /// Reads what bash would run if it calculated with `field`.
    pub(crate) fn calculated(&mut self, field: &Field, state: &mut State) {
        if is_number(&field.text) {
            return;
        }
        let odd = !field.is_known() || field.text.contains(['$', '`']);
        if odd && !self.is_bash(state) {
            return;
        }
        if !field.is_known() || self.level >= bounds::LEVELS || !self.spend(field.text.len() / 16 + 1) {
            self.unknown(format!("`{}` is calculated, which may run a command in an index", field.text));
            return;
        }
        self.level += 1;
        if field.text.contains(['$', '`']) {
            // What stands in an index is expanded; what stands elsewhere is an error, and told all the same.
            match parse::here_text(&field.text, state.dialect) {
                Ok(word) => self.expression(&word, state),
                Err(problem) => self.cut(problem),
            }
        } else {
            let letters = |letter: char| letter != '_' && !letter.is_ascii_alphanumeric();
            for name in field.text.split(letters).filter(|name| is_name(name)) {
                self.calculated_name(name, state);
            }
        }
        self.level -= 1;
    }

    /// The value of a variable that is calculated.
    fn calculated_name(&mut self, name: &str, state: &mut State) {
        match state.variables.get(name).cloned() {
            None => {}
            Some(Value::Text(field)) => self.calculated(&field, state),
            Some(Value::List(fields)) => fields.iter().for_each(|field| self.calculated(field, state)),
            Some(Value::Keyed | Value::Unknown) => self.calculated(&Field::unknown(name), state),
        }
    }

    /// The name of a variable that a command is given, which may have an index.
    pub(crate) fn indexed_name(&mut self, field: &Field, state: &mut State) {
        if is_name(&field.text) && field.is_exact() {
            return;
        }
        if !field.is_known() {
            self.calculated(field, state);
        } else if let Some((_, index)) = field.text.split_once('[') {
            let index = index.strip_suffix(']').unwrap_or(index);
            if index != "@" && index != "*" {
                self.calculated(&Field::known(index), state);
            }
        }
    }

    /// The index of a list; that of a list with keys is only a text.
    pub(crate) fn index(&mut self, name: &str, index: &Word, state: &mut State) {
        if state.variables.get(name) == Some(&Value::Keyed) {
            self.one(index, state);
        } else if index.raw != "@" && index.raw != "*" {
            self.expression(index, state);
        }
    }

    /// The key of an entry such as `[x]=1` of the list `name`.
    pub(crate) fn key(&mut self, name: &str, entry: &Field, state: &mut State) {
        let index = entry.text.strip_prefix('[').and_then(|rest| rest.split_once("]=").or(rest.split_once("]+=")));
        if let Some((index, _)) = index.filter(|_| state.variables.get(name) != Some(&Value::Keyed)) {
            self.calculated(&Field { text: index.to_owned(), certainty: entry.certainty }, state);
        }
    }

    /// Calculates the value that `name` is given, if it is a number to bash.
    pub(crate) fn given_number(&mut self, name: &str, value: &Value, state: &mut State) {
        if !state.scope.integers.contains(name) && !CALCULATED.contains(&name) {
            return;
        }
        match value {
            Value::Text(field) => self.calculated(field, state),
            Value::List(fields) => fields.iter().for_each(|field| self.calculated(field, state)),
            Value::Keyed | Value::Unknown => self.calculated(&Field::unknown(name), state),
        }
    }

    /// What `[[ … ]]` calculates.
    pub(crate) fn compared(&mut self, words: &[Word], state: &mut State) {
        for (index, word) in words.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|before| words[before].bare()).unwrap_or_default();
            let after = words.get(index + 1).and_then(Word::bare).unwrap_or_default();
            if COMPARES.contains(&before) || COMPARES.contains(&after) {
                self.expression(word, state);
                continue;
            }
            let field = self.one(word, state);
            if before == "-v" || before == "-R" {
                self.indexed_name(&field, state);
            }
        }
    }

    /// What an expression assigns is a number, whichever.
    pub(crate) fn forget_assigned(&mut self, raw: &str, state: &mut State) {
        if !raw.contains('=') && !raw.contains("++") && !raw.contains("--") {
            return;
        }
        // Not every part of it may be calculated.
        let straight = !raw.contains("&&") && !raw.contains("||") && !raw.contains(['?', '[', '$', '`']);
        let letters = |letter: char| letter != '_' && !letter.is_ascii_alphanumeric();
        let mut at = 0;
        for name in raw.split(letters) {
            let (before, after) = (&raw[..at], &raw[at + name.len()..]);
            at += name.len();
            at += raw[at..].chars().next().map_or(0, char::len_utf8);
            if !is_name(name) {
                continue;
            }
            let number = match state.variables.get(name) {
                Some(Value::Text(field)) => is_number(&field.text),
                Some(Value::List(_) | Value::Keyed | Value::Unknown) | None => false,
            };
            let value = if number || (straight && is_assigned(before, after)) {
                Value::number(name)
            } else if state.variables.get(name) == Some(&Value::Keyed) {
                Value::Keyed
            } else {
                Value::Unknown
            };
            if state.variables.contains_key(name) || is_assigned(before, after) {
                state.set(name, value);
            }
        }
    }
}

/// Whether a name between `before` and `after` is assigned to.
fn is_assigned(before: &str, after: &str) -> bool {
    let (before, after) = (before.trim_end(), after.trim_start());
    if before.ends_with("++") || before.ends_with("--") || after.starts_with("++") || after.starts_with("--") {
        return true;
    }
    let rest = after.trim_start_matches(['+', '-', '*', '/', '%', '<', '>', '&', '|', '^']);
    let compares = matches!(&after[..after.len() - rest.len()], "<" | ">");
    !compares && rest.starts_with('=') && !rest.starts_with("==")
}
