//! `pintle guard install` and `uninstall`: our entries in an agent's settings, and nothing else there.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anstyle::{AnsiColor, Style};
use clap::Args;
use guard::host::{ConfigForm, ConfigPlace, EventRow, InstallScope};
use guard::settings::{self, EditedFile, KeptFile, NotEdited};
use guard::{ClientEntry, GuardHost};
use host::config::Env;
use similar::{ChangeTag, TextDiff};

use crate::clean::clean;
use crate::cli::{Global, terminal};
use crate::error::CliError;
use crate::guard::installs::{OwnEntry, file_of, hook_program, hosts, kept, scope_word, write_kept};
use crate::guard::places::GuardPlaces;
use crate::operator;

const GONE: Style = AnsiColor::Red.on_default();
const NEW: Style = AnsiColor::Green.on_default();

/// How many unchanged lines stand around a change that is shown.
const AROUND: usize = 3;

/// Flags of `guard install` and `guard uninstall`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct InstallArgs {
    /// The agents, with commas between them, or `all`
    #[arg(long, value_name = "HOST", value_delimiter = ',', required = true)]
    host: Vec<String>,
    /// In the settings of everybody who works in this project, not in your own
    #[arg(long, conflicts_with_all = ["local", "system"])]
    project: bool,
    /// In your own settings of this project
    #[arg(long, conflicts_with = "system")]
    local: bool,
    /// In the settings of the machine, which only root writes and no project takes away
    #[arg(long)]
    system: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Change it without asking
    #[arg(long)]
    yes: bool,
    /// Although the agent is not there, or is of a version that nobody has tried
    #[arg(long)]
    force: bool,
}

/// One file that changes.
struct Change {
    host: &'static GuardHost,
    file: PathBuf,
    before: Option<String>,
    /// None: the file goes.
    after: Option<String>,
    /// What uninstalling has to know from now on.
    kept: Option<KeptFile>,
    /// The mode of a file that is new.
    mode: u32,
}

pub(super) fn install(global: &Global, args: &InstallArgs) -> Result<u8, CliError> {
    operator::refuse_agents()?;
    let env = Env::of_process()?;
    let places = GuardPlaces::of(&env, global.home.as_deref(), None)?;
    let program = hook_program().map_err(|error| CliError::failed(error.to_string()))?;
    if !program.exists() {
        return Err(CliError::failed(format!("the hook's program {} is not there", program.display()))
            .hint("in a checkout: cargo build -p pintle-hook"));
    }
    let own = OwnEntry::of(&places, &program)?;
    let mut changes = Vec::new();
    for host in wanted(&args.host)? {
        if !args.force {
            check_version(host)?;
        }
        let entry = own.for_host(host);
        for (file, event) in files(host, args, &env)? {
            changes.push(installed(host, (&file, event), (&entry, &places))?);
        }
    }
    if !args.dry_run {
        let flags = [("--config", global.config.as_deref()), ("--home", global.home.as_deref())];
        let made = places.make().and_then(|()| places.key()).and_then(|_| places.write_start(&env, &flags));
        made.map_err(|error| CliError::failed(format!("{} cannot be made: {error}", places.folder.display())))?;
    }
    settle(args, &places, changes, "guarded")
}

/// What an installation makes of `file`, which is that of one event where the host has one for each.
fn installed(
    host: &'static GuardHost,
    (file, event): (&Path, Option<&'static EventRow>),
    (entry, places): (&ClientEntry<'_>, &GuardPlaces),
) -> Result<Change, CliError> {
    let before = read(file)?;
    let known = kept(places, host, file);
    let edited = match event {
        None => settings::install(host, entry, before.as_deref(), known.as_ref()),
        Some(event) => settings::install_event(host, (entry, event), before.as_deref(), known.as_ref()),
    };
    let EditedFile { text, kept, others } = edited.map_err(|why| not_edited(file, &why))?;
    for other in others {
        let (event, runs) = (clean(&other.event), clean(&other.runs));
        terminal::warn(&format!(
            "{} has another hook at {event}: {runs}; who comes last may undo what the other said",
            host.id
        ));
    }
    let mode = if event.is_some() { 0o700 } else { 0o600 };
    Ok(Change { host, file: file.to_owned(), before, after: Some(text), kept: Some(kept), mode })
}

pub(super) fn uninstall(global: &Global, args: &InstallArgs) -> Result<u8, CliError> {
    operator::refuse_agents()?;
    let env = Env::of_process()?;
    let places = GuardPlaces::of(&env, global.home.as_deref(), None)?;
    let mut changes = Vec::new();
    for host in wanted(&args.host)? {
        for (file, _) in files(host, args, &env)? {
            let before = read(&file)?;
            let known = kept(&places, host, &file);
            let after = settings::uninstall(host, before.as_deref(), known.as_ref());
            let after = after.map_err(|why| not_edited(&file, &why))?;
            changes.push(Change { host, file, before, after, kept: None, mode: 0o600 });
        }
    }
    settle(args, &places, changes, "no longer guarded")
}

fn wanted(names: &[String]) -> Result<Vec<&'static GuardHost>, CliError> {
    match names {
        [all] if all == "all" => hosts(None),
        names => names.iter().map(|name| Ok(hosts(Some(name))?[0])).collect(),
    }
}

fn not_edited(file: &Path, why: &NotEdited) -> CliError {
    CliError::usage(format!("{} cannot be changed: {why}", file.display()))
}

/// The files of `host` that `args` mean: the one of its settings, or one for each of its events.
fn files(
    host: &GuardHost,
    args: &InstallArgs,
    env: &Env,
) -> Result<Vec<(PathBuf, Option<&'static EventRow>)>, CliError> {
    let scope = match (args.project, args.local, args.system) {
        (true, _, _) => InstallScope::Project,
        (_, true, _) => InstallScope::ProjectLocal,
        (_, _, true) => InstallScope::System,
        (false, false, false) => InstallScope::User,
    };
    let place = |place: &&ConfigPlace| place.scope == scope;
    let file = host.config.places.iter().find(place).and_then(|place| file_of(place.path, env)).ok_or_else(|| {
        CliError::usage(format!("{} has no settings of the scope `{}`", host.name, scope_word(scope)))
    })?;
    // What is linked to elsewhere is changed there.
    let file = file.canonicalize().unwrap_or(file);
    Ok(match host.config.form {
        ConfigForm::Executables { .. } => {
            host.events.iter().filter(|row| row.installed).map(|row| (file.join(row.name), Some(row))).collect()
        }
        ConfigForm::Json { .. } | ConfigForm::Toml { .. } | ConfigForm::WholeFile { .. } => vec![(file, None)],
    })
}

/// What stands in `file`, if it is there.
fn read(file: &Path) -> Result<Option<String>, CliError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::failed(format!("{} cannot be read: {error}", file.display()))),
    }
}

/// Refuses a host that is not there, or whose version is older than all that its table is about, or newer.
fn check_version(host: &GuardHost) -> Result<(), CliError> {
    let output = Command::new(host.id).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let said = output.map_err(|error| {
        CliError::usage(format!("{} is not there: `{}` cannot be started: {error}", host.name, host.id))
            .hint("--force installs all the same")
    })?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let found = version(&said);
    let known = (version(host.versions.min), version(host.versions.newest));
    let is_known = found.is_some() && known.0 <= found && found <= known.1;
    if is_known {
        return Ok(());
    }
    let (min, newest) = (host.versions.min, host.versions.newest);
    Err(CliError::usage(format!(
        "{} says it is `{}`; versions {min} to {newest} are known",
        host.name,
        clean(said.trim())
    ))
    .hint("--force installs all the same; then `pintle guard doctor --live` says whether it holds"))
}

/// The numbers of the version in `text`.
fn version(text: &str) -> Option<Vec<u64>> {
    let word = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    word.split('.').map(|part| part.parse().ok()).collect()
}

/// Shows the changes, asks, and makes them.
fn settle(args: &InstallArgs, places: &GuardPlaces, changes: Vec<Change>, now: &str) -> Result<u8, CliError> {
    let mut settled: Vec<&str> = Vec::new();
    for change in &changes {
        let file = clean(&change.file.display().to_string());
        if change.before == change.after {
            terminal::say(&format!("{}  nothing to change in {file}\n", change.host.id))?;
            continue;
        }
        terminal::say(&shown(change))?;
        if args.dry_run {
            continue;
        }
        if !args.yes && !operator::confirm(&format!("change {file}?"))? {
            return Err(CliError::failed("nothing more was changed"));
        }
        let failed = |error: io::Error| CliError::failed(format!("{file} cannot be written: {error}"));
        // What uninstalling has to know comes first: a change that is cut short can be taken back.
        let kept = change.kept.as_ref();
        write_kept(places, change.host, (&change.file, kept)).and_then(|()| replace(change)).map_err(failed)?;
        if settled.last() != Some(&change.host.id) {
            settled.push(change.host.id);
            terminal::say(&format!("{}  {now}\n", change.host.id))?;
        }
    }
    Ok(0)
}

/// The lines that change, with some around them.
fn shown(change: &Change) -> String {
    let mut text = format!("{}\n", clean(&change.file.display().to_string()));
    let (before, after) = (change.before.as_deref().unwrap_or_default(), change.after.as_deref().unwrap_or_default());
    let diff = TextDiff::from_lines(before, after);
    for group in diff.grouped_ops(AROUND) {
        for line in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (mark, style) = match line.tag() {
                ChangeTag::Equal => (' ', Style::new()),
                ChangeTag::Delete => ('-', GONE),
                ChangeTag::Insert => ('+', NEW),
            };
            text.push_str(&format!("  {style}{mark} {}{style:#}\n", clean(line.value().trim_end_matches('\n'))));
        }
    }
    text
}

/// Puts what a change leaves in the place of what stands in its file, whole or not at all.
fn replace(change: &Change) -> io::Result<()> {
    let file = &change.file;
    let Some(text) = &change.after else { return fs::remove_file(file) };
    let folder = file.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let mode = fs::metadata(file).map_or(change.mode, |metadata| metadata.permissions().mode() & 0o777);
    let beside = folder.join(format!(".pintle-{}", std::process::id()));
    let mut made = File::options().write(true).create_new(true).mode(mode).open(&beside)?;
    made.write_all(text.as_bytes()).and_then(|()| made.sync_all())?;
    fs::rename(&beside, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(version("2.1.330 (Claude Code)"), Some(vec![2, 1, 330]));
        assert!(version("2.1.99") < version("2.1.330"));
        assert_eq!(version("nightly"), None);
    }
}
