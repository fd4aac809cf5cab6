//! Simple commands: assignments and what they run.

use std::rc::Rc;

use crate::bounds;
use crate::parse::is_reserved;
use crate::programs::{self, Influence};
use crate::read::Reading;
use crate::run::How;
use crate::state::{Field, Meaning, Output, State, Value};
use crate::syntax::{Assignment, Part, Word};

impl Reading<'_> {
    pub(super) fn simple(&mut self, assignments: &[Assignment], words: &[Word], state: &mut State) -> Output {
        if let Some(name) = words.first().and_then(Word::bare)
            && programs::declares(name)
            && (programs::declares_everywhere(name) || self.is_bash(state))
        {
            return self.declaration(words, state);
        }
        let argv = self.fields(words, state);
        if argv.is_empty() {
            for assignment in assignments {
                self.assign(assignment, state);
            }
            return Output::nothing();
        }
        let kept = Rc::clone(&state.variables);
        let exported = Rc::clone(&state.exports.names);
        for assignment in assignments {
            self.assign(assignment, state);
            state.export(&assignment.name);
        }
        let with = Rc::clone(&state.variables);
        let plain = words.first().and_then(Word::bare).is_some();
        let output = if plain && let Some(alias) = state.aliases.get(&argv[0].text).cloned() {
            self.alias(&alias, &argv, state)
        } else {
            self.run(&argv, How::Typed, state)
        };
        if !assignments.is_empty() {
            state.exports.names = exported;
            // Assignments before a command end with it, but some commands set variables themselves.
            if Rc::ptr_eq(&with, &state.variables) || with == state.variables {
                state.variables = kept;
            } else {
                for assignment in assignments {
                    state.set(&assignment.name, Value::Unknown);
                }
            }
        }
        output
    }

    /// An alias may be replaced or not, depending on the shell; both are read.
    fn alias(&mut self, meaning: &Meaning<String>, argv: &[Field], state: &mut State) -> Output {
        let Meaning::Sure(text) = meaning else {
            self.unknown(format!("what the alias `{}` stands for cannot be known", argv[0].text));
            return self.run(argv, How::Typed, state);
        };
        if text.ends_with([' ', '\t']) || text.contains('\n') {
            self.unknown(format!("the alias `{}` replaces more than one word", argv[0].text));
        }
        let mut replaced = state.deeper();
        replaced.aliases = Rc::default();
        let mut line = text.clone();
        for field in &argv[1..] {
            if !field.is_exact() {
                self.unknown(format!("the arguments of the alias `{}` cannot be known", argv[0].text));
            }
            line.push(' ');
            line.push_str(&quote(&field.text));
        }
        self.text(&line, &mut replaced);
        let output = self.run(argv, How::Typed, state);
        state.join(replaced_depth(replaced, state.depth));
        Output::nothing().maybe(&output).maybe(&Output::Unknown)
    }

    /// `export`, `declare`, `local`, `readonly`, `typeset`.
    fn declaration(&mut self, words: &[Word], state: &mut State) -> Output {
        let name = words[0].bare().unwrap_or_default().to_owned();
        let mut argv = vec![Field::known(name.clone())];
        let mut prints = words.len() == 1;
        let mut options = Options::default();
        words[1..].iter().filter_map(Word::literal).for_each(|text| options.add(&text));
        let exports = name == "export" || options.exports;
        state.exports.functions |= options.functions && exports;
        // Outside of functions `local` fails, and what it was to set stays what it was.
        let fails = name == "local" && state.scope.locals.is_none();
        let owns = matches!(name.as_str(), "local" | "declare" | "typeset");
        let mut expanded = Vec::new();
        for word in &words[1..] {
            // Unlike before a command, braces count in these assignments.
            match self.braces(word, state) {
                Some(words) => expanded.extend(words),
                None => self.cut(format!("a word becomes more than {} words", bounds::WORDS)),
            }
        }
        for word in &expanded {
            if let Some(assignment) = crate::parse::as_assignment(word, state.dialect) {
                argv.push(Field::known(word.raw.clone()));
                if owns {
                    state.make_local(&assignment.name);
                }
                self.declare(&assignment.name, &options, state);
                self.assign(&assignment, state);
                self.declared_list(&assignment, &name, state);
                if options.keyed && state.variables.get(&assignment.name) == Some(&Value::Unknown) {
                    state.set(&assignment.name, Value::Keyed);
                }
                if fails {
                    state.set(&assignment.name, Value::Unknown);
                }
                if exports {
                    state.export(&assignment.name);
                }
                continue;
            }
            for field in self.fields(std::slice::from_ref(word), state) {
                let own = field.text.split('=').next().unwrap_or_default().to_owned();
                if owns && crate::syntax::is_name(&own) {
                    state.make_local(&own);
                }
                options.add(&field.text);
                self.declare(&own, &options, state);
                self.declared(&field, &name, state);
                if owns
                    && state.variables.get(&own) != Some(&Value::Keyed)
                    && (fails || own == field.text)
                    && crate::syntax::is_name(&own)
                {
                    state.set(&own, Value::Unknown);
                }
                if exports && crate::syntax::is_name(&field.text) {
                    state.export(&field.text);
                }
                prints |= field.text.starts_with('-') && field.text.contains('p');
                argv.push(field);
            }
        }
        self.told(&argv, state);
        if prints { Output::Unknown } else { Output::nothing() }
    }

    fn declared(&mut self, field: &Field, who: &str, state: &mut State) {
        if field.text.starts_with('-') && field.text.contains('n') && who != "export" {
            self.unknown(format!("`{who} -n` makes one name stand for another"));
        }
        if !field.is_known() {
            self.unknown(format!("what `{who}` sets cannot be known"));
        } else if field.text.contains('[') && !crate::syntax::is_name(field.text.split('=').next().unwrap_or_default())
        {
            let name = field.text.split_once("]=").map_or(field.text.as_str(), |(name, _)| name);
            self.indexed_name(&Field::known(name), state);
            let name = field.text.split('[').next().unwrap_or_default();
            if state.variables.contains_key(name) {
                state.set(name, Value::Unknown);
            }
        } else if let Some((name, value)) = field.text.split_once('=') {
            self.list_in_text(value, who, state);
            self.influenced(name, &Value::Text(Field::known(value)), state);
            state.set(name.trim_end_matches('+'), Value::Text(Field::known(value)));
        }
    }

    /// Notes what kind of variable `name` becomes.
    fn declare(&mut self, name: &str, options: &Options, state: &mut State) {
        if !crate::syntax::is_name(name) {
            return;
        }
        if options.number {
            std::rc::Rc::make_mut(&mut state.scope.integers).insert(name.to_owned());
        }
        // What is a list already stays what it is.
        if options.keyed && !state.variables.contains_key(name) {
            state.set(name, Value::Keyed);
        }
    }

    /// A list that is written as a text, as in `declare -a 'x=(…)'`, is expanded once more.
    fn declared_list(&mut self, assignment: &Assignment, who: &str, state: &mut State) {
        let text = match state.variables.get(&assignment.name) {
            Some(Value::Text(field)) => field.text.clone(),
            Some(Value::List(_) | Value::Keyed | Value::Unknown) | None => return,
        };
        self.list_in_text(&text, who, state);
    }

    fn list_in_text(&mut self, text: &str, who: &str, state: &mut State) {
        if text.trim_start().starts_with('(') && text.contains(['$', '`', '[']) && self.is_bash(state) {
            self.unknown(format!("`{who}` expands the list in a text"));
        }
    }

    pub(crate) fn assign(&mut self, assignment: &Assignment, state: &mut State) {
        let value = match assignment.value.parts.as_slice() {
            [Part::List(words)] => {
                let words = Rc::clone(words);
                let fields = self.fields(&words, state);
                for field in fields.iter().filter(|field| field.text.starts_with('[')) {
                    self.key(&assignment.name, field, state);
                }
                // Entries such as `[2]=x` are not in order.
                if fields
                    .iter()
                    .any(|field| !field.is_known() || (field.text.starts_with('[') && field.text.contains("]=")))
                {
                    Value::Unknown
                } else {
                    Value::List(fields)
                }
            }
            _ => {
                let field = self.one(&assignment.value, state);
                if field.is_known() { Value::Text(field) } else { Value::Unknown }
            }
        };
        if let Some(index) = &assignment.index {
            self.index(&assignment.name, index, state);
        }
        let value = match (assignment.append, assignment.index.is_some()) {
            (_, true) => indexed(state.variables.get(&assignment.name), assignment, value),
            (true, false) => appended(state.variables.get(&assignment.name), value),
            (false, false) => value,
        };
        if state.variables.len() >= bounds::VARIABLES {
            self.unknown(format!("more than {} variables are set", bounds::VARIABLES));
            self.stop();
            return;
        }
        self.influenced(&assignment.name, &value, state);
        state.set(&assignment.name, value);
    }

    /// Some variables make other programs run something.
    pub(crate) fn influenced(&mut self, name: &str, value: &Value, state: &mut State) {
        self.given_number(name.trim_end_matches('+'), value, state);
        let text = match value {
            Value::Text(field) if field.is_exact() => Some(field.text.clone()),
            Value::Text(_) | Value::List(_) | Value::Keyed | Value::Unknown => None,
        };
        match programs::influence(name) {
            Influence::None => {}
            Influence::SearchPath => self.path_changed = true,
            Influence::Runs => match text {
                Some(text) if text.trim().is_empty() => {}
                Some(text) => {
                    self.text_anywhere(&text, &state.another_shell());
                }
                None => self.unknown(format!("the value of `{name}`, which is run, cannot be known")),
            },
            Influence::Written => {
                // `GIT_TRACE=1` names no file.
                if let Some(text) = text.filter(|text| text.contains('/')) {
                    self.touches(&Field::known(text), name, state);
                }
            }
            Influence::Proxy => {
                if let Some(text) = text {
                    self.host(&text);
                }
            }
            Influence::Loads => {
                if text.as_deref().is_none_or(|text| !programs::is_plain_setting(name, text)) {
                    self.unknown(format!("`{name}` makes programs load code"));
                }
            }
        }
    }

    /// `alias name=text`.
    pub(crate) fn define_alias(&mut self, field: &Field, state: &mut State) {
        let Some((name, text)) = field.text.split_once('=') else { return };
        let odd =
            name.is_empty() || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-.!,@".contains(letter));
        if !field.is_exact() || odd || is_reserved(name) {
            self.unknown(format!("what the alias `{name}` stands for cannot be known"));
            return;
        }
        if state.aliases.len() >= bounds::VARIABLES {
            self.unknown("too many aliases are set".to_owned());
            return;
        }
        Rc::make_mut(&mut state.aliases).insert(name.to_owned(), Meaning::Sure(text.to_owned()));
    }
}

/// The options of `declare` and its kin.
#[derive(Default)]
struct Options {
    number: bool,
    keyed: bool,
    exports: bool,
    functions: bool,
}

impl Options {
    fn add(&mut self, text: &str) {
        let Some(letters) = text.strip_prefix('-') else { return };
        self.number |= letters.contains('i');
        self.keyed |= letters.contains('A');
        self.exports |= letters.contains('x');
        self.functions |= letters.contains('f');
    }
}

fn replaced_depth(mut state: State, depth: u32) -> State {
    state.depth = depth;
    state
}

fn indexed(old: Option<&Value>, assignment: &Assignment, value: Value) -> Value {
    let index = assignment.value.raw.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let index = index.and_then(|(index, _)| index.parse::<usize>().ok());
    let mut list = match old {
        None => Vec::new(),
        Some(Value::List(list)) => list.clone(),
        Some(Value::Keyed) => return Value::Keyed,
        Some(Value::Text(_) | Value::Unknown) => return Value::Unknown,
    };
    match (index, value) {
        (Some(index), Value::Text(field)) if index == list.len() && !assignment.append => {
            list.push(field);
            Value::List(list)
        }
        (_, Value::Text(_) | Value::List(_) | Value::Keyed | Value::Unknown) => Value::Unknown,
    }
}

fn appended(old: Option<&Value>, value: Value) -> Value {
    match (old, value) {
        (Some(Value::Text(old)), Value::Text(new)) if old.text.len() + new.text.len() <= bounds::VALUE_BYTES => {
            let certainty = old.certainty.max(new.certainty);
            Value::Text(Field { text: format!("{}{}", old.text, new.text), certainty })
        }
        (Some(Value::List(old)), Value::List(new)) if old.len() + new.len() <= bounds::WORDS => {
            Value::List(old.iter().cloned().chain(new).collect())
        }
        (_, Value::Text(_) | Value::List(_) | Value::Keyed | Value::Unknown) => Value::Unknown,
    }
}

/// `text` in single quotes.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
