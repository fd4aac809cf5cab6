//! One prompt worked to its end, as a value: it says what the driver must do next and is told what came of it.
//!
//! Everything that is told to it is a [`Fact`]; the facts of a turn, told to another one in the same order, make the
//! same turn again. That is how a turn survives the process that works it.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::checkpoint::runtime::ToolExecution;
use crate::id::HookName;
use crate::json::Rendered;
use crate::llm::{LlmReply, OddEnd};
use crate::message::{CallPart, Message, ProviderData, Role};

mod apply;
mod batch;
mod end;
mod fact;
mod skip;
mod texts;
mod waiting;

pub use crate::kept_message::KeptMessage;
pub(crate) use apply::trim;
pub use apply::whole_rounds;
pub use end::TurnEnd;
pub use fact::Fact;
pub use skip::SkipReason;
pub use texts::{ToolUse, TurnFlow, TurnSetup};
pub use waiting::{MessageSender, WaitingMessage};

/// The assistant message of a turn whose results went to the user already.
pub const DELIVERED: &str = "Requested output delivered via tool attachment.";

/// The text that a call that a cancelled turn did not get to leaves for the model.
pub const CANCELLED: &str = "Skipped because the turn was cancelled.";

/// The text that a call that was running when its process ended leaves for the model.
pub const OUTCOME_UNKNOWN: &str = "outcome unknown: the process ended while the tool ran";

/// One turn of one session.
#[derive(Clone, Debug)]
pub struct Turn {
    max_iterations: u32,
    messages: Vec<Rendered<Message>>,
    /// The number of messages that stood before this turn.
    base: usize,
    /// The conversation before this turn, once a compaction has changed it.
    before: Option<Vec<Rendered<Message>>>,
    iteration: u32,
    phase: Phase,
    batch: Vec<Slot>,
    /// Who brought which tool for the calls of the batch.
    owners: BTreeMap<String, HookName>,
    /// Messages that wait for the next poll.
    inbox: VecDeque<WaitingMessage>,
    /// Somebody wants the turn to come to an end: one more model call, without tools.
    interrupted: bool,
    /// Set once the turn must end; calls in flight are finished first.
    ending: Option<TurnEnd>,
    executions: Vec<ToolExecution>,
    /// The texts of hooks and of the host, if the turn has any.
    texts: Option<Box<texts::Texts>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Phase {
    Round,
    /// The model is asked for a plan.
    Planning,
    /// The model is called; for the last time, if somebody had interrupted the turn before, or all rounds are spent.
    Calling {
        terminal: bool,
    },
    Batch(Then),
    Over,
    /// The driver knows how the turn ended: nothing changes that any more.
    Told,
}

/// Where a turn goes once every call of its batch has an answer.
#[derive(Clone, Debug, PartialEq)]
enum Then {
    /// To the next round, unless the user has all results already.
    Round,
    /// To its end: the model said this in the last call.
    LastWords {
        text: String,
        /// The limit of rounds, if that is why it was the last one.
        limit: Option<u32>,
    },
    /// To its end: no model waits for the answer.
    Answer,
}

/// One call of the batch that the model asked for.
#[derive(Clone, Debug)]
struct Slot {
    part: CallPart,
    read_only: bool,
    state: Call,
    /// The arguments that gates put in the place of the model's.
    rewritten: Option<String>,
    /// Whether a part of it did not arrive.
    cut: bool,
}

#[derive(Clone, Debug)]
enum Call {
    Waiting,
    Clearing,
    Cleared { read_only: bool },
    Running { read_only: bool },
    Answered(ModelAnswer),
}

/// The answer to one tool call of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// The text of the tool message.
    pub text: String,
    /// References that ride on the tool message.
    pub media: Vec<String>,
    /// Whether the user has the result already.
    pub handled: bool,
    /// The execution that is told at the end of the turn, if the call ran.
    pub execution: Option<ToolExecution>,
    /// The messages that hooks want the model to read after the results of the batch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<KeptMessage>,
    /// The arguments that a gate put in the place of the model's, as JSON text: what was there before is nobody's to
    /// read any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewritten: Option<String>,
    /// The tool that the call was about in the end, by its canonical name; none where the call was passed over, so that
    /// it was about nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The paths of files that a hook's result named.
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    pub named: Box<[String]>,
}

impl ModelAnswer {
    /// A call that did not run; the text says why.
    pub fn not_run(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            media: Vec::new(),
            handled: false,
            execution: None,
            notes: Vec::new(),
            rewritten: None,
            tool: None,
            named: Box::default(),
        }
    }

    /// This answer, to a call of `tool`.
    #[must_use]
    pub fn about(self, tool: impl Into<String>) -> Self {
        Self { tool: Some(tool.into()), ..self }
    }
}

/// The step that the driver must take next.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnStep {
    /// Tell of these messages, which are about to enter the conversation, and report with [`Fact::Injected`].
    Inject {
        /// All that wait, oldest first.
        waiting: Vec<WaitingMessage>,
    },
    /// Ask the model for a plan, through its checkpoints and without any tool, and report with [`Fact::Planned`] or
    /// [`Turn::end`]. An interrupt is told before or after that, not in between.
    Plan,
    /// Ask the model, through its checkpoints, and report with [`Turn::replied`] or [`Turn::end`].
    CallModel {
        /// The round, from 1.
        iteration: u32,
        /// Whether this is the last call, after a graceful interrupt or with all rounds spent: no tools are offered.
        terminal: bool,
    },
    /// Tell that this call is passed over, and report with [`Turn::answered`] and the text of `why`.
    Skip {
        /// Its place in the batch.
        call: usize,
        /// The call as the model wrote it.
        part: CallPart,
        /// Why.
        why: SkipReason,
    },
    /// Clear this call of the batch, and report with [`Turn::cleared`] or [`Turn::answered`].
    Clear {
        /// Its place in the batch.
        call: usize,
        /// The call as the model wrote it.
        part: CallPart,
    },
    /// Store that the permit of the cleared call is used, report it with [`Fact::Used`], and let the call run; do not
    /// wait for it.
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
    End(TurnEnd),
}

impl Turn {
    /// A turn over `history`, which begins with `prompt`.
    pub fn new(history: Vec<Rendered<Message>>, prompt: Message, max_iterations: u32) -> Self {
        Self::begin(history, vec![prompt], max_iterations)
    }

    /// A turn over `history`, which begins with `prompts`.
    pub fn begin(history: Vec<Rendered<Message>>, prompts: Vec<Message>, max_iterations: u32) -> Self {
        let base = history.len();
        let mut messages = history;
        messages.extend(prompts.into_iter().map(Rendered::new));
        Self {
            max_iterations,
            messages,
            base,
            before: None,
            iteration: 0,
            phase: Phase::Round,
            batch: Vec::new(),
            owners: BTreeMap::new(),
            inbox: VecDeque::new(),
            interrupted: false,
            ending: None,
            executions: Vec::new(),
            texts: None,
        }
    }

    /// A turn that works one call of somebody who is no model, and ends with it. It asks no model.
    pub fn of_call(part: CallPart, read_only: bool) -> Self {
        let mut turn = Self::begin(Vec::new(), Vec::new(), 1);
        let message = Message { tool_calls: vec![part], ..Message::text(Role::Assistant, "") };
        turn.take_reply(1, message, &[read_only], Then::Answer);
        turn
    }

    /// The conversation as it stands, without the system text.
    pub fn messages(&self) -> &[Rendered<Message>] {
        &self.messages
    }

    /// The number of messages that stood before this turn; those from here on are its own.
    pub fn base(&self) -> usize {
        self.base
    }

    /// The round, from 1; 0 before the first.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// The executions of this turn's tools, in order.
    pub fn executions(&self) -> &[ToolExecution] {
        &self.executions
    }

    /// The messages that no poll has taken yet, oldest first.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &WaitingMessage> {
        self.inbox.iter()
    }

    /// Takes the messages that no poll has taken.
    pub fn take_waiting(&mut self) -> Vec<WaitingMessage> {
        std::mem::take(&mut self.inbox).into()
    }

    /// Who brought which tool for the calls of the batch.
    pub fn owners(&self) -> &BTreeMap<String, HookName> {
        &self.owners
    }

    /// The places of calls that run.
    pub fn running(&self) -> Vec<usize> {
        self.places(|state| matches!(state, Call::Running { .. }))
    }

    /// The call at `place`, as the model wrote it.
    pub fn part(&self, place: usize) -> Option<&CallPart> {
        self.batch.get(place).map(|slot| &slot.part)
    }

    /// The step that the driver must take next. Asking twice without a report in between gives the same answer,
    /// but for [`TurnStep::Plan`] and [`TurnStep::CallModel`], which move the turn on.
    #[expect(clippy::should_implement_trait, reason = "a turn is driven, not iterated: every step wants a report")]
    pub fn next(&mut self) -> TurnStep {
        loop {
            match self.phase {
                Phase::Over | Phase::Planning | Phase::Calling { .. } | Phase::Told => {
                    return TurnStep::End(self.end_now());
                }
                Phase::Round => {
                    if let Some(step) = self.next_of_round() {
                        return step;
                    }
                }
                Phase::Batch(_) => {
                    if let Some(step) = self.next_of_batch() {
                        return step;
                    }
                    self.close_batch();
                }
            }
        }
    }

    /// The step that begins a round; nothing when the turn is to end.
    fn next_of_round(&mut self) -> Option<TurnStep> {
        if self.plans() {
            self.open_planning();
            self.phase = Phase::Planning;
            return Some(TurnStep::Plan);
        }
        // The last call, in which the model sums up, is one that the limit does not take away.
        let spent = self.iteration >= self.max_iterations && !self.interrupted;
        // What waits at the limit is not taken: no round is left in which anything could be done about it.
        if !spent && !self.inbox.is_empty() {
            return Some(TurnStep::Inject { waiting: self.inbox.iter().cloned().collect() });
        }
        self.iteration += 1;
        self.open_round(self.iteration);
        let terminal = self.interrupted || spent;
        self.phase = Phase::Calling { terminal };
        Some(TurnStep::CallModel { iteration: self.iteration, terminal })
    }

    /// The end that was decided; a driver that asks for a step while the model is being called has lost it.
    fn end_now(&mut self) -> TurnEnd {
        self.phase = Phase::Told;
        self.ending.get_or_insert_with(TurnEnd::cancelled).clone()
    }

    /// Why the rest of the batch is not worked, if it is not.
    fn skips(&self) -> Option<SkipReason> {
        // What a sub-agent brings waits for the round; only a person stops what is under way.
        let steered = self.inbox.iter().any(|waiting| waiting.from == MessageSender::Person);
        if self.interrupted {
            Some(SkipReason::Graceful)
        } else if matches!(self.phase, Phase::Batch(Then::LastWords { .. })) {
            Some(SkipReason::Limit)
        } else if steered {
            Some(SkipReason::Steering)
        } else {
            None
        }
    }

    /// The calls of one batch: cleared one after another in the model's order; only read-only ones overlap.
    fn next_of_batch(&mut self) -> Option<TurnStep> {
        let running = self.running();
        let all_read_only = running.iter().all(|i| matches!(self.batch[*i].state, Call::Running { read_only: true }));
        let first_running = running.first().map(|call| TurnStep::Await { call: *call });
        if self.ending.is_some() {
            return first_running;
        }
        let skips = self.skips();
        for (call, slot) in self.batch.iter_mut().enumerate() {
            match slot.state {
                Call::Cleared { read_only } => {
                    if !(running.is_empty() || (read_only && all_read_only)) {
                        return first_running;
                    }
                    return Some(TurnStep::Start { call });
                }
                Call::Waiting => {
                    if let Some(why) = skips.or(slot.cut.then_some(SkipReason::Cut)) {
                        return Some(TurnStep::Skip { call, part: slot.part.clone(), why });
                    }
                    if !(running.is_empty() || (slot.read_only && all_read_only)) {
                        return first_running;
                    }
                    slot.state = Call::Clearing;
                    return Some(TurnStep::Clear { call, part: slot.part.clone() });
                }
                Call::Clearing => return Some(TurnStep::Clear { call, part: slot.part.clone() }),
                Call::Running { .. } | Call::Answered(_) => {}
            }
        }
        first_running
    }

    fn places(&self, wanted: impl Fn(&Call) -> bool) -> Vec<usize> {
        self.batch.iter().enumerate().filter(|(_, slot)| wanted(&slot.state)).map(|(i, _)| i).collect()
    }

    /// Whether the user has the result of every call of the batch already.
    fn all_handled(&self) -> bool {
        self.batch.iter().all(|slot| matches!(&slot.state, Call::Answered(answer) if answer.handled))
    }

    /// The fact that a model's `reply`, which passed its checkpoint, is to the turn: the one to keep and to
    /// [`apply`](Self::apply). `read_only` tells which tools change nothing.
    pub fn reply_fact(&self, reply: LlmReply, model: &str, read_only: impl Fn(&str) -> bool) -> Fact {
        let cut = OddEnd::of(&reply).is_some_and(|odd| odd.cuts_last_call(&reply));
        let usage = reply.usage;
        let mut message = reply.into_message(model);
        // Records, approvals and results of a turn are found by the ids of its calls.
        let earlier = self.messages.iter().skip(self.base).flat_map(|message| &message.get().tool_calls);
        let earlier = earlier.map(|part| part.id.as_str()).collect();
        if fact::repair_ids(&mut message.tool_calls, earlier, self.iteration) {
            // What the provider keeps of its answer speaks of the ids as they were.
            message.private = ProviderData::default();
        }
        let read_only = message.tool_calls.iter().map(|part| read_only(&part.function.name)).collect();
        let terminal = self.phase == Phase::Calling { terminal: true };
        let (iteration, message) = (self.iteration, message.into());
        Fact::Replied { iteration, message, read_only, terminal, owners: BTreeMap::new(), cut, usage }
    }

    /// The model answered, and the answer passed its checkpoint. `read_only` tells which tools change nothing.
    pub fn replied(&mut self, reply: LlmReply, model: &str, read_only: impl Fn(&str) -> bool) {
        if matches!(self.phase, Phase::Calling { .. }) {
            self.apply(self.reply_fact(reply, model, read_only));
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

    /// The call at `call` runs from now on.
    pub fn started(&mut self, call: usize) {
        if let Some(Slot { state: Call::Cleared { read_only }, .. }) = self.batch.get(call) {
            let read_only = *read_only;
            self.take_use(call, read_only);
        }
    }

    /// Takes in `answer`, in which the call at `call` ended, run or not.
    pub fn answered(&mut self, call: usize, answer: ModelAnswer) {
        self.apply(Fact::Answered { place: call, answer });
    }

    /// The turn must end. Calls in flight are finished first; the others get the end's text as their tool message.
    /// The first end stands, but for one that rolls back; once [`TurnStep::End`] was given, that one does.
    pub fn end(&mut self, end: TurnEnd) {
        if self.phase == Phase::Told {
            return;
        }
        if self.ending.as_ref().is_none_or(|earlier| end.roll_back && !earlier.roll_back) {
            self.ending = Some(end);
        }
        self.phase = match self.phase {
            Phase::Batch(_) => return,
            Phase::Round | Phase::Planning | Phase::Calling { .. } | Phase::Over | Phase::Told => Phase::Over,
        };
    }

    /// Whether the turn has decided to end.
    pub fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// Whether somebody wants the turn to come to an end.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// The conversation that the turn leaves behind.
    pub fn into_messages(mut self) -> Vec<Rendered<Message>> {
        self.take_messages()
    }

    /// Takes the conversation that the turn leaves behind out of it.
    pub fn take_messages(&mut self) -> Vec<Rendered<Message>> {
        if self.ending.as_ref().is_some_and(|end| end.roll_back) {
            if let Some(before) = self.before.take() {
                return before;
            }
            self.messages.truncate(self.base);
        } else {
            self.lay_texts_down();
        }
        std::mem::take(&mut self.messages)
    }
}

#[cfg(test)]
mod tests;
