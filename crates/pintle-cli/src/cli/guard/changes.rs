//! Changes of an agent's files: shown, asked about, and made whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use guard::GuardHost;
use guard::settings::KeptFile;
use similar::{ChangeTag, TextDiff};

use crate::clean::clean;
use crate::cli::terminal;
use crate::error::CliError;
use crate::guard::host_files::write_kept;
use crate::guard::places::GuardPlaces;
use crate::operator;

const GONE: Style = AnsiColor::Red.on_default();
const NEW: Style = AnsiColor::Green.on_default();

/// How many unchanged lines stand around a change that is shown.
const AROUND: usize = 3;

/// One file that changes.
pub(super) struct Change {
    pub(super) host: &'static GuardHost,
    pub(super) file: PathBuf,
    pub(super) before: Option<String>,
    /// None: the file goes.
    pub(super) after: Option<String>,
    /// What uninstalling has to know from now on.
    pub(super) kept: Option<KeptFile>,
    /// Whether the host executes it.
    pub(super) executable: bool,
}

/// Whether changes are made, and who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consent {
    /// They are only shown.
    DryRun,
    /// The person is asked before each one.
    Ask,
    /// The person said yes already.
    Given,
}

impl Consent {
    /// Whether the person wants what `question` asks.
    ///
    /// # Errors
    /// They do not, or cannot be asked.
    pub(super) fn require(self, question: &str) -> Result<(), CliError> {
        match self {
            Self::Given => Ok(()),
            Self::DryRun => Err(CliError::failed("nothing is changed in a dry run")),
            Self::Ask if operator::confirm(question)? => Ok(()),
            Self::Ask => Err(CliError::failed("nothing more was changed")),
        }
    }
}

/// Shows the changes, asks, and makes them.
pub(super) fn settle(consent: Consent, places: &GuardPlaces, changes: &[Change]) -> Result<(), CliError> {
    for change in changes {
        let file = clean(&change.file.display().to_string());
        if change.before == change.after {
            terminal::say(&format!("{}  nothing to change in {file}\n", change.host.id))?;
            continue;
        }
        terminal::say(&shown(change))?;
        if consent == Consent::DryRun {
            continue;
        }
        consent.require(&format!("change {file}?"))?;
        let failed = |error: io::Error| CliError::failed(format!("{file} cannot be written: {error}"));
        // What uninstalling has to know comes first: a change that is cut short can be taken back.
        let kept = change.kept.as_ref();
        write_kept(places, change.host, (&change.file, kept)).and_then(|()| replace(change)).map_err(failed)?;
    }
    Ok(())
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
    let (fresh, more) = if change.executable { (0o700, 0o100) } else { (0o600, 0) };
    let mode = fs::metadata(file).map_or(fresh, |metadata| metadata.permissions().mode() & 0o777 | more);
    let beside = folder.join(format!(".pintle-{}", std::process::id()));
    let mut made = File::options().write(true).create_new(true).mode(mode).open(&beside)?;
    made.write_all(text.as_bytes()).and_then(|()| made.sync_all())?;
    fs::rename(&beside, file)
}
