//! Which patterns of a shell text the shell itself expands: those stand for no hidden name.

use std::borrow::Cow;

use pintle_domain::shell::{ShellCommand, ShellFacts};

use crate::path_pattern::{VISIBLE, visible};

/// Programs that take the names they are given as they are: a pattern among their words was the shell's.
const TAKES_NAMES: [&str; 22] = [
    "rm", "rmdir", "unlink", "shred", "mv", "cp", "ln", "install", "touch", "truncate", "mkdir", "tee", "sed", "chmod",
    "chown", "chgrp", "chattr", "setfacl", "ls", "cat", "head", "tail",
];

/// Programs that take no names of files, or none by which they change anything.
const CHANGES_NONE: [&str; 9] = ["cd", "pushd", "echo", "printf", "test", "[", "grep", "egrep", "fgrep"];

/// `path`, of which `facts` tell, as a pattern that stands for no hidden name where a shell is sure to have expanded its
/// last one. Where an option lets a pattern stand for hidden names too, the facts tell of those by themselves.
pub(crate) fn expanded<'p>(path: &'p str, facts: &ShellFacts) -> Cow<'p, str> {
    let Some((folder, last)) = path.rsplit_once('/') else { return path.into() };
    let is_pattern = last.starts_with(['*', '?', '[']) && !last.starts_with(VISIBLE);
    // What a search finds is written `folder/**/name`, and may be hidden.
    if facts.unknown || !is_pattern || folder.contains(['*', '?', '[', '$', '{']) || last.contains(['$', '{', '(']) {
        return path.into();
    }
    let says = |command: &&ShellCommand| command.argv.iter().any(|word| word.rsplit('/').next() == Some(last));
    let mut said = facts.commands.iter().filter(says).peekable();
    let is_of_shell = said.peek().is_some() && said.all(|command| TAKES_NAMES.contains(&command.name.as_str()));
    if is_of_shell { format!("{folder}/{}", visible(last)).into() } else { path.into() }
}

/// Whether a shell is sure to have expanded every pattern of the text of which `facts` tell.
pub(crate) fn takes_names(facts: &ShellFacts) -> bool {
    facts.commands.iter().all(|command| command.name == "cd" || TAKES_NAMES.contains(&command.name.as_str()))
}

/// Whether no program among `commands` expands a pattern itself by which it changes files.
pub(crate) fn leaves_patterns(commands: &[ShellCommand]) -> bool {
    let is_said = |command: &&ShellCommand| command.argv.iter().any(|word| word.contains(['*', '?', '[']));
    let leaves = |name: &str| TAKES_NAMES.contains(&name) || CHANGES_NONE.contains(&name);
    commands.iter().filter(is_said).all(|command| leaves(command.name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(texts: &[&str]) -> ShellFacts {
        let command = |text: &&str| {
            let argv: Vec<String> = text.split(' ').map(str::to_owned).collect();
            ShellCommand { name: argv[0].clone(), argv, ..ShellCommand::default() }
        };
        ShellFacts { commands: texts.iter().map(command).collect(), ..ShellFacts::default() }
    }

    #[test]
    fn only_what_a_shell_expands_leaves_hidden_names_out() {
        for (texts, path, expected) in [
            (&["rm -rf dist/*"][..], "/w/dist/*", "/w/dist/[^.]*"),
            (&["rm *"], "/w/*", "/w/[^.]*"),
            (&["rm [ab]*"], "/w/[ab]*", "/w/[^.]*"),
            (&["rm ?a"], "/w/?a", "/w/[^.]a"),
            (&["rm *a"], "/w/*a", "/w/[^.]*a"),
            (&["rm .*"], "/w/.*", "/w/.*"),
            (&["rm a*"], "/w/a*", "/w/a*"),
            (&["git rm *"], "/w/*", "/w/*"),
            (&["rm *", "git checkout *"], "/w/*", "/w/*"),
            (&["find . -delete"], "/w/**/*", "/w/**/*"),
            (&["rm x"], "/w/*", "/w/*"),
        ] {
            assert_eq!(expanded(path, &facts(texts)), expected, "{texts:?}");
        }
        let unknown = ShellFacts { unknown: true, ..facts(&["rm *"]) };
        assert_eq!(expanded("/w/*", &unknown), "/w/*");
    }
}
