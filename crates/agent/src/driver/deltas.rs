//! Pieces of an answer on their way to the user and to observers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::checkpoint::RuntimeEvent;
use domain::planning::TagStripper;
use engine::Dispatcher;
use providers::Delta;
use tokio::time::Instant;

use crate::user_output::UserOutput;

/// Observers hear of at most four pieces a second: three at this pace, and the rest at the end.
const TELL_EVERY: Duration = Duration::from_millis(334);

/// Shows pieces to the user where that is allowed, and tells observers how much arrived.
pub(super) struct Deltas<'a> {
    hooks: &'a Dispatcher,
    /// Where text goes at once; nowhere when a hook is still to rule on it.
    user_output: Option<&'a dyn UserOutput>,
    shown: AtomicBool,
    waiting: Mutex<Waiting>,
}

struct Waiting {
    /// Takes tags out of a plan.
    stripper: Option<TagStripper>,
    content: usize,
    reasoning: usize,
    told_at: Option<Instant>,
}

impl<'a> Deltas<'a> {
    /// Of a plan, the tags are not shown.
    pub(super) fn new(hooks: &'a Dispatcher, user_output: Option<&'a dyn UserOutput>, plan: bool) -> Self {
        let stripper = plan.then(TagStripper::default);
        let waiting = Mutex::new(Waiting { stripper, content: 0, reasoning: 0, told_at: None });
        Self { hooks, user_output, shown: AtomicBool::new(false), waiting }
    }

    /// Whether the user has seen a piece, so that the call cannot be tried again.
    pub(super) fn shown(&self) -> bool {
        self.shown.load(Ordering::Relaxed)
    }

    pub(super) fn take(&self, delta: Delta<'_>) {
        let (content, reasoning) = match delta {
            Delta::Text(text) => {
                let stripped = self.lock().stripper.as_mut().map(|stripper| stripper.push(text));
                self.show(stripped.as_deref().unwrap_or(text));
                (text.len(), 0)
            }
            Delta::Reasoning(text) => (0, text.len()),
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
        if let Some(user_output) = self.user_output.filter(|_| !text.is_empty()) {
            self.shown.store(true, Ordering::Relaxed);
            user_output.delta(text);
        }
    }

    /// The call is over: of an answer the rest is shown, of a failure nothing is left behind.
    pub(super) fn end(&self, answered: bool) {
        let rest = self.lock().stripper.as_mut().map(|stripper| std::mem::take(stripper).finish());
        if answered {
            self.show(rest.as_deref().unwrap_or_default());
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
