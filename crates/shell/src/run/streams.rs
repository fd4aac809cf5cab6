//! `sed`, `awk` and `sort`: editors whose scripts can do more than edit.

use crate::code;
use crate::programs::Streams;
use crate::read::Reading;
use crate::run::Run;
use crate::run::options::Arguments;
use crate::state::{Field, Output, State};

impl Reading<'_> {
    pub(super) fn stream(&mut self, run: &Run<'_>, streams: Streams, state: &mut State) -> Output {
        let arguments = run.arguments();
        match streams {
            Streams::Sed => {
                // What follows `-i` in its word is a suffix, no options.
                let away =
                    |field: &Field| without_suffix(field).text.len() < field.text.len() && field.text.contains('/');
                if run.argv[1..].iter().any(away) {
                    self.unknown("`sed -i` keeps copies elsewhere".to_owned());
                }
                let argv: Vec<Field> = run.argv.iter().map(without_suffix).collect();
                let run = Run { argv: &argv, name: run.name, valued: run.valued };
                self.sed(&run, &run.arguments(), state);
            }
            Streams::Awk => self.awk(run, &arguments, state),
            Streams::Sort => {
                if let Some(target) = arguments.value(&["-o", "--output"]) {
                    self.writes(target, run.name, state);
                }
                if let Some(program) = arguments.value(&["--compress-program"]) {
                    let mut fed = state.clone();
                    fed.stdin = crate::state::Stdin::Unknown;
                    self.inner(std::slice::from_ref(program), &fed);
                }
                arguments.operands.iter().for_each(|field| self.reads(field, state));
                let passes = arguments.operands.is_empty() && !arguments.has(&["-o", "--output"]);
                return match crate::run::outputs::stdin_text(state) {
                    Output::Files(files) if passes => Output::Files(files),
                    Output::Files(_) | Output::Known(_) | Output::Unknown => Output::Unknown,
                };
            }
        }
        Output::Unknown
    }

    fn sed(&mut self, run: &Run<'_>, arguments: &Arguments, state: &mut State) {
        let mut scripts: Vec<Field> = Vec::new();
        let mut files = arguments.operands.as_slice();
        let harmless = arguments.has(&["--sandbox"]);
        for option in &arguments.options {
            match (option.name.as_str(), &option.value) {
                ("-e" | "--expression", Some(script)) => scripts.push(script.clone()),
                ("-f" | "--file", Some(file)) => {
                    self.reads(file, state);
                    self.script_texts(file, run, state, &mut scripts);
                }
                _ => {}
            }
        }
        if !arguments.has(&["-e", "--expression", "-f", "--file"])
            && let Some((script, rest)) = files.split_first()
        {
            scripts.push(script.clone());
            files = rest;
        }
        for script in scripts.iter().filter(|_| !harmless) {
            self.script_writes(script, run, state, code::look_sed);
        }
        let in_place = edits(run);
        if in_place && run.argv.iter().any(|field| field.text.starts_with("--i") && field.text.contains('/')) {
            self.unknown("`sed -i` keeps copies elsewhere".to_owned());
        }
        if in_place && files.iter().any(|field| !field.is_known()) {
            self.unknown("which files `sed -i` changes cannot be known".to_owned());
        }
        for file in files {
            self.reads(file, state);
            if in_place && file.is_known() && !file.text.is_empty() {
                self.writes(file, run.name, state);
            }
        }
    }

    /// The script in `file`, if the text made it; a script of the workspace is a command like others.
    fn script_texts(&mut self, file: &Field, run: &Run<'_>, state: &State, into: &mut Vec<Field>) {
        match self.content(file, state) {
            Some(crate::read::Content::OneOf(texts)) => into.extend(texts.into_iter().map(Field::known)),
            Some(crate::read::Content::Unknown | crate::read::Content::Names(_)) => {
                self.unknown(format!("the script of `{}` cannot be known", run.name))
            }
            None if !file.is_known() || file.text == "-" || file.text.starts_with("/dev/") => {
                self.unknown(format!("the script of `{}` cannot be known", run.name));
            }
            None => self.script_outside(file, run.name, state),
        }
    }

    fn script_writes(&mut self, script: &Field, run: &Run<'_>, state: &State, look: fn(&str) -> code::Look) {
        self.spend(script.text.len() / 8 + 1);
        if !script.is_known() {
            // A value inside of a script can end the command and begin another.
            self.unknown(format!("the script of `{}` cannot be known", run.name));
            return;
        }
        match look(&script.text) {
            Ok(touched) => {
                for path in touched.writes {
                    self.writes(&Field::known(path), run.name, state);
                }
            }
            Err(why) => self.unknown(why),
        }
    }

    fn awk(&mut self, run: &Run<'_>, arguments: &Arguments, state: &mut State) {
        let mut scripts: Vec<Field> = Vec::new();
        let mut files = arguments.operands.as_slice();
        for option in &arguments.options {
            match (option.name.as_str(), &option.value) {
                ("-e" | "--source", Some(script)) => scripts.push(script.clone()),
                ("-f" | "--file" | "-E" | "--exec", Some(file)) => {
                    self.reads(file, state);
                    self.script_texts(file, run, state, &mut scripts);
                }
                ("-i" | "--include", Some(library)) if library.text == "inplace" => {
                    self.unknown("`awk -i inplace` changes its files".to_owned());
                }
                ("-l" | "--load", Some(_)) => self.unknown("`awk -l` loads code".to_owned()),
                _ => {}
            }
        }
        if !arguments.has(&["-e", "--source", "-f", "--file", "-E", "--exec"])
            && let Some((script, rest)) = files.split_first()
        {
            scripts.push(script.clone());
            files = rest;
        }
        for script in &scripts {
            self.script_writes(script, run, state, code::look_awk);
        }
        for file in files.iter().filter(|file| !file.text.contains('=')) {
            self.reads(file, state);
        }
    }
}

/// Whether `sed` changes its files in place, and shows nothing of them.
pub(super) fn edits(run: &Run<'_>) -> bool {
    matches!(run.name, "sed" | "gsed")
        && run.argv.iter().any(|field| {
            let cluster = field.text.strip_prefix('-').filter(|cluster| !cluster.starts_with('-'));
            let flags = cluster.and_then(|cluster| cluster.split(['e', 'f']).next());
            field.text.starts_with("--i") || flags.is_some_and(|flags| flags.contains('i'))
        })
}

fn without_suffix(field: &Field) -> Field {
    let cluster = field.text.strip_prefix('-').filter(|cluster| !cluster.starts_with('-'));
    let end = cluster.and_then(|cluster| cluster.find(['e', 'f', 'i']).filter(|at| cluster[*at..].starts_with('i')));
    match end {
        Some(end) => Field { text: field.text[..end + 2].to_owned(), certainty: field.certainty },
        None => field.clone(),
    }
}
