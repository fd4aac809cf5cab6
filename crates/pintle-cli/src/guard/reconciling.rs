//! What got past the guard: calls in what a host wrote down that nobody asked about, and what took its hooks away from
//! sessions that go on.

use std::io;
use std::path::{Path, PathBuf};

use domain::store::StoredCall;
use guard::GuardHost;
use guard::transcript::TranscriptCall;
use host::config::Env;
use jiff::Timestamp;

use super::call_log::{digest, known};
use super::host_files::{files_of, installed_at};
use super::installs::{Installed, found_in_files};
use super::places::GuardPlaces;
use super::sessions::HostSession;
use super::written_down::{WrittenDown, written_down};

/// Something that got past the guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GuardGap {
    /// What stays the same when it is found again.
    pub(crate) key: String,
    /// The host's id of the call, if it is one.
    pub(crate) call: Option<String>,
    /// What it is, for people.
    pub(crate) text: String,
}

/// What a session's own record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reconciled {
    /// The files that were read.
    pub(crate) files: Vec<PathBuf>,
    /// How many calls with a result stand there, since the guard knows the session.
    pub(crate) calls: usize,
    /// What got past the guard.
    pub(crate) gaps: Vec<GuardGap>,
}

/// How a call that nobody asked about is called in records.
const UNGUARDED_CALL: &str = "unguarded_call";

/// How it is called that a part of what an agent wrote down could not be looked at.
const UNREAD: &str = "unread";

/// How it is called that the hooks of a session were taken away.
const DISARMED: &str = "disarmed";

/// Longest text of a call that is shown, in characters.
const SHOWN_CHARS: usize = 160;

/// The files in which `host` keeps the conversation of the session `id`, where its hooks are not told.
pub(crate) fn transcripts(host: &GuardHost, id: &str, env: &Env) -> Vec<PathBuf> {
    // A name that could lead elsewhere is none of a session.
    let is_name = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let place = host
        .config
        .transcript
        .filter(|path| is_name && path.contains("{session}"))
        .map(|path| path.replace("{session}", id));
    place.map(|path| files_of(&path, env).into_iter().filter(|file| file.exists()).collect()).unwrap_or_default()
}

/// The calls of `session` that nobody asked the guard about.
///
/// # Errors
/// What the host wrote down cannot be read; none where it is not known where that is.
pub(crate) fn reconcile(session: &HostSession, env: &Env, places: &GuardPlaces) -> Option<Result<Reconciled, String>> {
    let host = guard::host(&session.host)?;
    let id = session.session.strip_prefix(&format!("{}:", session.host)).unwrap_or_default();
    let files = match &session.transcript {
        Some(file) if file.exists() => vec![file.clone()],
        Some(_) | None => transcripts(host, id, env),
    };
    if files.is_empty() {
        return None;
    }
    let (mut calls, mut gaps) = (Vec::new(), Vec::new());
    for file in &files {
        match written_down(file) {
            Ok(read) => {
                calls.extend(read.calls);
                gaps.extend(read.unread.map(|why| unread(file, &why)));
            }
            Err(error) => return Some(Err(format!("{} cannot be read: {error}", file.display()))),
        }
    }
    calls.retain(|call| since(call, session.first));
    let number = calls.len();
    let unknown = known(places, &session.session).unknown(calls, &host.config.refusals, digest);
    gaps.extend(unknown.iter().map(unguarded));
    Some(Ok(Reconciled { files, calls: number, gaps }))
}

/// Whether a call is not from before `first`.
fn since(call: &TranscriptCall, first: Timestamp) -> bool {
    let at = call.at.as_deref();
    let told = at.and_then(|at| at.parse::<Timestamp>().ok());
    let counted = || at.and_then(|at| Timestamp::from_millisecond(at.parse().ok()?).ok());
    told.or_else(counted).is_none_or(|at| at >= first)
}

/// A conversation that an agent wrote down and of which its hooks said nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unheard {
    /// The agent, by its id.
    pub(crate) host: &'static str,
    /// Where it stands.
    pub(crate) file: PathBuf,
    /// How many calls with a result it has since the guard was installed.
    pub(crate) calls: usize,
    /// Why it, or a part of it, could not be read.
    pub(crate) unread: Option<String>,
}

/// The conversations of `host` since the guard was installed there that are none of `sessions`: it was started without
/// its hooks, or they were off.
pub(crate) fn unheard(
    host: &'static GuardHost,
    sessions: &[HostSession],
    (env, places): (&Env, &GuardPlaces),
) -> Vec<Unheard> {
    let (Some(path), Some(installed)) = (host.config.transcript, installed_at(places, host)) else { return Vec::new() };
    let Ok(first) = Timestamp::try_from(installed) else { return Vec::new() };
    let is_known = |file: &Path| {
        let text = file.to_string_lossy();
        sessions.iter().filter(|it| it.host == host.id).any(|it| {
            let id = it.session.split_once(':').map_or("", |(_, id)| id);
            it.transcript.as_deref() == Some(file) || (!id.is_empty() && text.contains(id))
        })
    };
    let is_newer =
        |file: &Path| file.metadata().and_then(|metadata| metadata.modified()).is_ok_and(|at| at >= installed);
    let files = files_of(&path.replace("{session}", "*"), env);
    let of_file = |file: PathBuf| {
        let unreadable =
            |error: io::Error| WrittenDown { calls: Vec::new(), unread: Some(format!("it cannot be read: {error}")) };
        let WrittenDown { calls, unread } = written_down(&file).unwrap_or_else(unreadable);
        let ran = |call: &&TranscriptCall| since(call, first) && !host.config.refusals.rejects(call);
        let calls = calls.iter().filter(ran).count();
        (calls > 0 || unread.is_some()).then_some(Unheard { host: host.id, file, calls, unread })
    };
    files.into_iter().filter(|file| is_newer(file) && !is_known(file)).filter_map(of_file).collect()
}

fn unread(file: &Path, why: &str) -> GuardGap {
    let key = format!("{UNREAD}: {}", file.display());
    GuardGap { text: format!("{key}: {why}"), key, call: None }
}

fn unguarded(call: &TranscriptCall) -> GuardGap {
    // As records have it: without secrets, and not at any length.
    let shown = call.arguments.as_object().map(|arguments| StoredCall::of(arguments).shown()).unwrap_or_default();
    let shown: String = shown.chars().take(SHOWN_CHARS).collect();
    let text = format!("{UNGUARDED_CALL}: the agent ran `{}` and no hook was asked: {shown}", call.tool);
    let key = call.id.clone().unwrap_or_else(|| digest(&text));
    GuardGap { key, call: call.id.clone(), text }
}

/// What took the hooks away from `session`, which goes on, if something did.
pub(crate) fn disarmed(session: &HostSession, env: &Env, places: &GuardPlaces) -> Option<GuardGap> {
    let host = guard::host(&session.host)?;
    let env = Env { cwd: session.folder.clone(), ..env.clone() };
    let installed = found_in_files(host, &env, places);
    let why = why_disarmed(&installed, &session.folder)?;
    Some(GuardGap { key: format!("{DISARMED}: {why}"), call: None, text: format!("{DISARMED}: {why}") })
}

/// Why none of `installed` guards whoever works in `folder`; none where one does.
fn why_disarmed(installed: &[Installed], folder: &Path) -> Option<String> {
    if installed.iter().any(|it| it.flaw.is_none()) {
        return None;
    }
    Some(match installed.iter().find_map(|it| it.flaw.as_ref().map(|flaw| (it, flaw))) {
        Some((it, flaw)) => format!("{}: {flaw}", it.file.display()),
        None => format!("no entry of the guard is left in the settings that count in {}", folder.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_disarmed_when_no_installation_holds() {
        let installed = |flaw: Option<&str>| Installed {
            scope: "user",
            file: "/u/s.json".into(),
            flaw: flaw.map(str::to_owned),
            limit: None,
        };
        let why = |all: &[Installed]| why_disarmed(all, Path::new("/w"));
        assert_eq!(why(&[installed(Some("x")), installed(None)]), None);
        assert_eq!(why(&[installed(Some("it is off"))]).as_deref(), Some("/u/s.json: it is off"));
        assert!(why(&[]).unwrap().contains("no entry of the guard is left"));
    }
}
