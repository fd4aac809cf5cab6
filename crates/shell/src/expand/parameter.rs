//! `$name` and `${name…}`.

use super::Got;
use crate::number;
use crate::programs;
use crate::read::{List, Reading};
use crate::state::{Certainty, Field, State, Value};
use crate::syntax::{Parameter, Prefix, Word};

/// Where the system shows the variables of a process; stands for them among the paths that are read.
const ENVIRONMENT: &str = "/proc/self/environ";

impl Reading<'_> {
    pub(super) fn parameter_value(&mut self, parameter: &Parameter, state: &mut State) -> Got {
        let unknown = || Got::Unknown(parameter.raw.clone());
        let value = match parameter.prefix {
            Prefix::Length => return Got::Text(Field::known(parameter.raw.clone())),
            // The keys of a list.
            Prefix::Indirect if parameter.index.is_some() => {
                return match state.variables.get(&parameter.name) {
                    Some(Value::List(list)) => {
                        Got::List((0..list.len()).map(|index| Field::known(index.to_string())).collect())
                    }
                    Some(Value::Text(_) | Value::Keyed | Value::Unknown) | None => unknown(),
                };
            }
            Prefix::Indirect => match self.variable(&parameter.name, state) {
                Some(Value::Text(name)) if name.is_exact() => {
                    self.indexed_name(&name, state);
                    self.variable(&name.text, state)
                }
                Some(Value::Text(_) | Value::List(_) | Value::Keyed | Value::Unknown) | None => {
                    self.unknown(format!("`{}` may be any variable", parameter.raw));
                    // It may be any variable of the environment.
                    self.note(List::Reads, ENVIRONMENT);
                    return unknown();
                }
            },
            Prefix::None => self.variable(&parameter.name, state),
        };
        let value = value.and_then(|value| pick(value, parameter.index.as_ref(), &parameter.name));
        match &parameter.operation {
            None => match value {
                Some(Value::Text(field)) => Got::Text(field),
                Some(Value::List(list)) if is_joined(parameter) => Got::Joined(list),
                Some(Value::List(list)) => Got::List(list),
                Some(Value::Keyed | Value::Unknown) | None => unknown(),
            },
            Some((operator, word)) => self.operation(value, (operator, word), parameter, state),
        }
    }

    /// The value of the variable `name`; nothing if the text does not say.
    fn variable(&mut self, name: &str, state: &State) -> Option<Value> {
        if let Some(value) = state.variables.get(name) {
            return Some(value.clone());
        }
        if name == "PPID" {
            // It names somebody else's process.
            return Some(Value::Text(Field { text: "$PPID".to_owned(), certainty: Certainty::Glob }));
        }
        if number::is_everywhere(name) || (number::is_in_bash(name) && self.is_bash(state)) {
            return Some(Value::Text(Field::known(format!("${name}"))));
        }
        if let Ok(position) = name.parse::<usize>() {
            let arguments = state.arguments.as_ref()?;
            let field = position.checked_sub(1).map(|index| arguments.get(index).cloned().unwrap_or_default());
            return field.map(Value::Text);
        }
        if programs::is_secret_variable(name) {
            self.note(List::Reads, ENVIRONMENT);
        }
        match name {
            "HOME" => Some(Value::Text(Field::known("~"))),
            "PWD" => state.place.cwd.only().map(|cwd| Value::Text(Field::known(cwd))),
            "IFS" => Some(Value::Text(Field::known(" \t\n"))),
            "@" | "*" => state.arguments.as_ref().map(|arguments| Value::List(arguments.to_vec())),
            _ => None,
        }
    }

    fn operation(
        &mut self,
        value: Option<Value>,
        operation: (&str, &Word),
        parameter: &Parameter,
        state: &mut State,
    ) -> Got {
        let (operator, word) = operation;
        // What stands there is expanded by the shell, and so may run something.
        let argument = self.one(word, state);
        let unknown = || Got::Unknown(parameter.raw.clone());
        if operator == ":" {
            self.expression(word, state);
        }
        if matches!(operator, ":=" | "=") {
            self.given_by_default(value.as_ref(), &argument, parameter, state);
        }
        if operator == "@" && argument.text == "P" {
            self.unknown(format!("`{}` runs what its value says", parameter.raw));
        }
        let field = match value {
            Some(Value::Text(field)) if field.is_known() => field,
            // What is likely is shown, and stays uncertain.
            Some(Value::Text(_) | Value::List(_) | Value::Keyed | Value::Unknown) | None
                if matches!(operator, ":-" | ":=" | "-" | "=") =>
            {
                return Got::Text(Field { text: argument.text, certainty: Certainty::Many });
            }
            Some(Value::Text(_) | Value::List(_) | Value::Keyed | Value::Unknown) | None => return unknown(),
        };
        match operator {
            ":-" | ":=" if field.text.is_empty() => Got::Text(argument),
            "-" | "=" | ":-" | ":=" | "?" | ":?" => Got::Text(field),
            ":+" if field.text.is_empty() => Got::Text(Field::known("")),
            "+" | ":+" => Got::Text(argument),
            _ if !argument.is_known() || !field.is_known() || number::is_hidden(&field.text) => unknown(),
            // The path of any home begins so.
            ":" if field.text.starts_with('~') && argument.text == "0:1" => Got::Text(Field::known("/")),
            // Whose home it is, and so how its path reads, is not known.
            ":" | "#" | "##" | "%%" | "/" | "//" | "^^" | ",," if field.text.starts_with('~') => unknown(),
            "%" if field.text.starts_with('~') => {
                let shorter = cut(&field, operator, &argument.text).filter(|cut| cut.text.len() < field.text.len());
                shorter.map_or_else(unknown, Got::Text)
            }
            ":" => substring(&field, &argument.text).map_or_else(unknown, Got::Text),
            "#" | "##" | "%" | "%%" | "/" | "//" => {
                cut(&field, operator, &argument.text).map_or_else(unknown, Got::Text)
            }
            "^^" if argument.text.is_empty() => Got::Text(Field { text: field.text.to_uppercase(), ..field }),
            ",," if argument.text.is_empty() => Got::Text(Field { text: field.text.to_lowercase(), ..field }),
            _ => unknown(),
        }
    }
}

impl Reading<'_> {
    /// `${name:=argument}` sets `name`, unless it has a `value`.
    fn given_by_default(&mut self, value: Option<&Value>, argument: &Field, parameter: &Parameter, state: &mut State) {
        if matches!(value, Some(Value::Text(field)) if field.is_known() && !field.text.is_empty()) {
            return;
        }
        let given = Value::Text(argument.clone());
        self.influenced(&parameter.name, &given, state);
        // A number does no harm, whoever of the two it is.
        if state.variables.contains_key(&parameter.name) || !number::is_number(&argument.text) {
            let empty = matches!(value, Some(Value::Text(field)) if field.is_exact());
            let value = match state.variables.contains_key(&parameter.name) {
                _ if empty => given,
                true => Value::Unknown,
                // The environment's, or this.
                false => Value::Text(Field::unknown(argument.text.clone())),
            };
            state.set(&parameter.name, value);
        }
    }
}

/// Whether all entries of a list are one text in quotes: `"$*"`, `"${list[*]}"`.
fn is_joined(parameter: &Parameter) -> bool {
    match &parameter.index {
        Some(index) => index.raw == "*",
        None => parameter.name == "*",
    }
}

/// The entry of a list that `index` names; the first one without an index.
fn pick(value: Value, index: Option<&Word>, name: &str) -> Option<Value> {
    let list = match value {
        Value::List(list) => list,
        Value::Text(field) => match index.map(|index| index.raw.as_str()) {
            None | Some("0" | "@" | "*") => return Some(Value::Text(field)),
            Some(_) => return None,
        },
        Value::Keyed | Value::Unknown => return None,
    };
    match index.map(|index| index.raw.as_str()) {
        None if name == "@" || name == "*" => Some(Value::List(list)),
        None => list.first().cloned().map(Value::Text),
        Some("@" | "*") => Some(Value::List(list)),
        Some(index) => {
            let index = index.parse::<i64>().ok()?;
            let index = if index < 0 { i64::try_from(list.len()).ok()? + index } else { index };
            list.get(usize::try_from(index).ok()?).cloned().map(Value::Text)
        }
    }
}

/// `${name:offset:length}` with plain numbers.
fn substring(field: &Field, range: &str) -> Option<Field> {
    let (offset, length) = match range.split_once(':') {
        Some((offset, length)) => (offset, Some(length.trim().parse::<i64>().ok()?)),
        None => (range, None),
    };
    let letters: Vec<char> = field.text.chars().collect();
    let count = i64::try_from(letters.len()).ok()?;
    let offset = offset.trim().parse::<i64>().ok()?;
    let from = if offset < 0 { count.checked_add(offset)? } else { offset };
    let to = match length {
        None => count,
        Some(length) if length < 0 => count.checked_add(length)?,
        Some(length) => from.checked_add(length)?.min(count),
    };
    let range = usize::try_from(from).ok()?..usize::try_from(to).ok()?;
    let text = letters.get(range).map(|letters| letters.iter().collect::<String>()).unwrap_or_default();
    (field.certainty == Certainty::Known).then(|| Field::known(text))
}

/// `#`, `%` and `/` whose pattern is plain text, or a `*` before or after it.
fn cut(field: &Field, operator: &str, argument: &str) -> Option<Field> {
    let text = field.text.as_str();
    let (pattern, replacement) = match operator {
        "/" | "//" => argument.split_once('/').unwrap_or((argument, "")),
        _ => (argument, ""),
    };
    let plain = |pattern: &str| !pattern.contains(['*', '?', '[', '\\']) && !pattern.is_empty();
    let cut = match operator {
        "#" | "##" => match pattern.strip_prefix('*') {
            Some(mark) if plain(mark) => {
                let found = if operator == "#" { text.find(mark) } else { text.rfind(mark) };
                found.map_or(text, |found| &text[found + mark.len()..]).to_owned()
            }
            _ if plain(pattern) => text.strip_prefix(pattern).unwrap_or(text).to_owned(),
            _ => return None,
        },
        "%" | "%%" => match pattern.strip_suffix('*') {
            Some(mark) if plain(mark) => {
                let found = if operator == "%" { text.rfind(mark) } else { text.find(mark) };
                found.map_or(text, |found| &text[..found]).to_owned()
            }
            _ if plain(pattern) => text.strip_suffix(pattern).unwrap_or(text).to_owned(),
            _ => return None,
        },
        _ if pattern.starts_with(['#', '%']) || !plain(pattern) || text.len() * (replacement.len() + 1) > 1 << 20 => {
            return None;
        }
        "/" => text.replacen(pattern, replacement, 1),
        _ => text.replace(pattern, replacement),
    };
    Some(Field { text: cut, certainty: field.certainty })
}
