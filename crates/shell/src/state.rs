//! What is known at one place of a shell text.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::bounds;
use crate::globs::Globs;
use crate::number;
use crate::paths;
use crate::syntax::{Command, Dialect};

/// What one word of a command came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field {
    /// The text; what cannot be known stands in it as it is written.
    pub(crate) text: String,
    /// What is to be minded about it.
    pub(crate) certainty: Certainty,
}

/// How sure a text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Certainty {
    /// It is exactly this.
    #[default]
    Known,
    /// It stands for names of files that exist.
    Glob,
    /// One word that cannot be known.
    Unknown,
    /// Any number of words that cannot be known.
    Many,
}

impl Field {
    pub(crate) fn known(text: impl Into<String>) -> Field {
        Field { text: text.into(), certainty: Certainty::Known }
    }

    pub(crate) fn unknown(text: impl Into<String>) -> Field {
        Field { text: text.into(), certainty: Certainty::Unknown }
    }

    /// Whether the text is known, if only up to the names of files.
    pub(crate) fn is_known(&self) -> bool {
        self.certainty <= Certainty::Glob
    }

    /// Whether it is exactly this text.
    pub(crate) fn is_exact(&self) -> bool {
        self.certainty == Certainty::Known
    }
}

/// What a variable holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(Field),
    List(Vec<Field>),
    /// A list whose keys are texts.
    Keyed,
    Unknown,
}

impl Value {
    /// A number that is not known, by what it was made of.
    pub(crate) fn number(expression: &str) -> Value {
        Value::Text(Field::known(number::of(expression)))
    }
}

/// What a command writes to its standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Known(String),
    /// Names of files, one a line, that these patterns stand for.
    Files(Vec<Field>),
    Unknown,
}

impl Output {
    pub(crate) fn nothing() -> Output {
        Output::Known(String::new())
    }

    /// Whether nothing is written for sure.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Output::Known(text) if text.is_empty())
    }

    /// This, then `next`.
    pub(crate) fn then(self, next: Output) -> Output {
        match (self, next) {
            (Output::Known(mut text), Output::Known(more)) if text.len() + more.len() <= crate::bounds::VALUE_BYTES => {
                text.push_str(&more);
                Output::Known(text)
            }
            (Output::Known(text), Output::Files(files)) if text.is_empty() => Output::Files(files),
            (Output::Files(files), Output::Known(text)) if text.is_empty() => Output::Files(files),
            (_, _) => Output::Unknown,
        }
    }

    /// This, and `next` if it is run at all.
    pub(crate) fn maybe(self, next: &Output) -> Output {
        if next.is_nothing() { self } else { Output::Unknown }
    }
}

/// What a command reads from its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stdin {
    /// What the whole text was started with; an agent has nothing there.
    Inherited,
    Known(Rc<str>),
    /// Names of files, one a line.
    Files(Rc<[Field]>),
    Unknown,
}

impl From<Output> for Stdin {
    fn from(output: Output) -> Stdin {
        match output {
            Output::Known(text) => Stdin::Known(text.into()),
            Output::Files(files) => Stdin::Files(files.into()),
            Output::Unknown => Stdin::Unknown,
        }
    }
}

/// A name that means the same in every branch, or not.
#[derive(Clone, Debug)]
pub(crate) enum Meaning<T> {
    Sure(T),
    Differs,
}

/// The folders in which a command may run: those that are known to be possible, or any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folders(Option<Rc<BTreeSet<Rc<str>>>>);

impl Folders {
    pub(crate) const ANY: Folders = Folders(None);

    pub(crate) fn one(folder: &str) -> Folders {
        Folders(Some(Rc::new(BTreeSet::from([Rc::from(folder)]))))
    }

    /// No folder at all: a shell that has just begun has been nowhere before.
    fn none() -> Folders {
        Folders(Some(Rc::default()))
    }

    /// The folder, if there is just one.
    pub(crate) fn only(&self) -> Option<&str> {
        let folders = self.0.as_ref()?;
        folders.first().filter(|_| folders.len() == 1).map(Rc::as_ref)
    }

    /// The possible folders; none if it may be any.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|folders| folders.iter()).map(Rc::as_ref)
    }

    /// Where `path` may lie; nothing if that cannot be known.
    pub(crate) fn resolve(&self, path: &str) -> Vec<String> {
        if path.starts_with(['/', '~']) || path.is_empty() {
            return paths::resolve(path, None).into_iter().collect();
        }
        self.iter().filter_map(|folder| paths::resolve(path, Some(folder))).collect()
    }

    /// The folders that `path` may be.
    pub(crate) fn below(&self, path: &str) -> Folders {
        let found: BTreeSet<Rc<str>> = self.resolve(path).into_iter().map(Rc::from).collect();
        if found.is_empty() { Folders::ANY } else { Folders(Some(Rc::new(found))) }
    }

    /// These or `other`.
    pub(crate) fn or(&self, other: &Folders) -> Folders {
        let (Some(mine), Some(theirs)) = (&self.0, &other.0) else { return Folders::ANY };
        if Rc::ptr_eq(mine, theirs) || mine.is_superset(theirs) {
            return self.clone();
        }
        let joined: BTreeSet<Rc<str>> = mine.union(theirs).cloned().collect();
        if joined.len() > bounds::FOLDERS { Folders::ANY } else { Folders(Some(Rc::new(joined))) }
    }
}

/// Where a shell stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) cwd: Folders,
    /// Where it stood before the last `cd`.
    pub(crate) previous: Folders,
    /// What `popd` may go back to, the last one first to be taken. There may be entries too many, never too few.
    pub(crate) trail: Rc<Vec<Folders>>,
}

/// What becomes of a shell when a command fails.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failing {
    /// Where it stands if the last command failed, if that is somewhere else.
    pub(crate) place: Option<Place>,
    /// Whether that ends it for sure, as after `set -e`.
    pub(crate) ends: bool,
    /// Whether somebody asks how the commands here end, so that a failure ends nothing.
    pub(crate) tested: bool,
}

/// What other programs see of a shell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exports {
    pub(crate) names: Rc<BTreeSet<String>>,
    /// Whether all variables that are set from now on are seen, as after `set -a`.
    pub(crate) all: bool,
    /// Whether functions are seen.
    pub(crate) functions: bool,
}

impl Place {
    /// This or `other`.
    fn or(&self, other: &Place) -> Place {
        let trail = if self.trail == other.trail {
            Rc::clone(&self.trail)
        } else {
            let (long, short) = if self.trail.len() < other.trail.len() {
                (&other.trail, &self.trail)
            } else {
                (&self.trail, &other.trail)
            };
            let both =
                |(index, entry): (usize, &Folders)| short.get(index).map_or(entry.clone(), |other| entry.or(other));
            Rc::new(long.iter().enumerate().map(both).collect())
        };
        Place { cwd: self.cwd.or(&other.cwd), previous: self.previous.or(&other.previous), trail }
    }
}

/// What a shell keeps besides the values of its variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// What the variables held that a function has made its own; nothing outside of functions.
    pub(crate) locals: Option<Rc<BTreeMap<String, Option<Value>>>>,
    /// Variables whose values are calculated when they are set.
    pub(crate) integers: Rc<BTreeSet<String>>,
    pub(crate) globs: Globs,
}

/// What a shell knows; a branch or a subshell has its own.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Who reads.
    pub(crate) dialect: Dialect,
    pub(crate) variables: Rc<BTreeMap<String, Value>>,
    pub(crate) exports: Exports,
    pub(crate) functions: Rc<BTreeMap<String, Meaning<Rc<Command>>>>,
    pub(crate) aliases: Rc<BTreeMap<String, Meaning<String>>>,
    /// `$1` and on; nothing if they cannot be known.
    pub(crate) arguments: Option<Rc<Vec<Field>>>,
    /// Where it stands if the last command went well.
    pub(crate) place: Place,
    pub(crate) failing: Failing,
    pub(crate) stdin: Stdin,
    pub(crate) depth: u32,
    pub(crate) scope: Scope,
    /// How this row of commands went on.
    pub(crate) flow: Flow,
}

/// Whether the commands so far were run one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flow {
    Straight,
    /// Somewhere was a `return`, `break` or `continue`.
    Jumped,
    /// The shell has ended.
    Ended,
}

impl State {
    pub(crate) fn new(cwd: &str, dialect: Dialect) -> State {
        State {
            dialect,
            variables: Rc::default(),
            exports: Exports::default(),
            functions: Rc::default(),
            aliases: Rc::default(),
            arguments: None,
            place: Place { cwd: Folders::one(cwd), previous: Folders::none(), trail: Rc::default() },
            failing: Failing::default(),
            stdin: Stdin::Inherited,
            depth: 0,
            scope: Scope::default(),
            flow: Flow::Straight,
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        Rc::make_mut(&mut self.variables).insert(name.to_owned(), value);
        // `set -a` lets others see what is set from then on.
        if self.exports.all {
            self.export(name);
        }
    }

    /// Makes `name` a variable of the function, until that returns.
    pub(crate) fn make_local(&mut self, name: &str) {
        let before = self.variables.get(name).cloned();
        if let Some(locals) = &mut self.scope.locals {
            Rc::make_mut(locals).entry(name.to_owned()).or_insert(before);
        }
    }

    /// Gives the variables that a function had made its own what they held before.
    pub(crate) fn forget_locals(&mut self, outer: Option<Rc<BTreeMap<String, Option<Value>>>>) {
        let Some(locals) = std::mem::replace(&mut self.scope.locals, outer) else { return };
        let variables = Rc::make_mut(&mut self.variables);
        for (name, before) in locals.iter() {
            match before {
                Some(value) => drop(variables.insert(name.clone(), value.clone())),
                None => drop(variables.remove(name)),
            }
        }
    }

    /// Lets other programs see the variable `name`.
    pub(crate) fn export(&mut self, name: &str) {
        Rc::make_mut(&mut self.exports.names).insert(name.to_owned());
    }

    /// A copy for what runs one level deeper.
    pub(crate) fn deeper(&self) -> State {
        let mut inner = self.clone();
        inner.depth += 1;
        inner
    }

    /// What a shell of its own starts with, one level deeper: only what was exported goes there.
    pub(crate) fn another_shell(&self) -> State {
        let mut variables = (*self.variables).clone();
        variables.remove("IFS");
        for (name, value) in &mut variables {
            if !self.exports.names.contains(name) {
                // The environment may have had one of this name before.
                *value = Value::Unknown;
            }
        }
        let mut functions = BTreeMap::new();
        if self.exports.functions {
            functions.extend(self.functions.keys().map(|name| (name.clone(), Meaning::Differs)));
        }
        State {
            variables: Rc::new(variables),
            functions: Rc::new(functions),
            aliases: Rc::default(),
            arguments: None,
            failing: Failing::default(),
            scope: Scope::default(),
            ..self.deeper()
        }
    }

    /// Goes to `there`, or stays if that fails.
    pub(crate) fn go(&mut self, there: Folders) {
        let before = self.place.clone();
        self.place.previous = std::mem::replace(&mut self.place.cwd, there);
        self.failing.place = (self.place != before).then_some(before);
    }

    /// Goes on whether the last command failed or not.
    pub(crate) fn settle(&mut self) {
        if let Some(failed) = self.failing.place.take() {
            self.place = self.place.or(&failed);
        }
    }

    /// What holds if the last command went well, and if it failed.
    pub(crate) fn parted(mut self) -> (State, State) {
        let failed = self.failing.place.take();
        let mut ill = self.clone();
        if let Some(failed) = failed {
            ill.place = failed;
        }
        (self, ill)
    }

    /// Goes on from this if all went well, and from `ill` if not.
    pub(crate) fn part(&mut self, mut ill: State) {
        self.settle();
        ill.settle();
        if ill.flow == Flow::Ended || self.flow == Flow::Ended {
            self.join(ill);
            return;
        }
        let (well, failed) = (self.place.clone(), ill.place.clone());
        self.join(ill);
        self.failing.place = (well != failed).then_some(failed);
        self.place = well;
    }

    /// Goes on from either this or `other`, whichever was run.
    pub(crate) fn join(&mut self, mut other: State) {
        self.settle();
        other.settle();
        if other.flow == Flow::Ended {
            return;
        }
        if self.flow == Flow::Ended {
            *self = other;
            return;
        }
        self.flow = self.flow.max(other.flow);
        join_variables(&mut self.variables, &other.variables);
        join_meanings(&mut self.functions, &other.functions, Rc::ptr_eq);
        join_meanings(&mut self.aliases, &other.aliases, |one, two| one == two);
        if self.arguments != other.arguments {
            self.arguments = None;
        }
        self.place = self.place.or(&other.place);
        if !other.scope.integers.is_subset(&self.scope.integers) {
            Rc::make_mut(&mut self.scope.integers).extend(other.scope.integers.iter().cloned());
        }
        if let (Some(mine), Some(theirs)) = (&mut self.scope.locals, &other.scope.locals)
            && !Rc::ptr_eq(mine, theirs)
        {
            for (name, value) in theirs.iter() {
                Rc::make_mut(mine).entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        self.failing.ends &= other.failing.ends;
        self.scope.globs = self.scope.globs.or(other.scope.globs);
        // A value that is exported on one way only is not known in another shell.
        let both = self.exports.names.intersection(&other.exports.names).cloned().collect::<BTreeSet<_>>();
        if both.len() != self.exports.names.len() {
            self.exports.names = Rc::new(both);
        }
        self.exports.all &= other.exports.all;
        self.exports.functions |= other.exports.functions;
        if self.stdin != other.stdin {
            self.stdin = Stdin::Unknown;
        }
    }

    /// Whether nothing that a loop could carry on differs.
    pub(crate) fn is_like(&self, other: &State) -> bool {
        let names = |state: &State| (state.functions.len(), state.aliases.len());
        self.variables == other.variables
            && names(self) == names(other)
            && self.arguments == other.arguments
            && self.place == other.place
    }
}

fn is_a_number(value: &Value) -> bool {
    matches!(value, Value::Text(field) if field.is_exact() && number::is_number(&field.text))
}

fn join_variables(mine: &mut Rc<BTreeMap<String, Value>>, theirs: &Rc<BTreeMap<String, Value>>) {
    if Rc::ptr_eq(mine, theirs) {
        return;
    }
    let mut joined = (**mine).clone();
    for (name, value) in &mut joined {
        let other = theirs.get(name);
        if other != Some(value) {
            let numbers = is_a_number(value) && other.is_some_and(is_a_number);
            *value = if numbers { Value::number(name) } else { Value::Unknown };
        }
    }
    for name in theirs.keys() {
        joined.entry(name.clone()).or_insert(Value::Unknown);
    }
    *mine = Rc::new(joined);
}

fn join_meanings<T: Clone>(
    mine: &mut Rc<BTreeMap<String, Meaning<T>>>,
    theirs: &Rc<BTreeMap<String, Meaning<T>>>,
    same: impl Fn(&T, &T) -> bool,
) {
    if Rc::ptr_eq(mine, theirs) {
        return;
    }
    let mut joined = (**mine).clone();
    for (name, meaning) in &mut joined {
        let agreed = match (&*meaning, theirs.get(name)) {
            (Meaning::Sure(one), Some(Meaning::Sure(two))) => same(one, two),
            (Meaning::Sure(_) | Meaning::Differs, _) => false,
        };
        if !agreed {
            *meaning = Meaning::Differs;
        }
    }
    for name in theirs.keys() {
        joined.entry(name.clone()).or_insert(Meaning::Differs);
    }
    *mine = Rc::new(joined);
}
