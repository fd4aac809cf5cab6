//! Programs that the table alone describes: they read, write, delete or copy their operands.

use crate::paths;
use crate::read::{Content, Reading};
use crate::run::Run;
use crate::run::options::Arguments;
use crate::state::{Certainty, Field, Output, State};

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
        if run.name == "unzip"
            && let Some(folder) = arguments.value(&["-d"])
        {
            self.touches(folder, run.name, state);
        }
        self.searched(run, &arguments, skip, state);
        if run.name == "rg"
            && let Some(program) = super::option_values(&run.argv[1..], "--pre").first()
        {
            // It is run on every file that is searched.
            let found = Field { text: "./**/*".to_owned(), certainty: Certainty::Glob };
            self.inner(&[program.clone(), found], state);
        }
        if matches!(run.name, "jq" | "yq" | "gojq")
            && run.argv.iter().any(|field| field.text.contains("$ENV") || field.text.contains("env"))
        {
            self.note(crate::read::List::Reads, "/proc/self/environ");
        }
        self.listed(run, &arguments, skip, state)
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
            "ls" if operands.is_empty() && !arguments.has(&["-l", "-n", "-o", "-g", "-s", "-i", "-F", "-p", "-m"]) => {
                let hidden = arguments.has(&["-a", "-A", "-f", "--all", "--almost-all"]);
                files(if hidden { vec!["./*".to_owned(), "./.*".to_owned()] } else { vec!["./*".to_owned()] })
            }
            "ls" if arguments.has(&["-d"]) && !arguments.has(&["-l"]) && operands.iter().all(Field::is_known) => {
                Output::Files(operands.to_vec())
            }
            "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack" if names && operands.iter().all(Field::is_known) => {
                if operands.is_empty() {
                    files(vec!["./**/*".to_owned()])
                } else {
                    files(operands.iter().map(|field| format!("{}/**/*", field.text)).collect())
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
        for (path, _) in arguments.operands.iter().filter_map(|field| field.text.rsplit_once('.')) {
            // What comes out of an archive is not written in the text.
            self.unpacked_file(path, run, state);
        }
        quiet(&arguments)
    }

    fn unpacked_file(&mut self, path: &str, run: &Run<'_>, state: &State) {
        let unpacks = run.name.starts_with("un") || run.name.starts_with("gun") || run.name.starts_with("bun");
        if unpacks || run.argv.iter().any(|field| field.text == "-d" || field.text == "--decompress") {
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
        if arguments.has(&["-d", "--directory"]) && run.name == "install" {
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
        if run.name == "ln" {
            self.linking(sources, target, state);
        }
        let here = Field::known(".");
        let target = target.or_else(|| (run.name == "ln" && !sources.is_empty()).then_some(&here));
        if run.name == "split" {
            self.pieces(run, state);
        }
        let Some(target) = target else { return quiet(&arguments) };
        self.copied(sources, target, run.name, state);
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

fn quiet(arguments: &Arguments) -> Output {
    if arguments.has(&["-v", "--verbose", "-c", "--stdout", "--help", "--version"]) {
        Output::Unknown
    } else {
        Output::nothing()
    }
}
