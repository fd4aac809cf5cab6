//! Settings that a command names in parts: by a suffix, in a URL, on a machine that is this one, in a folder that is
//! not known, in a list for another program, or to a program of which nobody knows what it does with them.

use pintle_domain::shell::{ShellCommand, ShellFacts};

use super::reached::LOOKS;
use super::{Look, path_at};
use crate::expanded::expanded;
use crate::filled::named;
use crate::made_names::{made_names, path_of_this_machine, saved_as, suffixes_of_variable, urls_of_files};
use crate::program_name::{SEARCHES, UNKNOWN};
use crate::runners::{is_of_packages, letters_of_script};
use crate::taken::{join, sources};

/// What settings of agents are called.
const SETTINGS: [&str; 9] = [
    ".claude.json",
    "config.json",
    "config.toml",
    "hooks.json",
    "managed-settings.json",
    "opencode.json",
    "requirements.toml",
    "settings.json",
    "settings.local.json",
];

/// Those of them that count wherever a folder may be theirs.
const SETTINGS_ANYWHERE: [&str; 4] = ["config.toml", "hooks.json", "settings.json", "settings.local.json"];

/// Those that hardly anything else is called.
const SETTINGS_ALONE: [&str; 3] = ["hooks.json", "settings.json", "settings.local.json"];

/// Programs that only read the files that they are given.
const READS: &str = ". actionlint ajv b2sum base64 bat batcat cat check-jsonschema cksum cloc cmp colordiff column \
    comm cut delta diff difft dirname fold fuser fx getfacl gitleaks gron head hexdump inotifywait \
    jaq jq jsonlint less lsattr lsof md5 md5sum mdcat more most nl od paste rev sdiff sha1sum \
    sha256sum sha512sum shasum source strings tac tail tokei tr vimdiff wc xxd yamllint";

/// Programs of which the facts tell what they write, and agents, whose own words are read elsewhere.
const TOLD: &str = "7z 7za 7zr 7zz : alias ar aria2c at awk batch biome black bsdtar bunzip2 bzip2 chattr chgrp \
    chmod chown claude cline codex copilot cp cpio csplit curl dd declare ditto docker \
    docker-compose emacs eslint eval ex fold gawk gemini gh git glab gsed gtar gunzip gzip hg \
    install isort jar kimi kubectl link ln local make mapfile mawk mv nano nawk nerdctl nvim \
    opencode patch pax pi podman prettier qwen rclone read readarray readonly rename rm rmdir rsync \
    ruff scp sed set setfacl sftp shred sort split sponge sqlite3 ssh stylelint svn tar taskset tee \
    touch trap truncate type typeset uniq unlink unset unxz unzip vi view vim wget xz yq zcat zip \
    zstd";

/// Programs that hand the lines of a list to another one.
pub(super) const TAKES_LIST: [&str; 4] = ["gxargs", "parallel", "rush", "xargs"];

/// Programs that change or take away what they are given.
const CHANGES: [&str; 18] = [
    "chgrp", "chmod", "chown", "cp", "dd", "ex", "gsed", "install", "ln", "mv", "rm", "rmdir", "sed", "shred", "tee",
    "touch", "truncate", "unlink",
];

/// Programs that put something into a file that they are given.
const PUTS: [&str; 8] = ["curl", "ditto", "patch", "perl", "rsync", "scp", "sponge", "wget"];

/// Programs whose last operand alone is written.
const INTO_LAST: [&str; 6] = ["cp", "ditto", "install", "ln", "rsync", "scp"];

impl Look<'_> {
    /// Why `text`, of which `facts` tell, must not run: it names what is guarded in parts.
    pub(super) fn names_in_parts(&self, text: &str, facts: &ShellFacts) -> Option<String> {
        let suffixes = suffixes_of_variable(text);
        let of_command = |command: &ShellCommand| {
            self.puts_together(command, &suffixes)
                .or_else(|| self.by_url(command))
                .or_else(|| self.on_this_machine(command))
                .or_else(|| self.fetched(command))
                .or_else(|| self.given_to_unknown(command))
        };
        facts
            .commands
            .iter()
            .find_map(of_command)
            .or_else(|| self.by_url_in(text, facts))
            .or_else(|| self.listed(facts))
            .or_else(|| facts.unknown.then(|| in_unknown_folder(text, facts)).flatten())
            .or_else(|| facts.unknown.then(|| decoded(facts).or_else(|| computed(text, facts))).flatten())
    }

    /// Why `command` must not make a file whose name it puts together, maybe with one of `suffixes`.
    fn puts_together(&self, command: &ShellCommand, suffixes: &[String]) -> Option<String> {
        let made = made_names(command, suffixes);
        if made.is_empty() {
            return self.numbered(command);
        }
        let (sources, target) = sources(command);
        let below = sources.iter().filter_map(|source| {
            let name = source.trim_end_matches('/').rsplit('/').next()?;
            Some(format!("{}/{name}", target?))
        });
        let mut paths = named(command).map(str::to_owned).chain(below);
        let called = |path: String| {
            let mut names = made.iter().flat_map(|name| name.of(&path));
            names.find_map(|name| self.written(&path_at(&name, command)))
        };
        paths.find_map(called)
    }

    /// The same of a name in which a number stands for a part of a URL.
    fn numbered(&self, command: &ShellCommand) -> Option<String> {
        let parts = |word: &str| {
            let digit = |letter: char| letter.is_ascii_digit();
            let plain: Vec<&str> = word.split('#').collect();
            let is_part = plain.len() > 1 && plain[1..].iter().all(|part| part.starts_with(digit));
            is_part.then(|| {
                let rest = plain[1..].iter().map(|part| part.trim_start_matches(digit));
                std::iter::once(plain[0]).chain(rest).collect::<Vec<&str>>().join("*")
            })
        };
        let mut names = named(command).filter(|_| command.name == "curl").filter_map(parts);
        names.find_map(|name| self.written(&path_at(&name, command)))
    }

    /// Why `command` must not read or write what the URL of a file names.
    fn by_url(&self, command: &ShellCommand) -> Option<String> {
        let name = command.name.as_str();
        if LOOKS.contains(&name) || SEARCHES.contains(&name) || name == "git" {
            return None;
        }
        let sends = name == "curl" && command.argv.iter().any(|word| is_sending(word));
        let mut paths = command.argv.iter().skip(1).flat_map(|word| urls_of_files(word));
        paths.find_map(|path| {
            let written = || if sends { self.written(&path) } else { None };
            self.read(&path).or_else(written)
        })
    }

    /// The same of all that `text` says, of which `facts` tell: `curl` takes URLs from a list, too.
    fn by_url_in(&self, text: &str, facts: &ShellFacts) -> Option<String> {
        if !facts.commands.iter().any(|command| command.name == "curl") {
            return None;
        }
        let told = text.replace("${HOME}", "~").replace("$HOME", "~");
        urls_of_files(&told).iter().find_map(|path| self.read(path))
    }

    /// Why `command` must not copy to or from this machine by another name.
    fn on_this_machine(&self, command: &ShellCommand) -> Option<String> {
        if !matches!(command.name.as_str(), "scp" | "rsync" | "sftp") {
            return None;
        }
        let (sources, target) = sources(command);
        let read = || {
            let mut here = sources.iter().filter_map(|source| path_of_this_machine(source));
            here.find_map(|path| self.read(&path).or_else(|| self.searched(&path)))
        };
        let folder = target.and_then(path_of_this_machine);
        let written = folder.and_then(|folder| {
            let is_whole = sources.iter().any(|source| source.ends_with(['/', '*', '.']));
            let names = sources.iter().filter_map(|source| source.trim_end_matches('/').rsplit('/').next());
            let below = names.map(|name| format!("{folder}/{name}"));
            let mut all = std::iter::once(folder.clone()).chain(below);
            let whole = || (is_whole && self.holds_guarded(&folder)).then(|| super::of_settings(&folder));
            all.find_map(|path| self.written(&path)).or_else(whole)
        });
        written.or_else(read)
    }

    /// Why `command` must not save what it fetches under the name that this has elsewhere.
    fn fetched(&self, command: &ShellCommand) -> Option<String> {
        if command.name != "wget" {
            return None;
        }
        let words = command.argv.get(1..).unwrap_or_default();
        if !words.iter().any(|word| keeps_folders(word)) {
            return None;
        }
        let value = words.iter().enumerate().find_map(|(at, word)| {
            let rest = ["--directory-prefix", "-P"].iter().find_map(|option| word.strip_prefix(*option))?;
            let rest = rest.trim_start_matches('=');
            if rest.is_empty() { words.get(at + 1).map(String::as_str) } else { Some(rest) }
        });
        let folder = value.unwrap_or_default();
        let mut names = words.iter().filter(|word| !word.starts_with('-')).flat_map(|word| saved_as(word));
        names.find_map(|name| self.written(&path_at(&join(folder, name.trim_start_matches(['/', '~'])), command)))
    }

    /// Why `command`, of which nobody knows what it does, must not be given settings by their name.
    fn given_to_unknown(&self, command: &ShellCommand) -> Option<String> {
        let words = command.argv.get(1..).unwrap_or_default();
        let (name, words) = run_by(command.name.as_str(), words);
        if is_known(name) {
            return None;
        }
        let words: Vec<&str> = match letters_of_script(name) {
            Some(letters) => given_to_script(words, letters),
            None => words.iter().map(String::as_str).collect(),
        };
        let values = words.iter().filter_map(|word| word.split_once('=')).map(|(_, value)| value);
        let word = words.iter().copied().chain(values).find(|word| {
            let is_plain = !word.contains(UNKNOWN) && !word.contains(['*', '?', '[', '{']) && !word.starts_with('-');
            is_plain && has_name(word, &SETTINGS) && self.written(&path_at(word, command)).is_some()
        })?;
        Some(format!("what `{name}` does with `{word}`, which decides over this agent, cannot be known"))
    }

    /// Why a program must not change what another one lists.
    fn listed(&self, facts: &ShellFacts) -> Option<String> {
        let has = |names: &[&str]| facts.commands.iter().any(|command| names.contains(&command.name.as_str()));
        if !has(&TAKES_LIST) || !has(&CHANGES) {
            return None;
        }
        let others = [&TAKES_LIST[..], &CHANGES, &SEARCHES, &["find", "fd", "fdfind"]].concat();
        let lists = facts.commands.iter().filter(|command| !others.contains(&command.name.as_str()));
        let mut words = lists.flat_map(|command| command.argv.iter().skip(1).map(move |word| (word, command)));
        let is_path = |word: &str| {
            word.starts_with(['/', '~', '.']) && !word.contains(char::is_whitespace) && !word.contains(['{', '$', '`'])
        };
        words.find_map(|(word, command)| {
            let path = path_at(word, command);
            if is_path(word) { self.deleted(&expanded(&path, facts)) } else { None }
        })
    }
}

/// Whether `word` of `curl` is the option that sends a file.
fn is_sending(word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => long.len() > 2 && "upload-file".starts_with(long),
        None => word.starts_with('-') && word.contains('T'),
    }
}

/// Whether `word` of `wget` is an option with which it keeps the folders of a URL.
fn keeps_folders(word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => ["force-directories", "mirror", "page-requisites", "recursive"].contains(&long),
        None => word.starts_with('-') && word.contains(['x', 'r', 'm', 'p']),
    }
}

/// Whether it is known what the program `name` does with files that it is given.
fn is_known(name: &str) -> bool {
    let lists = [&LOOKS[..], &SEARCHES, &TAKES_LIST];
    let is_told = [READS, TOLD].iter().any(|list| list.split_whitespace().any(|told| told == name));
    lists.iter().any(|list| list.contains(&name)) || is_told
}

/// The program that `name` runs with `words` and its own words, where that runs one of a package.
pub(super) fn run_by<'c>(name: &'c str, words: &'c [String]) -> (&'c str, &'c [String]) {
    if !is_of_packages(name) {
        return (name, words);
    }
    let is_word = |word: &String| !word.starts_with('-') && !matches!(word.as_str(), "exec" | "run" | "dlx" | "x");
    let Some(at) = words.iter().position(is_word) else { return (name, words) };
    let program = words[at].rsplit('/').next().unwrap_or(name);
    (program.split('@').next().filter(|program| !program.is_empty()).unwrap_or(name), &words[at + 1..])
}

/// What of `words` an interpreter gives to a script of a file, or takes as the values of its own options. A script that
/// stands among the words is read.
fn given_to_script<'c>(words: &'c [String], letters: &str) -> Vec<&'c str> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let end = words.iter().position(|word| !word.starts_with('-')).unwrap_or(words.len());
    let is_text = |word: &&str| {
        let is_row =
            word.starts_with('-') && !word.starts_with("--") && word.contains(|letter: char| letters.contains(letter));
        is_row || matches!(*word, "--eval" | "--print")
    };
    if words[..end].iter().any(is_text) {
        return words[..end].to_vec();
    }
    let at = words.iter().position(|word| *word == "json.tool").filter(|at| *at > 0 && words[at - 1] == "-m");
    let Some(at) = at else { return words };
    // It writes its second file.
    words[at + 1..].iter().copied().filter(|word| !word.starts_with('-')).skip(1).collect()
}

/// Whether the last name of `path` is one of `names`.
fn has_name(path: &str, names: &[&str]) -> bool {
    let last = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    names.contains(&last.as_str())
}

/// Why `text`, of which `facts` tell, must not write what is called as settings are in a folder that is not known.
fn in_unknown_folder(text: &str, facts: &ShellFacts) -> Option<String> {
    let is_lost = |command: &ShellCommand| command.cwd.is_empty();
    let is_settings = |word: &str, is_lost: bool| {
        let (folder, _) = word.rsplit_once('/').unwrap_or(("", word));
        let last = folder.rsplit('/').next().unwrap_or(folder);
        let is_here = matches!(folder, "" | ".") && is_lost;
        let is_for_now = folder.starts_with("$TMPDIR") || folder.starts_with("${TMPDIR");
        has_name(word, &SETTINGS_ANYWHERE) && (is_here || (last.contains(UNKNOWN) && !is_for_now))
    };
    let of_command = |command: &ShellCommand| {
        changed_by(command).into_iter().find(|word| is_settings(word, is_lost(command))).map(str::to_owned)
    };
    let is_any_lost = facts.commands.iter().any(is_lost);
    let by_sign = || targets(text).into_iter().find(|word| is_settings(word, is_any_lost)).map(str::to_owned);
    let word = facts.commands.iter().find_map(of_command).or_else(by_sign)?;
    Some(format!("`{word}` may be settings of an agent: in which folder it lies cannot be known"))
}

/// The words of `command` that may be what it changes; none where it changes nothing that it is given.
pub(super) fn changed_by(command: &ShellCommand) -> Vec<&str> {
    let name = command.name.as_str();
    if INTO_LAST.contains(&name) {
        return sources(command).1.into_iter().collect();
    }
    let changes = CHANGES.contains(&name) || PUTS.contains(&name);
    command.argv.iter().skip(1).filter(|_| changes).map(String::as_str).collect()
}

/// Why `text`, of which `facts` tell, must not change what it computes the name of: by a program that decodes, or of the
/// name of settings.
fn computed(text: &str, facts: &ShellFacts) -> Option<String> {
    let cuts = facts.commands.iter().any(|command| command.name == "cut");
    // `rev | cut | rev` takes the end off a name.
    let decoder = facts.commands.iter().find(|command| decodes(command) && !(cuts && command.name == "rev"));
    let names = |command: &&ShellCommand| command.argv.iter().skip(1).any(|word| has_name(word, &SETTINGS_ALONE));
    let maker = decoder.or_else(|| facts.commands.iter().filter(|command| command.depth > 0).find(names))?;
    let mut changed = facts.commands.iter().flat_map(changed_by).chain(targets(text));
    let word = changed.find(|word| is_computed(word, text))?;
    Some(format!("what `{word}` is comes from `{}`, and cannot be known: it may be settings of an agent", maker.name))
}

/// Whether `word` is what a command of `text` printed, or a variable that is.
pub(super) fn is_computed(word: &str, text: &str) -> bool {
    let is_of_command = |rest: &str| {
        let rest = rest.trim_start_matches('{');
        let end = rest.find(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let name = &rest[..end];
        let sets = |sign: &str| text.contains(&format!("{name}{sign}"));
        !name.is_empty() && ["=$(", "=\"$(", "=`", "=\"`"].into_iter().any(sets)
    };
    word.contains("$(") || word.contains('`') || word.split('$').skip(1).any(is_of_command)
}

/// What stands behind the signs in `text` that write.
pub(super) fn targets(text: &str) -> Vec<&str> {
    behind(text, '>')
}

/// The words that stand behind `sign` in `text`.
pub(super) fn behind(text: &str, sign: char) -> Vec<&str> {
    let behind = text.split(sign).scan(0, |at, part| {
        *at += part.len() + sign.len_utf8();
        text.get(*at..)
    });
    behind.map(|rest| first_word(rest.trim_start_matches(['|', '&', ' ', '\t']))).collect()
}

/// The word with which `rest` begins, with the commands in it, and without the quotes around it.
fn first_word(rest: &str) -> &str {
    if let Some(quoted) = rest.strip_prefix(['"', '\'']) {
        return quoted.split(['"', '\'']).next().unwrap_or(quoted);
    }
    let mut depth = 0_usize;
    let is_end = |(_, letter): &(usize, char)| {
        let is_free = depth == 0;
        depth = match letter {
            '(' => depth + 1,
            ')' => depth.saturating_sub(1),
            _ => depth,
        };
        is_free && (letter.is_whitespace() || ";|&)<>".contains(*letter))
    };
    let end = rest.char_indices().find(is_end).map_or(rest.len(), |(at, _)| at);
    &rest[..end]
}

/// Why a text that a program decodes must not be run: nobody can read it before.
fn decoded(facts: &ShellFacts) -> Option<String> {
    let runs = |command: &ShellCommand| {
        let is_shell = letters_of_script(&command.name).is_some_and(|letters| letters == "c");
        let is_run = command.name == "eval" || (is_shell && command.argv.iter().any(|word| word == "-c"));
        is_run && command.argv.iter().skip(1).any(|word| word.contains(UNKNOWN) && word.contains(['(', '`']))
    };
    if !facts.pipes_to_interpreter && !facts.commands.iter().any(runs) {
        return None;
    }
    let decoder = facts.commands.iter().find(|command| decodes(command))?;
    Some(format!("what `{}` decodes would be run, and cannot be read before", decoder.name))
}

/// Whether `command` makes a text of another one that does not show it.
fn decodes(command: &ShellCommand) -> bool {
    let words = command.argv.get(1..).unwrap_or_default();
    let has = |options: &[&str]| words.iter().any(|word| options.contains(&word.as_str()));
    match command.name.as_str() {
        "rev" | "uudecode" => true,
        "base64" | "base32" | "basenc" => has(&["-d", "-D", "--decode", "-di", "-id"]),
        "xxd" => words.iter().any(|word| word.starts_with('-') && word.contains('r')),
        "openssl" => has(&["-d"]),
        "tr" => words.iter().any(|word| !word.starts_with('-') && has_letters(word)),
        _ => false,
    }
}

/// Whether `set` of `tr` names letters by themselves, and no class of them.
fn has_letters(set: &str) -> bool {
    const CLASSES: [&str; 12] = [
        "[:upper:]",
        "[:lower:]",
        "[:space:]",
        "[:blank:]",
        "[:cntrl:]",
        "[:punct:]",
        "A-Z",
        "a-z",
        "\\n",
        "\\r",
        "\\t",
        "\\0",
    ];
    let plain = CLASSES.iter().fold(set.to_owned(), |plain, class| plain.replace(*class, ""));
    plain.contains(|letter: char| letter.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taken::tests::commands;

    #[test]
    fn what_is_written_stands_behind_its_sign() {
        for (text, words) in [
            ("echo > \"$d/a\"; x >>b 2>&1", "$d/a b 1"),
            ("x >| 'a b'|y", "a b"),
            ("x > ~/.$(a | b)/c; y", "~/.$(a | b)/c"),
            ("(x > a)", "a"),
            ("cat a", ""),
        ] {
            let found: Vec<&str> = targets(text).into_iter().filter(|word| !word.is_empty()).collect();
            assert_eq!(found.join(" "), words, "{text}");
        }
    }

    #[test]
    fn a_program_that_decodes_is_known_by_its_words() {
        for (text, is_it) in [
            ("rev", true),
            ("base64 -d", true),
            ("xxd -r -p", true),
            ("tr X a", true),
            ("tr a-y b-z", true),
            ("tr A-Z a-z", false),
            ("tr [:upper:] [:lower:]", false),
            ("tr -d \\r", false),
            ("base64", false),
            ("cat", false),
        ] {
            assert_eq!(decodes(&commands(&[text])[0]), is_it, "{text}");
        }
    }

    #[test]
    fn a_script_is_given_what_stands_behind_it() {
        for (text, letters, words) in [
            ("python3 x.py a", "c", "x.py a"),
            ("python3 -c x a", "c", "-c"),
            ("python3 -m json.tool a", "c", ""),
            ("python3 -m json.tool a b", "c", "b"),
            ("node --redirect-warnings=a x.js", "ep", "--redirect-warnings=a x.js"),
        ] {
            let command = &commands(&[text])[0];
            assert_eq!(given_to_script(&command.argv[1..], letters).join(" "), words, "{text}");
        }
    }
}
