//! Runs, worked to their ends whoever still listens.

use std::sync::Arc;
use std::time::Duration;

use agent::driver::TurnEnding;
use agent::{Conversation, TextRequest, TurnReport};
use domain::approval::{Approval, ApprovalState};
use domain::history::HistoryMessage;
use domain::json::json;
use domain::store::StoreError;
use host::ready_agent::ReadyAgent;
use host::session_config::worked_under;

use crate::Shared;
use crate::error::{ApiError, ErrorCode};
use crate::run::{Run, RunOutcome};
use crate::run_output::RunOutput;
use crate::webhooks::{FailedTurn, Happened};

/// How often the store is looked at for an answer that somebody gave elsewhere. Source: a decided turn goes on within 5 s.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What a run is asked to do.
pub(crate) struct Errand {
    pub(crate) agent: Arc<ReadyAgent>,
    pub(crate) skills: Option<Vec<String>>,
    pub(crate) enable_tools: bool,
    pub(crate) history: Option<Vec<HistoryMessage>>,
}

impl Shared {
    /// Works `run` to its end, in a task of its own: nobody who goes away ends it.
    pub(crate) fn start(self: &Arc<Self>, run: Arc<Run>, errand: Errand) {
        let shared = self.clone();
        self.life.tasks.spawn(async move {
            let lane = shared.lanes.hold(run.key.clone());
            let outcome = shared.work(&run, &errand).await.unwrap_or_else(RunOutcome::Failed);
            drop(lane);
            if let Some(id) = run.id() {
                shared.runs.forget(id);
            }
            shared.tell_failed(&run, &outcome);
            run.end(outcome);
        });
    }

    async fn work(&self, run: &Arc<Run>, errand: &Errand) -> Result<RunOutcome, ApiError> {
        let output = Arc::new(RunOutput { run: run.clone(), runs: self.runs.clone() });
        let request = TextRequest {
            prompt: &run.prompt,
            skills: errand.skills.as_deref(),
            enable_tools: errand.enable_tools,
            history: errand.history.as_deref(),
        };
        let mut conversation = self.conversation(run).await?;
        let mut report = errand.agent.turn(&mut conversation, request, output.clone(), &run.handle).await;
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
                report = resumed.ok_or_else(|| ApiError::precondition("the turn went on elsewhere"))?;
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

    /// Waits until somebody decided `approval`; `false` when the host goes away first.
    async fn decided(&self, run: &Run, approval: &Approval) -> bool {
        run.now_waits(Some(approval.id.clone()));
        self.announce("approvals.created", approval);
        run.event("approval.waiting", Some(json!({ "approvalId": approval.id, "tool": approval.tool })));
        let answered = loop {
            let rung = self.answers.notified();
            if let Some(now) = self.answered(&approval.id).await {
                break Some(now);
            }
            tokio::select! {
                () = rung => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = run.handle.stopped() => break None,
                () = self.life.leaving.cancelled() => break None,
            }
        };
        let left = answered.is_none() && self.life.leaving.is_cancelled();
        if let Some(now) = &answered {
            let event = if now.state == ApprovalState::Expired { "approvals.expired" } else { "approvals.decided" };
            self.announce(event, now);
            let decided = json!({ "approvalId": now.id, "state": now.state });
            run.event("approval.decided", Some(decided));
        }
        run.now_waits(None);
        !left
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
            let details = json!({ "kind": "failed", "stage": stage, "runId": report.turn_id });
            Err(ApiError::new(ErrorCode::Unavailable, text).with_details(details))
        }
        TurnEnding::Waiting(approval) => Ok(RunOutcome::Parked(vec![approval.id])),
    }
}
