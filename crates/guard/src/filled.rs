//! What commands put into folders under names that the text does not write out: what is copied keeps its name, and what
//! comes out of an archive has one of its own.

use domain::shell::ShellCommand;

/// Programs that put what they are given into their last operand, under its own name.
const COPYING: [&str; 6] = ["cp", "mv", "install", "ln", "rsync", "scp"];

/// Those of them that copy files alone, unless an option says otherwise.
const OF_FILES: [&str; 2] = ["cp", "install"];

/// Programs that fill no folder which they name, and those around another command, which is looked at by itself.
const HARMLESS: [&str; 29] = [
    "mkdir", "touch", "cd", "pushd", "ls", "tree", "du", "stat", "test", "[", "pwd", "echo", "printf", "cat", "head",
    "tail", "wc", "grep", "rg", "find", "jq", "diff", "env", "time", "timeout", "nohup", "nice", "command", "sudo",
];

/// Commands of git that change no file of the folder.
const GIT_LOOKS: [&str; 9] = ["add", "status", "diff", "log", "show", "commit", "ls-files", "check-ignore", "grep"];

/// The options that name the folder in which the rest is meant.
const INTO: [&str; 5] = ["-t", "--target-directory", "-C", "--directory", "-d"];

/// Whether `command` is sure to put nothing into a folder that it names or stands in, but for what [`put_at`] tells.
pub(crate) fn is_harmless(command: &ShellCommand) -> bool {
    let name = command.name.as_str();
    match name {
        "git" => git_verb(command).is_some_and(|(verb, _)| GIT_LOOKS.contains(&verb)),
        _ if OF_FILES.contains(&name) => copies_files(command),
        _ => HARMLESS.contains(&name),
    }
}

/// Whether `command`, which copies, copies files whose names are known, and no folder.
fn copies_files(command: &ShellCommand) -> bool {
    let is_deep = |word: &String| match word.strip_prefix("--") {
        Some(long) => long.starts_with("rec") || long.starts_with("arc") || long.starts_with("par"),
        None => word.starts_with('-') && word.contains(['r', 'R', 'a']),
    };
    let words = command.argv.get(1..).unwrap_or_default();
    let (_, sources) = target_of(words);
    !words.iter().any(is_deep) && sources.iter().all(|source| !base(source).is_empty())
}

/// The command of git, and the words behind it.
fn git_verb(command: &ShellCommand) -> Option<(&str, &[String])> {
    let mut at = 1;
    loop {
        match command.argv.get(at)?.as_str() {
            "-C" | "-c" | "--git-dir" | "--work-tree" => at += 2,
            option if option.starts_with('-') => at += 1,
            verb => return Some((verb, &command.argv[at + 1..])),
        }
    }
}

/// The value of one of the options `names` among `words`, behind it or in one word with it.
fn value_of<'a>(words: &'a [String], names: &[&str]) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(at, word)| {
        names.iter().find_map(|name| match word.strip_prefix(*name)? {
            "" => words.get(at + 1).map(String::as_str),
            rest if name.starts_with("--") => rest.strip_prefix('='),
            rest => Some(rest),
        })
    })
}

/// Where `words` copy to, and what.
fn target_of(words: &[String]) -> (&str, Vec<&str>) {
    let mut operands: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
    if let Some(target) = value_of(words, &INTO[..2]) {
        operands.retain(|operand| *operand != target);
        return (target, operands);
    }
    let target = if operands.len() > 1 { operands.pop() } else { None };
    (target.unwrap_or("."), operands)
}

fn base(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// The paths at which `command` may put something although the text names their folder alone, each from the root or from
/// where the command runs.
pub(crate) fn put_at(command: &ShellCommand) -> Vec<String> {
    let words = command.argv.get(1..).unwrap_or_default();
    let copied = match command.name.as_str() {
        "git" => git_verb(command).filter(|(verb, _)| *verb == "mv").map(|(_, words)| words),
        name => COPYING.contains(&name).then_some(words),
    };
    if let Some(words) = copied {
        let (target, sources) = target_of(words);
        return sources.iter().map(|source| format!("{}/{}", target.trim_end_matches('/'), base(source))).collect();
    }
    if !takes_out(&command.name, words) {
        return Vec::new();
    }
    let folder = value_of(words, &INTO[2..]).unwrap_or(".");
    let members = words.iter().filter(|word| !word.starts_with('-') && word.as_str() != folder);
    members.map(|member| format!("{}/{}", folder.trim_end_matches('/'), member.trim_start_matches('/'))).collect()
}

/// Whether the program `name` takes files out of an archive with `words`.
fn takes_out(name: &str, words: &[String]) -> bool {
    let first = words.first().map(String::as_str).unwrap_or_default();
    match name {
        "tar" | "gtar" | "bsdtar" => {
            let is_short = |word: &str| !word.starts_with("--") && word.contains('x');
            let letters = first.chars().all(|letter| letter.is_ascii_alphabetic()) && is_short(first);
            let asks = |word: &String| {
                (word.starts_with('-') && is_short(word)) || ["--extract", "--get"].contains(&word.as_str())
            };
            letters || words.iter().any(asks)
        }
        "unzip" => {
            let looks = |word: &String| word.starts_with('-') && word.contains(['l', 'p', 't', 'v', 'Z']);
            !words.iter().any(looks)
        }
        "7z" | "7za" | "7zr" | "unrar" => ["x", "e"].contains(&first),
        _ => false,
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
    fn what_is_copied_keeps_its_name() {
        for (text, at) in [
            ("cp foo/settings.json .claude/", ".claude/settings.json"),
            ("install -m 644 -t d a/b", "d/644 d/b"),
            ("cp --target-directory=d a", "d/a"),
            ("ln -s ../x/y", "./y"),
            ("git -C r mv a/b c", "c/b"),
            ("git status", ""),
            ("tar xf a.tar .claude/settings.json", "./xf ./a.tar ./.claude/settings.json"),
            ("tar --extract -C d a", "d/a"),
            ("tar cf a.tar .claude", ""),
            ("unzip a.zip x/y -d d", "d/a.zip d/x/y"),
            ("unzip -p a.zip x", ""),
            ("cat a b", ""),
        ] {
            assert_eq!(put_at(&command(text)).join(" "), at, "{text}");
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
        ] {
            assert_eq!(is_harmless(&command(text)), harmless, "{text}");
        }
    }
}
