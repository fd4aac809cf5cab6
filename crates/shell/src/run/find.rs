//! `find` and `fd`.

mod names;

use crate::programs::{Finds, Role};
use crate::read::Reading;
use crate::run::Run;
use crate::run::wrappers::joined;
use crate::state::{Certainty, Field, Output, State};

/// Tests that leave nearly everything in.
const WIDE: &[&str] = &[
    "-mindepth",
    "-maxdepth",
    "-depth",
    "-xdev",
    "-mount",
    "-type",
    "-print",
    "-print0",
    "-o",
    "-or",
    "-a",
    "-and",
    "-daystart",
    "-noleaf",
    "-true",
    "-follow",
    "-ignore_readdir_race",
];

impl Reading<'_> {
    pub(super) fn finding(&mut self, run: &Run<'_>, finds: Finds, state: &mut State) -> Output {
        match finds {
            Finds::Find => self.find(run, state),
            Finds::Fd => self.fd(run, state),
        }
    }

    fn find(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let words = &run.argv[1..];
        let options = words.iter().take_while(|field| is_option(&field.text)).count();
        // BSD takes a folder behind `-f`, too.
        let options = options + usize::from(words.get(options).is_some_and(|field| field.text == "-f"));
        let words = &words[options..];
        let begins = |field: &Field| field.text.starts_with('-') || field.text == "(" || field.text == "!";
        let starts = words.iter().position(begins).unwrap_or(words.len());
        let (starts, tests) = words.split_at(starts);
        if words.iter().any(|field| field.certainty == Certainty::Many) {
            self.unknown("what `find` does with what it finds cannot be known".to_owned());
        }
        let here = [Field::known(".")];
        let starts = if starts.is_empty() { &here[..] } else { starts };
        let found: Vec<Field> = starts.iter().flat_map(|start| found_below(start, tests)).collect();
        found.iter().for_each(|found| self.reads(found, state));
        self.actions(tests, &found, state);
        let others = ["-exec", "-execdir", "-ok", "-okdir", "-printf", "-ls", "-fprint", "-fls", "-fprintf"];
        let prints = tests.iter().all(|test| !others.contains(&test.text.as_str()));
        if prints && found.iter().all(Field::is_known) { Output::Files(found) } else { Output::Unknown }
    }

    fn actions(&mut self, tests: &[Field], found: &[Field], state: &mut State) {
        let mut at = 0;
        while let Some(test) = tests.get(at) {
            at += 1;
            match test.text.as_str() {
                "-delete" => found.iter().for_each(|field| self.deletes(field, "find", state)),
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let rest = &tests[at..];
                    let end = names::end_of_command(rest).unwrap_or(rest.len());
                    self.on_found(&rest[..end], found, state);
                    at += end + 1;
                }
                "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                    if let Some(file) = tests.get(at) {
                        self.writes(file, "find", state);
                    }
                    at += 1;
                }
                "-files0-from" => self.unknown("where `find` begins cannot be known".to_owned()),
                _ => {}
            }
        }
    }

    /// Runs `command` on what was found.
    fn on_found(&mut self, command: &[Field], found: &[Field], state: &State) {
        let Some(program) = command.first() else { return };
        let role = crate::programs::find(crate::paths::base_name(&program.text)).map(|found| found.role);
        let runs = matches!(role, Some(Role::Shell | Role::Language(_) | Role::Copies | Role::Moves));
        // All in a folder is told as the folder alone, and a script in it is run, and a file copied under its own name.
        let inside = found.iter().filter(|item| runs && item.is_exact());
        let inside = inside.map(|item| Field { text: format!("{}/**/*", item.text), certainty: Certainty::Glob });
        let inside: Vec<Field> = inside.collect();
        // Where `-execdir` runs it is not known; the path says enough.
        for item in found.iter().chain(&inside) {
            let put = |field: &Field| {
                let certainty = field.certainty.max(item.certainty);
                if field.text.contains("{}") {
                    Field { text: field.text.replace("{}", &item.text), certainty }
                } else {
                    field.clone()
                }
            };
            let mut argv: Vec<Field> = vec![program.clone()];
            if program.text.contains("{}") {
                self.unknown("`find` runs what it finds".to_owned());
                return;
            }
            let script = matches!(role, Some(Role::Shell | Role::Language(_)));
            let coded = command.get(1).is_some_and(|option| option.text.starts_with('-') && option.text != "-n");
            let text = command.get(2).filter(|field| script && coded && field.text.contains("{}"));
            if text.is_some() {
                // A file's name would become part of a program.
                self.unknown("a name that `find` finds becomes part of a program".to_owned());
            }
            argv.extend(command[1..].iter().map(put));
            self.inner(&argv, state);
        }
    }

    fn fd(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let words = &run.argv[1..];
        let attached = |field: &Field| {
            let rest = field.text.strip_prefix("--exec-batch=").or_else(|| field.text.strip_prefix("--exec="));
            rest.map(|text| Field { text: text.to_owned(), certainty: field.certainty })
        };
        if let Some(program) = words.iter().find_map(attached) {
            self.on_found(&[program, Field::known("{}")], &[Field::known("./**/*")], state);
        }
        let executes = |field: &Field| ["-x", "-X", "--exec", "--exec-batch"].contains(&field.text.as_str());
        let end = words.iter().position(executes).unwrap_or(words.len());
        if words[..end].iter().any(|field| field.certainty == Certainty::Many) {
            self.unknown("what `fd` does with what it finds cannot be known".to_owned());
        }
        let (arguments, _) =
            (Run { argv: &run.argv[..=end.min(words.len())], name: run.name, valued: run.valued }.arguments(), ());
        let starts = arguments.operands.get(1..).unwrap_or_default();
        starts.iter().for_each(|start| self.reads(start, state));
        let hidden = arguments.has(super::tables::HIDDEN_TOO) || arguments.has(&["-H"]);
        let name = if hidden { "*" } else { "[^.]*" };
        let here = [Field::known(".")];
        let found: Vec<Field> = if starts.is_empty() { &here[..] } else { starts }
            .iter()
            .map(|start| Field {
                text: format!("{}/**/{name}", start.text),
                certainty: start.certainty.max(Certainty::Glob),
            })
            .collect();
        let Some(command) = words.get(end + 1..).filter(|command| !command.is_empty()) else {
            return Output::Files(found);
        };
        let mut command = command.to_vec();
        if !joined(&command).text.contains('{') {
            command.push(Field::known("{}"));
        }
        self.on_found(&command, &found, state);
        Output::Unknown
    }
}

/// What `find` finds below `start`: `start` itself with all in it, `start/**/name`, or some of it, `start/**/*`.
fn found_below(start: &Field, tests: &[Field]) -> Vec<Field> {
    let root = start.text.trim_end_matches('/');
    let others = tests
        .iter()
        .any(|field| field.text.starts_with('-') && !WIDE.contains(&field.text.as_str()) && !is_action(&field.text));
    let below =
        |pattern: &str| Field { text: format!("{root}/**/{pattern}"), certainty: start.certainty.max(Certainty::Glob) };
    if let Some(names) = names::names(tests) {
        return names.iter().map(|name| below(name)).collect();
    }
    if others || tests.iter().any(|field| field.text == "!") {
        return vec![below("*")];
    }
    vec![Field { text: if root.is_empty() { "/".to_owned() } else { root.to_owned() }, certainty: start.certainty }]
}

/// Whether `word` stands before the folders in which a search begins.
fn is_option(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    let is_letters = !letters.is_empty() && letters.chars().all(|letter| "EHLPXdsx".contains(letter));
    is_letters || word.starts_with("-O") || word.starts_with("-D")
}

fn is_action(test: &str) -> bool {
    ["-exec", "-execdir", "-ok", "-okdir", "-delete", "-ls", "-quit", "-rf", "-f", "-r", "-fr"].contains(&test)
}
