//! Looks after sessions that go on: what got past the guard is in the record while they still run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use domain::checkpoint::CheckpointKind;
use domain::id::{CallId, TurnId};
use domain::identity::Identity;
use host::config::Env;
use jiff::Timestamp;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::places::GuardPlaces;
use super::reconciling::{GuardGap, disarmed, reconcile, transcripts};
use super::sessions::{HostSession, PastGuard};
use super::working::{CHANNEL, Desk};

/// How often sessions are looked at: an agent whose hooks were taken away was seen to make its next call some seconds
/// later.
const EVERY: Duration = Duration::from_secs(3);

/// How much of the time looking may take: what hosts wrote down can be long.
const SHARE: u32 = 20;

/// How long a session is looked at whose host has ended: what it wrote last comes late.
const LINGER: Duration = Duration::from_secs(30);

/// How the files of a session were when they were last looked at.
type Seen = Vec<(PathBuf, u64, Option<SystemTime>)>;

impl Desk {
    /// Looks after all sessions until `stop`, in the surroundings `env`.
    pub(crate) async fn look_after(&self, env: &Env, stop: &CancellationToken) {
        let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
        let mut pause = EVERY;
        loop {
            let round = async {
                sleep(pause).await;
                let began = Instant::now();
                self.look_once(env, &mut seen).await;
                EVERY.max(began.elapsed() * SHARE)
            };
            tokio::select! {
                () = stop.cancelled() => return,
                next = round => pause = next,
            }
        }
    }

    async fn look_once(&self, env: &Env, seen: &mut BTreeMap<String, Seen>) {
        let sessions: Vec<HostSession> = self.sessions.all().into_iter().filter(goes_on).collect();
        seen.retain(|session, _| sessions.iter().any(|it| it.session == *session));
        for session in sessions {
            let before = seen.get(&session.session).cloned().unwrap_or_default();
            let (places, env, looked_at) = (self.places.clone(), env.clone(), session.clone());
            let looking = tokio::task::spawn_blocking(move || look(&looked_at, (&env, &places), before));
            let Ok((now, gaps)) = looking.await else { continue };
            seen.insert(session.session.clone(), now);
            for gap in gaps {
                self.keep_gap(&session, gap).await;
            }
        }
    }

    /// Puts what got past the guard into the record, if nobody has before.
    async fn keep_gap(&self, session: &HostSession, gap: GuardGap) {
        let past = PastGuard { key: gap.key, text: gap.text.clone(), at: Timestamp::now() };
        let Some(turn) = self.sessions.passed(&session.session, past) else { return };
        tracing::warn!("{}: {}", session.session, gap.text);
        if let Err(error) = self.sessions.keep(&self.places) {
            tracing::warn!("what is known of sessions cannot be kept: {error}");
        }
        match self.folders.of(&session.folder, false).await {
            Ok(in_force) => {
                let who = Identity::top(&in_force.agent, session.session.as_str(), TurnId::new(turn.as_str()));
                let mut hooks = in_force.engine.dispatcher(who).with_origin(CHANNEL, session.host.as_str(), "user");
                hooks.set_call(gap.call.map(CallId::new));
                hooks.noted(CheckpointKind::PreToolUse, &gap.text);
            }
            Err(error) => tracing::warn!("{}: it is not in the record: {error}", session.folder.display()),
        }
    }
}

/// Whether there is something to look at yet.
fn goes_on(session: &HostSession) -> bool {
    let silent = Timestamp::now().duration_since(session.last);
    session.runs() || Duration::try_from(silent).is_ok_and(|silent| silent < LINGER)
}

/// What got past the guard in `session`; what the host wrote down is read where it is not as it was `before`.
fn look(session: &HostSession, (env, places): (&Env, &GuardPlaces), before: Seen) -> (Seen, Vec<GuardGap>) {
    // Who runs no more has no hooks that could be taken away.
    let mut gaps: Vec<GuardGap> =
        session.runs().then(|| disarmed(session, env, places)).flatten().into_iter().collect();
    let now = files(session, env);
    if now == before {
        return (now, gaps);
    }
    match reconcile(session, env, places) {
        Some(Ok(found)) => gaps.extend(found.gaps),
        Some(Err(why)) => tracing::warn!("{}: {why}", session.session),
        None => {}
    }
    (now, gaps)
}

fn files(session: &HostSession, env: &Env) -> Seen {
    let id = session.session.split_once(':').map_or("", |(_, id)| id);
    let others = || guard::host(&session.host).map(|host| transcripts(host, id, env)).unwrap_or_default();
    let files = session.transcript.clone().map_or_else(others, |file| vec![file]);
    let seen = |file: PathBuf| {
        let metadata = fs::metadata::<&Path>(&file).ok();
        let length = metadata.as_ref().map_or(0, fs::Metadata::len);
        (file, length, metadata.and_then(|metadata| metadata.modified().ok()))
    };
    files.into_iter().map(seen).collect()
}
