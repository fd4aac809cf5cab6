//! Programs whose arguments may be a command, or a text that holds one.

use crate::programs;
use crate::read::Reading;
use crate::run::Run;
use crate::run::options::{begun, bundled};
use crate::state::{Certainty, Field, Output, State, Stdin};

/// Options that are followed by a shell text or a command.
const TEXT_OPTIONS: &[&str] = &[
    "-c",
    "--command",
    "--run",
    "--run-command",
    "-e",
    "--exec",
    "--eval",
    "-x",
    "--prepare",
    "--cleanup",
    "--setup",
    "--preview",
    "--pager",
    "--bind",
    "-a",
    "--args",
];

impl Reading<'_> {
    /// Programs whose arguments may be a command or a text with one: `watch`, `tmux`, `uv run`.
    pub(super) fn runs_text(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let words = &run.argv[1..];
        if run.name == "tmux" && only_names(words) {
            return Output::Unknown;
        }
        if ["Procfile", ".envrc", "nodemon.json", "Tiltfile"].iter().any(|name| self.has_made(name)) {
            self.unknown(format!("`{}` runs what the text has just written", run.name));
        }
        self.runs_made(words, run, state);
        if matches!(run.name, "uv" | "uvx" | "poetry" | "pipenv" | "hatch" | "pdm" | "rye") {
            self.loads_made(programs::Language::Python, run, state);
        }
        if matches!(run.name, "script" | "screen" | "tmux") && state.stdin != Stdin::Inherited {
            self.shell_of(run, state);
        }
        for (index, field) in words.iter().enumerate() {
            let text = field.text.as_str();
            let attached = attached(run, text);
            let before = TEXT_OPTIONS.contains(&text) || attached == Some("");
            if let Some(next) = words.get(index + 1).filter(|_| before) {
                let whole = next.text.contains(char::is_whitespace) || !next.is_known() || index + 2 == words.len();
                if whole {
                    self.inner_text(next, run.name, state)
                } else {
                    self.inner(&words[index + 1..], state)
                };
            }
            if let Some(value) = attached.filter(|value| !value.is_empty()) {
                self.inner_text(&Field { text: value.to_owned(), certainty: field.certainty }, run.name, state);
            }
            // A word with a blank in it is a command line here.
            let taken = index > 0
                && (TEXT_OPTIONS.contains(&words[index - 1].text.as_str())
                    || attached_before(run, &words[index - 1].text));
            if !text.starts_with('-') && text.contains(char::is_whitespace) && !taken {
                self.inner_text(field, run.name, state);
            }
            if field.certainty >= Certainty::Unknown && !text.starts_with('-') {
                self.unknown(format!("what `{}` runs cannot be known", run.name));
            }
        }
        if run.name == "script"
            && let Some(file) = words.iter().rfind(|field| field.text.starts_with(['/', '.', '~']))
        {
            self.touches(file, run.name, state);
        }
        // `direnv exec FOLDER CMD`.
        let first = if run.name == "direnv" { 2.min(words.len()) } else { 0 };
        self.first_program(&words[first..], run, state);
        Output::Unknown
    }

    /// Words that name a file of the text's own making, or a program behind an option that may take no value.
    fn runs_made(&mut self, words: &[Field], run: &Run<'_>, state: &State) {
        if run.name == "run-parts" {
            for folder in words.iter().filter(|field| !field.text.starts_with('-')) {
                let all = Field { text: format!("{}/*", folder.text), certainty: Certainty::Glob };
                match self.content(&all, state) {
                    Some(content) => drop(self.run_content(content, &all, state)),
                    None => self.script_outside(&all, run.name, state),
                }
            }
            return;
        }
        for (index, field) in words.iter().enumerate() {
            let follows = index > 0 && words[index - 1].text.starts_with('-');
            let grave = follows && field.is_exact() && programs::is_grave(&field.text) && words.len() > index + 1;
            if grave || (field.is_exact() && self.content(field, state).is_some()) {
                self.inner(&words[index..], state);
            }
        }
    }

    /// Runs what begins with the first word that is a program.
    fn first_program(&mut self, words: &[Field], run: &Run<'_>, state: &State) {
        let mut at = 0;
        loop {
            at += run.leading(&words[at..]).1;
            let Some(word) = words.get(at) else { return };
            let folder = word.text.rsplit_once('/').map(|(folder, _)| folder);
            let usual = folder
                .is_none_or(|folder| ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"].contains(&folder));
            let name = crate::paths::base_name(&word.text);
            if usual && (programs::find(name).is_some() || programs::is_grave(name)) {
                self.inner(&words[at..], state);
                return;
            }
            at += 1;
        }
    }
}

/// The short options of the program `name` that are followed by a text or a command, and those that take another value.
fn letters(name: &str) -> (&'static str, &'static str) {
    match name {
        "script" => ("c", "EIOTBmot"),
        "tmux" => ("c", "LSfT"),
        "sg" => ("c", ""),
        "hyperfine" => ("pscC", "wmMrLSNnuiI"),
        "ansible" => ("a", "imeufltBPcTM"),
        "gnome-terminal" | "xterm" | "konsole" | "alacritty" | "x-terminal-emulator" => ("ex", ""),
        _ => ("cex", "ndEwtsSLquCrmMp"),
    }
}

/// The text in the word `text`, behind a short option or a `=`; empty where the next word is the text.
fn attached<'t>(run: &Run<'_>, text: &'t str) -> Option<&'t str> {
    if text.starts_with("--") {
        return begun(text, TEXT_OPTIONS).filter(|value| text.contains('=') != value.is_empty());
    }
    let (letters, valued) = letters(run.name);
    let value = bundled(text, letters, valued)?;
    let value = value.strip_prefix('=').unwrap_or(value);
    // Other letters may stand behind, and other values.
    let program = programs::find(crate::paths::base_name(value)).is_some();
    let command = program || value.contains(|letter: char| letter.is_whitespace() || "$;|&<>`(/".contains(letter));
    (value.is_empty() || command).then_some(value)
}

fn attached_before(run: &Run<'_>, text: &str) -> bool {
    attached(run, text) == Some("")
}

/// Whether `tmux` is only told to name, to choose or to list what it has. Its texts run something where `#(` stands in
/// them, and after a `;`.
fn only_names(words: &[Field]) -> bool {
    const NAMING: &[&str] = &[
        "rename-window",
        "renamew",
        "rename-session",
        "rename",
        "select-window",
        "selectw",
        "select-pane",
        "selectp",
        "select-layout",
        "selectl",
        "list-windows",
        "lsw",
        "list-sessions",
        "ls",
        "list-panes",
        "lsp",
        "has-session",
        "has",
        "switch-client",
        "switchc",
        "last-window",
        "next-window",
        "previous-window",
        "resize-pane",
        "resizep",
        "swap-window",
        "swapw",
        "move-window",
        "movew",
        "capture-pane",
        "capturep",
        "show-options",
        "show",
    ];
    words.first().is_some_and(|first| first.is_exact() && NAMING.contains(&first.text.as_str()))
        && words.iter().all(|field| field.is_known() && !field.text.contains("#(") && !field.text.ends_with(';'))
}
