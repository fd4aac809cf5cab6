//! Looks after sessions that go on: what got past the guard is in the record while they still run.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::{CallId, TurnId};
use pintle_domain::identity::Identity;
use pintle_guard::{GuardHost, HOSTS};
use pintle_host::config::Env;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::places::GuardPlaces;
use super::reconciling::{GuardGap, Unheard, disarmed, heard_with, is_unread, reconcile, unheard_but, written_of};
use super::session_files::HostTranscript;
use super::sessions::{HostSession, PastGuard};
use super::working::{CHANNEL, Desk};

/// How often sessions are looked at: an agent whose hooks were taken away was seen to make its next call some seconds
/// later.
const EVERY: Duration = Duration::from_secs(3);

/// How much of the time looking may take: what hosts wrote down can be long.
const SHARE: u32 = 20;

/// The longest pause between two looks, whatever they take: on a machine with much to do they take long, and what got past
/// is to be found while the session runs.
const PAUSE: Duration = Duration::from_secs(15);

/// How long a session is looked at so often whose host has ended: what it wrote last comes late.
const LINGER: Duration = Duration::from_secs(30);

/// After how many looks everything is looked at, that which has ended and that of which no hook said anything, too: once a
/// minute.
const WHOLE: u32 = 20;

impl Desk {
    /// Looks after all sessions until `stop`, in the surroundings `env`.
    pub(crate) async fn look_after(&self, env: &Env, stop: &CancellationToken) {
        let (mut pause, mut round) = (EVERY, 0_u32);
        loop {
            let looked = async {
                sleep(pause).await;
                let began = Instant::now();
                match round % WHOLE {
                    0 => self.look_at_all(env).await,
                    _ => self.look_at(env, goes_on).await,
                }
                (began.elapsed() * SHARE).clamp(EVERY, PAUSE)
            };
            tokio::select! {
                () = stop.cancelled() => return,
                next = looked => pause = next,
            }
            round = round.wrapping_add(1);
        }
    }

    /// Looks at everything that is known or written down, once: what got past the guard is in the record then.
    pub(crate) async fn look_at_all(&self, env: &Env) {
        self.look_at(env, |_| true).await;
        let (places, surroundings, sessions) = (self.places.clone(), env.clone(), self.sessions.all());
        let looking = tokio::task::spawn_blocking(move || {
            // Those that are in the record are not read again: that would take longer with each of them.
            let known = known_unheard(&places).lines().map(str::to_owned).collect();
            let of_host = |host: &&'static GuardHost| unheard_but(host, &sessions, (&surroundings, &places), &known);
            HOSTS.iter().flat_map(of_host).collect::<Vec<_>>()
        });
        for unheard in looking.await.unwrap_or_default() {
            self.keep_unheard(env, &unheard).await;
        }
        self.keep_sessions();
    }

    /// Looks at the sessions that are `wanted`.
    async fn look_at(&self, env: &Env, wanted: fn(&HostSession) -> bool) {
        let all = self.sessions.all();
        for session in all.iter().filter(|session| wanted(session)) {
            let asked: Vec<String> = heard_with(session, &all).into_iter().map(str::to_owned).collect();
            let (places, env, looked_at) = (self.places.clone(), env.clone(), session.clone());
            let looking = tokio::task::spawn_blocking(move || look(&looked_at, &asked, (&env, &places)));
            let Ok((read, gaps)) = looking.await else { continue };
            self.sessions.was_read(&session.session, read);
            for gap in gaps {
                self.keep_gap(session, gap).await;
            }
        }
    }

    /// Puts a conversation of which no hook said anything into the record, if nobody has before.
    async fn keep_unheard(&self, env: &Env, unheard: &Unheard) {
        let key = unheard.place();
        if !is_new_unheard(&self.places, &key) {
            return;
        }
        tracing::warn!("{}: {}", unheard.host, unheard.said());
        // Nobody knows which folder it was in: it stands where the person's own record does.
        let folder = env.text("HOME").map_or_else(|| env.cwd.clone(), PathBuf::from);
        let name = unheard.session.clone().or_else(|| Some(unheard.file.file_stem()?.to_str()?.to_owned()));
        let session = format!("{}:{}", unheard.host, name.unwrap_or_default());
        let turn = Uuid::new_v5(&Uuid::NAMESPACE_URL, key.as_bytes()).to_string();
        let note = GapNote { session: &session, host: unheard.host, turn: &turn, call: None, text: &unheard.said() };
        self.keep_note(&folder, &note).await;
    }

    /// Puts what got past the guard into the record, if nobody has before.
    async fn keep_gap(&self, session: &HostSession, gap: GuardGap) {
        let past = PastGuard { key: gap.key, text: gap.text.clone(), at: Timestamp::now() };
        let Some(turn) = self.sessions.passed(&session.session, past) else { return };
        tracing::warn!("{}: {}", session.session, gap.text);
        self.keep_sessions();
        let (host, call) = (session.host.as_str(), gap.call);
        let note = GapNote { session: &session.session, host, turn: &turn, call, text: &gap.text };
        self.keep_note(&session.folder, &note).await;
    }

    async fn keep_note(&self, folder: &Path, note: &GapNote<'_>) {
        match self.folders.of(folder, false).await {
            Ok(in_force) => {
                let (agent, _) = in_force.stands_for(note.host);
                let who = Identity::top(agent, note.session, TurnId::new(note.turn));
                let mut hooks = in_force.engine.dispatcher(who).with_origin(CHANNEL, note.host, "user");
                hooks.set_call(note.call.clone().map(CallId::new));
                hooks.noted(CheckpointKind::PreToolUse, note.text);
            }
            Err(error) => tracing::warn!("{}: it is not in the record: {error}", folder.display()),
        }
    }
}

/// What is put into the record.
struct GapNote<'a> {
    session: &'a str,
    host: &'a str,
    turn: &'a str,
    call: Option<String>,
    text: &'a str,
}

/// Most conversations of which no hook said anything that are remembered: whoever has more reads no more of them.
const MAX_UNHEARD: usize = 10_000;

fn unheard_file(places: &GuardPlaces) -> PathBuf {
    places.folder.join("unheard")
}

/// Those that are in the record, a line each.
fn known_unheard(places: &GuardPlaces) -> String {
    fs::read_to_string(unheard_file(places)).unwrap_or_default()
}

/// Whether the conversation `key` is to be kept: nobody has before, and it is remembered that somebody does now.
fn is_new_unheard(places: &GuardPlaces, key: &str) -> bool {
    let known = known_unheard(places);
    if known.lines().any(|line| line == key) || known.lines().count() >= MAX_UNHEARD {
        return false;
    }
    match fs::write(unheard_file(places), format!("{known}{key}\n")) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!("what no hook said anything of cannot be remembered: {error}");
            false
        }
    }
}

/// Whether there is something to look at yet.
fn goes_on(session: &HostSession) -> bool {
    let silent = Timestamp::now().duration_since(session.last);
    session.runs() || Duration::try_from(silent).is_ok_and(|silent| silent < LINGER)
}

/// What got past the guard in `session`, and the files that were read for that; what the host wrote down is read where it
/// is not as it was.
fn look(
    session: &HostSession,
    asked: &[String],
    (env, places): (&Env, &GuardPlaces),
) -> (Vec<HostTranscript>, Vec<GuardGap>) {
    // Who runs no more has no hooks that could be taken away.
    let mut gaps: Vec<GuardGap> =
        session.runs().then(|| disarmed(session, env, places)).flatten().into_iter().collect();
    let now = written_of(session, env);
    if !is_unread(session, &now) {
        return (Vec::new(), gaps);
    }
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    match reconcile(session, &asked, (env, places)) {
        Some(Ok(found)) => gaps.extend(found.gaps),
        Some(Err(why)) => tracing::warn!("{}: {why}", session.session),
        None => {}
    }
    (now, gaps)
}
