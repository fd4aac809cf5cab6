//! Which calls the guard was asked about, kept for later: only their ids, and digests of what they were about.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use pintle_domain::json::{Object, Value};
use pintle_guard::transcript::{KnownCalls, call_content};
use pintle_guard::{HostCall, HostEvent};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::places::GuardPlaces;
use super::sessions::HostSession;

/// Names the space of digests of calls.
const CALLS: Uuid = Uuid::from_u128(0x2b5e_7d0c_91f4_5e7a_8c3d_64a0_f1b2_9d57);

/// Members beside an event in which a host has another id for the call.
const OTHER_IDS: [&str; 2] = ["tool_call_id", "toolCallId"];

/// One line.
#[derive(Serialize, Deserialize)]
struct Asked {
    ids: Vec<String>,
    content: String,
    /// What the content was before a hook changed it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
}

/// The digest under which a call's content is kept.
pub(crate) fn digest(content: &str) -> String {
    Uuid::new_v5(&CALLS, content.as_bytes()).to_string()
}

fn folder(places: &GuardPlaces) -> PathBuf {
    places.folder.join("calls")
}

fn file(places: &GuardPlaces, session: &str) -> PathBuf {
    folder(places).join(format!("{}.jsonl", Uuid::new_v5(&CALLS, session.as_bytes())))
}

/// Notes that the guard was asked about the call `tool` of `event`, or made it one with the arguments `changed`.
///
/// # Errors
/// It cannot be written.
pub(crate) fn note(
    places: &GuardPlaces,
    event: &HostEvent,
    (tool, changed): (&HostCall, Option<&Object>),
) -> io::Result<()> {
    let others = OTHER_IDS.iter().filter_map(|name| event.host_raw.get(name)?.as_str().map(str::to_owned));
    let ids = event.call.iter().cloned().chain(others).collect();
    let content = |arguments: &Object| digest(&call_content(&tool.native, &Value::Object(arguments.clone())));
    let before = changed.map(|_| content(&tool.arguments));
    let asked = Asked { ids, content: content(changed.unwrap_or(&tool.arguments)), before };
    let line = format!("{}\n", serde_json::to_string(&asked).map_err(io::Error::other)?);
    opened(places, event.session_id().as_str())?.write_all(line.as_bytes())
}

/// The file of `session`, open at its end. Its folder is made where it is missed: nearly always it is there.
fn opened(places: &GuardPlaces, session: &str) -> io::Result<File> {
    let file = file(places, session);
    // A pipe that somebody put there would wait for its other end.
    let flags = OFlag::O_NONBLOCK.bits();
    let open = || File::options().append(true).create(true).mode(0o600).custom_flags(flags).open(&file);
    match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(folder(places))?;
            open()
        }
        opened => opened,
    }
}

/// The calls that the guard was asked about in `sessions`.
pub(crate) fn known(places: &GuardPlaces, sessions: &[&str]) -> KnownCalls {
    let mut known = KnownCalls::default();
    let text: String =
        sessions.iter().map(|session| fs::read_to_string(file(places, session)).unwrap_or_default()).collect();
    for asked in text.lines().filter_map(|line| serde_json::from_str::<Asked>(line).ok()) {
        asked.ids.iter().for_each(|id| known.asked_id(id));
        match &asked.before {
            Some(before) => known.changed_content(before, &asked.content),
            None => known.asked_content(&asked.content),
        }
    }
    known
}

/// Removes what is kept of sessions that are none of those that `sessions` gives.
///
/// # Errors
/// What is there cannot be read or removed.
pub(crate) fn forget_others(places: &GuardPlaces, sessions: impl FnOnce() -> Vec<HostSession>) -> io::Result<()> {
    let files = match fs::read_dir(folder(places)) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    // A session is known before its file is made: whoever looked the other way round would take a new one's away.
    let known: BTreeSet<PathBuf> = sessions().iter().map(|it| file(places, &it.session)).collect();
    files.iter().filter(|file| !known.contains(*file)).try_for_each(|file| removed(file))
}

/// Removes `file`, which may be gone already.
fn removed(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::sessions::Sessions;
    use jiff::Timestamp;
    use pintle_domain::json::json;
    use pintle_guard::HostWhat;
    use pintle_guard::tools::ToolClass;
    use pintle_guard::transcript::TranscriptCall;
    use pintle_host::config::Env;

    fn object(command: &str) -> Object {
        [("command".to_owned(), Value::from(command))].into_iter().collect()
    }

    fn asked(session: &str, command: &str) -> (HostEvent, HostCall) {
        let tool = HostCall {
            native: "Bash".into(),
            canonical: "exec".into(),
            class: ToolClass::Shell,
            arguments: object(command),
        };
        let event = HostEvent {
            host: "claude",
            event: String::new(),
            session: session.to_owned(),
            turn: None,
            call: None,
            subagent: None,
            cwd: "/w".into(),
            transcript: None,
            attended: None,
            what: HostWhat::Tool(tool.clone()),
            host_raw: Object::new(),
        };
        (event, tool)
    }

    fn places(dir: &Path) -> GuardPlaces {
        let env = Env { vars: [("HOME".into(), dir.into())].into(), cwd: dir.to_owned() };
        GuardPlaces::of(&env, Some(dir), None).unwrap()
    }

    /// How many of `commands` nobody asked about in the session `s`.
    fn unknown(places: &GuardPlaces, commands: &[&str]) -> usize {
        let call = |command: &&str| TranscriptCall {
            id: None,
            tool: "Bash".into(),
            arguments: json!({"command": *command}),
            at: None,
            result: "ok".into(),
            failed: false,
        };
        let calls = commands.iter().map(call).collect();
        known(places, &["claude:s"]).unknown(calls, &pintle_guard::HostRefusals::BARE, digest).len()
    }

    #[test]
    fn a_call_that_a_hook_changed_is_one_call() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        let (event, tool) = asked("s", "before");
        note(&places, &event, (&tool, None)).unwrap();
        note(&places, &event, (&tool, Some(&object("after")))).unwrap();
        let counts = [&["before"][..], &["after"], &["before", "after"], &["after", "after"]];
        assert_eq!(counts.map(|commands| unknown(&places, commands)), [0, 0, 1, 1]);
    }

    #[test]
    fn a_folder_that_somebody_removes_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        let (event, tool) = asked("s", "x");
        for _ in 0..2 {
            note(&places, &event, (&tool, None)).unwrap();
            assert_eq!(unknown(&places, &["x"]), 0);
            fs::remove_dir_all(folder(&places)).unwrap();
            assert_eq!(unknown(&places, &["x"]), 1);
        }
    }

    #[test]
    fn what_is_kept_of_a_forgotten_session_goes() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        forget_others(&places, Vec::new).unwrap();
        let sessions = Sessions::default();
        for (session, is_known) in [("s", true), ("gone", false)] {
            let (event, tool) = asked(session, "x");
            note(&places, &event, (&tool, None)).unwrap();
            if is_known {
                sessions.place(&event, None, Timestamp::UNIX_EPOCH);
            }
        }
        forget_others(&places, || sessions.all()).unwrap();
        let there = |session: &str| file(&places, session).exists();
        assert!(there("claude:s") && !there("claude:gone"));
    }
}
