//! The shell's own commands.

use std::rc::Rc;

use crate::bounds;
use crate::programs::Builtin;
use crate::read::{Content, List, Reading};
use crate::run::{How, Run};
use crate::state::{Certainty, Field, Flow, Folders, Meaning, Output, State, Stdin, Value};

impl Reading<'_> {
    pub(super) fn builtin(&mut self, run: &Run<'_>, builtin: Builtin, state: &mut State) -> Output {
        let words = &run.argv[1..];
        match builtin {
            Builtin::Alias => words.iter().for_each(|field| self.define_alias(field, state)),
            Builtin::Cd => self.change_folder(words, run.name, state),
            Builtin::Command => return self.command_word(words, state),
            Builtin::Eval => return self.eval(words, state),
            Builtin::Exec => return self.exec(run, state),
            Builtin::Exit => leave(words, state),
            Builtin::Jump => self.jump(state),
            Builtin::ReadVariable => self.read_variables(words, run.name, state),
            Builtin::Set => self.set_options(words, state),
            Builtin::Shift => shift(words, state),
            Builtin::Source => self.source(run, state),
            Builtin::Test => self.test(words, state),
            Builtin::Trap => self.trap(words, state),
            Builtin::Unset => self.unset(words, run.name, state),
            Builtin::Silent if run.name == "wait" => self.wait(words, state),
            Builtin::Silent => choose_globs(words, run.name, state),
        }
        if own_jobs(words, run.name) {
            return Output::Files(vec![Field { text: OWN_JOBS.to_owned(), certainty: Certainty::Glob }]);
        }
        if prints(words, run.name) { Output::Unknown } else { Output::nothing() }
    }

    fn change_folder(&mut self, words: &[Field], who: &str, state: &mut State) {
        let target = words.iter().find(|field| !field.text.starts_with('-') || field.text == "-");
        let target = target.cloned().or_else(|| told_by(state, "HOME")).unwrap_or_else(|| Field::known("~"));
        let before = state.place.cwd.clone();
        // `pushd` alone swaps, `pushd +1` turns the stack, and `CDPATH` moves a folder elsewhere.
        let odd = (who == "pushd" && (words.is_empty() || target.text.starts_with('+')))
            || state.variables.contains_key("CDPATH");
        let there = match target.text.as_str() {
            _ if odd || !target.is_known() => Folders::ANY,
            "-" => match told_by(state, "OLDPWD") {
                Some(folder) if folder.is_known() => before.below(&folder.text).or(&state.place.previous),
                Some(_) => Folders::ANY,
                None => state.place.previous.clone(),
            },
            "" => before.clone(),
            text => before.below(text),
        };
        // What holds a folder that is there is there too.
        let sure = target.is_exact()
            && there.iter().next().is_some()
            && there.iter().all(|folder| self.is_there(folder, &before));
        state.go(there);
        if sure && !odd {
            state.failing.place = None;
        }
        if who == "pushd" && state.place.trail.len() < bounds::WORDS {
            Rc::make_mut(&mut state.place.trail).push(before);
        }
    }

    /// Whether `folder` is there for sure: it holds the workspace, or all of the folders that `before` may be.
    fn is_there(&self, folder: &str, before: &Folders) -> bool {
        let mut folders = before.iter().peekable();
        self.holds_workspace(folder)
            || (folders.peek().is_some() && folders.all(|before| crate::paths::is_inside(before, folder)))
    }

    /// `command` and `builtin`.
    fn command_word(&mut self, words: &[Field], state: &mut State) -> Output {
        let options = words.iter().take_while(|field| field.text.starts_with('-')).count();
        let asks = words[..options].iter().any(|field| field.text.contains(['v', 'V']));
        let inner = &words[options..];
        if asks {
            return match inner {
                [name] if name.is_exact() => Output::Known(format!("{}\n", name.text)),
                _ => Output::Unknown,
            };
        }
        state.depth += 1;
        let output = self.run(inner, How::Direct, state);
        state.depth -= 1;
        output
    }

    fn eval(&mut self, words: &[Field], state: &mut State) -> Output {
        let words = if words.first().is_some_and(|first| first.text == "--") { &words[1..] } else { words };
        if let Some(field) = words.iter().find(|field| !field.is_known()) {
            // What a substitution gave was written nowhere.
            let why = format!("`eval` runs `{}`, which cannot be known", field.text);
            if field.text.contains("$(") {
                self.pipes(why)
            } else {
                self.unknown(why)
            }
            return Output::Unknown;
        }
        let text = words.iter().map(|field| field.text.as_str()).collect::<Vec<_>>().join(" ");
        state.depth += 1;
        let output = self.text(&text, state);
        state.depth -= 1;
        output
    }

    fn exec(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        // Only bash takes options here.
        let takes = run.argv.get(1).is_some_and(|first| first.text.starts_with('-')) && self.is_bash(state);
        let end = if takes { run.leading(&run.argv[1..]).1 } else { 0 };
        if end > 0 && run.argv[1..=end].iter().any(|field| field.text.contains('l')) {
            self.home_of_login(state);
        }
        let inner = &run.argv[1 + end..];
        if inner.is_empty() {
            return Output::nothing();
        }
        self.inner(inner, state)
    }

    fn read_variables(&mut self, words: &[Field], who: &str, state: &mut State) {
        for pair in words.windows(2) {
            if who != "read" && pair[0].text == "-C" {
                self.inner_text(&pair[1], who, state);
            }
        }
        for field in words.iter().filter(|field| !field.text.starts_with('-')) {
            if crate::syntax::is_name(&field.text) {
                let value = match &state.stdin {
                    Stdin::Files(files) if who == "read" => one_of(files),
                    Stdin::Files(files) if who != "read" => Value::List(files.to_vec()),
                    Stdin::Files(_) | Stdin::Known(_) | Stdin::Inherited | Stdin::Unknown => Value::Unknown,
                };
                self.influenced(&field.text, &value, state);
                state.set(&field.text, value);
            } else if !field.is_known() {
                self.unknown(format!("what `{who}` sets cannot be known"));
            } else {
                self.indexed_name(field, state);
                self.forget_list(field, state);
            }
        }
        for name in ["REPLY", "MAPFILE", "OPTARG"] {
            state.set(name, Value::Unknown);
        }
    }

    /// What a list holds is not known any more when one of its entries is set.
    pub(super) fn forget_list(&mut self, field: &Field, state: &mut State) {
        let name = field.text.split('[').next().unwrap_or_default();
        if state.variables.get(name).is_some_and(|value| *value != Value::Keyed) {
            state.set(name, Value::Unknown);
        }
    }

    fn set_options(&mut self, words: &[Field], state: &mut State) {
        let options = words.iter().take_while(|field| field.text.starts_with(['-', '+']) && field.text != "--").count();
        let follows_o = |index: usize| {
            index > 0 && words[index - 1].text.ends_with('o') && words[index - 1].text.starts_with(['-', '+'])
        };
        let rest = match words.get(options) {
            Some(field) if field.text == "--" => Some(&words[options + 1..]),
            Some(_) if follows_o(options) => {
                let after = &words[options + 1..];
                (!after.is_empty()).then_some(after).filter(|after| !after[0].text.starts_with(['-', '+']))
            }
            Some(_) => Some(&words[options..]),
            None => None,
        };
        for (index, field) in words[..options].iter().enumerate() {
            let (on, letters) = (field.text.starts_with('-'), &field.text[1..]);
            let named =
                |name: &str| letters.ends_with('o') && words.get(index + 1).is_some_and(|next| next.text == name);
            if letters.contains('e') || named("errexit") {
                state.failing.ends = on && field.is_exact();
            }
            if letters.contains('a') || named("allexport") {
                state.exports.all = on && field.is_exact();
            }
        }
        // `set -o globdots` of zsh, `set globdot` of tcsh.
        let on = !words.first().is_some_and(|first| first.text.starts_with('+'));
        words.iter().for_each(|field| state.scope.globs.choose(&field.text, on));
        if words[..options].iter().any(|field| !field.is_exact()) {
            state.failing.ends = false;
        }
        if let Some(rest) = rest {
            let known = rest.iter().all(|field| field.certainty != crate::state::Certainty::Many);
            state.arguments = known.then(|| Rc::new(rest.to_vec()));
        }
    }

    fn source(&mut self, run: &Run<'_>, state: &mut State) {
        let Some(file) = run.argv[1..].iter().find(|field| field.text != "--") else { return };
        if file.text == "/dev/stdin" || file.text == "/dev/fd/0" || file.text == "/proc/self/fd/0" {
            if let Some(text) = self.run_stdin(run.name, state) {
                state.depth += 1;
                self.text(&text, state);
                state.depth -= 1;
            }
            return;
        }
        if !file.is_known() {
            self.unknown(format!("`{}`, which `{}` runs, cannot be known", file.text, run.name));
            return;
        }
        self.reads(file, state);
        match self.content(file, state) {
            Some(Content::Unknown | Content::Names(_)) => {
                self.pipes(format!("`{}` is run, and what it holds is not written in the text", file.text))
            }
            Some(Content::OneOf(texts)) => {
                let before = state.clone();
                let jumps = self.jumps();
                for text in texts {
                    let mut branch = before.clone();
                    branch.depth += 1;
                    self.text(&text, &mut branch);
                    branch.depth = before.depth;
                    state.join(branch);
                }
                self.land(jumps, state);
            }
            None => self.script_outside(file, run.name, state),
        }
    }

    /// A script that lies outside of the workspace is nobody's word for what it does.
    pub(super) fn script_outside(&mut self, file: &Field, who: &str, state: &State) {
        if !self.is_surely_inside(file, state) {
            self.unknown(format!("`{}`, which `{who}` runs, lies outside of the workspace", file.text));
        }
        for path in state.place.cwd.resolve(&file.text) {
            self.note(List::Reads, &path);
        }
    }

    fn test(&mut self, words: &[Field], state: &mut State) {
        for pair in words.windows(2).filter(|pair| pair[0].text == "-v" || !pair[0].is_known()) {
            self.indexed_name(&pair[1], state);
        }
    }

    /// `wait -p NAME` sets a variable.
    fn wait(&mut self, words: &[Field], state: &mut State) {
        let attached = words.iter().filter_map(|field| {
            let rest = field.text.strip_prefix('-').and_then(|letters| letters.split_once('p'));
            rest.map(|(_, name)| Field { text: name.to_owned(), certainty: field.certainty })
        });
        let next = words.windows(2).filter(|pair| pair[0].text.ends_with('p')).map(|pair| pair[1].clone());
        for name in attached.chain(next).collect::<Vec<_>>() {
            self.indexed_name(&name, state);
            if state.variables.contains_key(&name.text) {
                state.set(&name.text, Value::number(&name.text));
            }
        }
    }

    fn trap(&mut self, words: &[Field], state: &mut State) {
        let words = if words.first().is_some_and(|first| first.text == "--") { &words[1..] } else { words };
        let Some(action) = words.first() else { return };
        if words.len() == 1 || action.text == "-" || action.text.starts_with("-l") || action.text.starts_with("-p") {
            return;
        }
        if !action.is_known() {
            self.unknown("the text that `trap` runs cannot be known".to_owned());
            return;
        }
        let mut inner = state.deeper();
        self.text(&action.text, &mut inner);
        // It is run at the end too, where something else may hold.
        if self.traps.len() < bounds::FILE_TEXTS {
            self.traps.push(action.text.clone());
        } else {
            self.unknown("`trap` is given too many texts".to_owned());
        }
    }

    fn unset(&mut self, words: &[Field], who: &str, state: &mut State) {
        match who {
            "popd" => {
                // A `pushd` that failed has left nothing to take, so that it may be an earlier entry.
                let back = state.place.trail.iter().cloned().reduce(|one, other| one.or(&other));
                state.go(back.filter(|_| words.is_empty()).unwrap_or(Folders::ANY));
                Rc::make_mut(&mut state.place.trail).pop();
            }
            "let" => {
                for field in words {
                    self.calculated(field, state);
                    self.forget_assigned(&field.text, state);
                }
            }
            "unset" => self.forget(words, state),
            // These load code, tie it to keys, or run old commands again.
            _ => {
                let loads = words
                    .iter()
                    .any(|field| ["-f", "-p", "-C", "-F", "-x", "-s", "-e", "-n"].contains(&field.text.as_str()));
                let expands = |field: &Field| !field.is_known() || field.text.contains(['$', '`']);
                if who == "compgen" && words.iter().any(expands) {
                    self.unknown("`compgen` expands its words".to_owned());
                }
                if loads || (who == "enable" && !words.is_empty()) {
                    self.unknown(format!("`{who}` changes what is run later"));
                }
            }
        }
    }

    fn forget(&mut self, words: &[Field], state: &mut State) {
        for field in words.iter().filter(|field| !field.text.starts_with('-')) {
            if !field.is_known() || (field.certainty == crate::state::Certainty::Glob && !field.text.contains('[')) {
                self.unknown("what `unset` forgets cannot be known".to_owned());
            }
            self.indexed_name(field, state);
            if field.text.contains('[') {
                self.forget_list(field, state);
            }
            if field.text == "IFS" || field.text == "HOME" {
                Rc::make_mut(&mut state.variables).remove(&field.text);
            } else if state.variables.contains_key(&field.text) && state.variables.len() < bounds::VARIABLES {
                state.set(&field.text, Value::Text(Field::known("")));
            }
            let gone: Option<Meaning<_>> = Rc::make_mut(&mut state.functions).remove(&field.text);
            drop(gone);
        }
    }
}

/// The folder that the text itself put into the variable `name`.
fn told_by(state: &State, name: &str) -> Option<Field> {
    match state.variables.get(name)? {
        Value::Text(field) => Some(field.clone()),
        Value::List(_) | Value::Keyed | Value::Unknown => Some(Field::unknown(format!("${name}"))),
    }
}

/// `shopt -s dotglob` of bash, `setopt globdots` of zsh.
fn choose_globs(words: &[Field], who: &str, state: &mut State) {
    if !matches!(who, "shopt" | "setopt" | "unsetopt") {
        return;
    }
    let on = match who {
        "shopt" if words.iter().any(|field| field.text.starts_with('-') && field.text.contains('u')) => false,
        "shopt" => {
            let sets = |field: &Field| field.text.starts_with('-') && field.text.contains('s');
            words.iter().any(|field| sets(field) || !field.is_exact())
        }
        _ => who == "setopt",
    };
    for field in words {
        let name = if field.is_exact() { field.text.as_str() } else { "dotglob" };
        if field.is_exact() || on {
            state.scope.globs.choose(name, on);
        }
    }
}

/// The numbers of what the shell has started itself; they are not known, and nobody else's.
pub(crate) const OWN_JOBS: &str = "$(jobs)";

/// Whether the builtin `who` prints the numbers of its jobs alone.
fn own_jobs(words: &[Field], who: &str) -> bool {
    let options =
        |field: &Field| field.text.strip_prefix('-').is_some_and(|all| all.bytes().all(|own| b"prs".contains(&own)));
    who == "jobs" && words.iter().all(options) && words.iter().any(|field| field.text.contains('p'))
}

/// Whether the builtin `who` writes something, which may be what the text told it before.
fn prints(words: &[Field], who: &str) -> bool {
    match who {
        "alias" => words.is_empty() || words.iter().any(|field| !field.text.contains('=')),
        "set" | "umask" | "ulimit" => words.is_empty(),
        "trap" => words.is_empty() || words[0].text.starts_with("-p"),
        "cd" => words.iter().any(|field| field.text == "-" || !field.is_known()),
        "shopt" => !words.iter().any(|field| ["-s", "-u", "-q"].contains(&field.text.as_str())),
        "compgen" | "complete" | "bind" | "fc" | "dirs" | "jobs" | "pushd" | "popd" | "caller" => true,
        _ => false,
    }
}

/// The one of `files` that `read` gives: the hidden ones, if there are some, of which more is to be minded.
fn one_of(files: &[Field]) -> Value {
    match files {
        [only] => Value::Text(only.clone()),
        [shown, hidden] if hidden.text.strip_suffix(".*") == shown.text.strip_suffix('*') => {
            Value::Text(hidden.clone())
        }
        _ => Value::Unknown,
    }
}

/// `exit` with more than a number does not end every shell.
fn leave(words: &[Field], state: &mut State) {
    let plain = words.len() <= 1 && words.iter().all(|field| field.certainty != crate::state::Certainty::Many);
    state.flow = state.flow.max(if plain { Flow::Ended } else { Flow::Jumped });
}

fn shift(words: &[Field], state: &mut State) {
    let count = match words.first() {
        None => Some(1),
        Some(field) => field.text.parse::<usize>().ok(),
    };
    state.arguments = match (state.arguments.take(), count) {
        (Some(arguments), Some(count)) => Some(Rc::new(arguments.iter().skip(count).cloned().collect())),
        (_, _) => None,
    };
}
