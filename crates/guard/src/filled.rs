//! Which commands put nothing into a folder that they name but what the facts tell of them, which bring files along under
//! their own names, and which give files second names.

use pintle_domain::shell::{ShellCommand, ShellFacts};

use crate::tools::patched_in_text;

/// Programs that copy files alone, unless an option says otherwise.
const OF_FILES: [&str; 2] = ["cp", "install"];

/// Programs that fill no folder which they name, and those around another command, which is looked at by itself.
const HARMLESS: [&str; 29] = [
    "mkdir", "touch", "cd", "pushd", "ls", "tree", "du", "stat", "test", "[", "pwd", "echo", "printf", "cat", "head",
    "tail", "wc", "grep", "rg", "find", "jq", "diff", "env", "time", "timeout", "nohup", "nice", "command", "sudo",
];

/// Commands of git that change no file of the folder.
const GIT_LOOKS: [&str; 9] = ["add", "status", "diff", "log", "show", "commit", "ls-files", "check-ignore", "grep"];

/// Commands of git that take files from elsewhere, or away, under the names that they are told.
const GIT_TAKES: [&str; 6] = ["checkout", "checkout-index", "restore", "reset", "stash", "clean"];

/// How a line of a patch begins that names a file.
const PATCH_HEADS: [&str; 7] = ["+++ ", "--- ", "*** ", "Index: ", "diff --git ", "rename to ", "copy to "];

/// The longest name in a patch that may be a file. Source: `PATH_MAX` of Linux.
const LONGEST: usize = 4096;

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
pub(crate) fn copies_files(command: &ShellCommand) -> bool {
    let is_deep = |word: &String| match word.strip_prefix("--") {
        Some(long) => ["rec", "ar", "pa"].iter().any(|deep| long.starts_with(deep)),
        None => word.starts_with('-') && word.contains(['r', 'R', 'a']),
    };
    !command.argv.iter().skip(1).any(is_deep)
}

/// Options of git that take the next word, before its command.
pub(crate) const GIT_VALUED: [&str; 7] =
    ["-C", "-c", "--work-tree", "--git-dir", "--namespace", "--config-env", "--attr-source"];

/// The command of git.
fn git_verb(command: &ShellCommand) -> Option<&str> {
    let mut at = 1;
    loop {
        match command.argv.get(at)?.as_str() {
            option if GIT_VALUED.contains(&option) => at += 2,
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

/// Where files come to lie that `command` brings along under the names that they have elsewhere.
pub(crate) fn brought(command: &ShellCommand) -> Vec<String> {
    let words = command.argv.get(1..).unwrap_or_default();
    // The programs take any beginning of a long option.
    let has = |long: &str| flags(words).iter().any(|flag| flag.len() > 3 && long.starts_with(*flag));
    let has_letter = |letter: char| {
        words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
    };
    let is_git = command.name == "git" && git_verb(command).is_some_and(|verb| GIT_TAKES.contains(&verb));
    if is_git {
        // `:/name` and `:(top)name` are meant from the top.
        let plain =
            |word: &str| word.rsplit_once([')', ':']).map_or(word, |(_, name)| name).trim_start_matches('/').to_owned();
        return words
            .iter()
            .filter(|word| !word.starts_with('-'))
            .map(|word| if word.starts_with(':') { plain(word) } else { word.clone() })
            .collect();
    }
    let keeps_folders = match command.name.as_str() {
        "cp" => has("--parents"),
        "rsync" => has("--relative") || has_letter('R'),
        _ => false,
    };
    if !keeps_folders {
        return Vec::new();
    }
    let operands: Vec<&str> = named(command).collect();
    let below = |source: &str, target: &str| {
        let told = source.split_once("/./").map_or(source, |(_, told)| told);
        let told = told.rsplit_once("../").map_or(told, |(_, told)| told);
        format!("{target}/{}", told.trim_start_matches(['/', '~']))
    };
    // Which of them is the folder, an option may say.
    let targets = operands.iter().copied();
    targets.flat_map(|target| operands.iter().map(move |source| below(source, target))).collect()
}

/// Whether `command` is the program for patches that agents have among their tools, or their own name for it.
pub(crate) fn takes_patch(command: &ShellCommand) -> bool {
    matches!(command.name.as_str(), "apply_patch" | "applypatch")
}

/// The files that a patch may change which stands in `text`, by all names that they have where folders of them are left
/// out; none if no command of the text takes a patch.
pub(crate) fn patched_by(text: &str, command: &ShellCommand) -> Vec<String> {
    if takes_patch(command) {
        return patched_in_text(text).into_iter().map(str::to_owned).collect();
    }
    let is_patch = command.name == "patch"
        || (command.name == "git" && git_verb(command).is_some_and(|verb| matches!(verb, "apply" | "am")));
    // A patch may be given as a text with `\n`, too.
    let lines = text.lines().flat_map(|line| line.split("\\n")).filter(|_| is_patch);
    let named = lines.filter_map(|line| {
        let at = PATCH_HEADS.iter().find_map(|head| Some(line.find(*head)? + head.len()))?;
        line[at..].trim_start_matches('"').split(['\t', '\'', '"']).next()
    });
    // Two names may stand in one line, and a name may have blanks.
    let words = named.flat_map(|path| path.split(' ').chain(path.contains(' ').then_some(path)));
    let folder = command.argv.windows(2).find(|pair| command.name == "git" && pair[0] == "-C").map(|pair| &pair[1]);
    let parts = words.flat_map(|path| path.match_indices('/').map(move |(at, _)| &path[at + 1..]).chain([path]));
    parts
        .filter(|path| (1..=LONGEST).contains(&path.len()))
        .map(|path| folder.map_or_else(|| unescaped(path), |folder| format!("{folder}/{}", unescaped(path))))
        .collect()
}

/// `path` of a patch, in which `\141` is a letter and stands for any one here.
fn unescaped(path: &str) -> String {
    let mut parts = path.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take(3).take_while(u8::is_ascii_digit).count().max(1);
        plain.push('?');
        plain.push_str(part.get(digits..).unwrap_or_default());
    }
    plain
}

/// The folders to whose files `command` gives second names below another one.
pub(crate) fn linked_to(command: &ShellCommand) -> Vec<String> {
    if command.name != "rsync" {
        return Vec::new();
    }
    let words = command.argv.get(1..).unwrap_or_default();
    let folders = words.iter().enumerate().filter_map(|(at, word)| {
        let said = word.strip_prefix("--link-dest")?;
        said.strip_prefix('=').or_else(|| words.get(at + 1).map(String::as_str))
    });
    // One that is no whole path is meant from the target.
    let target = words.iter().rfind(|word| !word.starts_with('-'));
    folders
        .flat_map(|folder| [Some(folder.to_owned()), target.map(|target| format!("{target}/{folder}"))])
        .flatten()
        .collect()
}

/// The words of `command` that may be files to which it gives a second name: one that is no link, or a link that nobody
/// looks for where files are copied.
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
        "cp" => has('l', "link") || has('s', "symbolic-link"),
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

/// The words of `command` that it copies, or puts elsewhere, as the links that they may be.
pub(crate) fn copied_as_links(command: &ShellCommand) -> impl Iterator<Item = &str> {
    let words = command.argv.get(1..).unwrap_or_default();
    let keeps = match command.name.as_str() {
        "cp" => flags(words).iter().any(|flag| match flag.strip_prefix("--") {
            Some(name) => ["archive", "no-dereference", "recursive"].iter().any(|long| long.starts_with(name)),
            None => flag.contains(['a', 'd', 'P', 'R', 'r']),
        }),
        "rsync" => words.iter().any(|word| word == "--links" || word == "--archive" || is_short_of(word, ['a', 'l'])),
        "mv" => true,
        _ => false,
    };
    let operands = words.iter().map(String::as_str).filter(|word| !word.starts_with('-'));
    operands.filter(move |_| keeps)
}

/// Whether `word` holds one of these options of one letter.
fn is_short_of(word: &str, letters: [char; 2]) -> bool {
    word.strip_prefix('-').is_some_and(|flags| !flags.starts_with('-') && flags.contains(letters))
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
    fn what_comes_along_is_known_by_its_own_name() {
        for (text, path) in [
            ("cp --parents .claude/settings.json ..", "../.claude/settings.json"),
            ("cp -t x --par a/b", "x/a/b"),
            ("cp --parents ../a/b x", "x/a/b"),
            ("rsync -aR foo/./.qwen/x .", "./.qwen/x"),
            ("rsync --relative .qwen/x y", "y/.qwen/x"),
            ("git checkout other .claude/settings.json", ".claude/settings.json"),
            ("git -C x stash push -- .claude", ".claude"),
            ("git checkout other :/.claude", ".claude"),
            ("git checkout other :(top).claude", ".claude"),
        ] {
            assert!(brought(&command(text)).contains(&path.to_owned()), "{text}");
        }
        for text in ["cp -r a b", "cp -p a b", "rsync -a a b", "git status", "git log -- .claude"] {
            assert_eq!(brought(&command(text)), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_patch_is_known_by_the_files_it_names() {
        let text = "git apply <<'E'\n--- a/x\n+++ b/.claude/settings.json\n@@ -1 +1 @@\nE";
        let apply = command("git apply");
        assert_eq!(
            patched_by(text, &apply),
            ["x", "a/x", ".claude/settings.json", "settings.json", "b/.claude/settings.json"]
        );
        assert_eq!(patched_by("printf '--- a/x\\n' | patch -p1", &command("patch -p1")), ["x", "a/x"]);
        assert_eq!(patched_by(text, &command("cat")), [""; 0]);
        let own = "apply_patch <<'E'\n*** Begin Patch\n*** Add File: .codex/hooks.json\n+{}\n*** End Patch\nE";
        assert_eq!(patched_by(own, &command("apply_patch")), [".codex/hooks.json"]);
        let line = r#"printf '*** Begin Patch\n*** Delete File: x' | applypatch"#;
        assert_eq!(patched_by(line, &command("applypatch")), ["x"]);
        let binary = "git apply <<'E'\ndiff --git .qwen/a .qwen/b\nGIT binary patch\nE";
        assert!(patched_by(binary, &apply).contains(&".qwen/b".to_owned()));
        let escaped = "git apply <<'E'\n+++ \"b/.qw\\145n/b\"\nE";
        assert!(patched_by(escaped, &apply).contains(&".qw?n/b".to_owned()));
        assert_eq!(patched_by("+++ b", &command("git -C a apply")), ["a/b"]);
        assert_eq!(patched_by("+++ b", &command("git --no-pager --namespace n -C a apply")), ["a/b"]);
        let deep = format!("+++ {}.qwen/b", "a/".repeat(30_000));
        let named = patched_by(&deep, &apply);
        assert!(named.contains(&".qwen/b".to_owned()) && named.len() < LONGEST, "{}", named.len());
    }

    #[test]
    fn folders_of_second_names_are_meant_from_the_target_too() {
        assert_eq!(linked_to(&command("rsync -a --link-dest=../a s t")), ["../a", "t/../a"]);
        assert_eq!(linked_to(&command("rsync --link-dest /a s t")), ["/a", "t//a"]);
        assert_eq!(linked_to(&command("rsync -a s t")), [""; 0]);
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
