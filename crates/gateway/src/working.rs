//! Runs, worked to their ends whoever still listens.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use pintle_agent::driver::TurnEnding;
use pintle_agent::{Conversation, TextRequest};
use pintle_domain::approval::{Approval, ApprovalState, PersonAnswer};
use pintle_domain::execution::masked;
use pintle_domain::history::SignedContent;
use pintle_domain::id::TurnId;
use pintle_domain::json::json;
use pintle_domain::session::Session;
use pintle_domain::store::{ApprovalQuery, Letter, LetterKind, Steerer, StoreError, TenantScope};
use pintle_host::session_config::worked_under_anywhere;
use tokio::time::Instant;

use crate::Shared;
use crate::errand::{Brought, Errand, Whose, let_go};
use crate::error::{ApiError, ErrorCode, going_away, not_begun, went_on_elsewhere, worked_elsewhere};
use crate::heard::Heard;
use crate::nodes::Ended;
use crate::outcome::RunOutcome;
use crate::quotas::Place;
use crate::run::{Asker, Run, RunParts};
use crate::run_output::RunOutput;

mod ended;

use ended::{goes_on, outcome};

/// How often the store is looked at for an answer that somebody gave elsewhere. Source: a decided turn goes on within 5 s.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How often a session is asked for again that another node has just given back.
const TRIES: u32 = 3;

/// Who has the session of a run.
enum Opened {
    Ours(Box<Conversation>),
    /// Another node.
    Taken,
    /// Nobody, since whoever asked may no longer.
    ShutOut,
}

/// What becomes of a session that a run is about.
enum Begun {
    Over(RunOutcome),
    /// The turn that is open in it is gone on with.
    GoesOn(Box<Conversation>),
    /// Nothing is open in it.
    Fresh(Box<Conversation>),
}

/// What became of a turn that this node no longer works.
enum Left {
    Over(RunOutcome),
    /// It is to be gone on with here.
    Ours(Box<Conversation>),
}

impl Shared {
    /// What `run`, which has its lane, needs before it is worked as `turn`: it is counted, and the files that come with
    /// it are its session's. Whoever works it gives the lane back; where this fails, it is given back here.
    pub(crate) async fn prepared(
        self: &Arc<Self>,
        run: &Arc<Run>,
        turn: &TurnId,
        Brought { kept, files, history }: Brought<'_>,
    ) -> Result<(Option<Place>, Vec<String>), ApiError> {
        let lane = self.lanes.hold(run.key.clone());
        let prepared = match self.turn_of(&run.key.tenant, &run.name.user, turn).await {
            Ok(place) => self.attach(run, kept, files, history).await.map(|media| (Some(place), media)),
            Err(error) => Err(error),
        };
        match &prepared {
            Ok(_) => lane.stays(),
            Err(error) => {
                drop(lane);
                run.end(RunOutcome::Failed(error.clone()));
            }
        }
        prepared
    }

    /// Works `run` to its end, in a task of its own: nobody who goes away ends it.
    pub(crate) fn start(self: &Arc<Self>, run: Arc<Run>, errand: Errand) {
        let shared = self.clone();
        self.life.tasks.spawn(async move {
            let lane = shared.lanes.hold(run.key.clone());
            if errand.resumes {
                // What goes wrong before it goes on is told of it as well.
                run.begins(&errand.turn);
                run.was_cut();
            }
            let outcome = shared.work(&run, &errand).await.unwrap_or_else(RunOutcome::Failed);
            let turns: Vec<TurnId> = [Some(&errand.turn), run.id()].into_iter().flatten().cloned().collect();
            drop((lane, errand.place));
            if let Some(id) = run.id() {
                shared.runs.forget(id);
            }
            shared.runs.counters.turn(&outcome);
            if matches!(outcome, RunOutcome::Failed(_)) {
                shared.desk.webhooks.turn_failed();
            }
            if errand.resumes && !run.was_worked() {
                // What became of the turn that was left is for whoever works it to say.
                run.settle(&outcome);
            } else {
                // Kept before anybody hears it: whoever has the answer may ask again, whatever becomes of this process.
                shared.keep_outcome(&run, (&turns, errand.resumes), &outcome).await;
                shared.tell_nodes(&run, &outcome);
            }
            run.end(outcome);
            shared.desk.repeats.over(&run);
        });
    }

    async fn work(self: &Arc<Self>, run: &Arc<Run>, errand: &Errand) -> Result<RunOutcome, ApiError> {
        self.life.nodes.takes(&run.name.agent)?;
        let output = self.output(run).await;
        let (mut conversation, mut report) = match self.begin(run, errand).await? {
            Begun::Over(outcome) => return Ok(outcome),
            Begun::GoesOn(mut conversation) => {
                if errand.whose == Whose::Nobody {
                    tracing::info!(session = %run.key.session, "gateway.turn_resumed: nobody worked its open turn");
                }
                self.tell_left(run, &conversation).await;
                goes_on(run, &conversation);
                let resumed = errand.agent.resume(&mut conversation, output.clone(), &run.handle).await;
                (conversation, resumed.ok_or_else(went_on_elsewhere)?)
            }
            Begun::Fresh(mut conversation) => {
                let key = run.keys().pop_first();
                let request = TextRequest {
                    prompt: &run.prompt,
                    skills: errand.skills.as_deref(),
                    enable_tools: errand.enable_tools,
                    history: errand.history.as_deref(),
                    keep: errand.edits.as_ref().map(|edited| edited.place),
                    media: &errand.media,
                    turn_id: Some(&errand.turn),
                    key: key.as_deref(),
                };
                let report = errand.agent.turn(&mut conversation, request, output.clone(), &run.handle).await;
                (conversation, report)
            }
        };
        let mut replies = Vec::new();
        loop {
            let lost = !conversation.is_ours();
            if lost || matches!(report.ending, TurnEnding::Waiting(_)) {
                // Whoever decides may do it anywhere, and somebody else may go on with it.
                let_go(conversation).await;
                if let TurnEnding::Waiting(approval) = &report.ending
                    && !self.decided(run, approval).await
                {
                    return Ok(RunOutcome::Parked(vec![approval.id.clone()]));
                }
                conversation = match self.gone_on(run, &report.turn_id, &replies).await? {
                    Left::Over(outcome) => return Ok(outcome),
                    Left::Ours(conversation) => conversation,
                };
                goes_on(run, &conversation);
                let resumed = errand.agent.resume(&mut conversation, output.clone(), &run.handle).await;
                report = resumed.ok_or_else(went_on_elsewhere)?;
                continue;
            }
            if !report.reply.is_empty() {
                replies.push(report.reply.clone());
            }
            let completed = report.ending == TurnEnding::Completed;
            match errand.agent.go_on(&mut conversation, output.clone(), &run.handle).await {
                Some(next) if completed => report = next,
                Some(_) | None => break,
            }
        }
        // Given back before anybody hears how it went: whoever speaks next may come to another node.
        let_go(conversation).await;
        self.keep_brought(run).await;
        outcome(run, report, replies)
    }

    async fn output(&self, run: &Arc<Run>) -> Arc<RunOutput> {
        let (conversation, folder) = (run.name.signed_as(), self.fresh_folder().await);
        Arc::new(RunOutput { run: run.clone(), runs: self.runs.clone(), conversation, folder })
    }

    /// The session of a run that begins. What persons are asked about there is not undone by another message, and what
    /// was left there comes to its end before the next turn.
    async fn begin(self: &Arc<Self>, run: &Arc<Run>, errand: &Errand) -> Result<Begun, ApiError> {
        let mut conversation = match self.opened(run, errand).await? {
            Left::Over(outcome) => return Ok(Begun::Over(outcome)),
            Left::Ours(conversation) => conversation,
        };
        let open = conversation.open_turn().map(|open| (open.turn_id.clone(), open.prompt == run.prompt));
        let Some((turn, is_same)) = open else {
            return match errand {
                Errand { resumes: true, whose: Whose::Nobody, .. } => {
                    let_go(conversation).await;
                    Ok(Begun::Over(RunOutcome::Elsewhere(None)))
                }
                Errand { resumes: true, .. } => Err(went_on_elsewhere()),
                Errand { .. } => errand.fresh(conversation).await.map(Begun::Fresh),
            };
        };
        let gone = self.is_key_gone(run, conversation.asked_with()).await?;
        if errand.resumes {
            if gone {
                run.handle.cancel();
            }
            return Ok(Begun::GoesOn(conversation));
        }
        let asked = if gone { Vec::new() } else { self.asked(run, &turn).await? };
        if !asked.is_empty() && is_same {
            return Ok(Begun::GoesOn(conversation));
        }
        let waiting = |it: &&Approval| it.state_at(jiff::Timestamp::now()) == ApprovalState::Waiting;
        let ids: Vec<&String> = asked.iter().filter(waiting).map(|it| &it.id).collect();
        if !ids.is_empty() {
            let details = json!({ "kind": "approval_pending", "approvalIds": ids, "runId": turn });
            let_go(conversation).await;
            let ids: Vec<&str> = ids.into_iter().map(String::as_str).collect();
            let why =
                format!("a call in the session waits for a person: approval {} is to be decided first", ids.join(", "));
            return Err(ApiError::precondition(why).with_details(details));
        }
        self.finish_left(run, errand, &mut conversation, gone).await;
        errand.fresh(conversation).await.map(Begun::Fresh)
    }

    /// The session of a run for this node; where another one has it, what was said is left there.
    async fn opened(self: &Arc<Self>, run: &Arc<Run>, errand: &Errand) -> Result<Left, ApiError> {
        for _ in 0..TRIES {
            match self.conversation(run, errand.resumes).await? {
                Opened::Ours(conversation) => return Ok(Left::Ours(conversation)),
                Opened::Taken => {}
                Opened::ShutOut => return Ok(Left::Over(RunOutcome::Cancelled)),
            }
            if errand.whose == Whose::Nobody && errand.resumes {
                return Ok(Left::Over(RunOutcome::Elsewhere(None)));
            }
            if !self.store.is_shared() || errand.resumes || errand.edits.is_some() {
                return Err(worked_elsewhere());
            }
            if errand.whose == Whose::Http {
                return Ok(Left::Over(RunOutcome::Elsewhere(None)));
            }
            let by = Some(Steerer { user: run.name.user.clone(), key: run.keys().pop_first() });
            let letter = Letter { key: run.key.clone(), kind: LetterKind::Steer, body: run.prompt.clone(), by };
            if self.post(letter).await? {
                return Ok(Left::Over(RunOutcome::Elsewhere(self.open_turn(run).await)));
            }
            // It was given back in between.
        }
        Err(worked_elsewhere())
    }

    /// Goes on with the turn that somebody left open in the session of `run`, before its own begins; or stops it, where
    /// the key that asked for it is `gone`.
    async fn finish_left(
        self: &Arc<Self>,
        run: &Arc<Run>,
        errand: &Errand,
        conversation: &mut Conversation,
        gone: bool,
    ) {
        let prompt = conversation.open_turn().map(|open| open.prompt.clone()).unwrap_or_default();
        let left = Run::new(RunParts {
            name: run.name.clone(),
            tenant: run.key.tenant.clone(),
            prompt,
            stream: false,
            asker: Asker::Nobody,
            key: conversation.asked_with().map(str::to_owned),
            is_heard: false,
            hub: run.hub(),
        });
        if gone {
            left.handle.cancel();
        }
        let resumed = {
            let work = errand.agent.resume(conversation, self.output(&left).await, &left.handle);
            tokio::pin!(work);
            tokio::select! {
                resumed = &mut work => resumed,
                () = run.handle.stopped() => {
                    left.handle.cancel();
                    work.await
                }
            }
        };
        if let Some(id) = left.id() {
            self.runs.forget(id);
        }
        self.keep_brought(&left).await;
        if let Some(report) = resumed {
            let replies = vec![report.reply.clone()];
            let outcome = outcome(&left, report, replies).unwrap_or_else(RunOutcome::Failed);
            self.tell_nodes(&left, &outcome);
            left.end(outcome);
        }
    }

    /// What becomes of the turn `turn` that this node let go of: somebody else ends it, or it is gone on with here.
    async fn gone_on(self: &Arc<Self>, run: &Arc<Run>, turn: &TurnId, earlier: &[String]) -> Result<Left, ApiError> {
        loop {
            let rung = self.desk.answers.notified();
            if let Opened::Ours(conversation) = self.conversation(run, true).await? {
                let stopped = run.handle.stopped().now_or_never().is_some();
                if conversation.open_turn().is_some_and(|open| open.turn_id == *turn)
                    && (stopped || !self.is_asked(run, turn).await?)
                {
                    return Ok(Left::Ours(conversation));
                }
                // Whatever was still on its way when the session was lost is refused by now: a turn that is not there
                // never will be.
                let (key, wanted) = (run.key.clone(), turn.clone());
                let began = self.blocking(move |shared| shared.began(&key, &wanted)).await;
                let_go(conversation).await;
                if !began? {
                    return Err(not_begun());
                }
            }
            let (key, wanted) = (run.key.clone(), turn.clone());
            if let Some(ended) = self.blocking(move |shared| shared.ended(&key, &wanted)).await? {
                // Asking again would do again what another node did.
                if matches!(ended, Ended::Failed { effect: true, .. } | Ended::Cancelled { effect: true }) {
                    run.had_effect();
                }
                return Ok(Left::Over(match ended {
                    Ended::Completed(reply) => {
                        run.catch_up(&reply);
                        let replies = [earlier, &[reply]].concat().join("\n\n");
                        RunOutcome::Completed(run.answer(run.begins(turn).clone(), replies))
                    }
                    Ended::Failed { why, .. } => {
                        let details = json!({ "kind": "failed", "runId": turn, "effect": run.has_effect() });
                        RunOutcome::Failed(ApiError::new(ErrorCode::Unavailable, masked(&why)).with_details(details))
                    }
                    Ended::Cancelled { .. } => RunOutcome::Cancelled,
                }));
            }
            tokio::select! {
                () = rung => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = run.handle.stopped() => return Ok(Left::Over(RunOutcome::Cancelled)),
                () = self.life.leaving.cancelled() => return Err(going_away()),
            }
        }
    }

    /// The turn that is open in the session of `run`.
    async fn open_turn(self: &Arc<Self>, run: &Run) -> Option<TurnId> {
        let key = run.key.clone();
        let journal = self.blocking(move |shared| Ok(shared.sessions.journal(&key)?)).await.ok()?;
        Session::fold(journal).open().map(|open| open.turn_id.clone())
    }

    /// What persons were asked about the calls of the turn `turn` of the session of `run`, and what was not used yet.
    async fn asked(self: &Arc<Self>, run: &Run, turn: &TurnId) -> Result<Vec<Approval>, ApiError> {
        let (key, turn) = (run.key.clone(), turn.clone());
        self.blocking(move |shared| {
            let all = ApprovalQuery::newest(TenantScope::from(&key.tenant), usize::MAX);
            let mut found = shared.store.approvals(&all)?;
            found.retain(|it| it.session_id == key.session && it.turn_id == turn);
            found.retain(|it| !matches!(it.state, ApprovalState::Used | ApprovalState::Void));
            Ok(found)
        })
        .await
    }

    /// Whether somebody still has to say something about it.
    async fn is_asked(self: &Arc<Self>, run: &Run, turn: &TurnId) -> Result<bool, ApiError> {
        let (asked, now) = (self.asked(run, turn).await?, jiff::Timestamp::now());
        Ok(asked.iter().any(|it| it.state_at(now) == ApprovalState::Waiting))
    }

    /// Tells whoever hears `run` which message the open turn is about.
    async fn tell_left(&self, run: &Run, conversation: &Conversation) {
        let Some(open) = conversation.open_turn() else { return };
        let key = self.host.read().await.history_key.clone();
        let signed = SignedContent::text(&open.prompt, run.key.tenant.as_str(), run.key.session.as_str());
        let sig = key.map(|key| key.sign(signed)).unwrap_or_default();
        run.hears(Heard::Started { content: open.prompt.clone(), sig });
    }

    /// The conversation of `run`, for this process alone. A turn that `goes_on` is stopped where whoever asked for it may
    /// no longer; another one does not begin there.
    async fn conversation(self: &Arc<Self>, run: &Arc<Run>, goes_on: bool) -> Result<Opened, ApiError> {
        let run = run.clone();
        // In one go: where many begin at once, each thread that is waited for counts.
        self.blocking(move |shared| shared.open_session(&run, goes_on)).await
    }

    /// The same. Blocks.
    fn open_session(&self, run: &Run, goes_on: bool) -> Result<Opened, ApiError> {
        if self.why_over(&run.key.tenant, &run.name.user, &run.keys())?.is_some() {
            // Whoever looked for their runs did not find this one yet.
            run.handle.cancel();
            if !goes_on {
                return Ok(Opened::ShutOut);
            }
        }
        // Looked at before it is taken: whoever takes it is its node from then on.
        let node = self.sessions.last_node(&run.key)?;
        self.life.nodes.may_have(&run.name, node.as_deref())?;
        let conversation = match Conversation::open_of(self.sessions.clone(), run.key.clone()) {
            Ok(opened) => opened,
            Err(StoreError::Conflict(_)) => return Ok(Opened::Taken),
            Err(other @ (StoreError::Unavailable(_) | StoreError::Corrupt(_) | StoreError::NotFound(_))) => {
                return Err(other.into());
            }
        };
        let under = worked_under_anywhere(&self.host.blocking_read().loaded);
        let name = &run.name;
        let conversation =
            conversation.on(name.channel.word(), name.conversation.clone()).with(name.user.clone()).under(under);
        Ok(Opened::Ours(Box::new(conversation)))
    }

    /// Waits until somebody decided `approval`; `false` when the host goes away first. Where nobody could come back for the
    /// answer, nobody's answer is a no after a while.
    async fn decided(&self, run: &Run, approval: &Approval) -> bool {
        run.now_waits(Some(approval.id.clone()));
        self.announce_everywhere(approval).await;
        let waits = json!({ "approvalId": approval.id, "tool": approval.tool, "toolCallId": approval.tool_call_id });
        run.event("approval.waiting", Some(waits));
        let deadline = run.name.is_once().then(|| Instant::now() + self.desk.limits.approval_wait);
        let answered = loop {
            let rung = self.desk.answers.notified();
            if let Some(now) = self.answered(approval).await {
                break Some(now);
            }
            let now = Instant::now();
            // A no that could not be kept is tried again with the next look.
            let comes = deadline.filter(|deadline| *deadline > now).unwrap_or(now + LOOK_EVERY);
            tokio::select! {
                () = rung => {}
                () = tokio::time::sleep_until(comes.min(now + LOOK_EVERY)) => {}
                () = run.handle.stopped() => break None,
                () = self.life.leaving.cancelled() => break None,
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.refuse(approval).await;
            }
        };
        let mut left = answered.is_none() && self.life.leaving.is_cancelled();
        if left && run.name.is_once() {
            run.handle.cancel();
            left = false;
        }
        if let Some(now) = &answered {
            self.announce_everywhere(now).await;
            let decided = json!({ "approvalId": now.id, "state": now.state });
            run.event("approval.decided", Some(decided));
        }
        if !left {
            run.now_waits(None);
        }
        !left
    }

    /// Nobody answered in time, and nobody will come back.
    async fn refuse(&self, approval: &Approval) {
        let (store, of, id) = (self.store.clone(), TenantScope::from(&approval.tenant_id), approval.id.clone());
        let said = PersonAnswer::nobody_within(self.desk.limits.approval_wait);
        let refused = tokio::task::spawn_blocking(move || store.answer(&of, &id, said, jiff::Timestamp::now())).await;
        match refused {
            Ok(Ok(_)) => {}
            // Somebody was faster by a moment.
            Ok(Err(StoreError::Conflict(why))) => tracing::debug!("an approval was answered in the meantime: {why}"),
            Ok(Err(error)) => {
                tracing::warn!(%error, approval = %approval.id, "an expired approval could not be refused yet")
            }
            Err(error) => {
                tracing::error!(%error, approval = %approval.id, "an expired approval could not be refused yet")
            }
        }
    }

    /// The same approval, once it no longer waits.
    async fn answered(&self, asked: &Approval) -> Option<Approval> {
        let (store, of, id) = (self.store.clone(), TenantScope::from(&asked.tenant_id), asked.id.clone());
        let found = tokio::task::spawn_blocking(move || store.approval(&of, &id)).await.ok()?.ok()?;
        let mut found = found?;
        found.state = found.state_at(jiff::Timestamp::now());
        (found.state != ApprovalState::Waiting).then_some(found)
    }
}
