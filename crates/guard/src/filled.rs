//! Which commands put nothing into a folder that they name but what the facts tell of them.

use domain::shell::{ShellCommand, ShellFacts};

/// Programs that copy files alone, unless an option says otherwise.
const OF_FILES: [&str; 2] = ["cp", "install"];

/// Programs that fill no folder which they name, and those around another command, which is looked at by itself.
const HARMLESS: [&str; 29] = [
    "mkdir", "touch", "cd", "pushd", "ls", "tree", "du", "stat", "test", "[", "pwd", "echo", "printf", "cat", "head",
    "tail", "wc", "grep", "rg", "find", "jq", "diff", "env", "time", "timeout", "nohup", "nice", "command", "sudo",
];

/// Commands of git that change no file of the folder.
const GIT_LOOKS: [&str; 9] = ["add", "status", "diff", "log", "show", "commit", "ls-files", "check-ignore", "grep"];

/// Whether `command`, of whose text `facts` tell, is sure to put nothing into a folder that it names or stands in, but for
/// what they say that it writes.
pub(crate) fn is_harmless(command: &ShellCommand, facts: &ShellFacts) -> bool {
    let name = command.name.as_str();
    match name {
        "git" => git_verb(command).is_some_and(|verb| GIT_LOOKS.contains(&verb)),
        // Of a file whose name is not known nobody can tell where it would lie.
        _ if OF_FILES.contains(&name) => copies_files(command) && !facts.unknown,
        _ => HARMLESS.contains(&name),
    }
}

/// Whether `command`, which copies, copies files and no folder, each under its own name alone.
fn copies_files(command: &ShellCommand) -> bool {
    let is_deep = |word: &String| match word.strip_prefix("--") {
        Some(long) => ["rec", "ar", "pa"].iter().any(|deep| long.starts_with(deep)),
        None => word.starts_with('-') && word.contains(['r', 'R', 'a']),
    };
    !command.argv.iter().skip(1).any(is_deep)
}

/// The command of git.
fn git_verb(command: &ShellCommand) -> Option<&str> {
    let mut at = 1;
    loop {
        match command.argv.get(at)?.as_str() {
            "-C" | "-c" | "--git-dir" | "--work-tree" => at += 2,
            option if option.starts_with('-') => at += 1,
            verb => return Some(verb),
        }
    }
}

/// The words of `command` that may name a folder, without the option that they stand behind.
pub(crate) fn named(command: &ShellCommand) -> impl Iterator<Item = &str> {
    command.argv.iter().skip(1).filter_map(|word| match word.strip_prefix('-') {
        None => Some(word.as_str()),
        Some(long) if long.starts_with('-') => word.split_once('=').map(|(_, value)| value),
        Some(_) => word.get(2..).filter(|value| !value.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> ShellCommand {
        let argv: Vec<String> = text.split(' ').map(str::to_owned).collect();
        ShellCommand { name: argv[0].clone(), argv, ..ShellCommand::default() }
    }

    #[test]
    fn only_what_is_known_fills_no_folder() {
        for (text, harmless) in [
            ("mkdir -p .claude", true),
            ("cp a.md .claude/", true),
            ("cp -r a .claude", false),
            ("cp --archive a .claude", false),
            ("mv a .claude", false),
            ("git add .claude", true),
            ("git clone u .claude", false),
            ("rsync -a a/ .claude/", false),
            ("cp --ar a .claude", false),
        ] {
            assert_eq!(is_harmless(&command(text), &ShellFacts::default()), harmless, "{text}");
        }
        let unknown = ShellFacts { unknown: true, ..ShellFacts::default() };
        assert!(!is_harmless(&command("cp $x .claude/"), &unknown) && is_harmless(&command("ls .claude"), &unknown));
    }
}
