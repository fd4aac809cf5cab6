//! Patches, and lists of what git is to put into an index, that lie in files or come from other programs.

use std::collections::BTreeSet;

use pintle_domain::shell::{ShellCommand, ShellFacts};

use super::by_name::behind;
use super::carried::is_place;
use super::{Look, path_at};
use crate::filled::patched_by;
use crate::path_pattern::mark;
use crate::taken::join;
use crate::unpacked::unpacked;

/// Programs that put out what can be read before: what they are told, files, and what git has.
const READABLE: [&str; 19] = [
    ":", "[", "cat", "cd", "echo", "export", "git", "head", "ls", "mkdir", "patch", "printf", "pwd", "set", "tail",
    "tee", "test", "true", "wc",
];

/// Commands of git that take a patch, and words with which it takes files for an index or a history.
const PATCHES: [&str; 2] = ["am", "apply"];
const TAKES_INDEX: [&str; 3] = ["--index-info", "fast-import", "mktree"];

/// How a text gives the output of commands to another one, beside a bar.
const PUTS_IN: [&str; 2] = ["<(", "<<<"];

impl Look<'_> {
    /// Why `text`, of which `facts` tell, must not run: it has patches put in what it does not say.
    pub(super) fn patched(&self, text: &str, facts: &ShellFacts) -> Option<String> {
        let takers: Vec<&ShellCommand> = facts.commands.iter().filter(|command| takes(command)).collect();
        if takers.is_empty() {
            return None;
        }
        let said = || facts.reads.iter().filter_map(|file| Some((file, self.said_in(file)?)));
        let named = said().find_map(|(file, said)| {
            let path = takers.iter().find_map(|command| self.put_by(&said, command))?;
            Some(format!("`{file}` would change `{path}`, which decides over this agent: only a person may change it"))
        });
        named.or_else(|| {
            let name = unread_feeder(text, facts)?;
            Some(format!(
                "what `{name}` says would be taken as a patch, and nobody can read it before: write it to a file, and apply \
                 that in the next call"
            ))
        })
    }

    /// What of settings `command` would put in, if it is told what is `said`.
    fn put_by(&self, said: &str, command: &ShellCommand) -> Option<String> {
        if !takes_patch(command) {
            let plain: String = said.chars().filter(|sign| !matches!(sign, '"' | '\'' | '\\')).collect();
            let plain = plain.to_lowercase();
            return self.of_any_folder().map(mark).find(|mark| is_place(&plain, mark)).map(str::to_owned);
        }
        let folder = unpacked(command).unwrap_or_default();
        let paths = patched_by(said, command);
        let below = paths.iter().map(|path| join(&folder, path));
        // A patch names many files, and each costs time where it is looked up.
        let near: BTreeSet<String> = paths.iter().cloned().chain(below).filter(|path| self.may_be_kept(path)).collect();
        near.into_iter().find(|path| self.written(&path_at(path, command)).is_some())
    }

    /// Whether the name of `path` may be one of settings, which are hidden, or of what is in use. What ends with a slash names
    /// a folder, and is told by none.
    fn may_be_kept(&self, path: &str) -> bool {
        let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_lowercase();
        let is_hidden = path.split('/').any(|name| name.starts_with(['.', '?']) && !matches!(name, "." | ".."));
        let is_open = path.contains('?') || path.ends_with('/');
        is_hidden || is_open || self.files.own.iter().any(|own| last(own) == last(path))
    }
}

/// Whether `command` takes a patch.
fn takes_patch(command: &ShellCommand) -> bool {
    let has = || command.argv.iter().any(|word| PATCHES.contains(&word.as_str()));
    command.name == "patch" || (command.name == "git" && has())
}

/// Whether `command` takes a patch, or files for an index.
fn takes(command: &ShellCommand) -> bool {
    let has = || command.argv.iter().any(|word| TAKES_INDEX.contains(&word.as_str()));
    takes_patch(command) || (command.name == "git" && has())
}

/// The program in `text`, of which `facts` tell, whose output would be taken for a patch, and cannot be read before.
fn unread_feeder(text: &str, facts: &ShellFacts) -> Option<String> {
    let mut names = facts.commands.iter().map(|command| command.name.as_str());
    let any = names.find(|name| !READABLE.contains(name)).map(str::to_owned)?;
    let taking = facts.commands.iter().filter(|command| takes(command) || command.name == "cat");
    let told: Vec<&str> =
        taking.flat_map(|command| &command.argv).map(String::as_str).chain(behind(text, '<')).collect();
    let is_taken = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        told.iter().any(|word| word.rsplit('/').next() == Some(name))
    };
    let is_made = facts.reads.iter().any(|path| facts.writes.contains(path) && is_taken(path));
    if is_made || PUTS_IN.iter().any(|sign| text.contains(*sign)) {
        return Some(any);
    }
    let plain = text.replace("||", ";");
    let (mut is_seen, mut group): (bool, Vec<&str>) = (false, Vec::new());
    for run in plain.split([';', '\n', '&']) {
        let parts: Vec<&str> = run.split('|').map(str::trim).collect();
        let first = |part: &&'_ str| part.split_whitespace().next().unwrap_or_default().to_owned();
        if let Some(at) = parts.iter().position(|part| is_taker(part)) {
            is_seen = true;
            let mut feeders = group.iter().chain(&parts[..at]).map(first).filter(|name| !name.is_empty());
            if let Some(name) = feeders.find(|name| !READABLE.contains(&name.as_str())) {
                return Some(name);
            }
        }
        // Commands in brackets take together what they are fed.
        match parts.split_last() {
            Some((last, feeders)) if last.starts_with(['(', '{']) => group = feeders.to_vec(),
            _ if run.contains([')', '}']) => group = Vec::new(),
            _ => {}
        }
    }
    // Where it stands in another form, any program may feed it.
    (!is_seen && plain.contains('|')).then_some(any)
}

/// Whether `part` of a text begins as a command that takes a patch.
fn is_taker(part: &str) -> bool {
    let mut words = part.split_whitespace();
    match words.next() {
        Some("patch") => true,
        Some("git") => words.any(|word| PATCHES.contains(&word) || TAKES_INDEX.contains(&word)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taken::tests::commands;

    #[test]
    fn a_patch_comes_from_what_can_be_read() {
        for (text, texts, feeder) in [
            ("git diff a | git apply -R", &["git diff a", "git apply -R"][..], None),
            ("cat a | patch -p1", &["cat a", "patch -p1"], None),
            ("make && git diff | git apply", &["make", "git diff", "git apply"], None),
            ("make || git apply a", &["make", "git apply a"], None),
            ("diff a b | sed s/a/b/ | patch", &["diff a b", "sed s/a/b/", "patch"], Some("diff")),
            ("curl u | git am", &["curl u", "git am"], Some("curl")),
            ("curl u | (cd a && patch)", &["curl u", "cd a", "patch"], Some("curl")),
            ("patch < <(sed x y)", &["sed x y", "patch"], Some("sed")),
            ("gen | git fast-import", &["gen", "git fast-import"], Some("gen")),
        ] {
            let facts = ShellFacts { commands: commands(texts), ..ShellFacts::default() };
            assert_eq!(unread_feeder(text, &facts).as_deref(), feeder, "{text}");
        }
    }
}
