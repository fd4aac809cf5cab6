//! `docker`, `kubectl` and their kin: the command begins behind a name.

use crate::paths;
use crate::programs;
use crate::read::{List, Reading};
use crate::run::Run;
use crate::state::{Certainty, Field, Output, State, Stdin};

/// What runs a command in a container or on a machine.
const VERBS: &[&str] = &["exec", "run", "shell", "debug", "ssh", "create", "rsh", "alloc"];

/// What ends or removes things by their names.
const ENDING: &[&str] = &["kill", "stop", "rm", "rmi", "restart", "delete", "pause", "prune"];

impl Reading<'_> {
    pub(super) fn container(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let words = &run.argv[1..];
        let bare = matches!(run.name, "wsl" | "flatpak-spawn" | "toolbox" | "distrobox");
        let verb = words.iter().position(|field| VERBS.contains(&field.text.as_str()));
        let ends = words.iter().take(2).any(|field| ENDING.contains(&field.text.as_str()));
        let unsure = words.iter().any(|field| field.certainty == Certainty::Many || (ends && !field.is_known()));
        if unsure && (verb.is_some() || bare || ends) {
            self.unknown(format!("the arguments of `{}` cannot be known", run.name));
        }
        self.mounted(words, run.name, state);
        self.given(words, state);
        let Some(start) = verb.map(|verb| verb + 1).or(bare.then_some(0)) else { return Output::Unknown };
        let words = &words[start..];
        let (arguments, end) = run.leading(words);
        if let Some(entry) = arguments.value(&["--entrypoint"]) {
            let mut argv = vec![entry.clone()];
            argv.extend_from_slice(words.get(end + 1..).unwrap_or_default());
            self.inner(&argv, state);
        }
        if let Some(text) =
            words.windows(2).find(|pair| run.name == "vagrant" && (pair[0].text == "-c" || pair[0].text == "--command"))
        {
            self.inner_text(&text[1], run.name, state);
        }
        // Behind the name of the container, unless there is none.
        let mut rest = if bare { &words[end..] } else { words.get(end + 1..).unwrap_or_default() };
        if let Some(dashes) = words.iter().position(|field| field.text == "--") {
            rest = &words[dashes + 1..];
        } else if run.name != "docker" {
            let (_, more) = run.leading(rest);
            rest = &rest[more..];
        }
        if rest.is_empty() {
            self.started_shell(run, state);
        } else {
            self.inner(rest, state);
        }
        // An option that is not in the table may have hidden where the command begins.
        let grave = words.iter().position(|field| programs::is_grave(paths::base_name(&field.text)));
        if let Some(at) = grave.filter(|at| words.len() - at > rest.len()) {
            self.inner(&words[at..], state);
        }
        Output::Unknown
    }

    /// Files and variables of this machine that a container or its building is given.
    fn given(&mut self, words: &[Field], state: &State) {
        for (index, field) in words.iter().enumerate() {
            let (name, value) = match field.text.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value)),
                Some(_) | None => (field.text.as_str(), words.get(index + 1).map(|next| next.text.as_str())),
            };
            let Some(value) = value else { continue };
            let pair = |part: &str| part.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
            match name {
                "--secret" => {
                    for (_, path) in
                        value.split(',').filter_map(pair).filter(|(key, _)| key == "src" || key == "source")
                    {
                        self.reads(&Field { text: path, certainty: field.certainty }, state);
                    }
                }
                "--build-arg" | "-e" | "--env" => {
                    if let Some((key, value)) = pair(value)
                        && matches!(programs::influence(&key), programs::Influence::Proxy)
                    {
                        self.host(&value);
                    }
                }
                _ => {}
            }
        }
        // `cp` takes files from here into a container, or out of one.
        if let Some(at) = words.iter().take(2).position(|field| field.text == "cp")
            && let Some(source) = words[at + 1..].iter().find(|field| !field.text.starts_with('-'))
            && !source.text.split('/').next().is_some_and(|first| first.contains(':'))
        {
            self.reads(source, state);
        }
    }

    /// A container without a command may be a shell that reads what comes in.
    fn started_shell(&mut self, run: &Run<'_>, state: &State) {
        let reads = run.argv.iter().any(|field| {
            field.text == "--interactive"
                || (field.text.starts_with('-') && !field.text.starts_with("--") && field.text.contains('i'))
        });
        if reads && state.stdin != Stdin::Inherited {
            self.unknown(format!("what `{}` is given to run cannot be known", run.name));
        }
    }

    /// Folders of this machine that a container can write.
    fn mounted(&mut self, words: &[Field], who: &str, state: &State) {
        for (index, field) in words.iter().enumerate() {
            let next = words.get(index + 1);
            let value = match field.text.as_str() {
                "-v" | "--volume" | "--mount" => next.map(|next| next.text.as_str()),
                text => text.strip_prefix("--volume=").or_else(|| text.strip_prefix("--mount=")),
            };
            let Some(value) = value else { continue };
            let source =
                value.split(',').find_map(|part| part.strip_prefix("src=").or_else(|| part.strip_prefix("source=")));
            let source = source.unwrap_or_else(|| value.split(':').next().unwrap_or_default());
            if !source.starts_with(['/', '.', '~']) {
                continue;
            }
            let read_only = value.ends_with(":ro") || value.contains("readonly");
            for path in state.place.cwd.resolve(source) {
                if read_only || self.is_inside(&path) {
                    self.note(List::Reads, &path);
                } else {
                    self.touches(&Field::known(path), who, state);
                }
            }
        }
    }
}
