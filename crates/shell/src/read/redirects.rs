//! What goes from and to files.

use crate::paths;
use crate::read::{Content, List, Reading};
use crate::state::{Output, State, Stdin};
use crate::syntax::Redirect;

/// Where standard output goes.
pub(super) struct Sink {
    path: String,
    append: bool,
}

impl Reading<'_> {
    /// Applies `redirects`; the result is where the standard output goes, if not where it went before.
    pub(super) fn redirects(&mut self, redirects: &[Redirect], state: &mut State) -> Vec<Sink> {
        let mut sinks = Vec::new();
        for redirect in redirects {
            match redirect {
                Redirect::Read { target, stdin } => {
                    let field = self.one(target, state);
                    self.network(&field.text);
                    self.reads(&field, state);
                    crate::expand::twins(&field, state).iter().for_each(|twin| self.reads(twin, state));
                    if field.is_known() {
                        self.shown(&field, "<", state);
                    }
                    if *stdin {
                        state.stdin = self.stdin_of(&field, state);
                    }
                }
                Redirect::ReadWrite(word) => {
                    let field = self.one(word, state);
                    self.network(&field.text);
                    self.reads(&field, state);
                    self.writes(&field, "<>", state);
                    state.stdin = self.stdin_of(&field, state);
                }
                Redirect::Write { target, append, stdout } => {
                    let field = self.one(target, state);
                    self.network(&field.text);
                    sinks.extend(self.sink(&field, (*append, *stdout), state));
                }
                Redirect::Text { body, stdin } => {
                    let text = body.get().map(|body| self.one(body, state));
                    if *stdin {
                        state.stdin = text.map_or(Stdin::Unknown, |field| known_stdin(field.is_known(), field.text));
                    }
                }
                Redirect::HereString { text, stdin } => {
                    let field = self.one(text, state);
                    if *stdin {
                        state.stdin = known_stdin(field.is_known(), format!("{}\n", field.text));
                    }
                }
                Redirect::Duplicate { target, output } => {
                    let field = self.one(target, state);
                    let descriptor = field.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
                    self.network(&field.text);
                    if *output && !(descriptor && field.is_known()) {
                        sinks.extend(self.sink(&field, (false, true), state));
                    } else if !*output && field.text != "0" {
                        state.stdin = Stdin::Unknown;
                    }
                }
            }
        }
        sinks
    }

    fn sink(&mut self, field: &crate::state::Field, shape: (bool, bool), state: &State) -> Vec<Sink> {
        let (append, stdout) = shape;
        let mut sinks = Vec::new();
        for path in self.target(field, ">", state) {
            if paths::is_own_output(&path) {
                continue;
            }
            self.note(List::Writes, &path);
            if stdout {
                sinks.push(Sink { path, append });
            } else {
                self.made(&path, Content::Unknown);
            }
        }
        sinks
    }

    /// What was written to `sinks` by a command; the result is what is left for the standard output.
    pub(super) fn pour(&mut self, sinks: &[Sink], output: Output) -> Output {
        for sink in sinks {
            self.made_by(&sink.path, &output, sink.append);
        }
        if sinks.is_empty() { output } else { Output::nothing() }
    }

    fn stdin_of(&mut self, field: &crate::state::Field, state: &State) -> Stdin {
        match self.content(field, state) {
            Some(Content::OneOf(texts)) if texts.len() == 1 && field.is_exact() => known_stdin(true, texts[0].clone()),
            Some(Content::Names(files)) => Stdin::Files(files.into()),
            Some(Content::OneOf(_) | Content::Unknown) => Stdin::Unknown,
            None if field.text == "/dev/null" => Stdin::Known("".into()),
            // A script of the workspace may be run by its name, and so this way too.
            None if field.is_exact() && self.is_surely_inside(field, state) => Stdin::Inherited,
            None => Stdin::Unknown,
        }
    }

    /// bash opens connections for these names.
    fn network(&mut self, target: &str) {
        if target.starts_with("/dev/tcp/") || target.starts_with("/dev/udp/") {
            self.unknown(format!("`{target}` is a network connection"));
            self.url(&format!("tcp://{}", target[9..].replacen('/', ":", 1)));
        }
    }
}

fn known_stdin(known: bool, text: String) -> Stdin {
    if known { Stdin::Known(text.into()) } else { Stdin::Unknown }
}
