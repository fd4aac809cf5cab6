//! `git`.

mod carries;
mod settings;

use crate::read::{List, Reading};
use crate::run::Run;
use crate::run::options::{begun, bundled};
use crate::state::{Certainty, Field, Folders, Output, State};

/// Commands of git itself; what else is asked for is an alias somewhere.
const COMMANDS: &str = " add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap \
    check-ref-format checkout checkout-index cherry cherry-pick clean clone column commit commit-graph commit-tree config count-objects \
    credential daemon describe diff diff-files diff-index diff-tree difftool fast-export fast-import fetch filter-branch filter-repo fmt-merge-msg \
    for-each-ref format-patch fsck gc grep gui hash-object help init interpret-trailers lfs log ls-files ls-remote ls-tree mailinfo \
    maintenance merge merge-base merge-file merge-tree mergetool mv name-rev notes pack-objects pack-refs patch-id prune \
    pull push range-diff read-tree rebase reflog remote replace repack request-pull rerere reset restore rev-list rev-parse revert rm \
    send-email shortlog show show-branch show-ref sparse-checkout stage stash status submodule subtree switch symbolic-ref tag \
    update-index update-ref var verify-commit verify-tag version whatchanged worktree write-tree flow svn instaweb bugreport citool ";

/// Options before the command that take no word after them, or with `=` one of their own.
const FLAGS: &str = " -p --paginate -P --no-pager --bare --no-replace-objects --no-lazy-fetch --no-optional-locks --no-advice \
    --literal-pathspecs --no-literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --exec-path --html-path \
    --man-path --info-path -h --help -v --version --noop --git-dir= --work-tree= --namespace= --super-prefix= --attr-source= \
    --list-cmds= ";

/// Commands that `hub` has besides.
const HUB: &[&str] = &[
    "api",
    "browse",
    "ci-status",
    "compare",
    "create",
    "delete",
    "fork",
    "gist",
    "issue",
    "pr",
    "pull-request",
    "release",
    "sync",
];

/// Commands that lose or publish something, by what stands after them.
const CHANGING: &[&str] = &[
    "push",
    "reset",
    "clean",
    "checkout",
    "restore",
    "branch",
    "tag",
    "update-ref",
    "rm",
    "config",
    "remote",
    "stash",
    "reflog",
    "worktree",
];

/// The options of a command of git whose values it writes, and those whose values it reads.
fn git_places(command: &str) -> (&'static str, &'static str) {
    match command {
        "archive" | "bugreport" | "diagnose" => ("-o --output --output-directory", "--add-file"),
        "format-patch" => ("-o --output --output-directory", "--signature-file"),
        "mailsplit" => ("-o", ""),
        "index-pack" => ("-o", ""),
        "apply" => ("--directory --build-fake-ancestor", ""),
        "am" => ("--directory", ""),
        "checkout-index" => ("--prefix", ""),
        "read-tree" => ("--index-output --prefix", ""),
        "fast-export" | "fast-import" => ("--export-marks --export-pack-edges", "--import-marks"),
        "commit-graph" | "multi-pack-index" => ("--object-dir", ""),
        "credential" | "credential-store" => ("--file", ""),
        "commit" | "tag" | "notes" | "merge" | "commit-tree" => ("", "-F --file -t --template"),
        "checkout" | "restore" | "add" | "reset" | "rm" => ("", "--pathspec-from-file"),
        "stash" => ("--output", "--pathspec-from-file"),
        "diff" | "log" | "show" | "shortlog" | "diff-tree" | "diff-index" | "diff-files" | "rev-list"
        | "range-diff" | "whatchanged" => ("--output", "-O"),
        _ => ("--output", ""),
    }
}

impl Reading<'_> {
    pub(super) fn git(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let mut inner = state.clone();
        let words = &run.argv[1..];
        let mut at = 0;
        while let Some(field) = words.get(at) {
            let text = field.text.as_str();
            if !text.starts_with('-') || text.len() == 1 {
                break;
            }
            at += 1;
            let next = words.get(at).cloned().unwrap_or_default();
            match text {
                "-C" => {
                    inner.place.cwd = if next.is_exact() { inner.place.cwd.below(&next.text) } else { Folders::ANY };
                    at += 1;
                }
                "-c" => {
                    self.git_setting(&next, &inner);
                    at += 1;
                }
                "--config-env" | "--exec-path" if words.len() > at => {
                    self.unknown(format!("`git {text}` makes it run something else"))
                }
                "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix" | "--attr-source" | "--shallow-file" => {
                    at += 1;
                }
                _ if text.starts_with("--exec-path=") || text.starts_with("--config-env=") => {
                    self.unknown(format!("`git {text}` makes it run something else"));
                }
                _ if FLAGS.contains(&format!(" {} ", text.split_inclusive('=').next().unwrap_or(text))) => {}
                // It may take the next word, so that the command is another one.
                _ => self.unknown(format!("what `git {text}` means cannot be known")),
            }
        }
        let Some(command) = words.get(at) else { return Output::Unknown };
        if run.name == "hub" && HUB.contains(&command.text.as_str()) {
            return Output::Unknown;
        }
        if !command.is_exact() || !COMMANDS.contains(&format!(" {} ", command.text)) {
            self.unknown(format!("what `git {}` stands for cannot be known", command.text));
            return Output::Unknown;
        }
        self.home_of_client(state);
        if self.has_made_hook() {
            self.pipes("`git` may run a hook that the text has just written".to_owned());
        }
        let before = &words[..at];
        self.git_elsewhere(&command.text, before, &inner);
        self.git_command(&command.text, &words[at + 1..], run, &mut inner);
        self.git_prints(&command.text, &words[at + 1..], &inner, state)
    }

    /// A command that changes a repository outside of the workspace writes there.
    fn git_elsewhere(&mut self, command: &str, before: &[Field], state: &State) {
        let looks = [
            "status",
            "log",
            "diff",
            "show",
            "rev-parse",
            "ls-files",
            "branch",
            "remote",
            "config",
            "blame",
            "describe",
            "grep",
            "tag",
            "ls-remote",
            "cat-file",
            "shortlog",
            "version",
            "help",
            "rev-list",
            "reflog",
            "clone",
            "init",
            "check-ignore",
            "ls-tree",
            "show-ref",
            "for-each-ref",
            "stash",
            "worktree",
        ];
        let given = before.iter().filter_map(|field| {
            field.text.strip_prefix("--work-tree=").or_else(|| field.text.strip_prefix("--git-dir="))
        });
        let next = before
            .windows(2)
            .filter(|pair| pair[0].text == "--work-tree" || pair[0].text == "--git-dir")
            .map(|pair| pair[1].text.as_str());
        let folders: Vec<&str> = given.chain(next).chain(["."]).collect();
        if looks.contains(&command) && command != "init" {
            return;
        }
        for folder in folders {
            for path in state.place.cwd.resolve(folder) {
                if !self.is_inside(&path) {
                    self.note(List::Writes, &path);
                }
            }
        }
    }

    /// What is printed by the commands that list names.
    fn git_prints(&self, command: &str, words: &[Field], inner: &State, state: &State) -> Output {
        let has = |word: &str| words.iter().any(|field| field.text == word);
        let letter = |letter: char| {
            let clusters = words.iter().filter_map(|field| field.text.strip_prefix('-'));
            clusters.filter(|cluster| !cluster.starts_with('-')).any(|cluster| cluster.contains(letter))
        };
        // Files that git does not keep may be hidden ones that nobody is meant to read: above all those it ignores.
        let ignored = letter('i') || has("--ignored");
        let others =
            command == "ls-files" && (ignored || ((letter('o') || has("--others")) && !has("--exclude-standard")));
        let named = match command {
            "ls-files" => true,
            "diff" | "show" | "diff-tree" => has("--name-only"),
            "grep" => has("-l") || has("--files-with-matches"),
            _ => false,
        };
        if named && inner.place.cwd == state.place.cwd && words.iter().all(Field::is_known) {
            let valued = |at: usize| {
                at > 0 && ["-x", "-X", "--exclude", "--exclude-from"].contains(&words[at - 1].text.as_str())
            };
            let operands = words.iter().enumerate().filter(|(at, field)| !field.text.starts_with('-') && !valued(*at));
            let pattern = operands
                .map(|(_, field)| field)
                .rfind(|_| command == "ls-files")
                .map_or(if others { "*" } else { "[^.]*" }, |field| field.text.as_str());
            return Output::Files(vec![Field { text: format!("./**/{pattern}"), certainty: Certainty::Glob }]);
        }
        // The name of a branch is not an option and leads nowhere else; it is not known all the same.
        let text = words.iter().map(|field| field.text.as_str()).collect::<Vec<_>>().join(" ");
        let branch = match command {
            "branch" => text == "--show-current",
            "rev-parse" => ["--abbrev-ref HEAD", "HEAD", "--short HEAD", "--verify HEAD"].contains(&text.as_str()),
            "symbolic-ref" => text == "--short HEAD" || text == "-q --short HEAD",
            _ => false,
        };
        if branch {
            Output::Files(vec![Field { text: format!("$(git {command} {text})"), certainty: Certainty::Glob }])
        } else {
            Output::Unknown
        }
    }

    fn git_command(&mut self, command: &str, words: &[Field], run: &Run<'_>, state: &mut State) {
        let unsure = words.iter().any(|field| CHANGING.contains(&command) && !field.is_known());
        if unsure {
            self.unknown(format!("the arguments of `git {command}` cannot be known"));
        }
        self.git_carries(command, words, state);
        let operands = || words.iter().filter(|field| !field.text.starts_with('-'));
        match command {
            "rm" if !words.iter().any(|field| field.text == "--cached") => {
                operands().for_each(|field| self.deletes(field, run.name, state))
            }
            "mv" => {
                let list: Vec<&Field> = operands().collect();
                if let Some((target, sources)) = list.split_last() {
                    sources.iter().for_each(|field| self.deletes(field, run.name, state));
                    self.writes(target, run.name, state);
                    let targets = self.target(target, run.name, state);
                    sources.iter().for_each(|field| self.written_below(field, &targets, "git"));
                }
            }
            "restore" => {
                // What it restores from is no file.
                let is_source = |at: usize| at > 0 && ["-s", "--source"].contains(&words[at - 1].text.as_str());
                let files =
                    words.iter().enumerate().filter(|(at, field)| !field.text.starts_with('-') && !is_source(*at));
                files.for_each(|(_, field)| self.touches(field, run.name, state));
            }
            "checkout" => {
                if let Some(dashes) = words.iter().position(|field| field.text == "--") {
                    words[dashes + 1..].iter().for_each(|field| self.touches(field, run.name, state));
                }
            }
            "clone" | "init" => self.git_makes(command, words, state),
            "worktree"
                if words.first().is_some_and(|field| ["add", "remove", "move"].contains(&field.text.as_str())) =>
            {
                // Any of the words may be the folder; the name of a branch does no harm as one.
                for folder in words[1..].iter().filter(|field| !field.text.starts_with('-')) {
                    self.touches(folder, run.name, state);
                }
            }
            "add" | "hash-object" | "blame" | "show" | "cat-file" | "diff" | "grep" => {
                self.git_reads(command, words, state)
            }
            "log" if words.iter().any(|field| ["-p", "-u", "--patch"].contains(&field.text.as_str())) => {
                words.iter().skip_while(|field| field.text != "--").for_each(|field| self.reads(field, state));
            }
            "apply" | "am" => {
                operands().for_each(|field| self.reads(field, state));
                if words.iter().any(|field| field.text.starts_with("--unsafe") || field.text.starts_with("--no-safe")) {
                    self.unknown(format!("`git {command} --unsafe-paths` may write anywhere"));
                }
            }
            "config" => self.git_config(words, state),
            _ => self.git_writes(command, words, run, state),
        }
        let (written, read) = git_places(command);
        for target in super::option_values(words, written) {
            self.touches(&target, run.name, state);
        }
        for file in super::option_values(words, read) {
            self.reads(&file, state);
        }
        for field in words {
            if crate::paths::is_url(&field.text) && field.is_known() {
                self.url(&field.text);
            }
            if field.text.starts_with("ext::") || field.text.starts_with("fd::") {
                self.unknown("a remote of `git` runs a command".to_owned());
            }
        }
    }

    /// Commands that write files which their operands name.
    fn git_writes(&mut self, command: &str, words: &[Field], run: &Run<'_>, state: &State) {
        let operands = || words.iter().filter(|field| !field.text.starts_with('-'));
        match command {
            "bundle" => {
                let file = operands().nth(1);
                if words.first().is_some_and(|verb| verb.text == "create") {
                    file.into_iter().for_each(|field| self.touches(field, run.name, state));
                }
            }
            "submodule" | "merge-file" => {
                let folder = if command == "merge-file" { operands().next() } else { operands().nth(2) };
                let adds = command == "merge-file" || words.iter().any(|field| field.text == "add");
                folder.filter(|_| adds).into_iter().for_each(|field| self.touches(field, run.name, state));
            }
            "interpret-trailers" if words.iter().any(|field| field.text == "--in-place") => {
                operands().for_each(|field| self.touches(field, run.name, state));
            }
            "pack-objects" | "index-pack" => operands().for_each(|field| self.touches(field, run.name, state)),
            _ => {}
        }
    }

    /// Files whose text git shows.
    fn git_reads(&mut self, command: &str, words: &[Field], state: &State) {
        let has = |list: &[&str]| words.iter().any(|field| list.contains(&field.text.as_str()));
        let wide = has(&[".", "./", ":/", "*", "-A", "--all", "-fA", "-Af"]);
        // What git is told to ignore, it takes by force only.
        let forced = command == "add" && has(&["-f", "--force", "-fA", "-Af"]);
        if wide && (forced || (command == "diff" && has(&["--no-index"]))) {
            self.hidden_here(state);
        }
        let untracked = has(&["--no-index", "--untracked", "--no-exclude-standard"]);
        if command == "grep" && untracked && has(&["", ".", ".*", "^", "$", "=", "-v"]) {
            self.hidden_here(state);
        }
        // The first operand of `grep` is a pattern, unless an option is.
        let pattern = command == "grep" && !words.iter().any(|field| gives_pattern(&field.text));
        for field in words.iter().filter(|field| !field.text.starts_with('-')).skip(usize::from(pattern)) {
            let path = match (command, field.text.split_once(':')) {
                ("show" | "cat-file" | "diff", Some((_, path))) => path.trim_start_matches("./"),
                ("show" | "cat-file", None) => continue,
                (_, _) => field.text.as_str(),
            };
            self.reads(&Field { text: path.to_owned(), certainty: field.certainty }, state);
        }
    }

    fn git_makes(&mut self, command: &str, words: &[Field], state: &mut State) {
        let valued = [
            "-b",
            "--branch",
            "-o",
            "--origin",
            "--depth",
            "--reference",
            "--template",
            "-j",
            "--jobs",
            "--filter",
            "-c",
            "--config",
            "-u",
            "--upload-pack",
            "--separate-git-dir",
        ];
        let mut operands = Vec::new();
        let mut skip = false;
        for field in words {
            if !std::mem::take(&mut skip) && !field.text.starts_with('-') {
                operands.push(field);
            }
            skip = valued.contains(&field.text.as_str());
        }
        let folder = if command == "clone" { operands.get(1) } else { operands.first() };
        if let Some(folder) = folder {
            self.touches(folder, "git", state);
        }
        if command == "clone"
            && let Some(url) = operands.first()
        {
            let name = url.text.trim_end_matches('/').trim_end_matches(".git");
            let name =
                Field { text: name.rsplit(['/', ':']).next().unwrap_or_default().to_owned(), certainty: url.certainty };
            self.unpacked_into(folder.copied().unwrap_or(&name), state);
        }
        for (index, field) in words.iter().enumerate() {
            let value = bundled(&field.text, "c", "bouj").or(begun(&field.text, &["--config"]));
            let next = words.get(index + 1).cloned();
            let attached = |value: &str| Field { text: value.to_owned(), certainty: field.certainty };
            if let Some(setting) = value.and_then(|value| if value.is_empty() { next } else { Some(attached(value)) }) {
                self.git_setting(&setting, state);
            }
        }
        if words
            .iter()
            .any(|field| field.text.starts_with("--template") || field.text.starts_with("--separate-git-dir"))
        {
            self.unknown(format!("`git {command}` takes hooks from elsewhere"));
        }
    }

    fn git_config(&mut self, words: &[Field], state: &State) {
        let files = super::option_values(words, "-f --file");
        let plain = words.iter().filter(|field| !field.text.starts_with('-') && !files.contains(field)).count();
        for file in &files {
            self.reads(file, state);
            if plain > 1 {
                self.touches(file, "git", state);
            }
        }
        if words.iter().any(|field| field.text == "--global" || field.text == "--system")
            && words.iter().filter(|field| !field.text.starts_with('-')).count() > 1
        {
            self.note(
                List::Writes,
                if words.iter().any(|field| field.text == "--system") { "/etc/gitconfig" } else { "~/.gitconfig" },
            );
        }
        let plain: Vec<&Field> = words
            .iter()
            .filter(|field| !field.text.starts_with('-') && field.text != "set" && !files.contains(field))
            .collect();
        if let [name, value, ..] = plain.as_slice() {
            let certainty = name.certainty.max(value.certainty);
            self.git_setting(&Field { text: format!("{}={}", name.text, value.text), certainty }, state);
        }
    }
}

/// Whether `option` of `git grep` gives the pattern, or a file of patterns.
fn gives_pattern(option: &str) -> bool {
    let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    letters.is_some_and(|letters| letters.contains(['e', 'f'])) || option == "--"
}
