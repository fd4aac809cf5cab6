//! What a node does beside its own clients: it says that it is there, takes letters for its turns, tells watchers what
//! ended elsewhere, and goes on with turns that others left.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pintle_domain::approval::{Approval, ApprovalState};
use pintle_domain::id::{SessionId, TenantId, TurnId};
use pintle_domain::json::{Value, json, parse};
use pintle_domain::llm::Usage;
use pintle_domain::node::{BEAT_EVERY, other_keys};
use pintle_domain::session::JournalEntry;
use pintle_domain::store::{ApprovalQuery, LeftTurn, Letter, LetterKind, SessionKey, Steerer, TenantScope};
use pintle_domain::turn::Fact;

use crate::Shared;
use crate::errand::Errand;
use crate::error::ApiError;
use crate::frame;
use crate::nodes::{Ended, lock};
use crate::noticed::Unnoticed;
use crate::outage;
use crate::outcome::RunOutcome;
use crate::run::{Asker, Run, RunParts};
use crate::session_name::SessionName;

/// How often it is looked for what notifications did not tell. Source: what is lost is found within 5 s.
const LOOK_EVERY: Duration = Duration::from_millis(1500);

/// How long what is said, and what is heard, is gathered.
const GATHER: Duration = Duration::from_millis(30);

/// How long whoever waits for a turn that was decided has the first try: nobody else has its client.
const FIRST_TRY: Duration = Duration::from_secs(1);

/// Most questions that are looked through for those that wait: far more than persons answer.
pub(crate) const MAX_QUESTIONS: usize = 10_000;

impl Shared {
    /// Says that this node begins, listening at `addresses`; the sessions whose turns its last end cut.
    pub(crate) async fn join(self: &Arc<Self>, addresses: Vec<String>) -> Result<Vec<String>, ApiError> {
        self.life.nodes.describe(&*self.host.read().await, self.store.node_id(), Some(addresses));
        self.blocking(|shared| {
            shared.store.identity_doubts()?.iter().for_each(|line| {
                tracing::warn!("security.identity.row_in_doubt: {line}");
            });
            let me = shared.life.nodes.me(0);
            let cut = shared.store.join(&me)?;
            // What a killed server left is told before anything goes on with it.
            shared.left()?;
            shared.life.nodes.saw(shared.store.beat(&me)?);
            let seen = shared.life.nodes.seen();
            for line in me.keys.iter().flat_map(|own| other_keys(&seen, (&me.id, own))) {
                tracing::warn!("gateway.other_keys: {line}");
            }
            // What was told before is not news.
            *lock(&shared.life.nodes.heard) = shared.store.news()?.into_iter().map(|(seq, _)| seq).collect();
            Ok(cut)
        })
        .await
    }

    /// Lives among the others until the end.
    pub(crate) async fn live_among_nodes(self: Arc<Self>) {
        let ringing = Arc::downgrade(&self);
        let _subscription = self.store.listen_nodes(Box::new(move || {
            if let Some(shared) = ringing.upgrade() {
                shared.life.nodes.bell.notify_one();
            }
        }));
        let (mut beat, mut looked) = (Instant::now(), None::<Instant>);
        loop {
            let rung = tokio::select! {
                () = self.life.nodes.bell.notified() => true,
                () = tokio::time::sleep(LOOK_EVERY) => false,
                () = self.life.hard_stop.cancelled() => return,
            };
            if rung {
                tokio::time::sleep(GATHER).await;
            }
            let sweeps = looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY / 6) || !rung;
            let beats = beat.elapsed() >= BEAT_EVERY.saturating_sub(LOOK_EVERY / 4);
            if beats {
                beat = Instant::now();
            }
            if sweeps {
                looked = Some(Instant::now());
            }
            if let Err(error) = self.look(beats, sweeps).await {
                tracing::debug!("other nodes are not heard: {error}");
            }
        }
    }

    async fn look(self: &Arc<Self>, beats: bool, sweeps: bool) -> Result<(), ApiError> {
        let at_work = self.lanes.all().len();
        let found = self.blocking(move |shared| shared.looked(at_work, (beats, sweeps))).await?;
        if sweeps {
            // It was asked, and answered.
            outage::answered();
        }
        // Told before anybody goes on with its turn.
        self.tell_unnoticed(found.unnoticed).await;
        for letter in found.letters {
            self.deliver(letter).await;
        }
        let mut ended = false;
        for news in found.news {
            ended |= self.hear(&news).await;
        }
        if ended {
            self.desk.answers.notify_waiters();
        }
        if !self.life.draining.is_cancelled() {
            for left in found.left {
                self.take_over(left).await;
            }
        }
        Ok(())
    }

    /// Asks the store, in one go. What is taken out of it comes last, and is nowhere lost when something fails.
    fn looked(&self, at_work: usize, (beats, sweeps): (bool, bool)) -> Result<Found, ApiError> {
        let (nodes, shared) = (&self.life.nodes, self.store.is_shared());
        let say = std::mem::take(&mut *lock(&nodes.news));
        if !say.is_empty()
            && let Err(error) = self.store.tell_nodes(&say)
        {
            // It is said the next time, before what came since.
            lock(&nodes.news).splice(0..0, say);
            return Err(error.into());
        }
        if beats && shared {
            nodes.saw(self.store.beat(&nodes.me(at_work))?);
        }
        let unnoticed = if sweeps { self.unnoticed()? } else { Unnoticed::default() };
        let sweeps = sweeps && !self.life.draining.is_cancelled();
        let left = if sweeps { self.left()? } else { Vec::new() };
        let news = if shared { self.store.news()? } else { Vec::new() };
        let mut taken = if shared { self.store.collect()? } else { Vec::new() };
        if sweeps {
            match self.store.stranded(nodes.name()) {
                Ok(stranded) => taken.extend(stranded.into_iter().filter(|letter| letter.kind == LetterKind::Steer)),
                Err(error) => tracing::debug!(%error, "messages for idle sessions could not be read"),
            }
        }
        let mut letters = std::mem::take(&mut *lock(&nodes.letters));
        letters.extend(taken);
        let mut heard = lock(&nodes.heard);
        let fresh = news.iter().filter(|(seq, _)| !heard.contains(seq)).map(|(_, body)| body.clone()).collect();
        *heard = news.into_iter().map(|(seq, _)| seq).collect();
        Ok(Found { letters, news: fresh, left, unnoticed })
    }

    /// The turns that nobody works and nobody is asked about any more.
    fn left(&self) -> Result<Vec<LeftTurn>, ApiError> {
        let mut left = self.sessions.left_turns()?;
        left.retain(|turn| SessionName::kept(turn.key.session.as_str()).is_some());
        if left.is_empty() {
            lock(&self.life.nodes.left).clear();
            return Ok(left);
        }
        let now = jiff::Timestamp::now();
        let asked = self.store.approvals(&ApprovalQuery::waiting(TenantScope::All, MAX_QUESTIONS))?;
        let asked: BTreeSet<_> = asked
            .into_iter()
            .filter(|it| it.state_at(now) == ApprovalState::Waiting)
            .map(|it| (it.tenant_id, it.session_id, it.turn_id))
            .collect();
        left.retain(|it| !asked.contains(&(it.key.tenant.clone(), it.key.session.clone(), it.turn_id.clone())));
        let mut known = lock(&self.life.nodes.left);
        known.retain(|key, _| left.iter().any(|turn| turn.key == *key));
        // Where it was only parked, its own node may have a client that waits for it.
        let (wait, now) = (if self.life.nodes.is_alone() { Duration::ZERO } else { FIRST_TRY }, Instant::now());
        left.retain(|turn| {
            let since = *known.entry(turn.key.clone()).or_insert_with(|| {
                if turn.died {
                    tell_cut(turn);
                }
                now
            });
            turn.died || since.elapsed() >= wait
        });
        Ok(left)
    }

    async fn take_over(self: &Arc<Self>, left: LeftTurn) {
        let Some(name) = SessionName::kept(left.key.session.as_str()) else { return };
        if self.life.nodes.may_have(&name, left.node.as_deref()).is_ok() {
            self.work_alone(&left.key, Alone::Left(left.turn_id)).await;
        }
    }

    /// Works a session for whom nobody waits here: what was left of it, or a message that came too late for its turn.
    pub(crate) async fn work_alone(self: &Arc<Self>, key: &SessionKey, what: Alone) {
        let Some(name) = SessionName::kept(key.session.as_str()) else { return };
        // Another node may have it.
        if self.life.nodes.takes(&name.agent).is_err() {
            return;
        }
        let Ok(agent) = self.ready(key, &name.agent, None).await else { return };
        let run = Run::new(RunParts {
            name,
            tenant: key.tenant.clone(),
            prompt: what.prompt().to_owned(),
            stream: false,
            asker: Asker::Nobody,
            // That of the turn which it goes on with stands in the session.
            key: what.key().map(str::to_owned),
            // A request that says the same finds it.
            is_heard: true,
            hub: self.hub.clone(),
        });
        if let Err(at_work) = self.lanes.take(&run) {
            if let Alone::Message(body, by) = what {
                self.say(&at_work, Letter { key: key.clone(), kind: LetterKind::Steer, body, by });
            }
            return;
        }
        // Whoever asked without a session is gone, and nobody goes on with what they asked.
        if matches!(what, Alone::Stopped(_)) || run.name.is_once() {
            run.handle.cancel();
        }
        let (turn, resumes) = match what {
            Alone::Message(..) => (TurnId::fresh(), false),
            Alone::Left(turn) | Alone::Stopped(turn) => (turn, true),
        };
        // Whoever lets this be done may go away meanwhile.
        let lane = self.lanes.hold(key.clone());
        let place = self.left_turn_of(&key.tenant, &run.name.user, &turn).await;
        lane.stays();
        self.start(run, Errand { resumes, place, ..Errand::resuming(agent, turn) });
    }

    async fn deliver(self: &Arc<Self>, letter: Letter) {
        match self.why_taken_back(&letter).await {
            Ok(None) => {}
            Ok(Some(why)) => {
                tracing::info!(session = %letter.key.session, "security.message_taken_back: {why}");
                return;
            }
            Err(error) => {
                tracing::debug!(%error, "who left a letter is not known yet");
                lock(&self.life.nodes.letters).push(letter);
                return;
            }
        }
        let Some(run) = self.lanes.of(&letter.key) else {
            if letter.kind == LetterKind::Steer {
                self.work_alone(&letter.key, Alone::Message(letter.body, letter.by)).await;
            }
            return;
        };
        match letter.kind {
            LetterKind::Abort => run.handle.cancel(),
            LetterKind::Steer => self.say(&run, letter),
        }
    }

    /// Why nobody hears what a letter says: its sender may not talk to agents any more.
    async fn why_taken_back(self: &Arc<Self>, letter: &Letter) -> Result<Option<&'static str>, ApiError> {
        let Some(Steerer { user, key }) = letter.by.clone() else { return Ok(None) };
        let (tenant, keys) = (letter.key.tenant.clone(), BTreeSet::from_iter(key));
        self.blocking(move |shared| shared.why_over(&tenant, &user, &keys)).await
    }

    /// Says to a turn what a letter says, or keeps it until the turn takes it.
    fn say(&self, run: &Run, letter: Letter) {
        let said = match &letter.by {
            Some(by) => run.handle.steer_by(letter.body.clone(), by.clone()),
            None => run.handle.steer(letter.body.clone()),
        };
        if said.is_err() {
            lock(&self.life.nodes.letters).push(letter);
        }
    }

    /// Takes in what another node said; whether somebody here may wait for it.
    async fn hear(self: &Arc<Self>, news: &str) -> bool {
        let Ok(news) = parse(news) else { return false };
        let text = |name: &str| news.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        if text("kind") == APPROVAL {
            self.tell_approval_of(TenantId::from(text("tenant").as_str()), text("id")).await;
        }
        if text("kind") == BUDGET {
            self.tell_budget_of(TenantId::from(text("tenant").as_str())).await;
        }
        if text("kind") == ENDED {
            let key = SessionKey {
                tenant: TenantId::from(text("tenant").as_str()),
                session: SessionId::from(text("session").as_str()),
            };
            let usage = news.get("usage").cloned().unwrap_or_else(|| json!(Usage::default()));
            self.tell_of(&key, &TurnId::from(text("turn").as_str()), &usage).await;
        }
        true
    }

    /// Tells watchers here of a turn that ended on another node: whole, since they heard nothing of it before.
    async fn tell_of(self: &Arc<Self>, key: &SessionKey, turn: &TurnId, usage: &Value) {
        let Some(name) = SessionName::kept(key.session.as_str()) else { return };
        if self.hub.of(&key.tenant, |it| it.who.user == name.user || it.who.sees_others()).is_empty() {
            return;
        }
        let wanted = (key.clone(), turn.clone());
        let ended = self.blocking(move |shared| shared.ended(&wanted.0, &wanted.1)).await;
        let Ok(Some(ended)) = ended else { return };
        let (kind, payload) = match &ended {
            Ended::Completed(reply) => ("run.completed", Some(json!({ "content": reply, "usage": usage }))),
            Ended::Failed { why, .. } => ("run.failed", Some(json!({ "error": why }))),
            Ended::Cancelled { .. } => ("run.cancelled", None),
        };
        self.tell_watchers(key, turn, (kind, payload.as_ref()));
    }

    /// Tells those here who watch a session of something that no run of this node tells.
    pub(crate) fn tell_watchers(&self, key: &SessionKey, turn: &TurnId, (kind, payload): (&str, Option<&Value>)) {
        let Some(name) = SessionName::kept(key.session.as_str()) else { return };
        for connection in self.hub.of(&key.tenant, |it| it.who.user == name.user || it.who.sees_others()) {
            let mut event = json!({
                "type": kind,
                "agentId": name.agent,
                "runId": turn,
                "sessionKey": name.shown_to(&connection.who),
                "userId": name.user,
                "channel": name.channel.word(),
                "chatId": name.conversation,
                "live": false,
            });
            if let Some(payload) = payload {
                event["payload"] = payload.clone();
            }
            connection.tell(&frame::event_head("agent", &event));
        }
    }

    /// How the turn `turn` ended, once it has.
    pub(crate) fn ended(&self, key: &SessionKey, turn: &TurnId) -> Result<Option<Ended>, ApiError> {
        Ok(Ended::of(self.sessions.journal(key)?, turn))
    }

    /// Whether the turn `turn` was ever begun.
    pub(crate) fn began(&self, key: &SessionKey, turn: &TurnId) -> Result<bool, ApiError> {
        let is_it =
            |entry: &JournalEntry| matches!(entry, JournalEntry::Turn(Fact::Begun { turn_id, .. }) if turn_id == turn);
        Ok(self.sessions.journal(key)?.iter().any(is_it))
    }

    /// Lets other nodes know that a run is over here.
    pub(crate) fn tell_nodes(&self, run: &Run, outcome: &RunOutcome) {
        let told = match outcome {
            RunOutcome::Completed(_) | RunOutcome::Failed(_) | RunOutcome::Cancelled => self.store.is_shared(),
            RunOutcome::Parked(_) | RunOutcome::Elsewhere(_) => false,
        };
        if let (true, Some(turn)) = (told, run.id()) {
            let (tenant, session) = (&run.key.tenant, &run.key.session);
            let mut news = json!({ "kind": ENDED, "tenant": tenant, "session": session, "turn": turn });
            if let RunOutcome::Completed(answer) = outcome {
                news["usage"] = json!(answer.usage);
            }
            self.life.nodes.say(news.to_string());
        }
    }

    /// Tells those who may answer an approval that it waits, or what became of it, on every node.
    pub(crate) async fn announce_everywhere(&self, approval: &Approval) {
        self.announce(approval).await;
        if self.store.is_shared() {
            let news = json!({ "kind": APPROVAL, "tenant": approval.tenant_id, "id": approval.id });
            self.life.nodes.say(news.to_string());
        }
    }

    /// Tells those here of an approval as it stands in the store.
    async fn tell_approval_of(self: &Arc<Self>, tenant: TenantId, id: String) {
        let gone = id.clone();
        let found = self.blocking(move |shared| Ok(shared.store.approval(&TenantScope::One(tenant), &id)?)).await;
        match found {
            Ok(Some(mut approval)) => {
                approval.state = approval.state_at(jiff::Timestamp::now());
                self.announce(&approval).await;
            }
            // It went with its session.
            Ok(None) => drop(lock(&self.desk.noticed).ends(&gone)),
            Err(error) => tracing::debug!(%error, "an approval could not be read"),
        }
    }

    /// Tells of approvals of which nobody here was told: nobody may work their turns, and a person may answer anywhere.
    async fn tell_unnoticed(self: &Arc<Self>, unnoticed: Unnoticed) {
        for (id, tenant) in unnoticed.new.into_iter().chain(unnoticed.gone) {
            self.tell_approval_of(tenant, id).await;
        }
    }

    /// The approvals of which nobody here was told.
    fn unnoticed(&self) -> Result<Unnoticed, ApiError> {
        if self.hub.is_empty() {
            lock(&self.desk.noticed).sleep();
            return Ok(Unnoticed::default());
        }
        let now = jiff::Timestamp::now();
        let mut waiting = self.store.approvals(&ApprovalQuery::waiting(TenantScope::All, MAX_QUESTIONS))?;
        waiting.retain(|it| it.state_at(now) == ApprovalState::Waiting);
        Ok(lock(&self.desk.noticed).look(waiting.into_iter().map(|it| (it.id, it.tenant_id)).collect()))
    }

    /// Lets everybody look who waits for an answer, here and on other nodes.
    pub(crate) fn answered_here(&self) {
        self.desk.answers.notify_waiters();
        if self.store.is_shared() {
            self.life.nodes.say(json!({ "kind": "answered" }).to_string());
        }
    }
}

/// Tells once of a turn whose process died.
fn tell_cut(turn: &LeftTurn) {
    let once = SessionName::kept(turn.key.session.as_str()).is_some_and(|name| name.is_once());
    // Whoever asked without a session is gone, and nobody goes on with what they asked.
    let then = if once { "nobody can come back for it, so it ends here" } else { "it goes on" };
    tracing::warn!(
        session = %turn.key.session,
        tenant = %turn.key.tenant,
        turn = %turn.turn_id,
        "gateway.turn_cut: the server that worked it ended in the middle; {then}"
    );
}

/// What is worked for whom nobody waits.
pub(crate) enum Alone {
    /// A message, and who says it.
    Message(String, Option<Steerer>),
    /// What was left of a turn.
    Left(TurnId),
    /// The same, which is to be stopped.
    Stopped(TurnId),
}

impl Alone {
    fn prompt(&self) -> &str {
        match self {
            Self::Message(text, _) => text,
            Self::Left(_) | Self::Stopped(_) => "",
        }
    }

    /// The id of the API key with which the message was said.
    fn key(&self) -> Option<&str> {
        match self {
            Self::Message(_, by) => by.as_ref()?.key.as_deref(),
            Self::Left(_) | Self::Stopped(_) => None,
        }
    }
}

/// The news of a budget that is nearly spent.
pub(crate) const BUDGET: &str = "budget";

/// The news of an approval.
const APPROVAL: &str = "approval";

/// The news of a turn that ended.
const ENDED: &str = "ended";

/// What a look brought.
struct Found {
    letters: Vec<Letter>,
    news: Vec<String>,
    left: Vec<LeftTurn>,
    unnoticed: Unnoticed,
}
