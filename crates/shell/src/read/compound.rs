//! Branches and loops: every branch is taken, and what they leave differently is not known afterwards.

use std::rc::Rc;

use crate::bounds;
use crate::read::Reading;
use crate::state::{Field, Folders, Meaning, Output, State, Value};
use crate::syntax::{Command, Kind, Part, Redirect, Script, Word};

impl Reading<'_> {
    /// Reads one command with its redirections.
    pub(crate) fn command(&mut self, command: &Command, state: &mut State) -> Output {
        if !self.spend(1) {
            return Output::Unknown;
        }
        if self.level >= bounds::LEVELS {
            self.cut(format!("commands nest more than {} levels deep", bounds::LEVELS));
            return Output::Unknown;
        }
        self.level += 1;
        let stdin = state.stdin.clone();
        let sinks = self.redirects(&command.redirects, state);
        let lasting = is_lasting(command);
        let output = self.kind(&command.kind, state);
        // `$(<file)` is the text of the file.
        let output = if is_empty(command) { stdin_alone(&command.redirects, state) } else { output };
        let output = self.pour(&sinks, if lasting { Output::Unknown } else { output });
        if !lasting {
            state.stdin = stdin;
        }
        self.level -= 1;
        output
    }

    fn kind(&mut self, kind: &Kind, state: &mut State) -> Output {
        match kind {
            Kind::Simple { assignments, words } => self.simple(assignments, words, state),
            Kind::Group(script) => self.script(script, state),
            Kind::Subshell(script) => {
                let traps = std::mem::take(&mut self.traps);
                let mut inner = state.deeper();
                let output = self.script(script, &mut inner);
                // What it has put off is run at its own end.
                self.late(inner);
                self.traps = traps;
                output
            }
            Kind::If { arms, otherwise } => self.branches(arms, otherwise.as_ref(), state),
            Kind::Loop { condition, body } => self.repeated(&[condition, body], state),
            Kind::For { name, words, body } => self.for_each(name, words.as_deref(), body, state),
            Kind::ForArithmetic { expression, body } => {
                self.expression(expression, state);
                self.forget_assigned(&expression.raw, state);
                self.repeated(&[body], state)
            }
            Kind::Case { subject, arms } => self.case(subject, arms, state),
            Kind::Function { name, body } => {
                Rc::make_mut(&mut state.functions).insert(name.clone(), Meaning::Sure(Rc::clone(body)));
                // bash runs it for whatever is not there.
                if name == "command_not_found_handle" {
                    let mut inner = state.deeper();
                    inner.arguments = None;
                    self.command(body, &mut inner);
                }
                Output::nothing()
            }
            Kind::Condition(words) => self.condition(words, state),
            Kind::Arithmetic(expression) => {
                self.expression(expression, state);
                self.forget_assigned(&expression.raw, state);
                Output::nothing()
            }
            Kind::Coprocess(command) => {
                let mut inner = state.deeper();
                // What is written to it later cannot be told from here.
                inner.stdin = crate::state::Stdin::Unknown;
                self.command(command, &mut inner);
                Output::nothing()
            }
        }
    }

    fn branches(&mut self, arms: &[(Script, Script)], otherwise: Option<&Script>, state: &mut State) -> Output {
        let mut ends = Vec::new();
        let mut output = Output::nothing();
        for (condition, body) in arms {
            let tested = std::mem::replace(&mut state.failing.tested, true);
            let told = self.script(condition, state);
            state.failing.tested = tested;
            output = output.maybe(&told);
            let (mut branch, ill) = state.clone().parted();
            *state = ill;
            output = output.maybe(&self.script(body, &mut branch));
            ends.push(branch);
        }
        if let Some(script) = otherwise {
            output = output.maybe(&self.script(script, state));
        }
        for end in ends {
            state.join(end);
        }
        output
    }

    /// Reads `scripts` as often as it takes until nothing new is carried from one time to the next.
    fn repeated(&mut self, scripts: &[&Script], state: &mut State) -> Output {
        let mut output = Output::nothing();
        for pass in 0..bounds::LOOP_PASSES {
            let mut round = state.clone();
            let jumps = self.jumps();
            for script in scripts {
                output = output.maybe(&self.script(script, &mut round));
            }
            self.land(jumps, &mut round);
            let before = state.clone();
            state.join(round);
            if pass > 0 && state.place != before.place {
                // Each round goes on somewhere else.
                state.place.cwd = Folders::ANY;
                state.place.previous = Folders::ANY;
            }
            if state.is_like(&before) || self.is_spent() {
                return output;
            }
        }
        self.unknown("a loop changes its variables in too many ways".to_owned());
        output
    }

    fn for_each(&mut self, name: &str, words: Option<&[Word]>, body: &Script, state: &mut State) -> Output {
        let fields = match words {
            Some(words) => self.fields(words, state),
            None => state.arguments.as_deref().cloned().unwrap_or_else(|| vec![Field::unknown("$@")]),
        };
        let mut output = Output::nothing();
        for field in fields {
            let value = if field.is_known() { Value::Text(field) } else { Value::Unknown };
            self.influenced(name, &value, state);
            state.set(name, value.clone());
            let before = state.clone();
            output = output.maybe(&self.repeated_once(body, state));
            if self.is_spent() {
                break;
            }
            if !state.is_like(&before) {
                // What this round changed may hold in the next one.
                state.set(name, value);
                output = output.maybe(&self.repeated_once(body, state));
            }
        }
        output
    }

    fn repeated_once(&mut self, body: &Script, state: &mut State) -> Output {
        let mut round = state.clone();
        let jumps = self.jumps();
        let output = self.script(body, &mut round);
        self.land(jumps, &mut round);
        state.join(round);
        output
    }

    fn case(&mut self, subject: &Word, arms: &[(Vec<Word>, Script)], state: &mut State) -> Output {
        self.one(subject, state);
        let before = state.clone();
        let mut output = Output::nothing();
        for (patterns, body) in arms {
            for pattern in patterns {
                self.one(pattern, state);
            }
            let mut branch = before.clone();
            output = output.maybe(&self.script(body, &mut branch));
            state.join(branch);
        }
        output
    }

    fn condition(&mut self, words: &[Word], state: &mut State) -> Output {
        self.compared(words, state);
        Output::nothing()
    }
}

fn is_empty(command: &Command) -> bool {
    matches!(&command.kind, Kind::Simple { assignments, words } if assignments.is_empty() && words.is_empty())
}

fn stdin_alone(redirects: &[Redirect], state: &State) -> Output {
    let reads = redirects.iter().any(|redirect| matches!(redirect, Redirect::Read { .. } | Redirect::ReadWrite(_)));
    if reads { crate::run::stdin_text(state) } else { Output::nothing() }
}

/// Whether the redirections of `command` hold for all that follows: those of an `exec` without a program.
fn is_lasting(command: &Command) -> bool {
    let Kind::Simple { words, .. } = &command.kind else { return false };
    let exec = words.len() == 1 && matches!(words[0].parts.as_slice(), [Part::Plain(name)] if name == "exec");
    exec && !command.redirects.is_empty()
        && command.redirects.iter().all(|redirect| !matches!(redirect, Redirect::Text { .. }))
}
