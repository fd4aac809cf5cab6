//! Changes of an agent's files: shown, asked about, and made whole or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use pintle_guard::settings::KeptFile;
use pintle_host::config::adopted::{self, AdoptedHooks};
use similar::{ChangeTag, TextDiff};

use crate::clean::clean;
use crate::cli::terminal;
use crate::error::CliError;
use crate::guard::host_files::{text_of, write_kept};
use crate::guard::places::GuardPlaces;
use crate::operator;
use crate::text::counted;

const GONE: Style = AnsiColor::Red.on_default();
const NEW: Style = AnsiColor::Green.on_default();

/// How many unchanged lines stand around a change that is shown.
const AROUND: usize = 3;

/// One file that changes.
pub(super) struct Change {
    /// Whose file it is.
    pub(super) host: &'static str,
    pub(super) file: PathBuf,
    pub(super) before: Option<String>,
    /// None: the file goes.
    pub(super) after: Option<String>,
    /// What uninstalling has to know from now on.
    pub(super) kept: Option<KeptFile>,
    /// Whether the host executes it.
    pub(super) executable: bool,
    /// Whether every account of the machine has to read it.
    pub(super) shared: bool,
    /// What becomes of the hooks that were taken over from it.
    pub(super) adoption: Adoption,
}

/// What becomes of adopted hooks when a file changes.
pub(super) enum Adoption {
    /// Nothing.
    Untouched,
    /// They are these from now on.
    Kept(Box<AdoptedHooks>),
    /// There are none any more.
    Forgotten,
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
            terminal::say(&format!("{}  nothing to change in {file}\n", change.host))?;
            if consent != Consent::DryRun {
                // Somebody else took ours away before: it is uninstalled all the same.
                let is_over = change.kept.is_none();
                let kept = if is_over { write_kept(places, change.host, (&change.file, None)) } else { Ok(()) };
                kept.and_then(|()| forget(places, change)).map_err(|error| CliError::failed(error.to_string()))?;
            }
            continue;
        }
        // Who agreed already does not read it line by line.
        let text = if consent == Consent::Given { in_a_line(change) } else { shown(change) };
        terminal::say(&text)?;
        if consent == Consent::DryRun {
            continue;
        }
        consent.require(&format!("change {file}?"))?;
        let failed = |error: io::Error| CliError::failed(format!("{file} cannot be written: {error}"));
        let keep = || write_kept(places, change.host, (&change.file, change.kept.as_ref()));
        // What uninstalling has to know is kept before a change and forgotten after it: one that is cut short can be taken
        // back.
        let made = match change.kept {
            Some(_) => unchanged(change)
                .and_then(|()| keep())
                .and_then(|()| take_over(places, change))
                .and_then(|()| replace(change)),
            None => replace(change).and_then(|()| keep()).and_then(|()| forget(places, change)),
        };
        made.map_err(failed)?;
    }
    Ok(())
}

/// Keeps what is taken over, before it leaves the file: it runs twice rather than never.
fn take_over(places: &GuardPlaces, change: &Change) -> io::Result<()> {
    match &change.adoption {
        Adoption::Kept(adopted) => adopted::write(places.home(), adopted),
        Adoption::Untouched | Adoption::Forgotten => Ok(()),
    }
}

/// Forgets what was taken over, once it is back in the file.
fn forget(places: &GuardPlaces, change: &Change) -> io::Result<()> {
    match &change.adoption {
        Adoption::Forgotten => adopted::forget(places.home(), change.host, &change.file),
        Adoption::Untouched | Adoption::Kept(_) => Ok(()),
    }
}

/// The lines that change, with some around them.
fn shown(change: &Change) -> String {
    let (before, after) = (change.before.as_deref().unwrap_or_default(), change.after.as_deref().unwrap_or_default());
    format!("{}\n{}", clean(&change.file.display().to_string()), diff_lines(before, after))
}

/// How much of a file changes.
fn in_a_line(change: &Change) -> String {
    let file = clean(&change.file.display().to_string());
    let (before, after) = (change.before.as_deref().unwrap_or_default(), change.after.as_deref().unwrap_or_default());
    let diff = TextDiff::from_lines(before, after);
    let count = |tag: ChangeTag| diff.iter_all_changes().filter(|line| line.tag() == tag).count();
    let (new, gone) = (count(ChangeTag::Insert), count(ChangeTag::Delete));
    match (&change.before, &change.after) {
        (_, None) => format!("{}  removes {file}\n", change.host),
        (None, Some(_)) => format!("{}  writes {file}: {}\n", change.host, counted(new, "line")),
        (Some(_), Some(_)) => {
            format!("{}  changes {file}: {} more, {} less\n", change.host, counted(new, "line"), counted(gone, "line"))
        }
    }
}

/// The lines that differ between two texts, with some around them.
pub(in crate::cli) fn diff_lines(before: &str, after: &str) -> String {
    let mut text = String::new();
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

/// Refuses a file in which something else stands than what was shown.
fn unchanged(change: &Change) -> io::Result<()> {
    if text_of(&change.file)? == change.before {
        return Ok(());
    }
    Err(io::Error::other("it changed meanwhile; run it again"))
}

/// Puts what a change leaves in the place of what stands in its file, whole or not at all.
fn replace(change: &Change) -> io::Result<()> {
    let file = &change.file;
    let Some(text) = &change.after else { return unchanged(change).and_then(|()| fs::remove_file(file)) };
    let folder = file.parent().unwrap_or(Path::new("/"));
    make_folders(folder, change.shared)?;
    let beside = folder.join(format!(".pintle-{}", std::process::id()));
    let made = File::options().write(true).create_new(true).mode(0o600).open(&beside)?;
    let put = fill(made, text, change).and_then(|()| unchanged(change)).and_then(|()| fs::rename(&beside, file));
    if put.is_err() {
        fs::remove_file(&beside).ok();
    }
    put
}

/// Writes `text` into `made`, which gets the owner and the permissions of the file that it will replace.
fn fill(mut made: File, text: &str, change: &Change) -> io::Result<()> {
    made.write_all(text.as_bytes())?;
    let fresh = if change.shared { 0o644 } else { 0o600 };
    let old = fs::metadata(&change.file).ok();
    if let Some(old) = &old {
        // Only root gives files away; whoever else may write here owns the new one.
        fchown(&made, Some(old.uid()), Some(old.gid())).ok();
    }
    let mode = old.map_or(fresh, |old| old.permissions().mode() & 0o777);
    let executed = match (change.executable, change.shared) {
        (true, true) => 0o111,
        (true, false) => 0o100,
        (false, _) => 0,
    };
    // Said outright: what is made with a mode loses what the umask of the person takes.
    made.set_permissions(Permissions::from_mode(mode | executed))?;
    made.sync_all()
}

/// Makes `folder` and those above it that are not there, for every account to read if they are `shared`.
fn make_folders(folder: &Path, shared: bool) -> io::Result<()> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(folder)?;
    let mut made = missing.into_iter().filter(|_| shared);
    made.try_for_each(|folder| fs::set_permissions(folder, Permissions::from_mode(0o755)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::host_files::kept;

    fn change(file: &Path, before: Option<&str>, after: Option<&str>) -> Change {
        let (before, after) = (before.map(str::to_owned), after.map(str::to_owned));
        let host = pintle_guard::HOSTS[0].id;
        Change {
            host,
            file: file.to_owned(),
            before,
            after,
            kept: None,
            executable: false,
            shared: false,
            adoption: Adoption::Untouched,
        }
    }

    fn mode(file: &Path) -> u32 {
        fs::metadata(file).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_made_for_the_machine_is_for_everybody_to_read() {
        let dir = tempfile::tempdir().unwrap();
        for (name, shared, executable, expected) in [
            ("own", false, false, 0o600),
            ("run", false, true, 0o700),
            ("all", true, false, 0o644),
            ("all-run", true, true, 0o755),
        ] {
            let file = dir.path().join(name).join("deep/settings.json");
            replace(&Change { shared, executable, ..change(&file, None, Some("{}")) }).unwrap();
            assert_eq!(mode(&file), expected, "{name}");
            if shared {
                assert_eq!([mode(&dir.path().join(name)), mode(&dir.path().join(name).join("deep"))], [0o755; 2]);
            }
        }
    }

    #[test]
    fn an_old_file_keeps_its_permissions_and_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        fs::write(&file, "{}").unwrap();
        // Only root can make it somebody else's.
        std::os::unix::fs::chown(&file, Some(12_345), Some(12_345)).ok();
        let owner = fs::metadata(&file).unwrap().uid();
        fs::set_permissions(&file, Permissions::from_mode(0o664)).unwrap();
        replace(&Change { shared: true, ..change(&file, Some("{}"), Some("{ }")) }).unwrap();
        assert_eq!((mode(&file), fs::metadata(&file).unwrap().uid()), (0o664, owner));
        assert_eq!(fs::read_to_string(&file).unwrap(), "{ }");
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_left_and_nothing_stays_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        fs::write(&file, "theirs").unwrap();
        for after in [Some("ours"), None] {
            for before in [Some("shown"), None] {
                let error = replace(&change(&file, before, after)).unwrap_err();
                assert_eq!(error.to_string(), "it changed meanwhile; run it again");
                assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
            }
        }
        fs::remove_file(&file).unwrap();
        replace(&change(&file, Some("shown"), Some("ours"))).unwrap_err();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_kept_is_forgotten_only_after_the_file_changed() {
        let dir = tempfile::tempdir().unwrap();
        let places = GuardPlaces { socket: dir.path().join("s"), folder: dir.path().join("guard") };
        let file = dir.path().join("settings.json");
        let known = KeptFile { before: None, after: "{ }".to_owned() };
        let install = Change { kept: Some(known.clone()), ..change(&file, None, Some("{ }")) };
        let left = || kept(&places, pintle_guard::HOSTS[0].id, &file).unwrap();
        settle(Consent::Given, &places, &[install]).unwrap();
        assert_eq!(left(), Some(known.clone()));
        let error = settle(Consent::Given, &places, &[change(&file, Some("{}"), None)]).unwrap_err();
        assert!(error.message.contains("it changed meanwhile; run it again"), "{}", error.message);
        assert_eq!(left(), Some(known));
        settle(Consent::Given, &places, &[change(&file, Some("{ }"), None)]).unwrap();
        assert!(left().is_none() && !file.exists());
    }
}
