//! One model call: the request through its hooks, to a provider with retries and fallbacks, the answer through its hooks.

use std::collections::BTreeMap;

use pintle_domain::checkpoint::runtime::RetryReason;
use pintle_domain::checkpoint::{AfterLlm, BeforeLlm, CheckpointKind, RuntimeEvent};
use pintle_domain::id::HookName;
use pintle_domain::llm::{LlmReply, LlmRequest, OddEnd};
use pintle_domain::planning::stripped;
use pintle_domain::turn::Fact;
use pintle_engine::{ModelFailure, ModelSwitch, Stopped};
use pintle_providers::retry::{RetryPolicy, in_words};
use pintle_providers::{CallKind, Provider, ProviderError, TurnPosition};

use super::deltas::{Deltas, SeenAnswer};
use super::shape::{self, ModelRequest};
use super::work::Work;

/// What the model reads behind an answer of its own that was stopped.
const STOPPED_HERE: &str = "[This answer was stopped here.]";

/// A model that is asked.
struct AskedModel<'a> {
    provider: &'a dyn Provider,
    /// As the configuration names it.
    model: &'a str,
    /// As its provider does.
    name: &'a str,
}

/// Why there is no answer.
pub(super) enum NoAnswer {
    /// The turn is ending, and its end is decided.
    Ended,
    /// The conversation is too long for the model.
    TooLong(String),
    /// Nobody answered.
    Failed(String),
    /// The call was stopped in the middle of an answer.
    Stopped(StoppedAnswer),
}

/// What had come of an answer when it was stopped.
pub(super) struct StoppedAnswer {
    text: String,
    model: String,
}

/// An answer that passed its hooks.
pub(super) struct CheckedAnswer {
    pub(super) reply: LlmReply,
    pub(super) model: String,
    /// How it ended before hooks saw it, if that is odd.
    pub(super) odd_end: Option<OddEnd>,
    owners: BTreeMap<String, HookName>,
}

impl CheckedAnswer {
    /// Why it is not an answer, if it is none. What hooks took out of an answer was one.
    pub(super) fn lacks(&self) -> Option<String> {
        let odd = self.odd_end.filter(|_| !self.reply.says_something())?;
        Some(odd.failure(&self.model))
    }
}

impl Work<'_> {
    pub(super) async fn call_model(&mut self, terminal: bool) {
        let asking = if terminal { ModelRequest::LastWords } else { ModelRequest::Step };
        let Some(answer) = self.answer_to(asking).await else { return };
        self.usage.add(answer.reply.usage);
        if let Some(text) = answer.lacks() {
            return self.fail("llm", text);
        }
        let CheckedAnswer { reply, model, odd_end, owners: brought } = answer;
        // Hooks may have left another word for how it ended.
        let was_cut = odd_end.is_some_and(|odd| odd.cuts_last_call(&reply));
        let (tools, known) = (&self.runner.tools, self.hooks.known());
        let read_only = |name: &str| {
            known.owner(name).is_none()
                && tools.canonical(name).and_then(|n| tools.get(n)).is_some_and(|t| t.read_only())
        };
        let mut fact = self.turn.reply_fact(reply, &model, read_only);
        if let Fact::Replied { owners, cut, .. } = &mut fact {
            *owners = brought;
            *cut |= was_cut;
        }
        drop(self.note(fact));
    }

    /// The answer of a model to the conversation as it stands, which is made shorter if it is too long. If there is none,
    /// the turn is ending.
    pub(super) async fn answer_to(&mut self, asking: ModelRequest) -> Option<CheckedAnswer> {
        if !self.make_room().await {
            return None;
        }
        let mut shortened = false;
        loop {
            match self.exchange(self.request(asking), asking).await {
                Ok(answered) => return Some(answered),
                Err(NoAnswer::Ended) => return None,
                Err(NoAnswer::Stopped(stopped)) => {
                    self.keep_stopped(stopped, asking);
                    return None;
                }
                Err(NoAnswer::TooLong(text)) if !shortened && self.can_shorten() => {
                    shortened = true;
                    if !self.shorten(&text).await {
                        return None;
                    }
                }
                Err(NoAnswer::Failed(text) | NoAnswer::TooLong(text)) => {
                    self.fail("llm", text);
                    return None;
                }
            }
        }
    }

    /// Whether tools are offered in a call.
    fn offers(&self, asking: ModelRequest) -> bool {
        shape::offers(&self.turn, asking)
    }

    /// What hooks offer in a call that offers nothing goes no further.
    fn drop_tools(&self, before: &mut BeforeLlm) {
        let dropped = std::mem::take(&mut before.request.tools);
        before.owners.clear();
        if !dropped.is_empty() {
            let names: Vec<&str> = dropped.iter().map(|tool| tool.get().function.name.as_str()).collect();
            let text = format!("this call offers no tools; dropped: {}", names.join(", "));
            self.hooks.noted(CheckpointKind::BeforeLlm, &text);
        }
    }

    /// One call of a model, through its hooks. When there is no answer, it says why; the end of the turn is decided then
    /// where hooks or somebody else decided it.
    pub(super) async fn exchange(
        &mut self,
        request: LlmRequest,
        asking: ModelRequest,
    ) -> Result<CheckedAnswer, NoAnswer> {
        let asked = request.messages.clone();
        let before = BeforeLlm::new(request);
        self.hooks.set_known(self.runner.known(BTreeMap::new(), self.hooks.who()));
        let before = self.hooks.pass(before).await.map_err(|(_, stopped)| self.no_answer(stopped))?;
        let mut before = before.sendable().map_err(|why| NoAnswer::Failed(why.into()))?;
        if !self.offers(asking) {
            self.drop_tools(&mut before);
        }
        // The owners hold for the calls of this response.
        self.hooks.set_known(self.runner.known(before.owners.clone(), self.hooks.who()));
        let request = before.request;
        self.tell(RuntimeEvent::llm_request(&request));
        let request = self.with_files(request, &asked).await;
        let (mut reply, model, seen) = self.answer(&request, asking).await?;
        if let Some(usage) = reply.usage {
            self.hooks.show_usage(usage);
        }
        let odd_end = OddEnd::of(&reply);
        if odd_end.is_some_and(OddEnd::voids_calls) {
            reply.tool_calls.clear();
        }
        let shown = seen.text.then(|| reply.content.clone());
        let after = AfterLlm { model: model.clone(), response: reply };
        let after = self.hooks.pass(after).await.map_err(|(_, stopped)| self.no_answer(stopped))?;
        let reply = after.response;
        let seen = SeenAnswer { rewritten: shown.is_some_and(|shown| shown != reply.content), ..seen };
        match asking {
            ModelRequest::Aside => {}
            ModelRequest::Plan => self.show(&reply, &stripped(&reply.content), seen),
            ModelRequest::Step | ModelRequest::LastWords => self.show(&reply, &reply.content, seen),
        }
        self.tell(RuntimeEvent::llm_response(&reply, odd_end));
        Ok(CheckedAnswer { reply, model, odd_end, owners: before.owners })
    }

    /// What a request or an answer leaves that hooks stopped. What was not reviewed is not an answer; whoever cancelled may
    /// have ordered more than that: the next poll looks, and finds the turn still in its round.
    fn no_answer(&mut self, stopped: Stopped) -> NoAnswer {
        match stopped {
            Stopped::Denied(denied) => return NoAnswer::Failed(denied.text()),
            Stopped::Aborted(aborted) => self.stop(aborted),
            Stopped::Cancelled => {}
        }
        NoAnswer::Ended
    }

    /// Lets the user read an answer that passed its hooks, if there is a place for it and it was not seen yet.
    fn show(&self, reply: &LlmReply, content: &str, seen: SeenAnswer) {
        let user_output = &self.turn_env.user_output;
        if !user_output.streams() {
            return user_output.said(content);
        }
        // Servers that spell it both ways send the same text twice.
        let thought = if reply.reasoning_content.is_empty() { &reply.reasoning } else { &reply.reasoning_content };
        if !(seen.thought || seen.text || thought.trim().is_empty()) {
            user_output.thought(thought);
        }
        if seen.rewritten {
            user_output.rewritten(content);
            return user_output.answered();
        }
        if content.is_empty() {
            return;
        }
        if !seen.text {
            user_output.delta(content);
        }
        user_output.answered();
    }

    /// What had come of an answer when somebody stopped it stands in the conversation, and says that it was stopped. What
    /// a hook was still to rule on does not: nobody has reviewed it, and nobody ever will.
    fn keep_stopped(&mut self, stopped: StoppedAnswer, asking: ModelRequest) {
        let StoppedAnswer { text, model } = stopped;
        if asking == ModelRequest::Aside || self.hooks.set().roster().waits_at(CheckpointKind::AfterLlm) {
            return;
        }
        let kept = LlmReply::text(format!("{}\n\n{STOPPED_HERE}", text.trim_end())).into_message(&model);
        let fact = Fact::Stopped { iteration: self.turn.iteration(), message: kept.into() };
        drop(self.note(fact));
    }

    fn request(&self, asking: ModelRequest) -> LlmRequest {
        shape::request(&self.runner.settings, &self.runner.offered, &self.turn, asking)
    }

    /// Whether text must wait for the `after_llm` hooks.
    fn held_back(&self) -> bool {
        self.hooks.set().roster().waits_at(CheckpointKind::AfterLlm) && !self.runner.settings.stream_unreviewed
    }

    /// Where a call stands in the turn, as far as that bears on how it is sent. What is asked aside belongs to no turn.
    fn in_turn(&self, asking: ModelRequest) -> Option<TurnPosition<'_>> {
        let call = match asking {
            ModelRequest::Aside => return None,
            _ if !self.turn.may_have_texts() => CallKind::Plain,
            ModelRequest::Plan => CallKind::Planning,
            ModelRequest::Step | ModelRequest::LastWords => CallKind::Loop,
        };
        Some(TurnPosition { wire: &self.wire, call })
    }

    /// Asks the model of the request, then the fallbacks in order.
    ///
    /// Beside the answer stand the model that gave it and what the user has seen of it.
    async fn answer(
        &self,
        request: &LlmRequest,
        asking: ModelRequest,
    ) -> Result<(LlmReply, String, SeenAnswer), NoAnswer> {
        let shows = self.turn_env.user_output.streams() && !self.held_back() && asking != ModelRequest::Aside;
        let user_output = Some(&*self.turn_env.user_output).filter(|_| shows);
        let deltas = Deltas::new(&self.hooks, user_output, asking == ModelRequest::Plan);
        let fallbacks = self.runner.settings.fallbacks.iter().filter(|model| **model != request.model);
        let mut failures: Vec<(&str, String)> = Vec::new();
        let mut too_long = true;
        for model in std::iter::once(&request.model).chain(fallbacks) {
            let (provider, name) = match self.runner.models.resolve(model) {
                Ok(found) => found,
                Err(unknown) => {
                    let why = unknown.to_string();
                    self.hooks.show_failure(&ModelFailure {
                        model,
                        class: "unknown_model",
                        why: &why,
                        retry_after: None,
                    });
                    failures.push((model, why));
                    too_long = false;
                    continue;
                }
            };
            if !failures.is_empty() {
                let (from, why) = (&*request.model, &*told(&failures));
                self.hooks.show_switch(&ModelSwitch { from, to: model, why });
            }
            let answered = self.ask(&AskedModel { provider: &*provider, model, name }, request, asking, &deltas).await;
            deltas.end(answered.is_ok());
            match answered {
                Ok(reply) => return Ok((reply, model.clone(), deltas.seen())),
                Err(NoAnswer::Ended | NoAnswer::Stopped(_)) => return Err(stopped(&deltas, model)),
                Err(NoAnswer::TooLong(text)) => failures.push((model, text)),
                Err(NoAnswer::Failed(text)) => {
                    too_long = false;
                    failures.push((model, text));
                }
            }
            if deltas.seen().text {
                break;
            }
        }
        // A shorter conversation helps only if nothing was shown, and every model found this one too long.
        let text = told(&failures);
        Err(if too_long && !deltas.seen().text { NoAnswer::TooLong(text) } else { NoAnswer::Failed(text) })
    }

    /// Asks one model, again after a pause where that may help and nothing was shown yet.
    async fn ask(
        &self,
        asked: &AskedModel<'_>,
        request: &LlmRequest,
        asking: ModelRequest,
        deltas: &Deltas<'_>,
    ) -> Result<LlmReply, NoAnswer> {
        let (policy, turn) = (RetryPolicy::default(), self.in_turn(asking));
        let mut attempt = 0;
        loop {
            deltas.begin();
            let take = |delta: pintle_providers::Delta<'_>| deltas.take(delta);
            let calling = match turn {
                Some(turn) => asked.provider.call_in_turn(asked.name, request, turn, &take),
                None => asked.provider.call(asked.name, request, &take),
            };
            let called = tokio::select! {
                biased;
                () = self.hooks.cancel().cancelled() => return Err(NoAnswer::Ended),
                called = calling => called,
            };
            let error = match called {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            if !deltas.seen().text {
                deltas.begin();
            }
            attempt += 1;
            let wait = policy.wait(attempt, &error, fastrand::f64()).filter(|_| !deltas.seen().text);
            let (Some(backoff), ProviderError::Transient { reason, message, .. }) = (wait, &error) else {
                let too_long = matches!(&error, ProviderError::Transient { reason: RetryReason::ContextLimit, .. });
                let asks = policy.asks_too_much(&error).map(in_words);
                let asks = asks.map(|wait| format!("; it asks to come back in {wait}")).unwrap_or_default();
                let text = format!("{error}{asks}");
                let (class, retry_after) = match &error {
                    ProviderError::Transient { reason, retry_after, .. } => (reason.word(), *retry_after),
                    ProviderError::Final { .. } => ("final", None),
                };
                self.hooks.show_failure(&ModelFailure { model: asked.model, class, why: &text, retry_after });
                return Err(if too_long { NoAnswer::TooLong(text) } else { NoAnswer::Failed(text) });
            };
            self.tell(RuntimeEvent::LlmRetry {
                attempt,
                max_retries: policy.max_retries,
                reason: *reason,
                error: message.clone(),
                backoff,
            });
            tokio::select! {
                () = tokio::time::sleep(backoff) => {}
                () = self.hooks.cancel().cancelled() => return Err(NoAnswer::Ended),
            }
        }
    }
}

/// A call of `model` that was cancelled: what had come of its answer.
fn stopped(deltas: &Deltas<'_>, model: &str) -> NoAnswer {
    let text = deltas.take_said();
    if text.trim().is_empty() {
        return NoAnswer::Ended;
    }
    NoAnswer::Stopped(StoppedAnswer { text, model: model.to_owned() })
}

/// Why no model answered: the failure of the only one, or one for each.
fn told(failures: &[(&str, String)]) -> String {
    match failures {
        [(_, only)] => only.clone(),
        several => several.iter().map(|(model, why)| format!("`{model}`: {why}")).collect::<Vec<_>>().join("; "),
    }
}
