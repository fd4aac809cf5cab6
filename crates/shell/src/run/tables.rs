//! Programs that the table alone describes: they read, write, delete or copy their operands.

use crate::paths;
use crate::read::{Content, Reading};
use crate::run::Run;
use crate::run::options::{self, Arguments, Opt};
use crate::state::{Certainty, Field, Output, State};

/// Options with which `ls` prints more than names.
const LONG: &[&str] = &["-l", "-n", "-o", "-g", "-s", "-i", "-F", "-p", "-m"];

/// Options with which a search prints names or numbers alone.
const NAMES_ALONE: &[&str] = &[
    "-l",
    "-L",
    "-c",
    "-q",
    "--files-with-matches",
    "--files-without-match",
    "--count",
    "--quiet",
    "--silent",
    "--files",
];

/// Programs that put what they are given under its own name into a folder.
const KEEPING: &[&str] = &["cp", "mv", "install", "ln", "ditto", "rsync", "git"];

/// Options with which `rg`, `ag` and `fd` look at hidden files too.
pub(super) const HIDDEN_TOO: &[&str] = &["--hidden", "-.", "-u", "-uu", "-uuu", "--unrestricted"];

/// Programs that unpack files, and those that do so if they are told.
const UNPACKING: &[&str] = &["gunzip", "bunzip2", "unxz", "unzstd", "unlz4", "unlzma", "uncompress", "unpigz"];
const PACKING: &[&str] =
    &["gzip", "bzip2", "xz", "zstd", "lz4", "compress", "pigz", "pbzip2", "lzma", "lzip", "lzop", "brotli"];

impl Reading<'_> {
    pub(super) fn reading(&mut self, run: &Run<'_>, skip: usize, state: &mut State) -> Output {
        let arguments = run.arguments();
        // With `-e` or `-f` the pattern is no operand.
        let skip = if arguments.has(&["-e", "-f", "--regexp", "--file"]) { 0 } else { skip };
        if let Some(file) = arguments.value(&["-f", "--file", "--from-file"]) {
            self.reads(file, state);
        }
        for field in arguments.operands.iter().skip(skip) {
            self.reads(field, state);
        }
        if matches!(run.name, "less" | "more" | "most" | "pg")
            && run.argv[1..].iter().any(|field| field.text.starts_with('+') && field.text.contains('!'))
        {
            self.unknown(format!("`{}` is told to run something", run.name));
        }
        for pager in super::option_values(&run.argv[1..], "--pager --hostname-bin") {
            self.inner_text(&pager, run.name, state);
        }
        if run.name == "less"
            && (arguments.has(&["-k"]) || run.argv.iter().any(|field| field.text.starts_with("--lesskey")))
        {
            self.unknown("`less` is told what its keys run".to_owned());
        }
        self.taken_out(run, &arguments, state);
        if run.name == "unzip" && arguments.has(&["-p", "-c"]) {
            arguments.operands.iter().for_each(|field| self.shown(field, run.name, state));
        } else if run.name == "unzip"
            && !arguments.has(&["-l", "-t", "-v", "-Z", "-z"])
            && arguments.operands.first().is_some_and(|archive| self.content(archive, state).is_some())
        {
            // What comes out of an archive is not written in the text.
            let folder = arguments.value(&["-d"]).cloned().unwrap_or_else(|| Field::known("."));
            self.unpacked_into(&folder, state);
        }
        self.searched(run, &arguments, skip, state);
        self.shown_by_search(run, &arguments, skip, state);
        if run.name == "rg"
            && let Some(program) = super::option_values(&run.argv[1..], "--pre").first()
        {
            // It is run on every file that is searched.
            let found = Field { text: "./**/*".to_owned(), certainty: Certainty::Glob };
            self.inner(&[program.clone(), found], state);
        }
        if matches!(run.name, "jq" | "yq" | "gojq" | "jaq") && run.argv.iter().any(|field| tells_variables(&field.text))
        {
            self.note(crate::read::List::Reads, "/proc/self/environ");
        }
        self.listed(run, &arguments, skip, state)
    }

    /// Where `unzip` and `unrar` put what they take out of an archive, and what they are told to take by its name.
    fn taken_out(&mut self, run: &Run<'_>, arguments: &Arguments, state: &State) {
        let here = Field::known(".");
        match (run.name, arguments.operands.as_slice()) {
            ("unzip", [_, members @ ..]) if !arguments.has(&["-p", "-c", "-l", "-t", "-v", "-Z", "-z"]) => {
                let folder = arguments.value(&["-d"]).unwrap_or(&here);
                self.touches(folder, run.name, state);
                self.members(members, folder, run, state);
            }
            ("unrar", [verb, _, members @ ..]) if matches!(verb.text.as_str(), "x" | "e") => {
                let folder = members.last().filter(|last| last.text.ends_with('/')).unwrap_or(&here);
                self.members(members, folder, run, state);
                self.touches(folder, run.name, state);
            }
            _ => {}
        }
    }

    /// Notes that `run` puts `members` of an archive into `folder`, with their folders or without them. All of a folder is
    /// taken as a whole archive is: what is hidden in it is not told by itself.
    pub(super) fn members(&mut self, members: &[Field], folder: &Field, run: &Run<'_>, state: &State) {
        for member in members.iter().filter(|member| member.is_known() && folder.is_known()) {
            let whole = member.text.trim_start_matches('/');
            let is_plain = |above: &&str| above.split('/').all(|name| !matches!(name, "" | "." | ".."));
            let below = whole.strip_suffix("/*").filter(is_plain).map(|above| format!("{above}/[^.]*"));
            let bare = paths::base_name(member.text.trim_end_matches('/'));
            let bare = Some(bare.to_owned()).filter(|bare| bare != "*" || whole == "*" || drops_folders(run));
            for name in [Some(below.unwrap_or_else(|| whole.to_owned())), bare].into_iter().flatten() {
                let text = format!("{}/{name}", folder.text.trim_end_matches('/'));
                self.touches(&Field { text, certainty: folder.certainty.max(member.certainty) }, run.name, state);
            }
        }
    }

    /// Files that a search looks into by their names.
    fn searched(&mut self, run: &Run<'_>, arguments: &Arguments, skip: usize, state: &State) {
        if !matches!(run.name, "grep" | "egrep" | "fgrep" | "ggrep" | "rg" | "ag" | "ack") {
            return;
        }
        let here = [Field::known(".")];
        let places = arguments.operands.get(skip..).filter(|places| !places.is_empty()).unwrap_or(&here);
        for option in
            arguments.options.iter().filter(|option| ["--include", "-g", "--glob"].contains(&option.name.as_str()))
        {
            for (place, pattern) in places.iter().zip(std::iter::repeat(option.value.as_ref())) {
                let Some(pattern) = pattern.filter(|pattern| !pattern.text.starts_with('!')) else { continue };
                let text = format!("{}/**/{}", place.text, pattern.text);
                self.reads(
                    &Field { text, certainty: place.certainty.max(pattern.certainty).max(Certainty::Glob) },
                    state,
                );
            }
        }
    }

    /// A search for what stands in every line shows all that it looks into.
    fn shown_by_search(&mut self, run: &Run<'_>, arguments: &Arguments, skip: usize, state: &State) {
        let greps = matches!(run.name, "grep" | "egrep" | "fgrep" | "ggrep");
        if !(greps || matches!(run.name, "rg" | "ag" | "ack")) || arguments.has(NAMES_ALONE) {
            return;
        }
        let pattern = arguments.value(&["-e", "--regexp"]).or(arguments.operands.first().filter(|_| skip > 0));
        let every = |field: &Field| field.text.chars().all(|letter| ".*+?^$|(){}=".contains(letter));
        let inverted = arguments.has(&["-v", "--invert-match"]);
        if (!pattern.is_some_and(every) && !inverted) || picks_common(arguments) {
            return;
        }
        let below = match greps {
            true => arguments.has(&["-r", "-R", "--recursive", "--dereference-recursive"]),
            false => arguments.has(HIDDEN_TOO),
        };
        let places = arguments.operands.get(skip..).unwrap_or_default();
        if places.is_empty() && below {
            self.shown(&Field::known("."), run.name, state);
        }
        for place in places {
            // A folder is looked into only if it is told so, or if a search has found what is in it.
            let found = place.text.ends_with("/**/*") || place.text == ".";
            if below || found || !place.is_known() {
                self.shown(place, run.name, state);
            }
        }
    }

    /// What is printed, if that is names of files.
    fn listed(&mut self, run: &Run<'_>, arguments: &Arguments, skip: usize, state: &State) -> Output {
        let operands = arguments.operands.get(skip..).unwrap_or_default();
        let files = |patterns: Vec<String>| {
            Output::Files(patterns.into_iter().map(|text| Field { text, certainty: Certainty::Glob }).collect())
        };
        let filters = matches!(run.name, "grep" | "egrep" | "fgrep" | "head" | "tail" | "uniq" | "tac");
        if filters && operands.is_empty() && !arguments.has(&["-c", "-o", "-n", "-r", "-R"])
            || run.name == "head" && operands.is_empty()
        {
            return match crate::run::outputs::stdin_text(state) {
                Output::Files(files) => Output::Files(files),
                Output::Known(_) | Output::Unknown => Output::Unknown,
            };
        }
        let names = arguments.has(&["-l", "-L", "--files-with-matches", "--files-without-match", "--files"]);
        match run.name {
            "ls" if operands.is_empty() && !arguments.has(LONG) => {
                let hidden = arguments.has(&["-a", "-A", "-f", "--all", "--almost-all"]);
                files(if hidden { vec!["./*".to_owned(), "./.*".to_owned()] } else { vec!["./*".to_owned()] })
            }
            // What has such an ending is hardly a folder.
            "ls" if !operands.is_empty() && !arguments.has(LONG) && operands.iter().all(is_files) => {
                Output::Files(operands.to_vec())
            }
            "ls" if arguments.has(&["-d"]) && !arguments.has(&["-l"]) && operands.iter().all(Field::is_known) => {
                Output::Files(operands.to_vec())
            }
            "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack" if names && operands.iter().all(Field::is_known) => {
                // All but `grep` leave out what is hidden, if nobody tells them otherwise.
                let all = run.name.ends_with("grep") || arguments.has(HIDDEN_TOO);
                let name = if all { "*" } else { "[^.]*" };
                if operands.is_empty() {
                    files(vec![format!("./**/{name}")])
                } else {
                    files(operands.iter().map(|field| format!("{}/**/{name}", field.text)).collect())
                }
            }
            _ => Output::Unknown,
        }
    }

    pub(super) fn writing(&mut self, run: &Run<'_>, skip: usize, state: &mut State) -> Output {
        let arguments = run.arguments();
        self.refuse_unsure(run, &arguments);
        if !arguments.has(&["-c", "--stdout", "--to-stdout", "-t", "--test", "-l", "--list"])
            || run.name == "touch"
            || matches!(run.name, "truncate" | "fallocate")
        {
            let skip = if arguments.has(&["--reference"]) { 0 } else { skip };
            for field in arguments.operands.iter().skip(skip) {
                if matches!(run.name, "chmod" | "chown" | "chgrp" | "touch") {
                    self.touches(field, run.name, state);
                } else {
                    self.writes(field, run.name, state);
                }
            }
        }
        if arguments.has(&["-c", "--stdout", "--to-stdout"]) {
            arguments.operands.iter().for_each(|field| self.reads(field, state));
        }
        if arguments.operands.is_empty() {
            return Output::Unknown;
        }
        if unpacks(run) {
            self.unpacked_files(&arguments, run, state);
        }
        quiet(&arguments)
    }

    /// What comes out of packed files: it has their names without the last ending, unless they say another one themselves.
    fn unpacked_files(&mut self, arguments: &Arguments, run: &Run<'_>, state: &State) {
        let to_output = arguments.has(&["-c", "--stdout", "--to-stdout", "-t", "--test", "-l", "--list"]);
        for field in &arguments.operands {
            if arguments.has(&["-N", "--name"]) && !to_output {
                let folder = field.text.rsplit_once('/').map_or(".", |(folder, _)| folder);
                self.touches(&Field { text: folder.to_owned(), certainty: field.certainty }, run.name, state);
            }
            let parts = field.text.rsplit_once('.');
            let is_ending = |(path, ending): &(&str, &str)| !path.is_empty() && !ending.contains('/');
            let Some((path, _)) = parts.filter(is_ending) else { continue };
            if !to_output {
                self.touches(&Field { text: path.to_owned(), certainty: field.certainty }, run.name, state);
            }
            // What comes out of an archive is not written in the text.
            for path in state.place.cwd.resolve(path) {
                self.made(&path, Content::Unknown);
            }
        }
    }

    /// What is written, but keeps what it holds.
    pub(crate) fn touches(&mut self, field: &Field, who: &str, state: &State) {
        for path in self.target(field, who, state) {
            self.note(crate::read::List::Writes, &path);
        }
    }

    pub(super) fn deleting(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let arguments = run.arguments();
        self.refuse_unsure(run, &arguments);
        for field in &arguments.operands {
            self.deletes(field, run.name, state);
        }
        quiet(&arguments)
    }

    pub(super) fn copying(&mut self, run: &Run<'_>, moves: bool, state: &mut State) -> Output {
        let argv = spelled_out(run);
        let run = &Run { argv: &argv, name: run.name, valued: run.valued };
        let arguments = run.arguments();
        self.refuse_unsure(run, &arguments);
        let folder = arguments.value(&["-t", "--target-directory"]);
        let (sources, target) = match (folder, arguments.operands.as_slice()) {
            (Some(folder), sources) => (sources, Some(folder)),
            (None, []) => (&[][..], None),
            (None, [only]) if run.name == "ln" => (std::slice::from_ref(only), None),
            (None, [only]) => (&[][..], Some(only)),
            (None, [sources @ .., target]) => (sources, Some(target)),
        };
        let makes = |option: &Opt| option.name == "-d" || options::begun(&option.name, &["--directory"]).is_some();
        if run.name == "install" && arguments.options.iter().any(makes) {
            for field in &arguments.operands {
                self.writes(field, run.name, state);
            }
            return Output::nothing();
        }
        for source in sources {
            if moves {
                self.deletes(source, run.name, state);
            }
            self.reads(source, state);
        }
        let named = target;
        let linked = sources.iter().filter(|_| run.name == "ln").cloned();
        let (known, unsure): (Vec<Field>, Vec<Field>) = linked.partition(Field::is_known);
        self.linking(&known, named, state);
        let here = Field::known(".");
        let target = target.or_else(|| (run.name == "ln" && !sources.is_empty()).then_some(&here));
        if run.name == "split" {
            self.pieces(run, state);
        }
        let Some(target) = target else { return quiet(&arguments) };
        self.copied(sources, target, run.name, state);
        // Making a link changes nothing of what nobody knows; what goes through it later may.
        self.linking(&unsure, named, state);
        quiet(&arguments)
    }

    fn linking(&mut self, sources: &[Field], target: Option<&Field>, state: &State) {
        for source in sources {
            let base = paths::base_name(source.text.trim_end_matches('/')).to_owned();
            let link = target.map_or(base.clone(), |target| target.text.clone());
            for link in state.place.cwd.resolve(&link) {
                // The target of a link is meant from where the link lies.
                let folder = link.rsplit_once('/').map_or("", |(folder, _)| folder);
                let folder = if folder.is_empty() { "/" } else { folder };
                if let Some(real) = paths::resolve(&source.text, Some(folder)) {
                    self.linked(format!("{link}/{base}"), real.clone());
                    self.linked(link, real);
                }
            }
        }
    }

    /// Remembers that `target` holds what `sources` held, as a file or as a folder.
    pub(super) fn copied(&mut self, sources: &[Field], target: &Field, who: &str, state: &State) {
        let paths = self.target(target, who, state);
        for path in &paths {
            self.note(crate::read::List::Writes, path);
        }
        for source in sources {
            if !(who == "rsync" && source.text.ends_with('/')) {
                self.written_below(source, &paths, who);
            }
            self.copied_folder(source, &paths, state);
            // A copy of a file that the text did not make is run like that file.
            let program = !source.text.contains('/') && crate::programs::find(&source.text).is_some();
            let outside = program || !self.is_surely_inside(source, state);
            if outside && target.text != "." {
                // It may be a folder.
                self.unpacked_into(target, state);
            }
            let Some(content) = self.content(source, state).or_else(|| outside.then_some(Content::Unknown)) else {
                continue;
            };
            for path in &paths {
                let inside = format!("{}/{}", path.trim_end_matches('/'), paths::base_name(&source.text));
                self.made(path, content.clone());
                self.made(&inside, content.clone());
            }
        }
    }

    /// Notes where `source` comes to lie if `targets` are folders: under its own name.
    pub(super) fn written_below(&mut self, source: &Field, targets: &[String], who: &str) {
        let base = paths::base_name(source.text.trim_end_matches('/'));
        if !KEEPING.contains(&who) || !source.is_known() || matches!(base, "" | "." | "..") {
            return;
        }
        for target in targets {
            if let Some(inside) = paths::resolve(&format!("{}/{base}", target.trim_end_matches('/')), None) {
                self.note(crate::read::List::Writes, &inside);
            }
        }
    }

    /// Remembers that what the text put into the folder `source` lies in `targets` now.
    fn copied_folder(&mut self, source: &Field, targets: &[String], state: &State) {
        for folder in state.place.cwd.resolve(&source.text) {
            for (path, content) in self.made_below(&folder) {
                let rest = &path[folder.len()..];
                for target in targets {
                    let target = target.trim_end_matches('/');
                    self.made(&format!("{target}{rest}"), content.clone());
                    self.made(&format!("{target}/{}{rest}", paths::base_name(&folder)), content.clone());
                }
            }
        }
    }

    /// A word that cannot be known may be an option, or a path that nobody looked at.
    pub(super) fn refuse_unsure(&mut self, run: &Run<'_>, arguments: &Arguments) {
        if arguments.is_unsure() || run.argv.iter().any(|field| !field.is_known()) {
            self.unknown(format!("the arguments of `{}` cannot be known", run.name));
        }
    }
}

/// The words of `run`, which copies, with the options whose value is the next word under their whole names: the programs
/// take any beginning of one.
fn spelled_out(run: &Run<'_>) -> Vec<Field> {
    let own: &[&str] = match run.name {
        "install" => &["--target-directory", "--suffix", "--mode", "--owner", "--group", "--strip-program"],
        "cp" | "mv" | "ln" => &["--target-directory", "--suffix"],
        _ => &[],
    };
    let mut argv = run.argv.to_vec();
    for field in argv.iter_mut().skip(1) {
        let name = field.text.split('=').next().unwrap_or_default();
        let meant = |option: &&&str| name.len() > 2 && name != "--strip" && option.starts_with(name);
        if let Some(whole) = own.iter().find(meant) {
            field.text = format!("{whole}{}", &field.text[name.len()..]);
        }
    }
    argv
}

/// Whether `field` is a pattern for files of one kind, such as `logs/*.log`.
fn is_files(field: &Field) -> bool {
    let name = paths::base_name(&field.text);
    let ending = name.rsplit_once('.').map(|(before, ending)| (before.ends_with('*'), ending));
    field.certainty == Certainty::Glob
        && ending.is_some_and(|(open, ending)| {
            open && !ending.is_empty() && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

/// Whether `run` may leave the folders of what it takes out of an archive, or change them.
fn drops_folders(run: &Run<'_>) -> bool {
    let mut words = run.argv[1..].iter().map(|field| field.text.as_str());
    match run.name {
        "unzip" => words.any(|word| word.starts_with('-') && word.contains('j')),
        "tar" | "bsdtar" | "gtar" => {
            words.any(|word| ["--st", "--tr", "--xf", "-s"].iter().any(|begin| word.starts_with(begin)))
        }
        _ => true,
    }
}

/// Whether a program that packs files is to unpack them.
fn unpacks(run: &Run<'_>) -> bool {
    let told = |field: &Field| match field.text.strip_prefix("--") {
        Some(long) => long.len() > 1 && ["decompress", "uncompress"].iter().any(|whole| whole.starts_with(long)),
        None => field.text.len() > 1 && field.text.starts_with('-') && field.text.contains('d'),
    };
    UNPACKING.contains(&run.name) || (PACKING.contains(&run.name) && run.argv[1..].iter().any(told))
}

fn quiet(arguments: &Arguments) -> Output {
    if arguments.has(&["-v", "--verbose", "-c", "--stdout", "--help", "--version"]) {
        Output::Unknown
    } else {
        Output::nothing()
    }
}

/// Whether the filter `text` of `jq` or `yq` looks at the environment; `.env` is a field of what it reads.
fn tells_variables(text: &str) -> bool {
    let part = |letter: char| letter.is_ascii_alphanumeric() || "_-./$\"".contains(letter);
    let alone = |(at, name): (usize, &str)| {
        !text[..at].ends_with(part) && !text[at + name.len()..].starts_with(|next: char| next.is_ascii_alphanumeric())
    };
    ["$ENV", "strenv(", "envsubst"].iter().any(|name| text.contains(name)) || text.match_indices("env").any(alone)
}

/// Whether a search is told to look only into files whose names no hidden file has, such as `*.rs`.
fn picks_common(arguments: &Arguments) -> bool {
    let globs = arguments.options.iter().filter(|option| ["--include", "-g", "--glob"].contains(&option.name.as_str()));
    let mut globs = globs.filter_map(|option| option.value.as_ref()).peekable();
    let hidden = [".env", ".env.local", ".netrc"];
    globs.peek().is_some()
        && globs.all(|glob| {
            !glob.text.starts_with('!')
                && glob.text.contains('.')
                && !hidden.iter().any(|name| paths::fits(&glob.text, name))
        })
}
