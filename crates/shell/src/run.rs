//! What a command does, by what its program is.

mod archives;
mod besides;
mod builtins;
mod builds;
mod fetch;
mod containers;
mod counts;
mod find;
mod git;
mod handed;
mod interpreters;
mod options;
mod outputs;
mod shells;
mod streams;
mod tables;
mod texts;
mod told;
mod wrappers;
mod written;

pub(crate) use outputs::stdin_text;

use std::rc::Rc;

use crate::bounds;
use crate::paths;
use crate::programs::{self, Program, Role};
use crate::read::{Content, Reading};
use crate::state::{Certainty, Field, Flow, Meaning, Output, State, Stdin};
use crate::syntax::Command;

/// Who runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The shell, which looks among its functions first.
    Typed,
    /// Another program, or the shell without its functions.
    Direct,
}

/// A command whose program is known, with what is known of it.
pub(crate) struct Run<'r> {
    pub(crate) argv: &'r [Field],
    /// The program without its folder.
    pub(crate) name: &'r str,
    /// Its options that take the next word.
    pub(crate) valued: &'static str,
}

impl Reading<'_> {
    /// Reads the command `argv`; the result is what it writes to its standard output.
    pub(crate) fn run(&mut self, argv: &[Field], how: How, state: &mut State) -> Output {
        let Some(program) = argv.first() else { return Output::nothing() };
        if !self.spend(1) {
            return Output::Unknown;
        }
        self.told(argv, state);
        if !program.is_exact() || crate::number::is_hidden(&program.text) {
            self.unknown(format!("which program `{}` is cannot be known", program.text));
            return Output::Unknown;
        }
        if program.text.is_empty() {
            return Output::nothing();
        }
        if how == How::Typed
            && let Some(function) = state.functions.get(&program.text).cloned()
        {
            return self.call(&function, argv, state);
        }
        let name = paths::base_name(&program.text);
        if let Some(output) = self.made_program(program, name, state) {
            return output;
        }
        self.placed(argv, name, state);
        match programs::find(name) {
            Some(found) => {
                let run = Run { argv, name, valued: found.valued };
                self.written(&run, state);
                self.known_program(&run, found, state)
            }
            None => {
                self.written(&Run { argv, name, valued: "" }, state);
                self.proxied(&Run { argv, name, valued: "" });
                self.unheard_of(argv, name);
                Output::Unknown
            }
        }
    }

    /// Runs `argv` one level deeper, for a program that runs others.
    pub(crate) fn inner(&mut self, argv: &[Field], state: &State) -> Output {
        let mut inner = state.deeper();
        if inner.depth > bounds::DEPTH {
            self.cut(format!("commands nest more than {} levels deep", bounds::DEPTH));
            return Output::Unknown;
        }
        self.run(argv, How::Direct, &mut inner)
    }

    /// Reads `text` one level deeper, as a shell of its own.
    pub(crate) fn inner_text(&mut self, field: &Field, who: &str, state: &State) -> Output {
        if !field.is_known() {
            self.unknown(format!("the text that `{who}` runs cannot be known"));
            return Output::Unknown;
        }
        self.text_anywhere(&field.text, &state.another_shell())
    }

    fn call(&mut self, function: &Meaning<Rc<Command>>, argv: &[Field], state: &mut State) -> Output {
        let Meaning::Sure(body) = function else {
            self.unknown(format!("what the function `{}` does cannot be known", argv[0].text));
            return Output::Unknown;
        };
        if state.depth >= bounds::DEPTH {
            self.cut(format!("commands nest more than {} levels deep", bounds::DEPTH));
            return Output::Unknown;
        }
        let known = argv.iter().all(|field| field.certainty != Certainty::Many);
        let outer = state.arguments.take();
        state.arguments = known.then(|| Rc::new(argv[1..].to_vec()));
        state.depth += 1;
        let flow = state.flow;
        let jumps = self.jumps();
        let locals = state.scope.locals.replace(Rc::default());
        let output = self.command(body, state);
        self.land(jumps, state);
        state.forget_locals(locals);
        self.landed(jumps);
        if state.flow != Flow::Ended {
            state.flow = flow;
        }
        state.depth -= 1;
        state.arguments = outer;
        output
    }

    /// A program that the text itself made, or that lies where anybody may put one.
    fn made_program(&mut self, program: &Field, name: &str, state: &State) -> Option<Output> {
        if !program.text.contains('/') {
            if self.path_changed && self.has_made(name) {
                self.unknown(format!("`{name}` may be a file that the text itself made"));
            }
            return None;
        }
        if let Some(content) = self.content(program, state) {
            return Some(self.run_content(content, program, state));
        }
        for path in state.place.cwd.resolve(&program.text) {
            let shared = ["/tmp/", "/var/tmp/", "/dev/shm/", "/proc/"].iter().any(|folder| path.starts_with(folder));
            if shared && !self.is_inside(&path) {
                self.unknown(format!("`{path}` lies where anybody may put a program"));
            }
        }
        None
    }

    /// Runs a file of the text's own making.
    pub(crate) fn run_content(&mut self, content: Content, file: &Field, state: &State) -> Output {
        let Content::OneOf(texts) = content else {
            self.pipes(format!("`{}` is run, and what it holds is not written in the text", file.text));
            return Output::Unknown;
        };
        for text in texts {
            let inner = state.another_shell();
            match interpreters::shebang(&text) {
                interpreters::Shebang::Shell => {
                    self.text_anywhere(&text, &inner);
                }
                interpreters::Shebang::Language(language) => self.code(language, &text, &inner),
            }
        }
        Output::Unknown
    }

    /// Options whose values are paths.
    fn placed(&mut self, argv: &[Field], name: &str, state: &State) {
        let valued = programs::find(name).map_or("", |program| program.valued);
        for place in programs::places(name) {
            for value in values_of(&argv[1..], place.written, valued) {
                self.touches(&value, name, state);
            }
            for value in values_of(&argv[1..], place.read, valued) {
                self.reads(&value, state);
            }
        }
    }

    /// A program that no table names is what it says, unless it seems to run another one.
    fn unheard_of(&mut self, argv: &[Field], name: &str) {
        if argv[0].text.contains('/') && !argv[0].text.starts_with('/') {
            return;
        }
        let grave = argv[1..].iter().position(|field| programs::is_grave(paths::base_name(&field.text)));
        // A last word may be a name of anything; with something after it, it looks like a command.
        if grave.is_some_and(|index| index + 2 < argv.len()) {
            self.unknown(format!("`{name}` may run the command in its arguments"));
        }
    }

    fn known_program(&mut self, run: &Run<'_>, program: &Program, state: &mut State) -> Output {
        if run.argv.len() > 1 && crate::read::shows(run.name) && !streams::edits(run) {
            run.arguments().operands.iter().for_each(|field| self.shown(field, run.name, state));
        }
        match program.role {
            Role::Plain => {
                self.runs_found(run, state);
                self.runs_told(run, state);
                self.proxied(run);
                self.counted(run, state)
            }
            Role::Ends => {
                let own = |field: &Field| field.text == builtins::OWN_JOBS;
                let unsure = |field: &Field| !field.is_exact() || crate::number::is_hidden(&field.text);
                if run.argv.iter().any(|field| unsure(field) && !own(field)) {
                    self.unknown(format!("what `{}` would end cannot be known", run.name));
                }
                Output::Unknown
            }
            Role::Reads(skip) => {
                let counted = self.counted(run, state);
                let output = self.reading(run, skip, state);
                if output == Output::Unknown { counted } else { output }
            }
            Role::Writes(skip) => self.writing(run, skip, state),
            Role::Deletes => self.deleting(run, state),
            Role::Copies => self.copying(run, false, state),
            Role::Moves => self.copying(run, true, state),
            Role::Wraps(wrap) => self.wrapping(run, wrap, state),
            Role::Shell => self.shell(run, state),
            Role::Language(language) => self.language(run, language, state),
            Role::Builtin(builtin) if programs::is_of_bash(run.name) && !self.is_bash(state) => {
                // It fails, so that nothing that waits for it to go well is run.
                if matches!(run.name, "pushd" | "popd") {
                    let before = state.place.clone();
                    self.builtin(run, builtin, state);
                    state.failing.place = Some(before);
                }
                Output::Unknown
            }
            Role::Builtin(builtin) => self.builtin(run, builtin, state),
            Role::Prints(prints) => self.printing(run, prints, state),
            Role::Streams(streams) => self.stream(run, streams, state),
            Role::Archives(archives) => self.archiving(run, archives, state),
            Role::Finds(finds) => self.finding(run, finds, state),
            Role::Fetches(fetches) => self.fetching(run, fetches, state),
            Role::Builds(builds) => {
                self.proxied(run);
                self.building(run, builds, state)
            }
            Role::Carries(carries) => self.carrying(run, carries, state),
            Role::Git => self.git(run, state),
        }
    }

    /// What a program that reads code from its standard input runs.
    pub(crate) fn run_stdin(&mut self, who: &str, state: &State) -> Option<Rc<str>> {
        match &state.stdin {
            Stdin::Inherited => None,
            Stdin::Known(text) => Some(Rc::clone(text)),
            Stdin::Files(_) | Stdin::Unknown => {
                self.pipes(format!("what is piped into `{who}` is not written in the text"));
                None
            }
        }
    }
}

/// The values of `options` among `words`: the next word, what follows `=`, or what is attached to a short option.
fn option_values(words: &[Field], options: &str) -> Vec<Field> {
    values_of(words, options, "")
}

/// As [`option_values`], where `others` are options too: `--exclude` is not short for `--exclude-from`.
fn values_of(words: &[Field], options: &str, others: &str) -> Vec<Field> {
    let mut values = Vec::new();
    for (index, field) in words.iter().enumerate() {
        let name = field.text.split('=').next().unwrap_or_default();
        let whole = others.split(' ').any(|other| other == name);
        for option in options.split(' ').filter(|option| !option.is_empty()) {
            let long = option.len() > 2;
            let short = || options::shortened(&field.text, option).filter(|_| !whole);
            let Some(rest) = field.text.strip_prefix(option).or_else(short) else { continue };
            if rest.is_empty() {
                values.extend(words.get(index + 1).cloned());
            } else if let Some(value) = rest.strip_prefix('=').or_else(|| (!long).then_some(rest)) {
                values.push(Field { text: value.to_owned(), certainty: field.certainty });
            }
        }
    }
    values
}
