//! Redirections and here-documents.

use std::cell::OnceCell;
use std::rc::Rc;

use super::{Parser, Pending, Problem};
use crate::syntax::{Part, Quotes, Redirect, Word};

impl Parser<'_> {
    /// The redirection that begins here, if one does.
    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>, Problem> {
        let start = self.at;
        if self.entry_follows() {
            return Err("an entry of a list holds the number of a file, and its index may run a command".to_owned());
        }
        let descriptor = self.descriptor();
        if self.looks_at("<(")
            || self.looks_at(">(")
            || !(self.looks_at("<") || self.looks_at(">") || self.both_follow(start))
        {
            self.at = start;
            return Ok(None);
        }
        let stdin = matches!(descriptor.as_deref(), None | Some("0"));
        let stdout = matches!(descriptor.as_deref(), None | Some("1"));
        if self.looks_at("<<<") {
            self.only_bash("<<<")?;
        }
        if self.take("<<<") {
            return Ok(Some(Redirect::HereString { text: self.target()?, stdin }));
        }
        if self.take("<<-") {
            return self.here_document(true, stdin).map(Some);
        }
        if self.take("<<") {
            return self.here_document(false, stdin).map(Some);
        }
        if self.take("<>") {
            return Ok(Some(Redirect::ReadWrite(self.target()?)));
        }
        if self.take("<&") {
            return Ok(Some(Redirect::Duplicate { target: self.target()?, output: false }));
        }
        if self.take("<") {
            return Ok(Some(Redirect::Read { target: self.target()?, stdin }));
        }
        if self.take("&>>") {
            return Ok(Some(Redirect::Write { target: self.target()?, append: true, stdout: true }));
        }
        if self.take("&>") {
            return Ok(Some(Redirect::Write { target: self.target()?, append: false, stdout: true }));
        }
        if self.take(">>") {
            return Ok(Some(Redirect::Write { target: self.target()?, append: true, stdout }));
        }
        if self.take(">&") {
            return Ok(Some(Redirect::Duplicate { target: self.target()?, output: true }));
        }
        let written = self.take(">|") || self.take(">");
        debug_assert!(written, "one of the signs stands here");
        Ok(Some(Redirect::Write { target: self.target()?, append: false, stdout }))
    }

    /// Whether `{name[index]}>` stands here.
    fn entry_follows(&mut self) -> bool {
        let Some((name, rest)) = self.rest().strip_prefix('{').and_then(|rest| rest.split_once('[')) else {
            return false;
        };
        let line = rest.split('\n').next().unwrap_or_default();
        crate::syntax::is_name(name) && (line.contains("]}>") || line.contains("]}<")) && self.is_bash()
    }

    /// Digits or `{name}` before a redirection.
    fn descriptor(&mut self) -> Option<String> {
        let rest = self.rest();
        let mut end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        if let Some(inner) = rest.strip_prefix('{') {
            end = inner.find('}').filter(|length| crate::syntax::is_name(&inner[..*length]))? + 2;
        }
        if end == 0 || !rest[end..].starts_with(['<', '>']) {
            return None;
        }
        // Elsewhere only one digit belongs to the redirection.
        if end > 1 && !self.is_bash() {
            return None;
        }
        self.at += end;
        Some(rest[..end].to_owned())
    }

    /// Whether `&>` stands here; elsewhere it is an `&` and then a `>`.
    fn both_follow(&mut self, start: usize) -> bool {
        self.at == start && self.looks_at("&>") && self.is_bash()
    }

    fn target(&mut self) -> Result<Word, Problem> {
        self.blanks();
        self.word()?
            .ok_or_else(|| "the shell text is not understood: the target of a redirection is missing".to_owned())
    }

    fn here_document(&mut self, strip_tabs: bool, stdin: bool) -> Result<Redirect, Problem> {
        let word = self.target()?;
        let delimiter = word.literal().ok_or("the end of a here-document cannot be known")?;
        let quoted = word.parts.iter().any(|part| matches!(part, Part::Quoted(_)));
        let body = Rc::new(OnceCell::new());
        self.pending.push(Pending { delimiter, quoted, strip_tabs, body: Rc::clone(&body) });
        Ok(Redirect::Text { body, stdin })
    }

    /// Takes the lines of the here-documents that were announced on the line that just ended.
    pub(super) fn here_documents(&mut self) -> Result<(), Problem> {
        for pending in std::mem::take(&mut self.pending) {
            let text = self.here_lines(&pending)?;
            let body = if pending.quoted {
                Word { parts: vec![Part::Quoted(text.clone())], raw: text }
            } else {
                self.nested(|parser| {
                    let mut within = parser.within(&text);
                    let word = within.here_word();
                    parser.after(&within);
                    word
                })?
            };
            pending.body.set(body).map_err(|_| "a here-document was read twice")?;
        }
        Ok(())
    }

    /// The text of a here-document whose expansions take place.
    pub(super) fn here_word(&mut self) -> Result<Word, Problem> {
        let mut parts = vec![Part::Quoted(String::new())];
        while let Some(letter) = self.peek() {
            // A double quote is an ordinary letter here, also after a backslash.
            if self.take("\\\"") {
                parts.push(Part::Quoted("\\\"".to_owned()));
            } else if letter == '"' {
                self.next();
                parts.push(Part::Quoted("\"".to_owned()));
            } else {
                self.piece(&mut parts, Quotes::Double)?;
            }
        }
        Ok(Word { parts, raw: self.text.to_owned() })
    }

    fn here_lines(&mut self, pending: &Pending) -> Result<String, Problem> {
        let mut text = String::new();
        while self.peek().is_some() {
            let rest = self.rest();
            let end = rest.find('\n').unwrap_or(rest.len());
            let line = &rest[..end];
            self.at += (end + 1).min(rest.len());
            let line = if pending.strip_tabs { line.trim_start_matches('\t') } else { line };
            // Without quotes a backslash joins lines before the delimiter is looked for.
            if line == pending.delimiter && (pending.quoted || !joins(&text)) {
                return Ok(text);
            }
            text.push_str(line);
            text.push('\n');
        }
        Err(format!("the here-document `{}` has no end", pending.delimiter))
    }
}

fn joins(text: &str) -> bool {
    let Some(line) = text.strip_suffix('\n') else { return false };
    (line.len() - line.trim_end_matches('\\').len()) % 2 == 1
}
