//! Runs, worked to their ends whoever still listens.

use std::sync::Arc;
use std::time::Duration;

use agent::driver::TurnEnding;
use agent::{Conversation, TextRequest, TurnReport};
use domain::approval::{Approval, ApprovalState, PersonAnswer};
use domain::history::{HistoryMessage, SignedContent};
use domain::id::TurnId;
use domain::json::json;
use domain::store::{ApprovalQuery, StoreError};
use host::ready_agent::ReadyAgent;
use host::session_config::worked_under;
use tokio::time::Instant;

use crate::Shared;
use crate::error::{ApiError, ErrorCode};
use crate::heard::Heard;
use crate::outcome::RunOutcome;
use crate::run::Run;
use crate::run_output::RunOutput;
use crate::webhooks::{FailedTurn, Happened};

/// How often the store is looked at for an answer that somebody gave elsewhere. Source: a decided turn goes on within 5 s.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Who refuses in the place of a person who did not come.
const NOBODY: &str = "pintle";

/// What a run is asked to do.
pub(crate) struct Errand {
    pub(crate) agent: Arc<ReadyAgent>,
    pub(crate) skills: Option<Vec<String>>,
    pub(crate) enable_tools: bool,
    pub(crate) history: Option<Vec<HistoryMessage>>,
    /// The files that come with the prompt, as references.
    pub(crate) media: Vec<String>,
    /// The id of its turn.
    pub(crate) turn: TurnId,
    /// Whether it goes on with the turn that was left open in its session.
    pub(crate) resumes: bool,
}

impl Shared {
    /// Works `run` to its end, in a task of its own: nobody who goes away ends it.
    pub(crate) fn start(self: &Arc<Self>, run: Arc<Run>, errand: Errand) {
        let shared = self.clone();
        self.life.tasks.spawn(async move {
            let lane = shared.lanes.hold(run.key.clone());
            let outcome = shared.work(&run, &errand).await.unwrap_or_else(RunOutcome::Failed);
            let turns: Vec<TurnId> = [Some(&errand.turn), run.id()].into_iter().flatten().cloned().collect();
            drop(lane);
            if let Some(id) = run.id() {
                shared.runs.forget(id);
            }
            shared.runs.counters.turn(&outcome);
            shared.tell_failed(&run, &outcome);
            run.end(outcome.clone());
            // Whoever comes until this is kept finds the run itself.
            shared.end_repeats(&run, &turns, &outcome).await;
        });
    }

    async fn work(self: &Arc<Self>, run: &Arc<Run>, errand: &Errand) -> Result<RunOutcome, ApiError> {
        let conversation_of = run.name.signed_as();
        let output = Arc::new(RunOutput { run: run.clone(), runs: self.runs.clone(), conversation: conversation_of });
        let mut conversation = self.conversation(run).await?;
        let mut report = match self.left_open(run, &conversation, errand.resumes).await? {
            true => {
                self.tell_left(run, &conversation).await;
                let resumed = errand.agent.resume(&mut conversation, output.clone(), &run.handle).await;
                resumed.ok_or_else(went_on_elsewhere)?
            }
            false => {
                let request = TextRequest {
                    prompt: &run.prompt,
                    skills: errand.skills.as_deref(),
                    enable_tools: errand.enable_tools,
                    history: errand.history.as_deref(),
                    media: &errand.media,
                    turn_id: Some(&errand.turn),
                };
                errand.agent.turn(&mut conversation, request, output.clone(), &run.handle).await
            }
        };
        let mut replies = Vec::new();
        loop {
            if let TurnEnding::Waiting(approval) = &report.ending {
                // Whoever decides may do it anywhere, and somebody else may go on with it.
                drop(conversation);
                if !self.decided(run, approval).await {
                    return Ok(RunOutcome::Parked(vec![approval.id.clone()]));
                }
                conversation = self.conversation(run).await?;
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
        outcome(run, report, replies)
    }

    /// Whether the session has an open turn about whose calls persons were asked, and `run` goes on with it. Another
    /// message does not undo what they decide.
    async fn left_open(
        self: &Arc<Self>,
        run: &Run,
        conversation: &Conversation,
        resumes: bool,
    ) -> Result<bool, ApiError> {
        let Some(open) = conversation.open_turn() else {
            return if resumes { Err(went_on_elsewhere()) } else { Ok(false) };
        };
        if resumes {
            return Ok(true);
        }
        let (key, turn) = (run.key.clone(), open.turn_id.clone());
        let asked = self
            .blocking(move |shared| {
                let all = ApprovalQuery { tenant: Some(key.tenant.clone()), ..ApprovalQuery::newest(usize::MAX) };
                let mut found = shared.store.approvals(&all)?;
                found.retain(|it| it.session_id == key.session && it.turn_id == turn);
                found.retain(|it| !matches!(it.state, ApprovalState::Used | ApprovalState::Void));
                Ok(found)
            })
            .await?;
        if asked.is_empty() {
            return Ok(false);
        }
        if open.prompt == run.prompt {
            return Ok(true);
        }
        let ids: Vec<&String> = asked.iter().map(|it| &it.id).collect();
        let details = json!({ "kind": "approval_pending", "approvalIds": ids, "runId": open.turn_id });
        Err(ApiError::precondition("the session waits for an approval").with_details(details))
    }

    /// Tells whoever hears `run` which message the open turn is about.
    async fn tell_left(&self, run: &Run, conversation: &Conversation) {
        let Some(open) = conversation.open_turn() else { return };
        let key = self.host.read().await.history_key.clone();
        let signed = SignedContent::text(&open.prompt, run.key.tenant.as_str(), run.key.session.as_str());
        let sig = key.map(|key| key.sign(signed)).unwrap_or_default();
        run.hears(Heard::Started { content: open.prompt.clone(), sig });
    }

    /// Tells others of a turn that ended in an error.
    fn tell_failed(&self, run: &Run, outcome: &RunOutcome) {
        let RunOutcome::Failed(error) = outcome else { return };
        let kind = error.details.as_ref().and_then(|details| details["kind"].as_str());
        if let (Some("failed"), Some(turn)) = (kind, run.id()) {
            self.webhooks.happened(Happened::TurnFailed(Box::new(FailedTurn {
                tenant: run.key.tenant.clone(),
                agent: run.name.agent.clone(),
                session: run.key.session.to_string(),
                turn: turn.to_string(),
                error: error.message.clone(),
            })));
        }
    }

    /// The conversation of `run`, for this process alone.
    async fn conversation(&self, run: &Run) -> Result<Conversation, ApiError> {
        let (sessions, key) = (self.sessions.clone(), run.key.clone());
        let opened = tokio::task::spawn_blocking(move || Conversation::open_of(sessions, key)).await;
        let opened = opened.map_err(|error| ApiError::new(ErrorCode::Internal, error.to_string()))?;
        let conversation = opened.map_err(|error| match error {
            StoreError::Conflict(why) => ApiError { retry_after_ms: Some(1000), ..ApiError::precondition(why) },
            other @ (StoreError::Unavailable(_) | StoreError::Corrupt(_) | StoreError::NotFound(_)) => other.into(),
        })?;
        let under = worked_under(&self.host.read().await.loaded);
        let name = &run.name;
        Ok(conversation.on(name.channel.word(), name.conversation.clone()).with(name.user.clone()).under(under))
    }

    /// Waits until somebody decided `approval`; `false` when the host goes away first. Where nobody could come back for the
    /// answer, nobody's answer is a no after a while.
    async fn decided(&self, run: &Run, approval: &Approval) -> bool {
        run.now_waits(Some(approval.id.clone()));
        self.announce("approvals.created", approval).await;
        run.event("approval.waiting", Some(json!({ "approvalId": approval.id, "tool": approval.tool })));
        let deadline = run.name.is_once().then(|| Instant::now() + self.desk.limits.approval_wait);
        let answered = loop {
            let rung = self.desk.answers.notified();
            if let Some(now) = self.answered(&approval.id).await {
                break Some(now);
            }
            let look = Instant::now() + LOOK_EVERY;
            tokio::select! {
                () = rung => {}
                () = tokio::time::sleep_until(deadline.map_or(look, |deadline| deadline.min(look))) => {}
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
            let event = if now.state == ApprovalState::Expired { "approvals.expired" } else { "approvals.decided" };
            self.announce(event, now).await;
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
        let (store, id) = (self.store.clone(), approval.id.clone());
        let seconds = self.desk.limits.approval_wait.as_secs();
        let said =
            PersonAnswer { approve: false, by: NOBODY.to_owned(), note: format!("nobody answered within {seconds} s") };
        let refused = tokio::task::spawn_blocking(move || store.answer(&id, said, jiff::Timestamp::now())).await;
        // Somebody may have been faster by a moment.
        if let Ok(Err(error)) = refused {
            tracing::debug!("an approval was answered meanwhile: {error}");
        }
    }

    /// The approval `id`, once it no longer waits.
    async fn answered(&self, id: &str) -> Option<Approval> {
        let (store, id) = (self.store.clone(), id.to_owned());
        let found = tokio::task::spawn_blocking(move || store.approval(&id)).await.ok()?.ok()?;
        let mut found = found?;
        found.state = found.state_at(jiff::Timestamp::now());
        (found.state != ApprovalState::Waiting).then_some(found)
    }
}

/// What came of a run whose last turn ended so.
fn outcome(run: &Run, report: TurnReport, replies: Vec<String>) -> Result<RunOutcome, ApiError> {
    match report.ending {
        TurnEnding::Completed => Ok(RunOutcome::Completed(run.answer(report.turn_id, replies.join("\n\n")))),
        TurnEnding::Cancelled => Ok(RunOutcome::Cancelled),
        TurnEnding::Blocked(denied) => {
            let details = json!({ "kind": "hook_blocked", "hook": denied.by, "runId": report.turn_id });
            Err(ApiError::precondition(denied.text()).with_details(details))
        }
        TurnEnding::StoppedByHook(aborted) => {
            let details = json!({ "kind": "hook_stopped", "hook": aborted.by, "runId": report.turn_id });
            Err(ApiError::precondition(aborted.text()).with_details(details))
        }
        TurnEnding::Failed { stage, text } => {
            let kind = if report.at_limit { "iteration_limit" } else { "failed" };
            let details = json!({ "kind": kind, "stage": stage, "runId": report.turn_id, "effect": run.has_effect() });
            Err(ApiError::new(ErrorCode::Unavailable, text).with_details(details))
        }
        TurnEnding::Waiting(approval) => Ok(RunOutcome::Parked(vec![approval.id])),
    }
}

fn went_on_elsewhere() -> ApiError {
    ApiError::precondition("the turn went on elsewhere").with_details(json!({ "kind": "session_busy" }))
}

impl Errand {
    /// Goes on with the turn that was left open.
    pub(crate) fn resuming(agent: Arc<ReadyAgent>) -> Self {
        Self {
            agent,
            skills: None,
            enable_tools: true,
            history: None,
            media: Vec::new(),
            turn: TurnId::fresh(),
            resumes: true,
        }
    }
}
