//! Arguments that git runs.

use crate::read::Reading;
use crate::run::options::{begun, bundled};
use crate::run::wrappers::joined;
use crate::state::{Field, State};

/// Options of a command whose value git runs.
struct Running {
    long: &'static [&'static str],
    /// A short one.
    short: &'static str,
    /// The short ones that take what stands behind them as their value.
    valued: &'static str,
}

/// The options of `command` that name something to run.
fn running(command: &str) -> Option<Running> {
    let (long, short, valued): (&[&str], _, _) = match command {
        "rebase" => (&["--exec"], "x", "sXC"),
        "clone" => (&["--upload-pack"], "u", "bocj"),
        "fetch" | "pull" | "ls-remote" | "push" | "archive" => (&["--upload-pack", "--receive-pack", "--exec"], "", ""),
        "grep" => (&["--open-files-in-pager"], "O", "efABCm"),
        _ => return None,
    };
    Some(Running { long, short, valued })
}

/// Options of commands that hand mails, passwords and differences to programs of somebody's choice.
const ODD: &[&str] = &[
    "-x",
    "--ext",
    "--tool-c",
    "--bro",
    "--to-c",
    "--cc-c",
    "--heade",
    "--sendm",
    "--smtp-server",
    "--access-h",
    "fill",
];

impl Reading<'_> {
    /// Reads what `git` runs for its `command` with the arguments `words`.
    pub(super) fn git_carries(&mut self, command: &str, words: &[Field], state: &State) {
        let first = words.first().map(|field| field.text.as_str());
        match (command, first) {
            ("bisect", Some("run")) => {
                self.inner(&words[1..], state);
            }
            ("submodule", _) => {
                if let Some(at) = words.iter().position(|field| field.text == "foreach") {
                    let rest: Vec<Field> = words[at + 1..]
                        .iter()
                        .filter(|field| field.text != "--recursive" && field.text != "--quiet")
                        .cloned()
                        .collect();
                    self.inner_text(&joined(&rest), "git", state);
                }
            }
            ("filter-branch", _) => {
                for pair in words.windows(2).filter(|pair| pair[0].text.ends_with("-filter")) {
                    self.inner_text(&pair[1], "git", state);
                }
            }
            // It starts a server, and a browser, whose programs its options and settings name.
            ("instaweb", _) => self.unknown("what `git instaweb` starts cannot be known".to_owned()),
            ("svn", _) if words.iter().any(|field| begun(&field.text, &["--authors-prog"]).is_some()) => {
                self.unknown("`git svn` runs what it is given".to_owned());
            }
            ("daemon" | "difftool" | "mergetool" | "send-email" | "credential", Some(_)) => {
                let bundle = |text: &str| command == "difftool" && bundled(text, "x", "t").is_some();
                if words.iter().any(|field| ODD.iter().any(|odd| field.text.starts_with(odd)) || bundle(&field.text)) {
                    self.unknown(format!("`git {command}` runs what it is given"));
                }
            }
            (_, _) => {}
        }
        let Some(options) = running(command) else { return };
        for (index, field) in words.iter().enumerate() {
            let value = bundled(&field.text, options.short, options.valued).or(begun(&field.text, options.long));
            let text = match value {
                // What `git grep -O` runs stands in the same word.
                Some("") if command != "grep" => words.get(index + 1).cloned(),
                Some(text) => Some(Field { text: text.to_owned(), certainty: field.certainty }),
                None => None,
            };
            if let Some(text) = text.filter(|text| !text.text.is_empty()) {
                self.inner_text(&text, "git", state);
            }
        }
    }
}
