//! Programs that run shell texts.

use std::rc::Rc;

use crate::paths;
use crate::read::Reading;
use crate::run::Run;
use crate::run::options::Arguments;
use crate::state::{Field, Output, State};
use crate::syntax::Dialect;

impl Reading<'_> {
    /// `sh`, `bash` and their kin.
    pub(super) fn shell(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let (arguments, end) = run.leading(&run.argv[1..]);
        let mut end = end;
        // `sh +x -c text` switches something off.
        let mut arguments = arguments;
        while run.argv.get(1 + end).is_some_and(|field| field.text.starts_with('+')) {
            // `+O name` takes a word.
            let named = run.argv[1 + end].text.ends_with(['o', 'O']) && run.argv.len() > 2 + end;
            end += usize::from(named);
            let (more, length) = run.leading(&run.argv[2 + end..]);
            arguments.options.extend(more.options);
            end += 1 + length;
        }
        let rest = &run.argv[1 + end..];
        if arguments.has(&["-l", "-i", "--login", "--interactive"])
            || matches!(run.name, "zsh" | "fish" | "csh" | "tcsh" | "elvish" | "nu" | "xonsh")
        {
            self.home_of_login(state);
        }
        if arguments.options.iter().any(|option| option.name == "--rcfile" || option.name == "--init-file") {
            self.unknown(format!("`{}` runs a file before it starts", run.name));
        }
        let unsure = |field: &Field| !field.is_known() && field.text.starts_with('$');
        if arguments.has(&["-c"]) {
            let Some(text) = rest.first() else { return Output::nothing() };
            let mut inner = state.another_shell();
            inner.failing.ends = arguments.has(&["-e"]);
            choose_globs(&arguments, run.name, &mut inner);
            return self.shell_text(text, &rest[1..], run, inner);
        }
        if arguments.has(&["-n", "--version", "--help"]) && !rest.iter().any(unsure) {
            rest.iter().for_each(|field| self.reads(field, state));
            return Output::Unknown;
        }
        let stdin = rest.is_empty() || arguments.has(&["-s"]) || rest[0].text == "-";
        if stdin || is_stdin(&rest[0].text) {
            return match self.run_stdin(run.name, state) {
                Some(text) => {
                    let mut inner = state.another_shell();
                    inner.failing.ends = arguments.has(&["-e"]);
                    choose_globs(&arguments, run.name, &mut inner);
                    self.text_in(&text, dialects(run.name), &inner)
                }
                None => Output::Unknown,
            };
        }
        self.script_file(&rest[0], run, state);
        Output::Unknown
    }

    /// Shells that somebody logs in to, and some others, run files of the home folder, which the text may have moved.
    pub(super) fn home_of_login(&mut self, state: &State) {
        if ["HOME", "XDG_CONFIG_HOME", "ZDOTDIR"].iter().any(|name| state.variables.contains_key(*name)) {
            self.unknown("a shell runs the files of a home folder that the text chose".to_owned());
        }
    }

    fn shell_text(&mut self, text: &Field, arguments: &[Field], run: &Run<'_>, mut inner: State) -> Output {
        if !text.is_known() {
            let why = format!("`{}`, which `{} -c` runs, cannot be known", text.text, run.name);
            if text.text.contains("$(") {
                self.pipes(why)
            } else {
                self.unknown(why)
            }
            return Output::Unknown;
        }
        inner.arguments = Some(Rc::new(arguments.iter().skip(1).cloned().collect()));
        inner.aliases = Rc::default();
        self.text_in(&text.text, dialects(run.name), &inner)
    }

    /// Runs the script `file` with the program of `run`.
    pub(super) fn script_file(&mut self, file: &Field, run: &Run<'_>, state: &State) {
        if !file.is_known() {
            self.unknown(format!("`{}`, which `{}` runs, cannot be known", file.text, run.name));
            return;
        }
        match self.content(file, state) {
            Some(content) => {
                self.reads(file, state);
                self.run_content(content, file, state);
            }
            None => self.script_outside(file, run.name, state),
        }
    }
}

/// `bash -O dotglob`, `zsh -o globdots`, `zsh -4`.
fn choose_globs(arguments: &Arguments, who: &str, state: &mut State) {
    for option in &arguments.options {
        match (&option.value, option.name.as_str()) {
            (Some(value), "-O" | "-o") => {
                let name = if value.is_exact() { value.text.as_str() } else { "dotglob" };
                state.scope.globs.choose(name, true);
            }
            (None, "-4") if who == "zsh" => state.scope.globs.hidden = true,
            (None, name) => state.scope.globs.choose(name.trim_start_matches('-'), true),
            (Some(_), _) => {}
        }
    }
}

/// How the shell `name` may read; a name such as `sh` stands for one shell here and for another there.
fn dialects(name: &str) -> &'static [Dialect] {
    match name {
        "bash" | "rbash" => &[Dialect::Bash],
        "dash" => Dialect::DASH,
        "sh" => Dialect::SH,
        _ => Dialect::ALL,
    }
}

/// Whether `path` is the standard input under another name.
pub(super) fn is_stdin(path: &str) -> bool {
    matches!(path, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
        || paths::base_name(path) == "stdin" && path.starts_with("/dev")
}
