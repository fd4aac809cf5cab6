//! The files of a folder that a command may run although its words do not plainly name them.
//!
//! A shell puts paths together of variables, folders and patterns. Nothing of that is carried out here: a word that, on
//! any reading, ends a path below one of the folders that the text names, means that file.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Most words of a command that are looked at. More is no command that anybody reads before accepting it.
const MAX_WORDS: usize = 200;

/// Most folders in which its words are looked for.
const MAX_FOLDERS: usize = 16;

/// Most files below the folders of a command that are looked at where it searches: with more, none of them is.
const MAX_FILES: usize = 200;

/// What a word leaves out that names a module or a package.
const ENDINGS: [&str; 9] = ["", ".py", ".js", ".mjs", ".cjs", ".ts", "/__main__.py", "/__init__.py", "/index.js"];

/// Programs that run what a file of the folder says, and that file.
const RUNNERS: [(&str, &[&str]); 10] = [
    ("npm", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("yarn", &["package.json"]),
    ("bun", &["package.json"]),
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("gmake", &["GNUmakefile", "makefile", "Makefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("task", &["Taskfile.yml", "Taskfile.yaml"]),
    ("rake", &["Rakefile"]),
    ("pre-commit", &[".pre-commit-config.yaml"]),
];

/// Programs that search folders for files.
const SEARCHES: [&str; 6] = ["find", "fd", "xargs", "parallel", "run-parts", "for"];

/// Programs that run the files that they are given.
const INTERPRETERS: [&str; 14] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "python",
    "python3",
    "node",
    "deno",
    "ruby",
    "perl",
    "php",
    "source",
    "run-parts",
];

/// Words after which it cannot be read what is run, beside the [`RUNNERS`].
const UNREAD: [&str; 15] = [
    "cd",
    "pushd",
    "eval",
    "find",
    "fd",
    "xargs",
    "parallel",
    "run-parts",
    "npx",
    "bunx",
    "cargo",
    "go",
    "uv",
    "poetry",
    "tox",
];

/// The variables whose value is known: the folder itself, and that of the person.
const KNOWN: [&str; 3] = ["CLAUDE_PROJECT_DIR", "HOME", "PWD"];

/// Folders that hold what others made.
const SKIPPED: [&str; 2] = [".git", "node_modules"];

/// Most things that are named which cannot be read.
const MAX_NAMED: usize = 5;

/// The files below `folder` that the command `text`, which runs there, may run.
pub(super) fn files(text: &str, folder: &Path) -> BTreeSet<PathBuf> {
    let words = words(text);
    let ends: BTreeSet<&str> = words.iter().filter_map(|word| end(word, folder)).collect();
    let (folders, _) = folders(&words, folder);
    let mut found = BTreeSet::new();
    for base in &folders {
        let mut add = |name: &str| {
            let path = folder.join(base).join(name);
            if path.is_file() {
                found.insert(path);
            }
        };
        for word in ends.iter().filter(|word| !is_pattern(word)) {
            for ending in ENDINGS {
                add(&format!("{word}{ending}"));
                if word.contains('.') {
                    add(&format!("{}{ending}", word.replace('.', "/")));
                }
            }
        }
        for (_, files) in RUNNERS.iter().filter(|(program, _)| words.iter().any(|word| word == program)) {
            for file in *files {
                add(file);
            }
        }
        if !base.as_os_str().is_empty() {
            for file in ["__main__.py", "index.js"] {
                add(file);
            }
        }
    }
    let is_search = words.iter().any(|word| SEARCHES.contains(&word.as_str()) || is_pattern(word));
    if is_search {
        found.extend(searched(&words, &folders, folder));
    }
    found
}

/// What of the command `text` cannot be read, or is more than is looked at, also in the folder where it runs, if that is
/// known: what it runs in turn is not known.
pub fn unread(text: &str, folder: Option<&Path>) -> Vec<String> {
    let mut named = left_out(text, folder);
    let mut add = |what: &str| {
        let what = format!("`{what}`");
        if named.len() < MAX_NAMED && !named.contains(&what) {
            named.push(what);
        }
    };
    let (_, variables) = without_variables(text);
    let words = words(text);
    if text.contains("PATH=") {
        add("PATH=");
    }
    for variable in variables.iter().filter(|name| !name.is_empty() && !KNOWN.contains(&name.as_str())) {
        add(&format!("${variable}"));
    }
    if text.contains("$(") || text.contains('`') {
        add("$(…)");
    }
    for word in &words {
        if UNREAD.contains(&word.as_str()) || RUNNERS.iter().any(|(program, _)| word == program) {
            add(word);
        }
    }
    if words.iter().any(|word| word.starts_with("python")) && words.iter().any(|word| word == "m") {
        add("-m");
    }
    named
}

/// Why not everything is looked at that the command `text` may mean.
fn left_out(text: &str, folder: Option<&Path>) -> Vec<String> {
    let (all, words) = (all_words(text).len(), words(text));
    let mut why = Vec::new();
    if all > MAX_WORDS {
        why.push(format!("more than {MAX_WORDS} words"));
    }
    let Some(folder) = folder else { return why };
    let (folders, more) = folders(&words, folder);
    if more {
        why.push(format!("more than {MAX_FOLDERS} folders"));
    }
    let searches = |word: &String| SEARCHES.contains(&word.as_str()) || end(word, folder).is_some_and(is_pattern);
    let is_too_full = |base: &&PathBuf| below(&folder.join(base), !base.as_os_str().is_empty()).is_none();
    if words.iter().any(searches)
        && let Some(full) = folders.iter().find(is_too_full)
    {
        let name = if full.as_os_str().is_empty() { ".".to_owned() } else { full.display().to_string() };
        why.push(format!("more than {MAX_FILES} files in `{name}`"));
    }
    why
}

/// The first words of `text` on any reading.
fn words(text: &str) -> Vec<String> {
    let mut words = all_words(text);
    words.truncate(MAX_WORDS);
    words
}

/// The words of `text` on any reading: no quotes, each variable as a `*`, parted at everything that may part words.
fn all_words(text: &str) -> Vec<String> {
    let (plain, _) = without_variables(text);
    let plain = without_targets(&plain);
    let parts = plain.split(|c: char| c.is_whitespace() || ";|&()<>=:,`{}".contains(c));
    // A quoted path may have blanks.
    let quoted = text.split(['"', '\'']).filter(|part| part.contains(' ') && part.contains('/'));
    let quoted = quoted.map(|part| without_variables(part).0);
    let bare = |word: &str| word.trim_start_matches(['-', '@', '+']).to_owned();
    parts.map(bare).chain(quoted).filter(|word| !word.is_empty()).collect()
}

/// `text` without the files that it writes by `>`: what a hook logs changes with every run.
pub(super) fn without_targets(text: &str) -> String {
    let mut pieces = text.split('>');
    let mut kept = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let piece = piece.trim_start_matches(['|', '&']).trim_start();
        let end = piece.find(|c: char| c.is_whitespace() || ";|&()<".contains(c)).unwrap_or(piece.len());
        kept.push(' ');
        kept.push_str(&piece[end..]);
    }
    kept
}

/// `text` without quotes and backslashes, with a `*` in the place of each variable, and the names of these. What a
/// variable is without a value stands at the end.
fn without_variables(text: &str) -> (String, Vec<String>) {
    let (mut plain, mut others, mut names) = (String::new(), String::new(), Vec::new());
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        rest = &rest[sign.len_utf8()..];
        match sign {
            '"' | '\'' | '\\' => {}
            '$' if rest.starts_with('{') => {
                let inside = rest[1..].split('}').next().unwrap_or_default();
                let name_end = inside.find(|c: char| !is_name(c)).unwrap_or(inside.len());
                names.push(inside[..name_end].to_owned());
                others.push(' ');
                others.push_str(&inside[name_end..]);
                plain.push('*');
                rest = rest[1 + inside.len()..].trim_start_matches('}');
            }
            '$' => {
                let name_end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
                if name_end > 0 {
                    names.push(rest[..name_end].to_owned());
                    plain.push('*');
                    rest = &rest[name_end..];
                }
            }
            other => plain.push(other),
        }
    }
    (format!("{plain}{others}"), names)
}

fn is_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// The end of the path that `word` may be, below `folder`; nothing of it that leads elsewhere.
fn end<'a>(word: &'a str, folder: &Path) -> Option<&'a str> {
    let own = folder.to_str().and_then(|folder| word.strip_prefix(folder)).unwrap_or(word);
    let mut end = own.rsplit_once("*/").map_or(own, |(_, end)| end);
    while let Some(shorter) = ["/", "./", "../"].iter().find_map(|start| end.strip_prefix(*start)) {
        end = shorter;
    }
    let leads = end.is_empty() || end.split('/').any(|name| name == "..") || !end.contains(is_name);
    (!leads).then_some(end)
}

/// The folders below `folder` that `words` name, each with those above it; first `folder` itself, as an empty path. Also
/// whether there are more.
fn folders(words: &[String], folder: &Path) -> (Vec<PathBuf>, bool) {
    let (mut all, mut more) = (vec![PathBuf::new()], false);
    for word in words {
        // Of a pattern, what stands before it.
        let own = folder.to_str().and_then(|folder| word.strip_prefix(folder)).unwrap_or(word);
        let fixed = end(word, folder).map(|end| match end.find(['*', '?', '[']) {
            Some(at) => end[..at].rsplit_once('/').map_or("", |(above, _)| above),
            None => end,
        });
        let fixed = fixed.into_iter().chain(own.split_once("/*").map(|(above, _)| above.trim_start_matches("./")));
        for name in fixed.filter(|name| !name.is_empty() && !name.starts_with('/') && !name.contains("..")) {
            let named = Path::new(name);
            if !folder.join(named).is_dir() {
                continue;
            }
            for above in named.ancestors().filter(|above| !above.as_os_str().is_empty()) {
                let is_new = !all.iter().any(|known| known == above);
                let has_room = all.len() < MAX_FOLDERS;
                more |= is_new && !has_room;
                if is_new && has_room {
                    all.push(above.to_owned());
                }
            }
        }
    }
    (all, more)
}

/// The files that a search of the `folders` below `folder` may find and run: those that `words` name or have a pattern for.
fn searched(words: &[String], folders: &[PathBuf], folder: &Path) -> BTreeSet<PathBuf> {
    let has = |programs: &[&str]| words.iter().any(|word| programs.contains(&word.as_str()));
    let (interprets, runs_all) = (has(&INTERPRETERS), has(&["run-parts"]));
    let last = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let patterns: Vec<String> = words.iter().map(|word| last(word)).filter(|last| last.contains(is_name)).collect();
    let mut found = BTreeSet::new();
    for base in folders {
        // Of the whole folder only what lies in it: its files are what is worked on.
        let is_whole = base.as_os_str().is_empty();
        for path in below(&folder.join(base), !is_whole).unwrap_or_default() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_named = patterns.iter().any(|pattern| fits(pattern, &name)) || (runs_all && !is_whole);
            if is_named && (interprets || is_executable(&path)) {
                found.insert(path);
            }
        }
    }
    found
}

/// The files in `folder`, and in the folders in it if it is looked `deep`; nothing if they are too many.
fn below(folder: &Path, deep: bool) -> Option<Vec<PathBuf>> {
    let (mut found, mut left, mut seen) = (Vec::new(), vec![folder.to_owned()], 0);
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            let is_skipped = SKIPPED.iter().any(|name| entry.file_name() == *name);
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => left.extend((deep && !is_skipped).then(|| entry.path())),
                Ok(_) => found.push(entry.path()),
                Err(_) => {}
            }
            seen += 1;
            if seen > MAX_FILES {
                return None;
            }
        }
    }
    Some(found)
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|of| of.permissions().mode() & 0o111 != 0)
}

fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?', '['])
}

/// Whether `pattern` may stand for `name`; what is no `*` in it and no letter of a name may stand for anything, too.
fn fits(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split(['*', '?', '[', ']']);
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    if !is_pattern(pattern) {
        return rest.is_empty();
    }
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            // The letters of a class stand for one of them.
            None if pattern.contains('[') => {}
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project with scripts in `real`.
    fn project() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in
            ["real/g.sh", "real/g.py", "real/sub/h.sh", "real/package.json", "src/a.js", "package.json", "my dir/x.sh"]
        {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        dir
    }

    fn meant(text: &str, dir: &Path) -> Vec<String> {
        let short = |path: PathBuf| path.strip_prefix(dir).unwrap().display().to_string();
        files(text, dir).into_iter().map(short).collect()
    }

    #[test]
    fn a_file_is_meant_however_the_text_comes_to_it() {
        let dir = project();
        for text in [
            "cd real && ./g.sh",
            "R=real; $R/g.sh",
            "${CLAUDE_PROJECT_DIR:-.}/real/g.sh",
            "${GUARD:-real/g.sh}",
            r"r\eal/g.sh",
            "`pwd`/real/g.sh",
            "\"$(pwd)/real/g.sh\"",
            r"find real -name g.sh -exec sh {} \;",
            r"find . -path './real/*' -name 'g.s?' -exec sh {} \;",
            "PATH=$PWD/real:$PATH g.sh",
            "sh real/*.sh",
            "for f in real/*.sh; do sh \"$f\"; done",
            "A=g; sh real/$A.sh",
            "cd real/sub && ../g.sh",
            "env -C real sh g.sh",
            "sh {real,src}/g.sh",
        ] {
            let found = meant(text, dir.path());
            assert!(found.contains(&"real/g.sh".to_owned()), "{text}: {found:?}");
        }
        let absolute = format!("cd {}/real; sh g.sh", dir.path().display());
        assert!(meant(&absolute, dir.path()).contains(&"real/g.sh".to_owned()));
        assert!(meant("python3 -m real.g", dir.path()).contains(&"real/g.py".to_owned()));
        assert!(meant("python3 -c 'import real.g'", dir.path()).contains(&"real/g.py".to_owned()));
        assert!(meant("npm test --prefix real", dir.path()).contains(&"real/package.json".to_owned()));
        assert_eq!(meant("sh \"$CLAUDE_PROJECT_DIR/my dir/x.sh\"", dir.path()), ["my dir/x.sh"]);
    }

    #[test]
    fn what_is_only_worked_on_is_not_meant() {
        let dir = project();
        for text in [
            "npx eslint src",
            "cd src && npx eslint .",
            "grep -r x .",
            "cd \"$CLAUDE_PROJECT_DIR\" && ruff check",
            "$X",
        ] {
            assert_eq!(meant(text, dir.path()), Vec::<String>::new(), "{text}");
        }
        for number in 0..=MAX_FILES {
            fs::write(dir.path().join(format!("real/sub/{number}.sh")), "").unwrap();
        }
        assert!(meant("sh real/sub/*.sh", dir.path()).is_empty(), "too many to be looked at");
    }

    #[test]
    fn what_a_command_writes_is_not_what_it_runs() {
        let dir = project();
        for text in ["cd real && echo x >g.sh", "cd real; date >> g.sh 2>&1", "echo x &>real/g.sh", "true >|real/g.sh"]
        {
            assert_eq!(meant(text, dir.path()), Vec::<String>::new(), "{text}");
        }
        assert_eq!(meant("cd real && echo >log; sh g.sh", dir.path()), ["real/g.sh"]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let texts: [(&str, &[&str]); 9] = [
            ("sh \"$CLAUDE_PROJECT_DIR/guard.sh\"", &[]),
            ("python3 guard.py --strict", &[]),
            ("cd real && ./g.sh", &["`cd`"]),
            ("R=real; $R/g.sh", &["`$R`"]),
            ("python3 -m real.g", &["`-m`"]),
            ("`pwd`/g.sh", &["`$(…)`"]),
            ("PATH=$PWD/real:$PATH g.sh", &["`PATH=`", "`$PATH`"]),
            ("npm test", &["`npm`"]),
            ("find . -exec sh {} +", &["`find`"]),
        ];
        for (text, expected) in texts {
            assert_eq!(unread(text, None), expected, "{text}");
        }
    }

    #[test]
    fn what_is_more_than_is_looked_at_is_named() {
        let dir = project();
        let many = format!("sh real/g.sh {}", "x ".repeat(MAX_WORDS));
        assert_eq!(unread(&many, None), ["more than 200 words"]);
        let plain = "sh \"$CLAUDE_PROJECT_DIR/real/g.sh\"";
        for number in 0..=MAX_FILES {
            fs::write(dir.path().join(format!("real/sub/{number}.sh")), "").unwrap();
        }
        assert_eq!(unread("sh real/sub/*.sh", Some(dir.path())), ["more than 200 files in `real/sub`"]);
        assert_eq!(unread("find src -name '*.js' -exec sh {} +", Some(dir.path())), ["`find`"]);
        assert_eq!(unread(plain, Some(dir.path())), Vec::<String>::new());
        let folders: Vec<String> = (0..=MAX_FOLDERS).map(|number| format!("f{number}")).collect();
        for folder in &folders {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        assert_eq!(unread(&format!("sh {}", folders.join(" ")), Some(dir.path())), ["more than 16 folders"]);
    }
}
