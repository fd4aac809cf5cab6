//! What got past the guard: calls in what a host wrote down that nobody asked about, and what took its hooks away from
//! sessions that go on.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use pintle_domain::store::StoredCall;
use pintle_guard::GuardHost;
use pintle_guard::transcript::TranscriptCall;
use pintle_host::config::Env;

use super::call_log::{digest, known};
use super::host_files::{files_of, installed_at};
use super::installs::{Installed, found_in_files};
use super::places::GuardPlaces;
use super::session_files::HostTranscript;
use super::sessions::{HostSession, known_since};
use super::written_down::{WrittenDown, is_database, sessions_in, state_of, written_down};
use crate::text::counted;

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

/// How a conversation of which no hook said anything is called in records.
const UNHEARD: &str = "unheard";

/// How long after its newest event a session that was forgotten may have written something down.
const FORGOTTEN: SignedDuration = SignedDuration::from_mins(5);

/// Longest text of a call that is shown, in characters.
const SHOWN_CHARS: usize = 160;

/// The files in which `host` keeps the conversation of the session `id` and those of its sub-agents, where its hooks are
/// not told.
fn transcripts(host: &GuardHost, id: &str, env: &Env) -> Vec<PathBuf> {
    // A name that could lead elsewhere is none of a session.
    let is_name = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let is_its = |path: &&&str| is_database(Path::new(path)) || path.contains("{session}");
    let places = host.config.transcripts.iter().filter(is_its).map(|path| path.replace("{session}", id));
    let files = places.filter(|_| is_name).flat_map(|path| files_of(&path, env));
    files.filter(|file| file.exists()).collect()
}

/// The files in which the conversation of `session` is kept, and those of its sub-agents, as far as they are there: each
/// once, as it is now.
pub(crate) fn written_of(session: &HostSession, env: &Env) -> Vec<HostTranscript> {
    let found = pintle_guard::host(&session.host).map(|host| transcripts(host, session.id(), env)).unwrap_or_default();
    let found = found.into_iter().map(|file| HostTranscript { file, agent: None, read: None });
    let (mut seen, mut files) = (BTreeSet::new(), Vec::new());
    for file in session.transcripts.all().cloned().chain(found) {
        // One name leads to another, as where a home folder is a link.
        let Ok(real) = file.file.canonicalize() else { continue };
        if seen.insert(real) {
            files.push(HostTranscript { read: state_of(&file.file), ..file });
        }
    }
    files
}

/// Whether something was written in `session` since it was read.
pub(crate) fn is_unread(session: &HostSession, now: &[HostTranscript]) -> bool {
    now.iter().any(|file| session.transcripts.read(&file.file) != file.read)
}

/// The names of `session` and of those of `all` that work for it, however far below.
fn family<'a>(session: &'a str, all: &'a [HostSession]) -> Vec<&'a str> {
    let mut found = vec![session];
    let mut next = 0;
    while let Some(above) = found.get(next).copied() {
        let below = all.iter().filter(|it| it.parent.as_deref() == Some(above)).map(|it| it.session.as_str());
        let new: Vec<&str> = below.filter(|name| !found.contains(name)).collect();
        found.extend(new);
        next += 1;
    }
    found
}

/// The names of the sessions whose questions may be about what `session` wrote down: its own, those that work for it, and
/// where several write into one file, as a sub-agent into that of its parent, theirs and those that work for them.
pub(crate) fn heard_with<'a>(session: &'a HostSession, all: &'a [HostSession]) -> Vec<&'a str> {
    let shares = |it: &&HostSession| {
        let files = || session.transcripts.all().map(|known| &known.file);
        it.host == session.host && it.transcripts.all().any(|known| files().any(|file| *file == known.file))
    };
    let mut names = family(&session.session, all);
    for other in all.iter().filter(shares) {
        let new: Vec<&str> = family(&other.session, all).into_iter().filter(|name| !names.contains(name)).collect();
        names.extend(new);
    }
    names
}

/// The calls of `session` that nobody asked the guard about; `asked` are the names of the sessions whose questions may be
/// about them, its own among them.
///
/// # Errors
/// What the host wrote down cannot be read; none where it is not known where that is.
pub(crate) fn reconcile(
    session: &HostSession,
    asked: &[&str],
    (env, places): (&Env, &GuardPlaces),
) -> Option<Result<Reconciled, String>> {
    let host = pintle_guard::host(&session.host)?;
    let files = written_of(session, env);
    if files.is_empty() {
        return None;
    }
    let (mut number, mut gaps, mut ids) = (0, Vec::<GuardGap>::new(), BTreeSet::new());
    let mut known = known(places, asked);
    for HostTranscript { file, agent, .. } in &files {
        let mut read = match written_down(file, session.id()) {
            Ok(read) => read,
            Err(error) if files.len() == 1 => return Some(Err(format!("{} cannot be read: {error}", file.display()))),
            // One of several hides nothing that the others say.
            Err(error) => {
                gaps.push(unread(file, &format!("it cannot be read: {error}")));
                continue;
            }
        };
        gaps.extend(read.unread.map(|why| unread(file, &why)));
        // What a sub-agent was told of its parent stands in both.
        read.calls
            .retain(|call| since(call, session.first) && call.id.as_ref().is_none_or(|id| ids.insert(id.clone())));
        number += read.calls.len();
        let unknown = known.unknown(read.calls, &host.config.refusals, digest);
        gaps.extend(unknown.iter().map(|call| unguarded(call, agent.as_deref())));
    }
    let files = files.into_iter().map(|file| file.file).collect();
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
    /// Which session it is, where the file has those of several.
    pub(crate) session: Option<String>,
    /// How many calls with a result it has since the guard was installed.
    pub(crate) calls: usize,
    /// Why it, or a part of it, could not be read.
    pub(crate) unread: Option<String>,
}

impl Unheard {
    /// Where it stands, for people.
    pub(crate) fn place(&self) -> String {
        place(&self.file, self.session.as_deref())
    }

    /// What it is, for people and for records.
    pub(crate) fn said(&self) -> String {
        let why = self.unread.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
        format!("{UNHEARD}: {}: {} without any hook{why}", self.place(), counted(self.calls, "call"))
    }
}

fn place(file: &Path, session: Option<&str>) -> String {
    let session = session.map(|session| format!(", session {session}")).unwrap_or_default();
    format!("{}{session}", file.display())
}

/// The conversations of `host` since the guard was installed there that are none of `sessions`: it was started without
/// its hooks, or they were off.
pub(crate) fn unheard(
    host: &'static GuardHost,
    sessions: &[HostSession],
    around: (&Env, &GuardPlaces),
) -> Vec<Unheard> {
    unheard_but(host, sessions, around, &BTreeSet::new())
}

/// The same but for those whose place is among `known`: nobody reads them again.
pub(crate) fn unheard_but(
    host: &'static GuardHost,
    sessions: &[HostSession],
    (env, places): (&Env, &GuardPlaces),
    known: &BTreeSet<String>,
) -> Vec<Unheard> {
    let Some(installed) = installed_at(places, host).and_then(|at| Timestamp::try_from(at).ok()) else {
        return Vec::new();
    };
    // Of a session that was forgotten nobody knows any more whether it was heard.
    let first = known_since(sessions).map_or(installed, |known| installed.max(known + FORGOTTEN));
    let sessions: Vec<&HostSession> = sessions.iter().filter(|it| it.host == host.id).collect();
    let told: BTreeSet<PathBuf> =
        sessions.iter().flat_map(|it| it.transcripts.all()).filter_map(|told| told.file.canonicalize().ok()).collect();
    let is_heard = |text: &str| sessions.iter().any(|it| !it.id().is_empty() && text.contains(it.id()));
    let is_newer = |file: &Path| state_of(file).is_some_and(|state| state.written_ms >= first.as_millisecond());
    let of_file = |(file, session): (PathBuf, Option<String>)| {
        let unreadable =
            |error: io::Error| WrittenDown { calls: Vec::new(), unread: Some(format!("it cannot be read: {error}")) };
        let WrittenDown { calls, unread } =
            written_down(&file, session.as_deref().unwrap_or_default()).unwrap_or_else(unreadable);
        let ran = |call: &&TranscriptCall| since(call, first) && !host.config.refusals.rejects(call);
        let calls = calls.iter().filter(ran).count();
        (calls > 0 || unread.is_some()).then_some(Unheard { host: host.id, file, session, calls, unread })
    };
    let places = host.config.transcripts.iter().map(|path| path.replace("{session}", "*"));
    let files = places.flat_map(|path| files_of(&path, env)).filter(|file| is_newer(file));
    let conversations = files.flat_map(|file| {
        if !is_database(&file) {
            let is_known =
                file.canonicalize().is_ok_and(|real| told.contains(&real)) || is_heard(&file.to_string_lossy());
            return if is_known { Vec::new() } else { vec![(file, None)] };
        }
        // A database that cannot be read is one conversation that cannot.
        let Ok(all) = sessions_in(&file) else { return vec![(file, None)] };
        all.into_iter().filter(|session| !is_heard(session)).map(|session| (file.clone(), Some(session))).collect()
    });
    let is_new = |(file, session): &(PathBuf, Option<String>)| !known.contains(&place(file, session.as_deref()));
    conversations.filter(is_new).filter_map(of_file).collect()
}

fn unread(file: &Path, why: &str) -> GuardGap {
    let key = format!("{UNREAD}: {}", file.display());
    GuardGap { text: format!("{key}: {why}"), key, call: None }
}

fn unguarded(call: &TranscriptCall, agent: Option<&str>) -> GuardGap {
    // As records have it: without secrets, and not at any length.
    let shown = call.arguments.as_object().map(|arguments| StoredCall::of(arguments).shown()).unwrap_or_default();
    let shown: String = shown.chars().take(SHOWN_CHARS).collect();
    let who = agent.map_or_else(|| "the agent".to_owned(), |agent| format!("the sub-agent {agent}"));
    let text = format!("{UNGUARDED_CALL}: {who} ran `{}` and no hook was asked: {shown}", call.tool);
    let key = call.id.clone().unwrap_or_else(|| digest(&text));
    GuardGap { key, call: call.id.clone(), text }
}

/// What took the hooks away from `session`, which goes on, if something did.
pub(crate) fn disarmed(session: &HostSession, env: &Env, places: &GuardPlaces) -> Option<GuardGap> {
    let host = pintle_guard::host(&session.host)?;
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
    use super::super::sessions::Sessions;
    use super::*;
    use pintle_domain::json::json;
    use pintle_guard::HookInput;

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

    #[test]
    fn a_sub_agent_with_a_session_of_its_own_belongs_to_that_of_its_parent() {
        let sessions = Sessions::default();
        let created = |id: &str, parent: Option<&str>| {
            let info = parent.map_or_else(|| json!({}), |parent| json!({"parentID": parent}));
            json!({"type": "session.created", "directory": "/w", "properties": {"sessionID": id, "info": info}})
        };
        for (id, parent) in [("a", None), ("b", Some("a")), ("c", Some("b")), ("d", None), ("e", Some("e"))] {
            let stdin = created(id, parent).to_string();
            let input = HookInput { event: None, environment: &[], cwd: "/w", stdin: stdin.as_bytes() };
            sessions.place(&pintle_guard::host("opencode").unwrap().read(&input).unwrap(), None, Timestamp::UNIX_EPOCH);
        }
        let all = sessions.all();
        assert_eq!(family("opencode:a", &all), ["opencode:a", "opencode:b", "opencode:c"]);
        assert_eq!(family("opencode:d", &all), ["opencode:d"]);
        assert_eq!(family("opencode:e", &all), ["opencode:e"]);
    }

    #[test]
    fn who_writes_into_one_file_is_asked_about_together() {
        let sessions = Sessions::default();
        let hear = |id: &str, file: &str| {
            let stdin =
                json!({"sessionId": id, "cwd": "/w", "transcriptPath": file, "stopReason": "end_turn"}).to_string();
            let input = HookInput { event: Some("agentStop"), environment: &[], cwd: "/w", stdin: stdin.as_bytes() };
            sessions.place(&pintle_guard::host("copilot").unwrap().read(&input).unwrap(), None, Timestamp::UNIX_EPOCH);
        };
        for (id, file) in [("a", "/h/a.jsonl"), ("b", "/h/a.jsonl"), ("c", "/h/c.jsonl")] {
            hear(id, file);
        }
        let all = sessions.all();
        let heard = |id: &str| {
            let session = all.iter().find(|it| it.session == id).unwrap();
            heard_with(session, &all).into_iter().collect::<BTreeSet<_>>()
        };
        let both = BTreeSet::from(["copilot:a", "copilot:b"]);
        assert_eq!(heard("copilot:a"), both);
        assert_eq!(heard("copilot:b"), both);
        assert_eq!(heard("copilot:c"), BTreeSet::from(["copilot:c"]));
    }
}
