//! Programs that change what they find below a folder: files of any kind, or of those that they know.

use pintle_domain::shell::ShellFacts;

use super::by_name::run_by;
use super::{Look, path_at};

/// Such programs, and the words of which one has to be there; none where they always change what they find.
const CHANGES_BELOW: [(&str, &[&str]); 13] = [
    ("autoflake autopep8 black djlint isort mdformat phpcbf pyupgrade standardrb", &[]),
    ("buildifier gofmt gofumpt goimports shfmt yapf", &["-i", "-w", "--in-place"]),
    ("prettier oxfmt", &["-w", "--write"]),
    ("biome eslint markdownlint markdownlint-cli2 oxlint standard stylelint textlint xo", &["--fix", "--write"]),
    ("ruff", &["--fix", "format"]),
    ("buf dart deno dprint go just-fmt mix scalafmt taplo terraform tofu zig", &["fmt", "format"]),
    ("php-cs-fixer sqlfluff", &["fix", "format"]),
    ("rubocop", &["-A", "-a", "--autocorrect", "--autocorrect-all"]),
    ("codespell typos", &["-w", "--write-changes"]),
    ("convmv detox fastmod recode rpl", &[]),
    ("swiftformat ktlint", &[]),
    (COMPRESSES, &[]),
    (OF_LINES, &[]),
];

/// Those of them that take files of any kind away, and leave others in their place.
const COMPRESSES: &str = "compress gunzip gzip lz4 pigz uncompress unlz4 unpigz unzstd zstd";

/// Those that change the ends of lines.
const OF_LINES: &str = "dos2unix mac2unix unix2dos unix2mac";

/// Words with which all of them only look.
const LOOKS: [&str; 9] =
    ["--check", "--check-only", "--diff", "--dry-run", "--help", "--list", "--stdout", "--test", "--version"];

/// What makes a word a pattern, or one that is not known.
const SIGNS: [char; 8] = ['*', '?', '[', '{', '$', '`', '…', '('];

impl Look<'_> {
    /// Why a program must not change what it finds below a folder in which settings of the person lie, or what guards an
    /// agent. What lies in a project is looked at where the program takes files of any kind.
    pub(super) fn changed_below(&self, facts: &ShellFacts) -> Option<String> {
        facts.commands.iter().find_map(|command| {
            let (name, words) = run_by(command.name.as_str(), command.argv.get(1..).unwrap_or_default());
            let name = name.split('@').next().unwrap_or(name);
            if !changes_below(name, words) {
                return None;
            }
            let whole = |word: &str| path_at(word, command).replace("/./", "/").trim_end_matches("/.").to_owned();
            let folders: Vec<String> = folders(name, words).into_iter().map(whole).collect();
            if let Some(folder) = folders.iter().find(|folder| self.holds_guarded(folder)) {
                return Some(holds_settings(name, folder));
            }
            let is_deep = is_one_of(COMPRESSES, name) && words.iter().any(|word| is_recursive(word));
            let mut below = folders.iter().filter(|_| is_deep);
            let folder = below.find(|folder| self.all_below(folder, Self::written).is_some())?;
            Some(holds_settings(name, folder))
        })
    }
}

fn holds_settings(name: &str, folder: &str) -> String {
    format!(
        "`{name}` would change all that it finds below `{folder}`, where settings of agents lie or what guards this one: \
         name the folders in it that are meant"
    )
}

fn is_one_of(names: &str, name: &str) -> bool {
    names.split(' ').any(|one| one == name)
}

/// Whether the program `name` changes files below the folders that `words` name.
fn changes_below(name: &str, words: &[String]) -> bool {
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let is_it = |(names, needed): &(&str, &[&str])| is_one_of(names, name) && (needed.is_empty() || has(needed));
    // `-c` puts out, `-l` lists and `-t` tests.
    let looks = |word: &String| is_row(word) && word.contains(['c', 'l', 't']);
    let only_looks = is_one_of(COMPRESSES, name) && words.iter().any(looks);
    !only_looks && !has(&LOOKS) && CHANGES_BELOW.iter().any(is_it)
}

/// Whether `word` is a row of letters.
fn is_row(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--")
}

fn is_recursive(word: &str) -> bool {
    word == "--recursive" || (is_row(word) && word.contains('r'))
}

/// What of `words` may be a folder. Where none is named, many programs take the one in which they stand.
fn folders<'c>(name: &str, words: &'c [String]) -> Vec<&'c str> {
    let plain = |word: &&str| !word.starts_with('-') && !word.is_empty() && !word.contains(SIGNS);
    let named = words.iter().map(String::as_str).filter(plain).map(|word| word.trim_end_matches("/..."));
    let named: Vec<&str> = named.collect();
    let is_path = |word: &String| word.contains(['/', '.', '~']) || word == "-";
    let takes_input = is_one_of(COMPRESSES, name) || is_one_of(OF_LINES, name);
    let is_here = !takes_input && !words.iter().any(is_path);
    named.into_iter().chain(is_here.then_some(".")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_changed_below_a_folder_is_known_by_name_and_words() {
        for (text, changed) in [
            ("gzip -r a", Some("a")),
            ("gzip -rc a", None),
            ("zstd -rq --rm a", Some("a")),
            ("prettier --write a b.ts", Some("a b.ts")),
            ("prettier --check a", None),
            ("prettier a", None),
            ("prettier --write **/*.ts", Some("")),
            // It may be the value of an option, too.
            ("black a", Some("a .")),
            ("black --check a", None),
            ("eslint --fix", Some(".")),
            ("eslint a", None),
            ("ruff format", Some("format .")),
            ("go fmt ../...", Some("fmt ..")),
            ("cat a", None),
        ] {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let (name, words) = words.split_first().unwrap();
            let found = changes_below(name, words).then(|| folders(name, words).join(" "));
            assert_eq!(found.as_deref(), changed, "{text}");
        }
    }
}
