//! The answer to one request, while its run is worked.

use std::sync::{Arc, Weak};

use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use pintle_domain::json::{Value, json};
use pintle_domain::llm::Usage;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::super::refused::Refused;
use super::super::reply::answer;
use crate::Shared;
use crate::error::{ApiError, ErrorCode};
use crate::heard::Heard;
use crate::http::dialect::Wire;
use crate::hub::Guest;
use crate::outcome::{AnswerEnd, RunOutcome};
use crate::repeats::Named;
use crate::run::Run;
use crate::wire::anthropic::{self, Ended};
use crate::wire::openai;

/// A turn that a request is about.
pub(super) struct Talk {
    pub(super) wire: Wire,
    pub(super) heard: UnboundedReceiver<Heard>,
    /// Looks who still listens, so it goes after that.
    pub(super) guard: Guard,
    pub(super) run: Arc<Run>,
    pub(super) shared: Arc<Shared>,
    pub(super) agent: String,
    pub(super) stream: bool,
    pub(super) usage_in_stream: bool,
    /// What the gates left of the prompt.
    pub(super) user: Value,
    /// Under which name the same prompt finds the run again; none where nobody could come back.
    pub(super) pending: Option<Named>,
    /// Whether it found the run by that name.
    pub(super) joined: bool,
    /// Until when an approval is waited for.
    pub(super) deadline: Option<Instant>,
}

/// How a turn ended for whoever asked for it.
pub(super) struct TalkEnd {
    /// The word of the wire.
    pub(super) reason: &'static str,
    pub(super) usage: Usage,
    /// What the user reads where a hook stopped it.
    pub(super) stopped: Option<String>,
    /// The files for the user, as references.
    pub(super) media: Vec<String>,
}

/// `text` as a paragraph of its own, if anything stands `before` it.
pub(super) fn paragraph(before: bool, text: &str) -> String {
    if before { format!("\n\n{text}") } else { text.to_owned() }
}

/// Stops a turn that nobody keeps when its last client goes away; of one that is kept, sees to it that the same prompt
/// finds it again once it waits for a person.
pub(super) struct Guard {
    pub(super) run: Option<Weak<Run>>,
    /// Who asked, as long as they are answered.
    pub(super) guest: Arc<Guest>,
    /// What is to be noted if the client goes before the turn waits.
    pub(super) left: Option<LeftTalk>,
    /// The turn waits, and is noted under its prompt.
    pub(super) noting: Option<JoinHandle<()>>,
}

/// A turn whose client may go away, and the name under which its prompt finds it.
pub(super) struct LeftTalk {
    pub(super) shared: Arc<Shared>,
    pub(super) named: Named,
    pub(super) run: Arc<Run>,
}

impl LeftTalk {
    /// Notes the turn as soon as a call of it waits for an approval, or has waited; never, if none does.
    async fn once_it_waits(self) {
        let mut heard = self.run.listen();
        loop {
            match heard.recv().await {
                Some(Heard::Waits(_)) => break,
                Some(Heard::Started { .. } | Heard::Text(_) | Heard::Hook(_)) => {}
                None => return,
            }
        }
        self.shared.note_pending(self.named, &self.run).await;
    }

    /// Notes the turn now.
    async fn now(self) {
        self.shared.note_pending(self.named, &self.run).await;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(run) = self.run.take().and_then(|run| run.upgrade())
            && !run.has_listeners()
        {
            run.handle.cancel();
        }
        // As the program ends there may be nobody to work it; what waits then is found in its session.
        if let Some(left) = self.left.take()
            && let Ok(runtime) = Handle::try_current()
        {
            let tasks = left.shared.life.tasks.clone();
            tasks.spawn_on(left.once_it_waits(), &runtime);
        }
    }
}

/// What is heard next.
pub(super) enum Next {
    Heard(Heard),
    /// Nothing more comes.
    Over,
    /// The approval was not answered in time.
    TooLong,
    /// Whoever asked may no more what they might.
    Revoked,
}

impl Talk {
    /// Waits until the gates let the prompt pass.
    pub(super) async fn started(mut self) -> Result<Self, (Refused, Arc<Run>)> {
        let gone = self.guard.guest.gone.clone();
        loop {
            let heard = tokio::select! {
                biased;
                () = gone.cancelled() => return Err((revoked().into(), self.run.clone())),
                heard = self.heard.recv() => heard,
            };
            match heard {
                Some(Heard::Started { content, sig }) => {
                    self.user = json!({ "content": content, "sig": sig });
                    return Ok(self);
                }
                Some(Heard::Waits(_) | Heard::Text(_) | Heard::Hook(_)) => {}
                None => break,
            }
        }
        let refused = match self.run.outcome().await {
            RunOutcome::Failed(error) => error,
            RunOutcome::Elsewhere(_) => busy_elsewhere(),
            RunOutcome::Completed(_) | RunOutcome::Cancelled | RunOutcome::Parked(_) => {
                ApiError::new(ErrorCode::Unavailable, "the turn ended before it began")
            }
        };
        self.guard.run = None;
        Err((refused.told_to(&self.guard.guest.who).into(), self.run.clone()))
    }

    /// Waits for what is heard next, but for an approval not longer than a request waits. Dropping it loses nothing.
    pub(super) async fn next(&mut self) -> Next {
        let deadline = self.deadline;
        let too_long = async move {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let heard = tokio::select! {
            biased;
            () = self.guard.guest.gone.cancelled() => return Next::Revoked,
            heard = self.heard.recv() => heard,
            () = too_long => return Next::TooLong,
        };
        match heard {
            Some(Heard::Waits(Some(id))) => {
                // Whoever cannot come back for the answer waits for the end, which nobody's answer is after a while.
                self.deadline = self.pending.as_ref().map(|_| Instant::now() + self.shared.desk.limits.approval_wait);
                // Before the client is told: it may hang up any time.
                if let Some(left) = self.guard.left.take() {
                    self.guard.noting = Some(self.shared.life.tasks.spawn(left.now()));
                }
                Next::Heard(Heard::Waits(Some(id)))
            }
            Some(Heard::Waits(None)) => {
                self.deadline = None;
                Next::Heard(Heard::Waits(None))
            }
            Some(heard @ (Heard::Started { .. } | Heard::Text(_) | Heard::Hook(_))) => Next::Heard(heard),
            None => Next::Over,
        }
    }

    /// The refusal where an approval was not answered in time. The turn stays, and the same prompt finds it.
    pub(super) async fn left(&mut self) -> Refused {
        self.pending = None;
        self.noted().await;
        let ids: Vec<String> = self.run.waits().into_iter().collect();
        let details = json!({ "kind": "approval_pending", "approvalIds": ids, "runId": self.run.id() });
        let why =
            format!("a call waits for approval {}; send the same request again to get the result", ids.join(", "));
        ApiError::precondition(why).with_details(details).into()
    }

    /// What came of the turn is told; the same prompt is another turn from now on.
    pub(super) async fn told(&mut self) {
        self.guard.left = None;
        let is_noted = self.noted().await;
        if let Some(pending) = self.pending.take().filter(|_| self.joined || is_noted) {
            self.shared.forget_repeat(&pending).await;
        }
    }

    /// Waits until the turn is noted, if that is under way, and says whether it was.
    async fn noted(&mut self) -> bool {
        let Some(noting) = self.guard.noting.take() else { return false };
        if let Err(error) = noting.await {
            tracing::warn!("a repeat of a pending request may not be recognised: {error}");
        }
        true
    }

    /// The whole answer, once it is there.
    pub(super) async fn whole(mut self) -> Response {
        let (mut content, mut hooks) = (String::new(), Vec::new());
        let ended = loop {
            match self.next().await {
                Next::Heard(Heard::Text(text)) => content.push_str(&text),
                Next::Heard(Heard::Hook(mut hook)) => {
                    hook.insert("at".to_owned(), json!(content.encode_utf16().count()));
                    hooks.push(Value::Object(hook));
                }
                Next::Heard(Heard::Started { .. } | Heard::Waits(_)) => {}
                Next::Over => {
                    self.told().await;
                    break self.end().await;
                }
                Next::TooLong => break Err(self.left().await),
                // Their turn goes with them, where nobody keeps it.
                Next::Revoked => return self.wire.refusal(&revoked().into()),
            }
        };
        self.guard.run = None;
        let mut response = match ended {
            Err(refused) => self.wire.refusal(&refused),
            Ok(TalkEnd { reason, usage, stopped, media }) => {
                let (mut pintle, id) = (json!({ "user": self.user, "hooks": hooks }), self.id());
                if !media.is_empty() {
                    pintle["media"] = json!(media);
                }
                if let Some(why) = stopped {
                    content.push_str(&paragraph(!content.is_empty(), &why));
                }
                let body = match self.wire {
                    Wire::OpenAi => self.head(id).answer(&content, reason, usage, pintle),
                    Wire::Anthropic => anthropic::answer(&id, &self.agent, &content, Ended { reason, usage }, pintle),
                };
                answer(StatusCode::OK, &body)
            }
        };
        mark(&self.run, &mut response);
        response
    }

    /// How the turn ended, in a word of the wire, and what it cost.
    pub(super) async fn end(&self) -> Result<TalkEnd, Refused> {
        let (stop, filtered, limit) = match self.wire {
            Wire::OpenAi => ("stop", "content_filter", "length"),
            Wire::Anthropic => ("end_turn", "refusal", "max_tokens"),
        };
        match self.run.outcome().await {
            RunOutcome::Completed(answer) => {
                let reason = match answer.end {
                    AnswerEnd::Whole => stop,
                    AnswerEnd::Cut => limit,
                    AnswerEnd::Withheld => filtered,
                };
                Ok(TalkEnd { reason, usage: answer.usage, stopped: None, media: answer.media })
            }
            RunOutcome::Failed(error) => match error.kind() {
                Some("hook_stopped") => Ok(TalkEnd { stopped: Some(error.message), ..self.ended_by(filtered) }),
                Some("iteration_limit") => Ok(self.ended_by(limit)),
                Some(_) | None => Err(error.told_to(&self.guard.guest.who).into()),
            },
            RunOutcome::Cancelled => Err(ApiError::new(ErrorCode::Unavailable, "the turn was stopped")
                .with_details(json!({ "kind": "failed", "effect": true }))
                .into()),
            RunOutcome::Elsewhere(_) => Err(busy_elsewhere().into()),
            RunOutcome::Parked(ids) => {
                Err(ApiError::precondition(format!("a call waits for approval {}", ids.join(", ")))
                    .with_details(json!({ "kind": "approval_pending", "approvalIds": ids }))
                    .into())
            }
        }
    }

    fn ended_by(&self, reason: &'static str) -> TalkEnd {
        TalkEnd { reason, usage: self.run.cost(), stopped: None, media: self.run.media() }
    }

    pub(super) fn id(&self) -> String {
        let turn = self.run.id().map(ToString::to_string).unwrap_or_default();
        match self.wire {
            Wire::OpenAi => format!("chatcmpl-{turn}"),
            Wire::Anthropic => format!("msg_{turn}"),
        }
    }

    pub(super) fn head(&self, id: String) -> openai::Head {
        openai::Head { id, created: jiff::Timestamp::now().as_second(), model: self.agent.clone() }
    }
}

/// Says which turn it was, and how long its hooks took.
pub(super) fn mark(run: &Run, response: &mut Response) {
    let Some(turn) = run.id() else { return };
    let headers = response.headers_mut();
    let turn = HeaderValue::from_str(turn.as_str()).ok();
    turn.into_iter().for_each(|turn| drop(headers.insert("x-pintle-turn", turn)));
    headers.insert("x-pintle-hook-ms", HeaderValue::from(run.hook_ms()));
}

/// Whoever asked may no more what they might.
pub(super) fn revoked() -> ApiError {
    ApiError::unauthorized("access was revoked")
}

/// Another turn, `at_work`, has the session.
pub(super) fn busy(at_work: &Run) -> ApiError {
    let Some(approval) = at_work.waits() else { return busy_elsewhere() };
    let why = format!("a call in the session waits for a person: approval {approval} is to be decided first");
    ApiError::precondition(why).with_details(json!({ "kind": "approval_pending", "approvalIds": [approval] }))
}

/// Another turn, perhaps at another node, has the session.
fn busy_elsewhere() -> ApiError {
    ApiError::precondition("the session is busy with another turn").with_details(json!({ "kind": "session_busy" }))
}
