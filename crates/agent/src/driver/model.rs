//! One model call: the request through its hooks, to a provider with retries and fallbacks, the answer through its hooks.

use domain::checkpoint::{AfterLlm, BeforeLlm, CheckpointKind, RuntimeEvent};
use domain::json::Rendered;
use domain::llm::{LlmReply, LlmRequest};
use domain::message::{Message, Role};
use domain::ruling::Ruling;
use domain::turn::End;
use providers::retry::Policy;
use providers::{Provider, ProviderError};

use super::deltas::Deltas;
use super::{Unruled, Work};

/// Why there is no answer.
enum NoAnswer {
    Cancelled,
    Failed(String),
}

impl Work<'_> {
    pub(super) async fn call_model(&mut self) {
        let before = BeforeLlm::new(self.request());
        self.cx.known = self.runner.known(Default::default());
        let before = match self.ask_hooks(before).await {
            Ok((before, Ruling::Proceed)) => before,
            Ok((_, Ruling::Abort(aborted))) => return self.stop(aborted),
            Ok((_, Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. })) => match never {},
            Ok((_, Ruling::Deny(denied))) => return self.fail("llm", denied.text()),
            Err(Unruled(_)) => return self.turn.end(End::cancelled()),
        };
        if before.request.messages.is_empty() {
            return self.fail("llm", "the request has no messages left after `before_llm`".into());
        }
        // The owners hold for the calls of this response.
        self.cx.known = self.runner.known(before.owners);
        let request = before.request;
        self.tell(llm_request(&request));
        let (reply, model, shown) = match self.answer(&request).await {
            Ok(answer) => answer,
            Err(NoAnswer::Cancelled) => return self.turn.end(End::cancelled()),
            Err(NoAnswer::Failed(text)) => return self.fail("llm", text),
        };
        let after = AfterLlm { model: model.clone(), response: reply };
        let reply = match self.ask_hooks(after).await {
            Ok((after, Ruling::Proceed)) => after.response,
            Ok((_, Ruling::Abort(aborted))) => return self.stop(aborted),
            Ok((_, Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. })) => match never {},
            Ok((_, Ruling::Deny(denied))) => return self.fail("llm", denied.text()),
            // What was not reviewed is no answer.
            Err(Unruled(_)) => return self.turn.end(End::cancelled()),
        };
        self.show(&reply.content, shown);
        self.tell(RuntimeEvent::LlmResponse {
            content_len: reply.content.len(),
            tool_calls: reply.tool_calls.len(),
            has_reasoning: !(reply.reasoning_content.is_empty() && reply.reasoning.is_empty()),
        });
        let (tools, known) = (&self.runner.tools, &self.cx.known);
        let read_only = |name: &str| {
            known.owner(name).is_none()
                && tools.canonical(name).and_then(|n| tools.get(n)).is_some_and(|t| t.read_only())
        };
        self.turn.replied(reply, &model, read_only);
    }

    /// Lets the user read an answer that passed its hooks, if there is a place for it and it was not seen yet.
    fn show(&self, content: &str, shown: bool) {
        if content.is_empty() || !self.outlet.streams() {
            return;
        }
        if !shown {
            self.outlet.delta(content);
        }
        self.outlet.answered();
    }

    fn request(&self) -> LlmRequest {
        let settings = &self.runner.settings;
        let system = Some(&settings.system).filter(|text| !text.is_empty());
        let system = system.map(|text| Rendered::new(Message::text(Role::System, text.as_str())));
        LlmRequest {
            model: settings.model.clone(),
            messages: system.into_iter().chain(self.turn.messages().iter().cloned()).collect(),
            tools: self.runner.offered.clone(),
            options: settings.options.clone(),
            graceful_terminal: false,
        }
    }

    /// Whether text must wait for the `after_llm` hooks.
    fn held_back(&self) -> bool {
        self.hooks.set().roster().waits_at(CheckpointKind::AfterLlm) && !self.runner.settings.stream_unreviewed
    }

    /// Asks the model of the request, then the fallbacks in order.
    ///
    /// Beside the answer stand the model that gave it and whether the user has seen its text.
    async fn answer(&self, request: &LlmRequest) -> Result<(LlmReply, String, bool), NoAnswer> {
        let outlet = Some(self.outlet).filter(|outlet| outlet.streams() && !self.held_back());
        let deltas = Deltas::new(&self.hooks, &self.cx, outlet);
        let fallbacks = self.runner.settings.fallbacks.iter().filter(|model| **model != request.model);
        let mut failures: Vec<(&str, String)> = Vec::new();
        for model in std::iter::once(&request.model).chain(fallbacks) {
            let (provider, name) = match self.runner.models.resolve(model) {
                Ok(found) => found,
                Err(unknown) => {
                    failures.push((model, unknown.to_string()));
                    continue;
                }
            };
            let answered = self.ask(&*provider, name, request, &deltas).await;
            deltas.flush();
            match answered {
                Ok(reply) => return Ok((reply, model.clone(), deltas.shown())),
                Err(NoAnswer::Cancelled) => return Err(NoAnswer::Cancelled),
                Err(NoAnswer::Failed(text)) => failures.push((model, text)),
            }
            if deltas.shown() {
                break;
            }
        }
        Err(NoAnswer::Failed(told(&failures)))
    }

    /// Asks one model, again after a pause where that may help and nothing was shown yet.
    async fn ask(
        &self,
        provider: &dyn Provider,
        model: &str,
        request: &LlmRequest,
        deltas: &Deltas<'_>,
    ) -> Result<LlmReply, NoAnswer> {
        let policy = Policy::default();
        let mut attempt = 0;
        loop {
            let take = |delta: providers::Delta<'_>| deltas.take(delta);
            let called = tokio::select! {
                biased;
                () = self.cx.cancel.cancelled() => return Err(NoAnswer::Cancelled),
                called = provider.call(model, request, &take) => called,
            };
            let error = match called {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            attempt += 1;
            let wait = policy.wait(attempt, &error, fastrand::f64()).filter(|_| !deltas.shown());
            let (Some(backoff), ProviderError::Transient { reason, message, .. }) = (wait, &error) else {
                return Err(NoAnswer::Failed(error.to_string()));
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
                () = self.cx.cancel.cancelled() => return Err(NoAnswer::Cancelled),
            }
        }
    }
}

/// Why no model answered: the failure of the only one, or one for each.
fn told(failures: &[(&str, String)]) -> String {
    match failures {
        [(_, only)] => only.clone(),
        several => several.iter().map(|(model, why)| format!("`{model}`: {why}")).collect::<Vec<_>>().join("; "),
    }
}

fn llm_request(request: &LlmRequest) -> RuntimeEvent {
    let number = |name: &str| request.options.get(name);
    RuntimeEvent::LlmRequest {
        model: request.model.clone(),
        messages_count: request.messages.len(),
        tools_count: request.tools.len(),
        max_tokens: number("max_tokens").and_then(serde_json::Value::as_u64).unwrap_or_default(),
        temperature: number("temperature").and_then(serde_json::Value::as_f64).unwrap_or_default(),
    }
}
