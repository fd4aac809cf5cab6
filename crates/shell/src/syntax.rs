//! A shell text as a tree.

use std::cell::OnceCell;
use std::rc::Rc;

/// Whose grammar and commands a text is read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Bash,
    /// A bash that was started as `sh`.
    PosixBash,
    Dash,
    /// A dash that reads `$'…'` as the newest standard has it.
    LaterDash,
}

impl Dialect {
    /// Every dialect; what runs a text in an unknown shell runs it in one of them.
    pub(crate) const ALL: &[Dialect] = &[Dialect::Bash, Dialect::Dash, Dialect::LaterDash];

    /// Those of a shell that was started as `sh`.
    pub(crate) const SH: &[Dialect] = &[Dialect::PosixBash, Dialect::Dash, Dialect::LaterDash];

    /// Those of dash.
    pub(crate) const DASH: &[Dialect] = &[Dialect::Dash, Dialect::LaterDash];

    pub(crate) fn is_bash(self) -> bool {
        matches!(self, Dialect::Bash | Dialect::PosixBash)
    }
}

/// A row of statements.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) statements: Vec<Statement>,
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) first: Pipeline,
    pub(crate) rest: Vec<(Connector, Pipeline)>,
    /// Whether `&` follows.
    pub(crate) background: bool,
}

/// When the next pipeline runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connector {
    And,
    Or,
}

/// Commands joined by `|`.
#[derive(Debug)]
pub(crate) struct Pipeline {
    /// Whether `!` stands before it.
    pub(crate) negated: bool,
    pub(crate) commands: Vec<Command>,
}

/// One command with its redirections.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) kind: Kind,
    pub(crate) redirects: Vec<Redirect>,
}

/// What a command is.
#[derive(Debug)]
pub(crate) enum Kind {
    Simple { assignments: Vec<Assignment>, words: Vec<Word> },
    Group(Script),
    Subshell(Script),
    If { arms: Vec<(Script, Script)>, otherwise: Option<Script> },
    Loop { condition: Script, body: Script },
    For { name: String, words: Option<Vec<Word>>, body: Script },
    ForArithmetic { expression: Word, body: Script },
    Case { subject: Word, arms: Vec<(Vec<Word>, Script)> },
    Function { name: String, body: Rc<Command> },
    Condition(Vec<Word>),
    Arithmetic(Word),
    Coprocess(Box<Command>),
}

/// `name=value`, `name+=value`, `name[index]=value`, `name=(values)`.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) index: Option<Word>,
    pub(crate) append: bool,
    pub(crate) value: Word,
}

impl Assignment {
    /// Whether only bash takes it for an assignment.
    pub(crate) fn is_of_bash(&self) -> bool {
        self.append || self.index.is_some()
    }
}

/// What is redirected, and to or from where.
#[derive(Debug)]
pub(crate) enum Redirect {
    Read { target: Word, stdin: bool },
    Write { target: Word, append: bool, stdout: bool },
    ReadWrite(Word),
    Text { body: Rc<OnceCell<Word>>, stdin: bool },
    HereString { text: Word, stdin: bool },
    Duplicate { target: Word, output: bool },
}

/// A word with its quotes still known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Word {
    pub(crate) parts: Vec<Part>,
    pub(crate) raw: String,
}

/// A piece of a word.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// Text outside of quotes; braces and globs count in it.
    Plain(String),
    /// Text inside of quotes.
    Quoted(String),
    /// `$name`, `${…}`.
    Parameter(Rc<Parameter>, Quotes),
    /// `$(…)` or backticks.
    Command(Rc<Script>, Quotes),
    /// `<(…)`.
    ProcessOut(Rc<Script>),
    /// `>(…)`.
    ProcessIn(Rc<Script>),
    /// `$((…))`.
    Arithmetic(Rc<Word>),
    /// `(a b c)` after `name=`.
    List(Rc<Vec<Word>>),
}

/// Whether a piece stands in double quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quotes {
    Bare,
    Double,
}

/// An expansion of a variable.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) index: Option<Word>,
    pub(crate) prefix: Prefix,
    /// The operator, such as `:-` or `##`, and what follows it.
    pub(crate) operation: Option<(String, Word)>,
    pub(crate) raw: String,
}

/// What stands between `${` and the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    None,
    Length,
    Indirect,
}

impl Word {
    /// The text, if the word is only text without quotes.
    pub(crate) fn bare(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Plain(text)] => Some(text),
            _ => None,
        }
    }

    /// The text, if the word is only text, quoted or not.
    pub(crate) fn literal(&self) -> Option<String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Plain(piece) | Part::Quoted(piece) => text.push_str(piece),
                Part::Parameter(..)
                | Part::Command(..)
                | Part::ProcessOut(_)
                | Part::ProcessIn(_)
                | Part::Arithmetic(_)
                | Part::List(_) => return None,
            }
        }
        Some(text)
    }
}

/// Whether `name` can be the name of a variable.
pub(crate) fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first == '_' || first.is_ascii_alphabetic())
        && letters.all(|letter| letter == '_' || letter.is_ascii_alphanumeric())
}
