//! Which commands put nothing into a folder that they name but what the facts tell of them, and which give files second
//! names.

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

/// The words of `command` that may be files to which it gives a second name that is no link.
pub(crate) fn twice(command: &ShellCommand) -> impl Iterator<Item = &str> {
    let words = command.argv.get(1..).unwrap_or_default();
    let flags = flags(words);
    let has = |short: char, long: &str| {
        flags.iter().any(|flag| match flag.strip_prefix("--") {
            Some(name) => long.starts_with(name),
            None => flag.contains(short),
        })
    };
    let is_naming = match command.name.as_str() {
        "ln" => !has('s', "symbolic"),
        "cp" => has('l', "link"),
        "link" => true,
        _ => false,
    };
    let operands: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| is_naming && !word.starts_with('-')).collect();
    // The last one is the new name, unless an option may say where that is.
    let is_said = words.iter().any(|word| word.starts_with('-') && word.contains('t'));
    let sources = if is_said { operands.len() } else { operands.len().saturating_sub(1).max(1) };
    operands.into_iter().take(sources)
}

/// The options among `words` of a program that copies, without their values: the letters of one word, or a long name.
fn flags(words: &[String]) -> Vec<&str> {
    let mut flags = Vec::new();
    let mut words = words.iter().map(String::as_str).take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        let is_valued = if let Some(long) = word.strip_prefix("--") {
            flags.push(word);
            ["suffix", "target-directory"].iter().any(|valued| valued.starts_with(long))
        } else if word.starts_with('-') {
            let letters = word.split(['S', 't']).next().unwrap_or_default();
            flags.push(letters);
            word.len() == letters.len() + 1
        } else {
            false
        };
        if is_valued {
            words.next();
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> ShellCommand {
        let argv: Vec<String> = text.split(' ').map(str::to_owned).collect();
        ShellCommand { name: argv[0].clone(), argv, ..ShellCommand::default() }
    }

    #[test]
    fn second_names_are_those_that_are_no_links() {
        for (text, words) in [
            ("ln a b", "a"),
            ("ln -f a b c/", "a b"),
            ("ln a", "a"),
            ("ln -S.s a b", "a"),
            ("ln -S -s a b", "a"),
            ("ln --suffix -s a b", "a"),
            ("ln a -- -s", "a"),
            ("ln -t d a", "d a"),
            ("ln -sf a b", ""),
            ("ln --sym a b", ""),
            ("cp -al a b", "a"),
            ("cp --link a b", "a"),
            ("cp -a a b", ""),
            ("link a b", "a"),
            ("mv a b", ""),
        ] {
            assert_eq!(twice(&command(text)).collect::<Vec<_>>().join(" "), words, "{text}");
        }
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
