//! One prompt worked to its end, as a value: it says what the driver must do next and is told what came of it.

use std::collections::BTreeSet;

use crate::checkpoint::RuntimeEvent;
use crate::checkpoint::runtime::{InterruptKind, ToolExecution, TurnStatus};
use crate::json::Rendered;
use crate::llm::LlmReply;
use crate::message::{CallPart, Message, Private, Role};
use crate::ruling::Aborted;
use crate::verdict::Extent;

/// The assistant message of a turn whose results went to the user already.
pub const DELIVERED: &str = "Requested output delivered via tool attachment.";

/// What a call that a cancelled turn did not get to leaves for the model.
pub const CANCELLED: &str = "Skipped because the turn was cancelled.";

/// One turn of one session.
#[derive(Debug)]
pub struct Turn {
    max_iterations: u32,
    messages: Vec<Rendered<Message>>,
    /// How many messages stood before this turn.
    base: usize,
    iteration: u32,
    phase: Phase,
    batch: Vec<Slot>,
    /// Set once the turn must end; calls in flight are finished first.
    ending: Option<End>,
    executions: Vec<ToolExecution>,
}

#[derive(Debug, PartialEq)]
enum Phase {
    Round,
    Calling,
    Batch,
    Over,
    /// The driver knows how the turn ended: nothing changes that any more.
    Told,
}

/// One call of the batch that the model asked for.
#[derive(Debug)]
struct Slot {
    part: CallPart,
    read_only: bool,
    state: Call,
}

#[derive(Debug)]
enum Call {
    Waiting,
    Clearing,
    Cleared { read_only: bool },
    Running { read_only: bool },
    Answered(Answer),
}

/// What one call of the model ended in.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The text of the tool message.
    pub text: String,
    /// References that ride on the tool message.
    pub media: Vec<String>,
    /// Whether the user has the result already.
    pub handled: bool,
    /// What is told of it at the end of the turn, if it ran.
    pub execution: Option<ToolExecution>,
}

impl Answer {
    /// A call that did not run; the text says why.
    pub fn not_run(text: impl Into<String>) -> Self {
        Self { text: text.into(), media: Vec::new(), handled: false, execution: None }
    }
}

/// What the driver must do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Ask the model, through its checkpoints, and report with [`Turn::replied`] or [`Turn::end`].
    CallModel {
        /// The round, from 1.
        iteration: u32,
    },
    /// Clear this call of the batch, and report with [`Turn::cleared`] or [`Turn::answered`].
    Clear {
        /// Its place in the batch.
        call: usize,
        /// What the model wrote.
        part: CallPart,
    },
    /// Let the cleared call run; do not wait for it.
    Start {
        /// Its place in the batch.
        call: usize,
    },
    /// Wait for the running call, and report with [`Turn::answered`].
    Await {
        /// Its place in the batch.
        call: usize,
    },
    /// The turn is over.
    End(End),
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// The word of `turn_end`.
    pub status: TurnStatus,
    /// What the user reads at the end; empty when the results went out already or nothing came of it.
    pub reply: String,
    /// What failed, for a turn that ended in an error: the stage and the text.
    pub error: Option<(String, String)>,
    /// Whether history goes back to where the turn began.
    pub roll_back: bool,
    /// The hook's order that ended it, where one did.
    pub stopped_by: Option<Aborted>,
}

impl End {
    fn with(status: TurnStatus) -> Self {
        Self { status, reply: String::new(), error: None, roll_back: false, stopped_by: None }
    }

    /// The turn has its answer.
    pub fn completed(reply: impl Into<String>) -> Self {
        Self { reply: reply.into(), ..Self::with(TurnStatus::Completed) }
    }

    /// The turn failed at `stage`.
    pub fn failed(stage: impl Into<String>, text: impl Into<String>) -> Self {
        Self { error: Some((stage.into(), text.into())), ..Self::with(TurnStatus::Error) }
    }

    /// Somebody stopped the turn; what it did stays in the history.
    pub fn cancelled() -> Self {
        Self::with(TurnStatus::Aborted)
    }

    /// The whole run was stopped; the history goes back to the start of the turn.
    pub fn hard_aborted() -> Self {
        Self { roll_back: true, ..Self::cancelled() }
    }

    /// A hook stopped the turn, or the whole run.
    pub fn stopped(by: Aborted) -> Self {
        let end = match by.abort.extent {
            Extent::Turn => Self::failed(format!("hook.{}", by.at.name()), by.text()),
            Extent::Run => Self::hard_aborted(),
        };
        Self { stopped_by: Some(by), ..end }
    }

    /// What observers are told of this end, right before `turn_end`.
    pub fn told(&self) -> Option<RuntimeEvent> {
        let hook = self.stopped_by.as_ref().map(|aborted| aborted.by.to_string());
        if let Some((stage, message)) = &self.error {
            return Some(RuntimeEvent::Error { stage: stage.clone(), message: message.clone(), hook });
        }
        let aborted = self.stopped_by.as_ref()?;
        Some(RuntimeEvent::InterruptReceived {
            kind: InterruptKind::HardAbort,
            role: "hook".into(),
            content_len: 0,
            queue_depth: 0,
            hint_len: aborted.abort.reason.as_str().len(),
            hook,
        })
    }
}

impl Turn {
    /// A turn over `history`, which begins with `prompt`.
    pub fn new(history: Vec<Rendered<Message>>, prompt: Message, max_iterations: u32) -> Self {
        let base = history.len();
        let mut messages = history;
        messages.push(prompt.into());
        Self {
            max_iterations,
            messages,
            base,
            iteration: 0,
            phase: Phase::Round,
            batch: Vec::new(),
            ending: None,
            executions: Vec::new(),
        }
    }

    /// The conversation as it stands, without the system text.
    pub fn messages(&self) -> &[Rendered<Message>] {
        &self.messages
    }

    /// The round, from 1; 0 before the first.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// What the tools of this turn did, in order.
    pub fn executions(&self) -> &[ToolExecution] {
        &self.executions
    }

    /// What the driver must do next. Asking twice without a report in between gives the same answer,
    /// but for [`Step::CallModel`] and [`Step::Start`], which move the turn on.
    #[expect(clippy::should_implement_trait, reason = "a turn is driven, not iterated: every step wants a report")]
    pub fn next(&mut self) -> Step {
        loop {
            match self.phase {
                Phase::Over | Phase::Calling | Phase::Told => return Step::End(self.end_now()),
                Phase::Round => {
                    if self.ending.is_none() && self.iteration >= self.max_iterations {
                        let text = format!("iteration limit {} reached", self.max_iterations);
                        self.ending = Some(End::failed("llm", text));
                    }
                    if self.ending.is_some() {
                        self.phase = Phase::Over;
                        continue;
                    }
                    self.iteration += 1;
                    self.phase = Phase::Calling;
                    return Step::CallModel { iteration: self.iteration };
                }
                Phase::Batch => {
                    if let Some(step) = self.next_of_batch() {
                        return step;
                    }
                    self.close_batch();
                }
            }
        }
    }

    /// The end that was decided; a driver that asks for a step while the model is being called has lost it.
    fn end_now(&mut self) -> End {
        self.phase = Phase::Told;
        self.ending.get_or_insert_with(End::cancelled).clone()
    }

    /// The calls of one batch: cleared one after another in the model's order; only read-only ones overlap.
    fn next_of_batch(&mut self) -> Option<Step> {
        let running: Vec<usize> = self.places(|state| matches!(state, Call::Running { .. }));
        let all_read_only = running.iter().all(|i| matches!(self.batch[*i].state, Call::Running { read_only: true }));
        let first_running = running.first().map(|call| Step::Await { call: *call });
        if self.ending.is_some() {
            return first_running;
        }
        for (call, slot) in self.batch.iter_mut().enumerate() {
            match slot.state {
                Call::Cleared { read_only } => {
                    if !(running.is_empty() || (read_only && all_read_only)) {
                        return first_running;
                    }
                    slot.state = Call::Running { read_only };
                    return Some(Step::Start { call });
                }
                Call::Waiting => {
                    if !(running.is_empty() || (slot.read_only && all_read_only)) {
                        return first_running;
                    }
                    slot.state = Call::Clearing;
                    return Some(Step::Clear { call, part: slot.part.clone() });
                }
                Call::Clearing => return Some(Step::Clear { call, part: slot.part.clone() }),
                Call::Running { .. } | Call::Answered(_) => {}
            }
        }
        first_running
    }

    fn places(&self, wanted: impl Fn(&Call) -> bool) -> Vec<usize> {
        self.batch.iter().enumerate().filter(|(_, slot)| wanted(&slot.state)).map(|(i, _)| i).collect()
    }

    /// Every call has its answer, or the turn is ending: the tool messages go into the conversation.
    fn close_batch(&mut self) {
        let rest = match &self.ending {
            Some(End { error: Some((_, text)), .. }) => text.clone(),
            Some(_) | None => CANCELLED.to_owned(),
        };
        let mut handled = !self.batch.is_empty();
        for slot in std::mem::take(&mut self.batch) {
            let answer = match slot.state {
                Call::Answered(answer) => answer,
                Call::Waiting | Call::Clearing | Call::Cleared { .. } | Call::Running { .. } => Answer::not_run(&rest),
            };
            handled &= answer.handled;
            self.executions.extend(answer.execution);
            let message = Message { media: answer.media, ..Message::tool(&slot.part.id, answer.text) };
            self.messages.push(message.into());
        }
        if self.ending.is_none() && handled {
            self.messages.push(Message::text(Role::Assistant, DELIVERED).into());
            self.ending = Some(End::completed(""));
        }
        self.phase = if self.ending.is_some() { Phase::Over } else { Phase::Round };
    }

    /// The model answered, and the answer passed its checkpoint. `read_only` tells which tools change nothing.
    pub fn replied(&mut self, reply: LlmReply, model: &str, read_only: impl Fn(&str) -> bool) {
        if self.phase != Phase::Calling {
            return;
        }
        let text = reply.content.clone();
        let mut message = reply.into_message(model);
        if repair_ids(&mut message.tool_calls, self.iteration) {
            // What the provider keeps of its answer speaks of the ids as they were.
            message.private = Private::default();
        }
        self.batch = message
            .tool_calls
            .iter()
            .map(|part| Slot { part: part.clone(), read_only: read_only(&part.function.name), state: Call::Waiting })
            .collect();
        self.messages.push(message.into());
        if self.batch.is_empty() {
            self.end(End::completed(text));
        } else {
            self.phase = Phase::Batch;
        }
    }

    /// The call at `call` may run; whether it changes anything may differ from what the model asked for.
    pub fn cleared(&mut self, call: usize, read_only: bool) {
        if let Some(slot) = self.batch.get_mut(call)
            && matches!(slot.state, Call::Clearing)
        {
            slot.state = Call::Cleared { read_only };
        }
    }

    /// What the call at `call` ended in, run or not.
    pub fn answered(&mut self, call: usize, answer: Answer) {
        if let Some(slot) = self.batch.get_mut(call)
            && !matches!(slot.state, Call::Answered(_))
        {
            slot.state = Call::Answered(answer);
        }
    }

    /// The turn must end. Calls in flight are finished first; the others get the end's text as their tool message.
    /// The first end stands, but for one that rolls back; once [`Step::End`] was given, that one does.
    pub fn end(&mut self, end: End) {
        if self.phase == Phase::Told {
            return;
        }
        if self.ending.as_ref().is_none_or(|earlier| end.roll_back && !earlier.roll_back) {
            self.ending = Some(end);
        }
        self.phase = match self.phase {
            Phase::Batch => Phase::Batch,
            Phase::Round | Phase::Calling | Phase::Over | Phase::Told => Phase::Over,
        };
    }

    /// Whether the turn has decided to end.
    pub fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// The conversation that the turn leaves behind.
    pub fn into_messages(mut self) -> Vec<Rendered<Message>> {
        self.take_messages()
    }

    /// Takes the conversation that the turn leaves behind out of it.
    pub fn take_messages(&mut self) -> Vec<Rendered<Message>> {
        if self.ending.as_ref().is_some_and(|end| end.roll_back) {
            self.messages.truncate(self.base);
        }
        std::mem::take(&mut self.messages)
    }
}

/// Gives calls without an id, or with that of an earlier call, one of their own: every tool message must answer
/// exactly one call. Says whether it had to.
fn repair_ids(parts: &mut [CallPart], iteration: u32) -> bool {
    let taken: BTreeSet<String> = parts.iter().map(|part| part.id.clone()).collect();
    let mut seen = BTreeSet::new();
    let mut repaired = false;
    for (i, part) in parts.iter_mut().enumerate() {
        if part.id.is_empty() || seen.contains(&part.id) {
            let free = |id: &String| !taken.contains(id) && !seen.contains(id);
            let fresh = (0..).map(|n| format!("call_{iteration}_{}", i + n)).find(free);
            part.id = fresh.expect("only so many ids are taken");
            repaired = true;
        }
        seen.insert(part.id.clone());
    }
    repaired
}

#[cfg(test)]
mod tests;
