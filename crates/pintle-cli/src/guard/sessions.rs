//! What is known of the sessions of hosts: where each one works, its turns and calls, and whose process it is.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use pintle_domain::json::canonical;
use pintle_guard::{HostCall, HostEvent, HostWhat};
use pintle_process::ProcessStat;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::host_files::replace;
use super::host_program;
use super::places::GuardPlaces;
use super::session_files::{HostTranscript, HostTranscripts};

/// Most sessions that are known at once; the one that was silent for longest is forgotten first.
const MAX_SESSIONS: usize = 500;

/// Of more sessions than this of one process, or of processes that run no agent, the newest are made up: they are forgotten
/// before all others. An agent that is left open for days begins some dozens.
const MADE_UP: usize = 100;

/// Most calls that one session has under way without an id of the host's.
const MAX_COUNTED: usize = 1000;

/// Most findings that are kept of one session: whoever has so many reads no more of them.
const MAX_PAST: usize = 200;

/// Names the space of ids that stand for turns of hosts which have none.
const TURNS: Uuid = Uuid::from_u128(0x6f1d_8b2a_5a0e_5c0f_9a51_2f0c_7d3b_8e44);

/// One session of a host, as the daemon tells it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HostSession {
    /// Its name here.
    pub(crate) session: String,
    /// The host's id.
    pub(crate) host: String,
    /// The folder that it began in.
    pub(crate) folder: PathBuf,
    /// The process of the host, and since when that runs, in ticks since the machine started.
    pub(crate) process: Option<(u32, u64)>,
    /// When its first event came.
    pub(crate) first: Timestamp,
    /// When its newest event came.
    pub(crate) last: Timestamp,
    /// How many events came.
    pub(crate) events: u64,
    /// Whether the host said that it ended.
    pub(crate) ended: bool,
    /// The session that it works for, by its name here, where it is a sub-agent with a session of its own.
    #[serde(default)]
    pub(crate) parent: Option<String>,
    /// The version of the host, where that is known.
    #[serde(default)]
    pub(crate) version: Option<String>,
    /// The files in which the host keeps the conversation and those of its sub-agents, where that is known.
    #[serde(default)]
    pub(crate) transcripts: HostTranscripts,
    /// What got past the guard, as far as that was found.
    #[serde(default)]
    pub(crate) past: Vec<PastGuard>,
}

/// Something that got past the guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PastGuard {
    /// What stays the same when it is found again.
    pub(crate) key: String,
    /// What it is, for people.
    pub(crate) text: String,
    /// When it was found.
    pub(crate) at: Timestamp,
}

/// The sessions that the daemon knows, and what is held by the one that writes them down.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<BTreeMap<String, KnownSession>>, Mutex<()>);

#[derive(Debug)]
struct KnownSession {
    told: HostSession,
    /// Whether its process ran the program of the host when it was first seen, as far as this daemon saw it.
    is_of_host: bool,
    turns: u64,
    prompts: u64,
    /// The turn that the newest event without one of its own belongs to.
    turn: Option<String>,
    began: Timestamp,
    /// How often each call without an id was made, by its content.
    calls: BTreeMap<String, u64>,
}

/// What an event is about, by the names that stay the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The turn.
    pub(crate) turn: String,
    /// The call, if it is about one.
    pub(crate) call: Option<String>,
    /// The folder that the session began in.
    pub(crate) workspace: PathBuf,
    /// Whether this is the session's first event here.
    pub(crate) is_new: bool,
    /// Whether the session went on in another process than before.
    pub(crate) is_moved: bool,
    /// Whether this is the first event of its turn here.
    pub(crate) is_new_turn: bool,
    /// Whether it is the first prompt of the session.
    pub(crate) is_first_turn: bool,
    /// Whether it is a prompt in which nobody says anything: an earlier one goes on.
    pub(crate) goes_on: bool,
    /// How long the turn has taken.
    pub(crate) turn_took: std::time::Duration,
}

impl Sessions {
    /// Those that an earlier daemon kept: a session stays in the folder that it began in, and one that has ended is no
    /// less one that hooks told of.
    pub(crate) fn going_on(kept: Vec<HostSession>) -> Self {
        let known = |told: HostSession| (told.session.clone(), KnownSession::of(told));
        Self(Mutex::new(kept.into_iter().map(known).collect()), Mutex::default())
    }

    /// Takes notice of `event`, which came from the host that is `process`.
    pub(crate) fn place(&self, event: &HostEvent, process: Option<(u32, u64)>, now: Timestamp) -> Place {
        let session = event.session_id().to_string();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !known.contains_key(&session);
        if is_new && known.len() >= MAX_SESSIONS {
            let first = first_to_forget(&known);
            first.map(|first| known.remove(&first));
        }
        let it = known.entry(session.clone()).or_insert_with(|| KnownSession::new(&session, event, process, now));
        let is_moved = it.follow(process);
        it.told.last = now;
        it.told.events += 1;
        it.told.ended = event.what == HostWhat::SessionEnd;
        it.told.transcripts.hear(event);
        it.told.parent = works_for(event).or(it.told.parent.take());
        let goes_on = pintle_guard::is_blank_prompt(event) && it.prompts > 0;
        let begins = matches!(event.what, HostWhat::Prompt { .. }) && !goes_on;
        it.prompts += u64::from(begins);
        let before = it.turn.clone();
        let turn = it.turn(event, begins, now);
        let is_new_turn = before.as_deref() != Some(turn.as_str());
        let took = std::time::Duration::try_from(now.duration_since(it.began)).unwrap_or_default();
        Place {
            call: event.tool().map(|tool| it.call(event, tool)),
            workspace: it.told.folder.clone(),
            is_new,
            is_moved,
            is_new_turn,
            is_first_turn: begins && it.prompts == 1,
            goes_on,
            turn_took: took,
            turn,
        }
    }

    /// Takes notice of what got past the guard in `session`: whether that is new. The turn that it is found in, too.
    pub(crate) fn passed(&self, session: &str, past: PastGuard) -> Option<String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let it = known.get_mut(session)?;
        if it.told.past.len() >= MAX_PAST || it.told.past.iter().any(|known| known.key == past.key) {
            return None;
        }
        it.told.past.push(past);
        Some(it.turn.clone().unwrap_or_default())
    }

    /// Takes notice that `session` runs in `version` of its host, or that nobody knows any more in which.
    pub(crate) fn runs_in(&self, session: &str, version: Option<&str>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(it) = known.get_mut(session) {
            it.told.version = version.map(str::to_owned);
        }
    }

    /// Takes notice that the files `read` of `session` were looked at as they say.
    pub(crate) fn was_read(&self, session: &str, read: Vec<HostTranscript>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(it) = known.get_mut(session) else { return };
        read.into_iter().for_each(|file| it.told.transcripts.add(file));
    }

    /// The version of the host of the session `name`, where that is known.
    pub(crate) fn version(&self, name: &str) -> Option<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(name)?.told.version.clone()
    }

    /// The process of the host of the session `name`, where that is known.
    pub(crate) fn process(&self, name: &str) -> Option<(u32, u64)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(name)?.told.process
    }

    /// The turn that the newest event of the session `name` belongs to.
    pub(crate) fn turn(&self, name: &str) -> Option<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(name)?.turn.clone()
    }

    /// The session called `name`.
    pub(crate) fn of(&self, name: &str) -> Option<HostSession> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(name).map(|it| it.told.clone())
    }

    /// All of them, the newest event last.
    pub(crate) fn all(&self) -> Vec<HostSession> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<HostSession> = known.values().map(|it| it.told.clone()).collect();
        all.sort_by_key(|it| it.last);
        all
    }

    /// Keeps them for commands that run beside the daemon, and for the next one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn keep(&self, places: &GuardPlaces) -> io::Result<()> {
        let _alone = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        let text = serde_json::to_vec(&self.all()).map_err(io::Error::other)?;
        if fs::read(places.sessions_file()).is_ok_and(|kept| kept == text) {
            return Ok(());
        }
        replace(&places.sessions_file(), &text)
    }
}

impl KnownSession {
    fn new(session: &str, event: &HostEvent, process: Option<(u32, u64)>, now: Timestamp) -> Self {
        let told = HostSession {
            session: session.to_owned(),
            host: event.host.to_owned(),
            folder: PathBuf::from(&event.cwd),
            process,
            first: now,
            last: now,
            events: 0,
            ended: false,
            parent: None,
            version: None,
            transcripts: HostTranscripts::default(),
            past: Vec::new(),
        };
        Self { is_of_host: told.runs_host(), ..Self::of(told) }
    }

    fn of(told: HostSession) -> Self {
        Self { began: told.last, told, is_of_host: true, turns: 0, prompts: 0, turn: None, calls: BTreeMap::new() }
    }

    /// A session that somebody resumed has another process: who is below that one is below the agent. Whether it is so.
    fn follow(&mut self, process: Option<(u32, u64)>) -> bool {
        // Nearly every event comes from the same process as the one before: nobody looks then whether that still runs.
        let is_moved = process.is_some() && process != self.told.process && !self.told.runs();
        if is_moved {
            self.told.process = process;
            self.is_of_host = self.told.runs_host();
        }
        is_moved
    }

    fn turn(&mut self, event: &HostEvent, begins: bool, now: Timestamp) -> String {
        let is_other = event.turn.is_some() && event.turn != self.turn;
        if is_other || begins && event.turn.is_none() || self.turn.is_none() {
            self.turns += 1;
            self.began = now;
            let counted = || Uuid::new_v5(&TURNS, format!("{}/{}", self.told.session, self.turns).as_bytes());
            self.turn = Some(event.turn.clone().unwrap_or_else(|| counted().to_string()));
        }
        event.turn.clone().or_else(|| self.turn.clone()).unwrap_or_default()
    }

    /// The id of a call: the host's, or one of its content and how often that was made.
    fn call(&mut self, event: &HostEvent, tool: &HostCall) -> String {
        if let Some(id) = &event.call {
            return id.clone();
        }
        let content = pintle_domain::json::json!([self.told.session, tool.native, tool.arguments]);
        let content = Uuid::new_v5(&TURNS, canonical(&content).as_bytes()).to_string();
        if self.calls.len() >= MAX_COUNTED {
            self.calls.clear();
        }
        let count = self.calls.entry(content.clone()).or_default();
        // What comes after a call belongs to the one before it.
        if *count == 0 || matches!(event.what, HostWhat::Tool(_)) {
            *count += 1;
        }
        format!("{content}-{count}")
    }
}

/// The one of `known` that is forgotten where there are too many: the one with the fewest events where many are made up, else
/// the one that was silent for longest.
fn first_to_forget(known: &BTreeMap<String, KnownSession>) -> Option<String> {
    let maker = |it: &KnownSession| (it.is_of_host, it.told.process.filter(|_| it.is_of_host));
    let mut counts: BTreeMap<(bool, Option<(u32, u64)>), usize> = BTreeMap::new();
    known.values().for_each(|it| *counts.entry(maker(it)).or_default() += 1);
    let rank = |it: &KnownSession| {
        let made_up = counts.get(&maker(it)).copied().filter(|count| *count > MADE_UP);
        (Reverse(made_up), if made_up.is_some() { it.told.events } else { 0 }, it.told.last)
    };
    known.iter().min_by_key(|(_, it)| rank(it)).map(|(name, _)| name.clone())
}

/// The oldest moment of which everything is known that `sessions` say: when there are as many as are kept, those that
/// were silent for longest have been forgotten.
pub(crate) fn known_since(sessions: &[HostSession]) -> Option<Timestamp> {
    let oldest = || sessions.iter().map(|it| it.last).min();
    (sessions.len() >= MAX_SESSIONS).then(oldest).flatten()
}

/// The session that the one of `event` works for, where it is another one.
fn works_for(event: &HostEvent) -> Option<String> {
    let id = event.subagent.as_ref()?.parent.as_deref()?;
    (id != event.session).then(|| format!("{}:{id}", event.host))
}

impl HostSession {
    /// Its id at the host.
    pub(crate) fn id(&self) -> &str {
        self.session.split_once(':').map_or("", |(_, id)| id)
    }

    /// Whether its process still runs, and is known to run the host.
    fn runs_host(&self) -> bool {
        let is_of = |pid: u32| pintle_guard::host(&self.host).is_some_and(|host| host_program::is_of(host, pid));
        self.runs() && self.process.is_some_and(|(pid, _)| is_of(pid))
    }

    /// Whether its process still runs.
    pub(crate) fn runs(&self) -> bool {
        self.process.is_some_and(|(pid, since)| ProcessStat::of(pid).is_some_and(|stat| stat.since == since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use pintle_domain::json::Object;
    use pintle_guard::tools::ToolClass;

    fn event(turn: Option<&str>, call: Option<&str>, what: HostWhat) -> HostEvent {
        HostEvent {
            host: "claude",
            event: String::new(),
            session: "s".into(),
            turn: turn.map(str::to_owned),
            call: call.map(str::to_owned),
            subagent: None,
            cwd: "/w".into(),
            transcript: None,
            attended: None,
            what,
            host_raw: Object::new(),
        }
    }

    fn tool() -> HostCall {
        HostCall { native: "Bash".into(), canonical: "exec".into(), class: ToolClass::Shell, arguments: Object::new() }
    }

    #[test]
    fn turns_and_calls_have_ids_that_stay() {
        let sessions = Sessions::default();
        let at = |event: &HostEvent| sessions.place(event, None, Timestamp::UNIX_EPOCH);
        let prompt = |turn: Option<&str>| event(turn, None, HostWhat::Prompt { text: "x".into() });
        let first = at(&prompt(None));
        assert!(first.is_new && first.is_first_turn && first.workspace == Path::new("/w"));
        let call = at(&event(None, None, HostWhat::Tool(tool())));
        assert_eq!((&call.turn, call.is_new), (&first.turn, false));
        let done = HostWhat::ToolDone { tool: tool(), result: pintle_domain::json::json!(null), failed: false };
        assert_eq!(at(&event(None, None, done)).call, call.call, "what came of it is about the same call");
        assert_ne!(at(&event(None, None, HostWhat::Tool(tool()))).call, call.call, "made again it is another one");
        let second = at(&prompt(None));
        assert!(second.turn != first.turn && !second.is_first_turn);
        assert_eq!(at(&prompt(Some("t9"))).turn, "t9");
        assert_eq!(
            at(&event(None, Some("c1"), HostWhat::Tool(tool()))),
            Place {
                turn: "t9".into(),
                call: Some("c1".into()),
                workspace: "/w".into(),
                is_new: false,
                is_moved: false,
                is_new_turn: false,
                is_first_turn: false,
                goes_on: false,
                turn_took: std::time::Duration::ZERO,
            }
        );
    }

    #[test]
    fn only_a_prompt_of_qwen_without_a_text_goes_on_and_only_after_another_one() {
        let prompts = |host: &'static str, texts: &[&str]| {
            let sessions = Sessions::default();
            let at = |text: &&str| {
                let what = HostWhat::Prompt { text: (*text).to_owned() };
                let place = sessions.place(&HostEvent { host, ..event(None, None, what) }, None, Timestamp::UNIX_EPOCH);
                (place.goes_on, place.is_first_turn, place.is_new_turn)
            };
            texts.iter().map(at).collect::<Vec<_>>()
        };
        let (first, next, on) = ((false, true, true), (false, false, true), (true, false, false));
        assert_eq!(prompts("qwen", &["x", "", "", "y", ""]), [first, on, on, next, on]);
        assert_eq!(prompts("qwen", &["", ""]), [first, on]);
        for host in pintle_guard::HOSTS.iter().filter(|host| host.id != "qwen") {
            assert_eq!(prompts(host.id, &["x", "", "y"]), [first, next, next], "{}", host.id);
        }
    }

    #[test]
    fn a_session_that_goes_on_in_another_process_is_followed() {
        let start = || event(None, None, HostWhat::SessionStart);
        let mut gone = KnownSession::new("claude:s", &start(), None, Timestamp::UNIX_EPOCH).told;
        gone.process = Some((std::process::id(), 0));
        let sessions = Sessions::going_on(vec![gone]);
        let own = std::process::id();
        let process = ProcessStat::of(own).map(|stat| (own, stat.since));
        let at = || sessions.place(&start(), process, Timestamp::UNIX_EPOCH).is_moved;
        assert_eq!((at(), at()), (true, false));
        assert!(sessions.all()[0].runs());
    }

    #[test]
    fn made_up_sessions_push_no_other_one_out() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        // The process, whether it is the host's, how many events came and when the last one did.
        let session = |number: usize, (pid, is_of_host, events, last): (u32, bool, u64, i64)| {
            let name = format!("claude:{number:03}");
            let mut it = KnownSession::new(&name, &event(None, None, HostWhat::SessionStart), Some((pid, 0)), at(last));
            (it.is_of_host, it.told.events) = (is_of_host, events);
            (name, it)
        };
        let check = |rows: &[(u32, bool, u64, i64)], expected: usize| {
            let known: BTreeMap<_, _> = rows.iter().enumerate().map(|(number, row)| session(number, *row)).collect();
            assert_eq!(first_to_forget(&known), Some(format!("claude:{expected:03}")), "{rows:?}");
        };
        check(&[(1, true, 9, 5), (2, true, 1, 4), (3, true, 9, 6)], 1);
        check(&[(1, true, 9, 4), (2, false, 9, 9), (3, false, 1, 8)], 0);
        check(&[(1, true, 9, 5), (1, true, 1, 6), (2, true, 9, 7)], 0);
        let made_up = vec![(1, true, 1, 9); MADE_UP + 1];
        check(&[vec![(1, true, 9, 1), (2, false, 1, 1)], made_up].concat(), 2);
        let of_nobody: Vec<_> = (100..=200).map(|pid| (pid, false, 1, 9)).collect();
        check(&[vec![(1, true, 1, 1)], of_nobody].concat(), 1);
    }

    #[test]
    fn a_session_that_ended_is_still_known_to_the_next_daemon() {
        let sessions = Sessions::default();
        for what in [HostWhat::SessionStart, HostWhat::SessionEnd] {
            sessions.place(&event(None, None, what), None, Timestamp::UNIX_EPOCH);
        }
        let names =
            |sessions: &Sessions| sessions.all().into_iter().map(|it| (it.session, it.ended)).collect::<Vec<_>>();
        let next = Sessions::going_on(sessions.all());
        assert_eq!(names(&next), [("claude:s".to_owned(), true)]);
        next.place(&event(None, None, HostWhat::SessionStart), None, Timestamp::UNIX_EPOCH);
        assert_eq!(names(&next), [("claude:s".to_owned(), false)]);
    }

    #[test]
    fn a_process_is_known_by_its_beginning() {
        let own = std::process::id();
        let since = ProcessStat::of(own).unwrap().since;
        let session = |process| HostSession {
            session: "claude:s".into(),
            host: "claude".into(),
            folder: "/w".into(),
            process,
            first: Timestamp::UNIX_EPOCH,
            last: Timestamp::UNIX_EPOCH,
            events: 1,
            ended: false,
            parent: None,
            version: None,
            transcripts: HostTranscripts::default(),
            past: Vec::new(),
        };
        assert!(session(Some((own, since))).runs());
        assert!(!session(Some((own, since + 1))).runs() && !session(None).runs());
    }
}
