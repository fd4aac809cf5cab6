//! Compound commands: branches, loops, groups, functions, conditions.

use std::rc::Rc;

use super::{Parser, Problem};
use crate::syntax::{Command, Kind, Part, Quotes, Redirect, Script, Word};

/// Times that `((` may turn out to be two subshells; each costs a second look at the rest of the text.
pub(super) const DETOURS: u32 = 8;

impl Parser<'_> {
    /// The compound command that begins here, if one does.
    pub(super) fn compound(&mut self) -> Result<Option<Kind>, Problem> {
        if self.looks_at("((")
            && self.is_bash()
            && let Some(kind) = self.arithmetic_command()
        {
            return Ok(Some(kind));
        }
        if self.take("(") {
            let body = self.script(&[")"])?;
            self.close(")")?;
            return Ok(Some(Kind::Subshell(body)));
        }
        let kind = match self.word_here() {
            "{" => self.braces()?,
            "if" => self.branches()?,
            "while" | "until" => self.while_loop()?,
            "for" => self.for_loop()?,
            "case" => self.case()?,
            "select" if self.is_bash() => self.for_loop()?,
            "[[" if self.is_bash() => self.condition()?,
            "function" if self.is_bash() => return self.function_word().map(Some),
            "coproc" if self.is_bash() => self.coprocess()?,
            "then" | "elif" | "else" | "fi" | "do" | "done" | "esac" | "}" => {
                return Err(format!("the shell text is not understood at `{}`", self.word_here()));
            }
            _ => return Ok(None),
        };
        Ok(Some(kind))
    }

    pub(super) fn close(&mut self, bracket: &str) -> Result<(), Problem> {
        self.lines()?;
        if self.take(bracket) {
            return Ok(());
        }
        Err(format!("the shell text is not understood: `{bracket}` is missing"))
    }

    fn braces(&mut self) -> Result<Kind, Problem> {
        self.keyword("{");
        let body = self.script(&["}"])?;
        self.expect_keyword("}")?;
        Ok(Kind::Group(body))
    }

    /// `((…))`; nothing is taken if it turns out to be two brackets of subshells.
    fn arithmetic_command(&mut self) -> Option<Kind> {
        if self.detours >= DETOURS {
            return None;
        }
        let start = self.at;
        self.at += 2;
        match self.nested(|parser| parser.arithmetic("))")) {
            Ok(expression) => Some(Kind::Arithmetic(expression)),
            Err(_) => {
                self.detours += 1;
                self.at = start;
                None
            }
        }
    }

    fn branches(&mut self) -> Result<Kind, Problem> {
        self.keyword("if");
        let mut arms = Vec::new();
        let mut otherwise = None;
        loop {
            let condition = self.script(&["then"])?;
            self.expect_keyword("then")?;
            let body = self.script(&["elif", "else", "fi"])?;
            arms.push((condition, body));
            if self.keyword("elif") {
                continue;
            }
            if self.keyword("else") {
                otherwise = Some(self.script(&["fi"])?);
            }
            self.expect_keyword("fi")?;
            return Ok(Kind::If { arms, otherwise });
        }
    }

    fn while_loop(&mut self) -> Result<Kind, Problem> {
        if !self.keyword("while") {
            self.keyword("until");
        }
        let condition = self.script(&["do"])?;
        let body = self.loop_body()?;
        Ok(Kind::Loop { condition, body })
    }

    fn loop_body(&mut self) -> Result<Script, Problem> {
        self.blanks();
        self.take(";");
        self.lines()?;
        if self.word_here() == "{" {
            self.only_bash("{")?;
        }
        if self.keyword("{") {
            let body = self.script(&["}"])?;
            self.expect_keyword("}")?;
            return Ok(body);
        }
        self.expect_keyword("do")?;
        let body = self.script(&["done"])?;
        self.expect_keyword("done")?;
        Ok(body)
    }

    fn for_loop(&mut self) -> Result<Kind, Problem> {
        if !self.keyword("for") {
            self.keyword("select");
        }
        self.blanks();
        if self.looks_at("((") {
            self.only_bash("for ((")?;
        }
        if self.take("((") {
            let expression = self.nested(|parser| parser.arithmetic("))"))?;
            let body = self.loop_body()?;
            return Ok(Kind::ForArithmetic { expression, body });
        }
        let name = self.word()?.and_then(|word| word.bare().map(str::to_owned));
        let name = name.ok_or("the shell text is not understood: the name after `for` is missing")?;
        self.lines()?;
        let mut words = None;
        if self.keyword("in") {
            words = Some(self.words()?);
        }
        let body = self.loop_body()?;
        Ok(Kind::For { name, words, body })
    }

    fn words(&mut self) -> Result<Vec<Word>, Problem> {
        let mut words = Vec::new();
        loop {
            self.blanks();
            match self.word()? {
                Some(word) => words.push(word),
                None => return Ok(words),
            }
        }
    }

    fn case(&mut self) -> Result<Kind, Problem> {
        self.keyword("case");
        self.blanks();
        let subject = self.word()?.ok_or("the shell text is not understood: the word after `case` is missing")?;
        self.expect_keyword("in")?;
        let mut arms = Vec::new();
        loop {
            self.lines()?;
            if self.keyword("esac") {
                return Ok(Kind::Case { subject, arms });
            }
            self.take("(");
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                patterns.push(self.word()?.ok_or("the shell text is not understood: a pattern of `case` is missing")?);
                self.blanks();
                if !self.take("|") {
                    break;
                }
            }
            self.close(")")?;
            let body = self.script(&[";;", ";&", "esac"])?;
            arms.push((patterns, body));
            self.lines()?;
            if self.looks_at(";;&") || self.looks_at(";&") {
                self.only_bash(";&")?;
            }
            if !(self.take(";;&") || self.take(";;") || self.take(";&")) && self.word_here() != "esac" {
                return Err("the shell text is not understood: `esac` is missing".to_owned());
            }
        }
    }

    /// `[[ … ]]`: its words are only looked through for what they would run.
    fn condition(&mut self) -> Result<Kind, Problem> {
        self.keyword("[[");
        let mut words = Vec::new();
        loop {
            self.lines()?;
            if self.keyword("]]") {
                return Ok(Kind::Condition(words));
            }
            if let Some(word) = self.word()? {
                words.push(word);
                continue;
            }
            match self.next() {
                Some(sign @ ('(' | ')' | '<' | '>' | '&' | '|')) => {
                    words.push(Word { parts: vec![Part::Plain(sign.to_string())], raw: sign.to_string() });
                }
                _ => return Err("the shell text is not understood: `]]` is missing".to_owned()),
            }
        }
    }

    /// Whether `()` stands here, as after the name of a function.
    pub(super) fn function_follows(&mut self) -> bool {
        let start = self.at;
        self.blanks();
        if self.take("(") {
            self.blanks();
            if self.take(")") {
                return true;
            }
        }
        self.at = start;
        false
    }

    /// The function `name`, whose `()` is taken.
    pub(super) fn function(&mut self, name: Word, redirects: Vec<Redirect>) -> Result<Command, Problem> {
        let name = name.literal().ok_or("the name of a function cannot be known")?;
        if !redirects.is_empty() {
            return Err("the shell text is not understood: a redirection before a function".to_owned());
        }
        self.lines()?;
        let body = Rc::new(self.nested(Self::command)?);
        Ok(Command { kind: Kind::Function { name, body }, redirects })
    }

    fn function_word(&mut self) -> Result<Kind, Problem> {
        self.keyword("function");
        self.blanks();
        let name = self.word()?.and_then(|word| word.literal()).ok_or("the name of a function cannot be known")?;
        self.function_follows();
        self.lines()?;
        let body = Rc::new(self.nested(Self::command)?);
        Ok(Kind::Function { name, body })
    }

    fn coprocess(&mut self) -> Result<Kind, Problem> {
        self.keyword("coproc");
        self.blanks();
        let start = self.at;
        // A name may stand before a compound command, and only there.
        if let Some(word) = self.word()?
            && word.bare().is_some_and(crate::syntax::is_name)
        {
            self.blanks();
            if self.looks_at("(") || ["{", "if", "while", "until", "for", "case", "[["].contains(&self.word_here()) {
                return Ok(Kind::Coprocess(Box::new(self.nested(Self::command)?)));
            }
        }
        self.at = start;
        Ok(Kind::Coprocess(Box::new(self.nested(Self::command)?)))
    }

    /// An arithmetic expression up to `end`, as a word whose substitutions are known.
    pub(super) fn arithmetic(&mut self, end: &str) -> Result<Word, Problem> {
        let start = self.at;
        let mut parts = Vec::new();
        let mut open = 0_usize;
        loop {
            if open == 0 && self.looks_at(end) {
                let raw = self.text[start..self.at].to_owned();
                self.at += end.len();
                return Ok(Word { parts, raw });
            }
            match self.peek() {
                None => return Err("the shell text is not understood: `))` is missing".to_owned()),
                Some('$' | '`' | '"' | '\'' | '\\') => self.piece(&mut parts, Quotes::Double)?,
                Some('(') => {
                    open += 1;
                    self.next();
                }
                Some(')') => {
                    open = open.checked_sub(1).ok_or("the shell text is not understood at `)`")?;
                    self.next();
                }
                Some(sign) => {
                    self.next();
                    parts.push(Part::Plain(sign.to_string()));
                }
            }
        }
    }
}
