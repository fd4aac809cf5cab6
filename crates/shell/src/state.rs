//! What is known at one place of a shell text.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::syntax::Command;

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
    Unknown,
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

/// What a shell knows; a branch or a subshell has its own.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) variables: Rc<BTreeMap<String, Value>>,
    pub(crate) functions: Rc<BTreeMap<String, Meaning<Rc<Command>>>>,
    pub(crate) aliases: Rc<BTreeMap<String, Meaning<String>>>,
    /// `$1` and on; nothing if they cannot be known.
    pub(crate) arguments: Option<Rc<Vec<Field>>>,
    pub(crate) cwd: Option<Rc<str>>,
    /// Where it was before the last `cd`.
    pub(crate) previous: Option<Rc<str>>,
    /// What `popd` goes back to, the last one first to be taken.
    pub(crate) trail: Rc<Vec<Option<Rc<str>>>>,
    pub(crate) stdin: Stdin,
    pub(crate) depth: u32,
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
    pub(crate) fn new(cwd: &str) -> State {
        State {
            variables: Rc::default(),
            functions: Rc::default(),
            aliases: Rc::default(),
            arguments: None,
            cwd: Some(cwd.into()),
            previous: None,
            trail: Rc::default(),
            stdin: Stdin::Inherited,
            depth: 0,
            flow: Flow::Straight,
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        Rc::make_mut(&mut self.variables).insert(name.to_owned(), value);
    }

    /// A copy for what runs one level deeper.
    pub(crate) fn deeper(&self) -> State {
        let mut inner = self.clone();
        inner.depth += 1;
        inner
    }

    /// Goes on from either this or `other`, whichever was run.
    pub(crate) fn join(&mut self, other: State) {
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
        if self.cwd != other.cwd {
            self.cwd = None;
        }
        if self.previous != other.previous {
            self.previous = None;
        }
        if self.trail != other.trail {
            self.trail = Rc::default();
        }
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
            && self.cwd == other.cwd
            && self.previous == other.previous
            && self.trail == other.trail
    }
}

fn join_variables(mine: &mut Rc<BTreeMap<String, Value>>, theirs: &Rc<BTreeMap<String, Value>>) {
    if Rc::ptr_eq(mine, theirs) {
        return;
    }
    let mut joined = (**mine).clone();
    for (name, value) in &mut joined {
        if theirs.get(name) != Some(value) {
            *value = Value::Unknown;
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
