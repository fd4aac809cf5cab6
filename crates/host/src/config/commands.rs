//! What the commands of a configuration are made of, by their whole paths, and those that an agent could replace.
//!
//! The rule stands in [`pintle_dialects::command`]; here it meets the disk.

use std::path::{Path, PathBuf};

use pintle_dialects::command::{CommandForm, FilesBeside, all_words, depends_on_folder, form};
use pintle_dialects::process::config::EntryProblem;
use pintle_domain::checkpoint::Duty;
use pintle_domain::json::{Object, Value};
use pintle_domain::rule::{HandlerType, Rule, Source};

use super::Config;
use super::diagnostic::{Diagnostic, Location, dotted};

/// How it is said of a command that an agent may put another file in the place of what it runs.
pub const REPLACEABLE: &str = "replaceable by the agent";

/// The files beside a configuration in `folder`.
pub(super) fn files_beside(folder: &Path) -> FilesBeside<'_> {
    FilesBeside { folder, is_file: &|path| path.is_file() }
}

/// The argument vector of an entry that runs in `dir`, with its files by their whole paths.
///
/// # Errors
/// A file that it runs is not there, or the folder is not.
pub(super) fn placed(argv: &[String], dir: &Path) -> Result<Vec<String>, EntryProblem> {
    match files_beside(dir).place(argv) {
        Ok(placed) => Ok(placed.argv),
        Err(_) if !dir.is_dir() => {
            Err(EntryProblem::new(&["dir"], format!("expected a folder that is there, got {}", dir.display())))
        }
        Err(missing) => Err(EntryProblem::new(&["command", &missing.word.to_string()], missing.to_string())),
    }
}

/// Puts the files that the command of a rule names by their whole paths: those in `dir`, where its file lies, or those in
/// the folder in which it says that it runs. `config` is that of the rule.
///
/// # Errors
/// What is missing.
pub fn place_rule(config: &mut Object, dir: &Path) -> Result<(), String> {
    let said = |key: &str| config.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let Some(text) = said("command") else { return Ok(()) };
    // A relative one lies in the workspace of whichever agent is asked about.
    let own = said("cwd").map(PathBuf::from).filter(|cwd| cwd.is_absolute());
    let folder = match own {
        Some(own) => own,
        None => std::path::absolute(dir).map_err(|error| error.to_string())?,
    };
    let placed = files_beside(&folder).place(&shell(text)).map_err(|missing| format!("hook: command: {missing}"))?;
    let text = placed.argv.into_iter().next_back().unwrap_or_default();
    config.insert("command".to_owned(), Value::from(text));
    Ok(())
}

/// The files that the command of a rule with the settings `config` runs, whose file lies in `dir`.
pub(super) fn rule_files(mut config: Object, dir: &Path) -> Vec<PathBuf> {
    if place_rule(&mut config, dir).is_err() {
        return Vec::new();
    }
    let text = config.get("command").and_then(Value::as_str).unwrap_or_default();
    let paths = all_words(&shell(text)).into_iter().map(PathBuf::from);
    paths.filter(|path| path.is_absolute() && path.is_file()).collect()
}

/// A text as a rule runs it.
fn shell(text: &str) -> [String; 3] {
    ["/bin/sh", "-c", text].map(str::to_owned)
}

/// What is said of `rule` where the files of its command are looked up wherever an agent works.
fn of_rule(rule: &Rule) -> Option<String> {
    let said = |key: &str| rule.config.get(key).and_then(Value::as_str).unwrap_or_default();
    let is_command = rule.enabled && rule.handler_type == HandlerType::Command;
    let runs_elsewhere = Path::new(said("cwd")).is_absolute();
    (is_command && !runs_elsewhere && depends_on_folder(&shell(said("command")))).then(|| {
        format!(
            "{REPLACEABLE}: what `{}` names is looked up in the folder that an agent works in; name its files by absolute \
             paths, and put what has more than words into a script",
            said("command")
        )
    })
}

/// The same of the rules of people among `rules`, each with what is said of it at a start.
pub(crate) fn of_rules(rules: &[Rule]) -> impl Iterator<Item = (&Rule, String)> {
    let own = rules.iter().filter(|rule| rule.source == Source::User);
    own.filter_map(|rule| Some((rule, format!("hook \"{}\": {}", rule.label(), of_rule(rule)?))))
}

/// The same as a finding about what is kept in `place`.
pub fn finding(rule: &Rule, place: &Path) -> Option<Diagnostic> {
    let message = of_rule(rule)?;
    let place = Location { file: place.to_owned(), line: 1, column: 1 };
    let path = dotted(&[rule.label(), "config", "command"]);
    Some(Diagnostic { place, path, message, nearest: None, guard: rule.event.duty() == Duty::Gate })
}

/// What is said of a text for a shell that runs in the folder `at`, in words.
pub(super) fn replaceable(at: &str) -> String {
    format!(
        "{REPLACEABLE}: a shell reads this text in {at}, so a file that an agent puts there may be run in the place of \
         what is meant; put the text into a script beside this configuration and run that, as in `sh guard.sh`"
    )
}

/// Whether an agent may write where `argv` runs, and a shell looks there for what it runs. What was accepted is checked
/// before every start, wherever it is.
pub(super) fn is_replaceable(config: &Config, (argv, dir): (&[String], &Path), is_accepted: bool) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let within = |workspace: &PathBuf| real(dir).starts_with(real(workspace));
    let is_written = || config.agents.values().any(|agent| within(&agent.workspace));
    !is_accepted && form(argv) == CommandForm::ShellText && is_written()
}
