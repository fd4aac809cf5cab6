//! From text to tree. Whatever is not understood is an error, never an empty tree.

mod ansi;
mod compound;
mod dollar;
mod redirect;
mod word;

use std::cell::OnceCell;
use std::rc::Rc;

pub(crate) use ansi::{Escapes, unescape};

use crate::bounds;
use crate::syntax::{Assignment, Command, Connector, Dialect, Kind, Part, Pipeline, Script, Statement, Word, is_name};

/// Why a text could not be read.
pub(crate) type Problem = String;

/// What became of a text.
pub(crate) struct Parsed {
    /// The text, or the lines of it before the one that is not understood.
    pub(crate) script: Script,
    pub(crate) problem: Option<Problem>,
    /// Whether the shell does not understand that line either, for sure.
    pub(crate) refused: bool,
    /// Whether another dialect might read the text differently.
    pub(crate) told_apart: bool,
    /// Whether there is more of it than is read.
    pub(crate) is_cut: bool,
}

/// Reads `text`; `nesting` says how deep it stands in others.
pub(crate) fn parse(text: &str, nesting: u32, dialect: Dialect) -> Parsed {
    let mut parser = Parser::new(text, nesting, dialect);
    let mut script = Script::default();
    let problem = parser.whole(&mut script).err();
    Parsed { script, problem, refused: parser.refused, told_apart: parser.told_apart, is_cut: parser.is_cut }
}

/// Reads `text` as that of a here-document, whose expansions take place.
pub(crate) fn here_text(text: &str, dialect: Dialect) -> Result<Word, Problem> {
    Parser::new(text, 0, dialect).here_word()
}

/// Words that open, join or close compound commands where a command may begin.
const RESERVED: &[&str] = &[
    "if", "then", "elif", "else", "fi", "for", "select", "while", "until", "do", "done", "case", "esac", "in",
    "function", "{", "}", "!", "[[", "time", "coproc",
];

/// Whether `word` is one of the grammar's own words.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// A place in the text and what is open there.
struct Parser<'t> {
    text: &'t str,
    at: usize,
    nesting: u32,
    pending: Vec<Pending>,
    /// Times that `((` was read as arithmetic in vain.
    detours: u32,
    dialect: Dialect,
    /// Whether the shell itself does not understand what was found.
    refused: bool,
    /// Whether another dialect might read it differently.
    told_apart: bool,
    /// Whether there is more than is read.
    is_cut: bool,
}

/// A here-document whose lines begin after the next line end.
struct Pending {
    delimiter: String,
    quoted: bool,
    strip_tabs: bool,
    body: Rc<OnceCell<Word>>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, nesting: u32, dialect: Dialect) -> Self {
        Parser {
            text,
            at: 0,
            nesting,
            pending: Vec::new(),
            detours: 0,
            dialect,
            refused: false,
            told_apart: false,
            is_cut: false,
        }
    }

    /// A parser for a text that stands inside of this one.
    fn within<'i>(&self, text: &'i str) -> Parser<'i> {
        Parser::new(text, self.nesting, self.dialect)
    }

    /// Takes over what the parser `inner` found out.
    fn after(&mut self, inner: &Parser<'_>) {
        self.refused |= inner.refused;
        self.told_apart |= inner.told_apart;
        self.is_cut |= inner.is_cut;
    }

    /// Whether bash reads. Asked only where it makes a difference.
    fn is_bash(&mut self) -> bool {
        self.told_apart = true;
        self.dialect.is_bash()
    }

    /// Ends the reading in a dialect that does not know `what`; nothing more of the text is run then.
    fn only_bash(&mut self, what: &str) -> Result<(), Problem> {
        if self.is_bash() {
            return Ok(());
        }
        self.refused = true;
        Err(format!("the shell does not know `{what}`"))
    }

    /// Reads all of the text into `script`: whole lines, up to one that is not understood.
    fn whole(&mut self, script: &mut Script) -> Result<(), Problem> {
        let mut line = Vec::new();
        loop {
            let before = self.at;
            self.lines()?;
            if self.text[before..self.at].contains('\n') && self.pending.is_empty() {
                script.statements.append(&mut line);
            }
            match self.peek() {
                None if !self.pending.is_empty() => return Err("a here-document has no lines".to_owned()),
                None => {
                    script.statements.append(&mut line);
                    return Ok(());
                }
                Some(_) => {}
            }
            let (statement, separated) = self.separated()?;
            line.push(statement);
            match separated {
                Separated::Line => script.statements.append(&mut line),
                Separated::Sign => {}
                Separated::Not => {
                    if let Some(found) = self.peek() {
                        return Err(format!("the shell text is not understood at `{found}`"));
                    }
                }
            }
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let found = self.peek()?;
        self.at += found.len_utf8();
        Some(found)
    }

    fn looks_at(&self, prefix: &str) -> bool {
        self.rest().starts_with(prefix)
    }

    fn take(&mut self, prefix: &str) -> bool {
        let found = self.looks_at(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    /// One level deeper for as long as `work` lasts.
    fn nested<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Problem>) -> Result<T, Problem> {
        if self.nesting >= bounds::SYNTAX_NESTING {
            self.is_cut = true;
            return Err(format!("the shell text nests more than {} levels deep", bounds::SYNTAX_NESTING));
        }
        self.nesting += 1;
        let done = work(self);
        self.nesting -= 1;
        done
    }

    /// Skips blanks, joined lines and comments, but no line end.
    fn blanks(&mut self) {
        loop {
            if self.take("\\\n") || self.take(" ") || self.take("\t") {
                continue;
            }
            if self.looks_at("#") {
                let line = self.rest().find('\n').unwrap_or(self.rest().len());
                self.at += line;
            }
            return;
        }
    }

    /// Takes a line end and the here-documents that begin after it.
    fn line_end(&mut self) -> Result<bool, Problem> {
        if !self.take("\n") {
            return Ok(false);
        }
        self.here_documents()?;
        Ok(true)
    }

    /// Skips blanks, comments and line ends.
    fn lines(&mut self) -> Result<(), Problem> {
        loop {
            self.blanks();
            if !self.line_end()? {
                return Ok(());
            }
        }
    }

    /// The bare word that stands here, without taking it.
    fn word_here(&self) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|letter: char| " \t\n;&|<>()".contains(letter)).unwrap_or(rest.len());
        &rest[..end]
    }

    /// Takes the reserved word `word` if it stands here.
    fn keyword(&mut self, word: &str) -> bool {
        let found = self.word_here() == word;
        if found {
            self.at += word.len();
        }
        found
    }

    fn expect_keyword(&mut self, word: &str) -> Result<(), Problem> {
        self.lines()?;
        if self.keyword(word) {
            return Ok(());
        }
        Err(format!("the shell text is not understood: `{word}` is missing"))
    }

    /// Statements up to one of the words or brackets in `ends`, which is left standing.
    fn script(&mut self, ends: &[&str]) -> Result<Script, Problem> {
        let mut script = Script::default();
        loop {
            self.lines()?;
            if self.peek().is_none() || self.ends_here(ends) {
                return Ok(script);
            }
            let (statement, separated) = self.separated()?;
            script.statements.push(statement);
            if separated == Separated::Not {
                return Ok(script);
            }
        }
    }

    /// A statement, and what follows it.
    fn separated(&mut self) -> Result<(Statement, Separated), Problem> {
        let mut statement = self.statement()?;
        self.blanks();
        if self.line_end()? {
            return Ok((statement, Separated::Line));
        }
        if !self.looks_at(";;") && !self.looks_at(";&") && self.take(";") {
            return Ok((statement, Separated::Sign));
        }
        statement.background = !self.looks_at("&&") && self.take("&");
        let separated = if statement.background { Separated::Sign } else { Separated::Not };
        Ok((statement, separated))
    }

    fn ends_here(&self, ends: &[&str]) -> bool {
        ends.iter().any(|end| match *end {
            ")" | ";;" | ";&" => self.looks_at(end),
            word => self.word_here() == word,
        })
    }

    fn statement(&mut self) -> Result<Statement, Problem> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.blanks();
            let connector = if self.take("&&") {
                Connector::And
            } else if self.take("||") {
                Connector::Or
            } else {
                return Ok(Statement { first, rest, background: false });
            };
            self.lines()?;
            rest.push((connector, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline, Problem> {
        let mut commands = Vec::new();
        let negated = self.prefixes();
        loop {
            commands.push(self.nested(Self::command)?);
            self.blanks();
            if self.looks_at("|&") {
                self.only_bash("|&")?;
            }
            let piped = !self.looks_at("||") && (self.take("|&") || self.take("|"));
            if !piped {
                return Ok(Pipeline { negated, commands });
            }
            self.lines()?;
            // Within a pipeline `time` is a program.
            self.bangs();
        }
    }

    /// Skips `!`; whether there was one.
    fn bangs(&mut self) -> bool {
        let mut found = false;
        loop {
            self.blanks();
            if !self.keyword("!") {
                return found;
            }
            found = true;
        }
    }

    /// Skips `!` and `time` before a pipeline; whether there was a `!`.
    fn prefixes(&mut self) -> bool {
        let mut negated = false;
        loop {
            negated |= self.bangs();
            // Elsewhere `time` is a program, which takes options of its own.
            if self.word_here() != "time" || !self.is_bash() {
                return negated;
            }
            let before = self.at;
            self.keyword("time");
            self.blanks();
            // A bash that was started as `sh` takes it for the program as soon as an option follows.
            if self.dialect == Dialect::PosixBash && self.word_here().starts_with('-') {
                self.at = before;
                return negated;
            }
            if self.word_here() == "-p" {
                self.keyword("-p");
            }
        }
    }

    fn command(&mut self) -> Result<Command, Problem> {
        self.blanks();
        let Some(kind) = self.compound()? else { return self.simple() };
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(Command { kind, redirects }),
            }
        }
    }

    fn simple(&mut self) -> Result<Command, Problem> {
        let (mut assignments, mut words, mut redirects) = (Vec::new(), Vec::<Word>::new(), Vec::new());
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            let Some(word) = self.word()? else { break };
            if words.is_empty() {
                self.told_apart |= as_assignment(&word, Dialect::Bash).is_some_and(|found| found.is_of_bash());
            }
            if words.is_empty()
                && let Some(assignment) = as_assignment(&word, self.dialect)
            {
                assignments.push(assignment);
                continue;
            }
            words.push(word);
            if words.len() == 1 && assignments.is_empty() && self.function_follows() {
                return self.function(words.remove(0), redirects);
            }
            if words.len() > bounds::WORDS {
                self.is_cut = true;
                return Err(format!("a command has more than {} words", bounds::WORDS));
            }
        }
        if assignments.is_empty() && words.is_empty() && redirects.is_empty() {
            let found = self.peek().map_or_else(|| "its end".to_owned(), |found| format!("`{found}`"));
            return Err(format!("the shell text is not understood at {found}"));
        }
        Ok(Command { kind: Kind::Simple { assignments, words }, redirects })
    }
}

/// What follows a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separated {
    Line,
    Sign,
    Not,
}

/// The assignment that `word` is to a shell of `dialect`, if it is one.
pub(crate) fn as_assignment(word: &Word, dialect: Dialect) -> Option<Assignment> {
    any_assignment(word).filter(|found| dialect.is_bash() || !found.is_of_bash())
}

fn any_assignment(word: &Word) -> Option<Assignment> {
    let Some(Part::Plain(first)) = word.parts.first() else { return None };
    let name_end = first.find(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric())?;
    let name = &first[..name_end];
    if !is_name(name) {
        return None;
    }
    let after = &first[name_end..];
    let (index, value) = if after.starts_with('[') {
        let (index, value) = split_index(word, name_end)?;
        (Some(index), value)
    } else {
        (None, word.from(0, name_end))
    };
    let Some(Part::Plain(operator)) = value.parts.first() else { return None };
    let (append, length) = match operator.as_bytes() {
        [b'=', ..] => (false, 1),
        [b'+', b'=', ..] => (true, 2),
        _ => return None,
    };
    Some(Assignment { name: name.to_owned(), index, append, value: value.from(0, length) })
}

/// The index, and what follows its `]`, if `=` or `+=` does.
fn split_index(word: &Word, from: usize) -> Option<(Word, Word)> {
    for (index, part) in word.parts.iter().enumerate() {
        let Part::Plain(text) = part else { continue };
        let start = if index == 0 { from } else { 0 };
        let end = text[start..].find("]=").or_else(|| text[start..].find("]+="));
        if let Some(end) = end {
            let mut inside = word.parts[..=index].to_vec();
            if let Some(Part::Plain(last)) = inside.last_mut() {
                last.truncate(start + end);
            }
            if let Some(Part::Plain(first)) = inside.first_mut() {
                first.drain(..(from + 1).min(first.len()));
            }
            return Some((Word { parts: inside, raw: word.raw.clone() }, word.from(index, start + end + 1)));
        }
    }
    None
}

impl Word {
    /// The word from byte `at` of its part `index`, which is plain text.
    fn from(&self, index: usize, at: usize) -> Word {
        let mut parts = self.parts[index..].to_vec();
        let mut emptied = false;
        if let Some(Part::Plain(text)) = parts.first_mut() {
            text.drain(..at);
            emptied = text.is_empty();
        }
        if emptied {
            parts.remove(0);
        }
        Word { parts, raw: self.raw.clone() }
    }
}
