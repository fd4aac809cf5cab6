//! Programs that copy many bytes or files.

use crate::programs::Archives;
use crate::read::{Content, Reading};
use crate::run::Run;
use crate::run::options::{self, Arguments, Opt};
use crate::state::{Certainty, Field, Folders, Output, State};

impl Reading<'_> {
    pub(super) fn archiving(&mut self, run: &Run<'_>, archives: Archives, state: &mut State) -> Output {
        match archives {
            Archives::Dd => self.dd(run, state),
            Archives::Packs => self.packed(run, state),
            Archives::Tar => self.tar(run, state),
            Archives::Zip => self.zip(run, state),
            Archives::Rsync => self.rsync(run, state),
        }
        Output::Unknown
    }

    fn dd(&mut self, run: &Run<'_>, state: &mut State) {
        for field in &run.argv[1..] {
            let part = |name: &str| {
                field.text.strip_prefix(name).map(|path| Field { text: path.to_owned(), certainty: field.certainty })
            };
            if field.certainty == Certainty::Many {
                self.unknown("the arguments of `dd` cannot be known".to_owned());
            }
            if field.certainty == Certainty::Glob && !field.text.contains('=') {
                // One of the names that `if=$(…)` may be.
                self.reads(field, state);
            }
            if let Some(path) = part("of=") {
                self.writes(&path, run.name, state);
            }
            if let Some(path) = part("if=") {
                self.reads(&path, state);
                self.shown(&path, run.name, state);
            }
        }
    }

    fn tar(&mut self, run: &Run<'_>, state: &mut State) {
        let argv = dashed(run);
        let run = Run { argv: &argv, name: run.name, valued: run.valued };
        let arguments = run.arguments();
        if argv.iter().any(|field| field.certainty == Certainty::Many) {
            self.unknown("the arguments of `tar` cannot be known".to_owned());
        }
        self.tar_runs(&run, &arguments, state);
        let base = arguments.value(&["-C", "--directory"]).cloned();
        let mut there = state.clone();
        if let Some(base) = &base {
            there.place.cwd = if base.is_known() { state.place.cwd.below(&base.text) } else { Folders::ANY };
        }
        let fetched =
            match arguments.value(&["-f", "--file"]).filter(|file| !["-", "/dev/stdout"].contains(&file.text.as_str()))
            {
                Some(file) => self.content(file, state).is_some(),
                None => state.stdin != crate::state::Stdin::Inherited,
            };
        let archive = arguments
            .value(&["-f", "--file"])
            .filter(|file| !["-", "/dev/stdout"].contains(&file.text.as_str()))
            .cloned();
        let makes = arguments.has(&["-c", "-r", "-u", "--create", "--append", "--update"]);
        if let Some(list) = arguments.value(&["-T", "--files-from"]) {
            self.reads(list, state);
            if let (true, Some(Content::OneOf(texts))) = (makes, self.content(list, state)) {
                texts.iter().flat_map(|text| text.lines()).for_each(|name| self.reads(&Field::known(name), &there));
            }
        }
        let packed = archive.clone();
        if let Some(archive) = archive {
            if makes {
                self.writes(&archive, run.name, state);
            } else {
                self.reads(&archive, state);
            }
        }
        if makes {
            arguments.operands.iter().for_each(|field| self.reads(field, &there));
            self.packs(packed.as_ref(), &arguments.operands, (&there, state));
            if arguments.has(&["--remove-files"]) {
                arguments.operands.iter().for_each(|field| self.deletes(field, run.name, &there));
            }
        } else if arguments.options.iter().any(takes_out) {
            if arguments.has(&["-O", "--to-stdout"]) {
                packed.iter().for_each(|archive| self.shown(archive, run.name, state));
                arguments.operands.iter().for_each(|member| self.reads(member, state));
            }
            if fetched {
                self.unpacked_into(&base.clone().unwrap_or_else(|| Field::known(".")), state);
            }
            self.unpacked(&base.unwrap_or_else(|| Field::known(".")), &arguments, &run, state);
        }
    }

    /// Programs that `tar` runs.
    fn tar_runs(&mut self, run: &Run<'_>, arguments: &Arguments, state: &State) {
        // What these programs read is what the archive holds.
        let mut fed = state.clone();
        fed.stdin = crate::state::Stdin::Unknown;
        for option in &arguments.options {
            let Some(value) = &option.value else { continue };
            match option.name.as_str() {
                "--checkpoint-action" => {
                    if let Some(text) = value.text.strip_prefix("exec=") {
                        self.inner_text(&Field { text: text.to_owned(), certainty: value.certainty }, run.name, state);
                    }
                }
                "-I"
                | "--use-compress-program"
                | "--to-command"
                | "-F"
                | "--info-script"
                | "--new-volume-script"
                | "--rsh-command"
                | "--rmt-command" => {
                    self.inner_text(value, run.name, &fed);
                }
                _ => {}
            }
        }
        if run.argv.iter().any(|field| field.text == "--checkpoint-action") {
            self.unknown("what `tar` runs at a checkpoint cannot be known".to_owned());
        }
    }

    fn unpacked(&mut self, folder: &Field, arguments: &Arguments, run: &Run<'_>, state: &mut State) {
        let to_output = arguments.has(&["-O", "--to-stdout"]);
        if to_output {
            return;
        }
        if arguments.has(&["-P", "--absolute-names"]) {
            self.unknown(format!("`{}` may unpack anywhere", run.name));
        }
        self.touches(folder, run.name, state);
        self.members(&arguments.operands, folder, run, state);
    }

    fn zip(&mut self, run: &Run<'_>, state: &mut State) {
        let arguments = run.arguments();
        self.refuse_unsure(run, &arguments);
        if run.argv.iter().any(|field| field.text.starts_with("-TT") || field.text.starts_with("--unzip-command")) {
            self.unknown("`zip -TT` runs a command".to_owned());
        }
        let Some((archive, sources)) = arguments.operands.split_first() else { return };
        self.writes(archive, run.name, state);
        self.packs(Some(archive).filter(|archive| archive.text != "-"), sources, (state, state));
        for source in sources {
            self.reads(source, state);
            if arguments.has(&["-m", "--move"]) {
                self.deletes(source, run.name, state);
            }
        }
    }

    fn rsync(&mut self, run: &Run<'_>, state: &mut State) {
        let arguments = run.arguments();
        self.refuse_unsure(run, &arguments);
        for name in ["-e", "--rsh", "--rsync-path"] {
            if let Some(command) = arguments.value(&[name]) {
                self.inner_text(command, run.name, state);
            }
        }
        let is_remote = |field: &Field| {
            field.text.split('/').next().is_some_and(|first| first.contains(':')) || field.text.starts_with("rsync://")
        };
        let Some((target, sources)) = arguments.operands.split_last() else { return };
        sources.iter().filter(|source| source.text.starts_with("rsync://")).for_each(|source| self.url(&source.text));
        for source in sources.iter().filter(|source| !is_remote(source)) {
            self.reads(source, state);
            if arguments.has(&["--remove-source-files", "--remove-sent-files"]) {
                self.deletes(source, run.name, state);
            }
        }
        if !is_remote(target) && !sources.is_empty() {
            let local: Vec<Field> = sources.iter().filter(|source| !is_remote(source)).cloned().collect();
            if local.len() == sources.len() {
                self.copied(&local, target, run.name, state);
            } else {
                self.writes(target, run.name, state);
                let targets = self.target(target, run.name, state);
                for source in sources {
                    let path = source.text.rsplit(':').next().unwrap_or_default();
                    let path = Field { text: path.to_owned(), certainty: source.certainty };
                    self.written_below(&path, &targets, run.name);
                }
            }
            if arguments.options.iter().any(|option| option.name.starts_with("--del")) {
                self.deletes(target, run.name, state);
            }
        }
    }
}

/// Whether `option` of `tar` has it take files out of an archive.
fn takes_out(option: &Opt) -> bool {
    option.name == "-x" || options::begun(&option.name, &["--extract", "--get"]).is_some()
}

/// The words of `tar` with a dash before each letter of the first one, which may be letters without any: the values of these
/// are the next words, in their order.
fn dashed(run: &Run<'_>) -> Vec<Field> {
    let is_row = |first: &&Field| {
        let text = first.text.as_str();
        first.is_exact() && !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphabetic())
    };
    let Some(first) = run.argv.get(1).filter(is_row) else { return run.argv.to_vec() };
    let mut argv = vec![run.argv[0].clone()];
    let mut rest = run.argv[2..].iter();
    for letter in first.text.chars() {
        let option = format!("-{letter}");
        let takes = run.valued.split(' ').any(|valued| valued == option);
        argv.push(Field::known(option));
        argv.extend(rest.by_ref().take(usize::from(takes)).cloned());
    }
    argv.extend(rest.cloned());
    argv
}
