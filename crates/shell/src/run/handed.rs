//! Programs of which one word says that the words behind it are a command.

use crate::read::Reading;
use crate::run::Run;
use crate::state::{Field, Folders, State};

/// What `cmake -E` does itself, and the program that does the same.
const OF_CMAKE: &[(&str, &str)] = &[
    ("copy", "cp"),
    ("copy_if_different", "cp"),
    ("copy_directory", "cp"),
    ("create_hardlink", "ln"),
    ("remove", "rm"),
    ("remove_directory", "rm"),
    ("rename", "mv"),
    ("rm", "rm"),
    ("tar", "tar"),
    ("touch", "touch"),
];

impl Reading<'_> {
    /// Reads the command that stands among the words of `run`, if this is such a program.
    pub(super) fn handed(&mut self, run: &Run<'_>, state: &State) {
        let words = &run.argv[1..];
        let behind = |word: &str| words.iter().position(|field| field.text == word).map(|at| &words[at + 1..]);
        match run.name {
            "cmake" => self.handed_by_cmake(behind("-E").unwrap_or_default(), state),
            "just" => self.handed_on(behind("--command").or_else(|| behind("-c")).unwrap_or_default(), state),
            "podman" => self.handed_on(behind("unshare").unwrap_or_default(), state),
            "cargo" if words.iter().any(|field| field.text == "watch") => {
                let texts = super::option_values(words, "-s --shell");
                texts.iter().for_each(|text| {
                    self.inner_text(text, run.name, state);
                });
            }
            _ => {}
        }
    }

    fn handed_on(&mut self, words: &[Field], state: &State) {
        let options = words.iter().take_while(|field| field.text.starts_with('-')).count();
        if words.len() > options {
            self.inner(&words[options..], state);
        }
    }

    fn handed_by_cmake(&mut self, words: &[Field], state: &State) {
        let Some((verb, rest)) = words.split_first() else { return };
        match (verb.text.as_str(), rest) {
            ("chdir", [folder, rest @ ..]) => {
                let mut there = state.clone();
                there.place.cwd = if folder.is_known() { state.place.cwd.below(&folder.text) } else { Folders::ANY };
                self.handed_on(rest, &there);
            }
            ("env", rest) => {
                let sets = rest.iter().take_while(|field| field.text.starts_with('-') || field.text.contains('='));
                self.handed_on(&rest[sets.count()..], state);
            }
            ("time", rest) => self.handed_on(rest, state),
            (verb, rest) => {
                if let Some((_, program)) = OF_CMAKE.iter().find(|(own, _)| *own == verb) {
                    let argv: Vec<Field> =
                        std::iter::once(Field::known(*program)).chain(rest.iter().cloned()).collect();
                    self.inner(&argv, state);
                }
            }
        }
    }
}
