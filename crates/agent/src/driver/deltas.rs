//! Pieces of an answer on their way to the user and to observers.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pintle_domain::checkpoint::RuntimeEvent;
use pintle_domain::planning::TagStripper;
use pintle_engine::Dispatcher;
use pintle_providers::Delta;
use tokio::time::Instant;

use crate::user_output::UserOutput;

/// Observers hear of at most four pieces a second: three at this pace, and the rest at the end.
const TELL_EVERY: Duration = Duration::from_millis(334);

/// Shows pieces to the user where that is allowed, and tells observers how much arrived.
pub(super) struct Deltas<'a> {
    hooks: &'a Dispatcher,
    /// Where text goes at once; nowhere when a hook is still to rule on it.
    user_output: Option<&'a dyn UserOutput>,
    /// Whether it is a plan, whose tags are not shown.
    plan: bool,
    waiting: Mutex<Waiting>,
}

/// What the user has seen of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeenAnswer {
    /// A piece of its text, so that the call cannot be tried again.
    pub(super) text: bool,
    /// What was thought before it.
    pub(super) thought: bool,
    /// A text that its hooks changed since.
    pub(super) rewritten: bool,
}

#[derive(Default)]
struct Waiting {
    seen: SeenAnswer,
    /// Takes tags out of a plan.
    stripper: Option<TagStripper>,
    /// The text that arrived, as it is shown.
    said: String,
    thought: String,
    content: usize,
    reasoning: usize,
    told_at: Option<Instant>,
}

impl<'a> Deltas<'a> {
    /// Of a plan, the tags are not shown.
    pub(super) fn new(hooks: &'a Dispatcher, user_output: Option<&'a dyn UserOutput>, plan: bool) -> Self {
        Self { hooks, user_output, plan, waiting: Mutex::default() }
    }

    /// A model is asked: what came of an earlier attempt is not part of its answer.
    pub(super) fn begin(&self) {
        let mut waiting = self.lock();
        waiting.stripper = self.plan.then(TagStripper::default);
        waiting.said.clear();
        waiting.thought.clear();
    }

    /// What the user has seen.
    pub(super) fn seen(&self) -> SeenAnswer {
        self.lock().seen
    }

    /// The text that arrived, as it is shown.
    pub(super) fn take_said(&self) -> String {
        std::mem::take(&mut self.lock().said)
    }

    pub(super) fn take(&self, delta: Delta<'_>) {
        let (content, reasoning) = match delta {
            Delta::Text(text) => {
                let stripped = self.lock().stripper.as_mut().map(|stripper| stripper.push(text));
                self.show(stripped.as_deref().unwrap_or(text));
                (text.len(), 0)
            }
            Delta::Reasoning(text) => {
                self.lock().thought.push_str(text);
                (0, text.len())
            }
            Delta::Sent => return,
        };
        let due = {
            let mut waiting = self.lock();
            waiting.content += content;
            waiting.reasoning += reasoning;
            let due = waiting.told_at.is_none_or(|at| at.elapsed() >= TELL_EVERY);
            if due {
                waiting.told_at = Some(Instant::now());
            }
            due
        };
        if due {
            self.flush();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.show_thought();
        let mut waiting = self.lock();
        waiting.said.push_str(text);
        if let Some(user_output) = self.user_output {
            waiting.seen.text = true;
            drop(waiting);
            user_output.delta(text);
        }
    }

    /// Shows what was thought, once nothing more is thought.
    fn show_thought(&self) {
        let Some(user_output) = self.user_output else { return };
        let thought = std::mem::take(&mut self.lock().thought);
        if !thought.trim().is_empty() {
            self.lock().seen.thought = true;
            user_output.thought(&thought);
        }
    }

    /// The call is over: of an answer the rest is shown, of a failure nothing is left behind.
    pub(super) fn end(&self, answered: bool) {
        let rest = self.lock().stripper.take().map(|mut stripper| stripper.finish());
        if answered {
            self.show(rest.as_deref().unwrap_or_default());
            self.show_thought();
        }
        self.flush();
    }

    /// Tells what has not been told yet.
    fn flush(&self) {
        let (content_delta_len, reasoning_delta_len) = {
            let mut waiting = self.lock();
            (std::mem::take(&mut waiting.content), std::mem::take(&mut waiting.reasoning))
        };
        if content_delta_len + reasoning_delta_len > 0 {
            self.hooks.tell(RuntimeEvent::LlmDelta { content_delta_len, reasoning_delta_len });
        }
    }
}
