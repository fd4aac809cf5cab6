//! The ends of a turn: exactly one is told.

use pintle_domain::checkpoint::FinishedTurn;
use pintle_domain::turn::TurnEnd;

use super::Turn;
use super::state::TurnSnapshot;

impl Turn {
    /// Ends the turn with this answer for the user. A turn that a hook stopped ends as that hook ordered.
    pub fn end(self, reply: &str) {
        self.finish(TurnEnd::completed(reply));
    }

    /// Ends the turn with an error, such as that no model answered.
    pub fn fail(self, why: &str) {
        self.finish(TurnEnd::failed("llm", why));
    }

    /// Leaves the turn open: a call waits for a person. Nothing is told; [`Turn::resumed`] goes on.
    #[must_use = "nobody can go on with a turn that was not kept"]
    pub fn park(self) -> TurnSnapshot {
        let open = self.snapshot();
        self.state().begun = None;
        open
    }

    /// Tells of the end, if the turn began and has not ended.
    pub(super) fn finish(&self, end: TurnEnd) {
        let begun = self.state().begun.take();
        let end = self.stopped_by().map_or(end, TurnEnd::stopped);
        let (Some(began), open) = (begun, self.snapshot()) else {
            return self.tell_above(&end);
        };
        if let Some(event) = end.told() {
            self.tell(None, event);
        }
        let finished = FinishedTurn {
            status: end.status,
            iterations: open.round,
            duration: began.elapsed(),
            prompt: open.prompt,
            reply: end.reply.clone(),
            executions: open.executions,
            usage: open.usage,
        };
        self.hooks.tell(finished.turn_end());
        if let Some(stop) = finished.stop() {
            self.hooks.tell(stop);
        }
        self.tell_above(&end);
    }

    /// Tells the turn that this one works for.
    fn tell_above(&self, end: &TurnEnd) {
        if let Some(subagent) = &self.subagent {
            subagent.stop(end, self.snapshot().denials);
        }
    }
}

/// However a turn is left, its observers hear of one end, unless it waits for a person.
impl Drop for Turn {
    fn drop(&mut self) {
        let waits = !self.state().open.waiting.is_empty();
        if !waits || self.stopped_by().is_some() {
            self.finish(TurnEnd::cancelled());
        }
    }
}
