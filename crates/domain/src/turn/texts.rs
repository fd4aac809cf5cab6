//! The texts of hooks and of the host in a turn: what goes in and out between two calls of a model.

use serde::{Deserialize, Serialize};

use super::{Call, MessageSender, Phase, Turn, TurnEnd, WaitingMessage};
use crate::json::Rendered;
use crate::kept_message::KeptMessage;
use crate::ledger::{
    CalledTool, HookChunk, HostPrompt, InjectionPoint, Ledger, LedgerEvent, MessageList, MessageSource, MsgId,
    Provenance,
};
use crate::message::{CallPart, Message};
use crate::planning::StepPrompts;
use crate::skill::{Skills, Timing};

/// The setup that a turn has beside its conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSetup {
    /// The texts of skills in force for it.
    pub skills: Skills,
    /// The flow of the turn.
    pub flow: TurnFlow,
    /// Which tools there are for it.
    pub tools: ToolUse,
}

/// The flow of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnFlow {
    /// Straight into the loop.
    Direct,
    /// With a planning call first, where there are tools, and with a prompt of the host's own at each step.
    Planned(StepPrompts),
}

/// Which tools there are for a turn. Settled once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolUse {
    /// The agent has tools of its own.
    Own,
    /// It has none; what else is offered to it does not count.
    None,
    /// None is offered in any call of the turn.
    Off,
}

/// The texts of a turn that are nobody's message.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    ledger: Ledger,
    flow: TurnFlow,
    tools: ToolUse,
    way: Way,
    /// Whether everything that belongs to the coming call stands in the list.
    open: bool,
    /// Whether no round of the loop has begun.
    first: bool,
    /// The host's own prompt that ends the list.
    prompt: Option<MsgId>,
    /// Persistent texts that nobody was told of yet.
    chunks: Vec<HookChunk>,
}

/// The kind of the coming call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Planning,
    /// The only one, unless it asks for a tool.
    Single,
    Loop,
}

impl Texts {
    /// The texts of a turn whose list is `list` when it begins.
    fn new(list: &mut MessageList, equipment: TurnSetup) -> Self {
        let TurnSetup { skills, flow, tools } = equipment;
        let way = match (tools, &flow) {
            (ToolUse::Own, TurnFlow::Planned(_)) => Way::Planning,
            (ToolUse::Own, TurnFlow::Direct) => Way::Loop,
            (ToolUse::None | ToolUse::Off, _) => Way::Single,
        };
        let ledger = Ledger::new(skills);
        let mut texts = Self { ledger, flow, tools, way, open: false, first: true, prompt: None, chunks: Vec::new() };
        let first_call = u32::from(way != Way::Planning);
        texts.inject(list, InjectionPoint { timing: Timing::AfterUserInput, round: 0, first_call, call: None });
        texts
    }

    fn inject(&mut self, list: &mut MessageList, at: InjectionPoint<'_>) {
        self.chunks.extend(self.ledger.inject(list, at));
    }

    fn inject_prompt(&mut self, list: &mut MessageList, which: HostPrompt, round: u32) {
        let TurnFlow::Planned(prompts) = &self.flow else { return };
        let text = match which {
            HostPrompt::PlanningPrompt => &prompts.planning,
            HostPrompt::FirstStepPrompt => &prompts.first_step,
            HostPrompt::AgentLoopPrompt => &prompts.agent_loop,
        };
        self.prompt = self.ledger.inject_prompt(list, (which, text), round);
    }

    fn remove_prompt(&mut self, list: &mut MessageList) {
        self.ledger.remove_prompt(list, self.prompt.take());
    }

    fn open_planning(&mut self, list: &mut MessageList) {
        if std::mem::replace(&mut self.open, true) {
            return;
        }
        self.inject(list, InjectionPoint { timing: Timing::BeforePlanning, round: 0, first_call: 0, call: None });
        self.inject_prompt(list, HostPrompt::PlanningPrompt, 0);
        self.ledger.called(0);
    }

    fn close_planning(&mut self, list: &mut MessageList) {
        if std::mem::take(&mut self.open) {
            self.remove_prompt(list);
            self.ledger.remove(list, Timing::BeforePlanning);
        }
        self.way = Way::Loop;
    }

    fn open_round(&mut self, list: &mut MessageList, round: u32) {
        if self.way == Way::Planning {
            self.close_planning(list);
        }
        if std::mem::replace(&mut self.open, true) {
            return;
        }
        if self.way == Way::Loop {
            let at = |timing| InjectionPoint { timing, round, first_call: round, call: None };
            self.ledger.remove(list, Timing::BeforeEachAgent);
            self.inject(list, at(Timing::BeforeEachAgent));
            let which = if std::mem::take(&mut self.first) {
                self.inject(list, at(Timing::BeforeFirstAgent));
                HostPrompt::FirstStepPrompt
            } else {
                HostPrompt::AgentLoopPrompt
            };
            self.inject_prompt(list, which, round);
        }
        self.ledger.called(round);
    }

    /// The call of this round has its answer, and what it asked for is done.
    fn close_round(&mut self, list: &mut MessageList) {
        self.remove_prompt(list);
        self.open = false;
        if self.way == Way::Single {
            self.way = Way::Loop;
        }
    }

    /// No further call follows.
    fn close_loop(&mut self, list: &mut MessageList) {
        self.remove_prompt(list);
        if self.way == Way::Loop {
            self.ledger.remove(list, Timing::BeforeFirstAgent);
            self.ledger.remove(list, Timing::AfterToolCall);
        }
    }
}

impl Turn {
    /// Gives the turn what it has beside its conversation. Only before its first step.
    pub(super) fn equip(&mut self, equipment: TurnSetup) {
        if self.texts.is_none() && self.phase == Phase::Round && self.iteration == 0 {
            self.texts = Some(Box::new(Texts::new(&mut self.messages, equipment)));
        }
    }

    /// Which tools there are for the turn; nothing where it was not settled.
    pub fn tool_use(&self) -> Option<ToolUse> {
        self.texts.as_ref().map(|texts| texts.tools)
    }

    /// The texts of skills in force for it, if there are any.
    pub fn skills(&self) -> Option<&Skills> {
        self.texts.as_ref().map(|texts| texts.ledger.skills())
    }

    /// Whether texts that are nobody's message may stand in the requests of the turn.
    pub fn may_have_texts(&self) -> bool {
        self.texts.as_ref().is_some_and(|it| !it.ledger.skills().is_empty() || it.flow != TurnFlow::Direct)
    }

    /// The events of texts since this was asked last, oldest first.
    pub fn take_events(&mut self) -> Vec<LedgerEvent> {
        self.texts.as_mut().map(|texts| texts.ledger.take_events()).unwrap_or_default()
    }

    /// Persistent texts that nobody was told of yet, oldest first; reported with [`Fact::Announced`](super::Fact).
    pub fn to_announce(&self) -> &[HookChunk] {
        self.texts.as_ref().map_or(&[], |texts| &texts.chunks)
    }

    /// Whether `message` stands in the conversation for a while only: it is nothing that was said.
    pub fn is_passing_text(&self, message: &Message) -> bool {
        self.texts.as_ref().is_some_and(|texts| texts.ledger.holds(message))
    }

    /// Whether the next call is one that asks for a plan. Whoever wants the turn to end needs none.
    pub(super) fn plans(&self) -> bool {
        !self.interrupted && self.texts.as_ref().is_some_and(|texts| texts.way == Way::Planning)
    }

    pub(super) fn open_planning(&mut self) {
        if let Some(texts) = &mut self.texts {
            texts.open_planning(&mut self.messages);
        }
    }

    pub(super) fn open_round(&mut self, round: u32) {
        if let Some(texts) = &mut self.texts {
            texts.open_round(&mut self.messages, round);
        }
    }

    /// Puts in what belongs to the coming call, for something that happened after that.
    pub(super) fn open_call(&mut self) {
        if self.phase == Phase::Round {
            if self.plans() { self.open_planning() } else { self.open_round(self.iteration + 1) }
        }
    }

    pub(super) fn close_loop(&mut self) {
        if let Some(texts) = &mut self.texts {
            texts.close_loop(&mut self.messages);
        }
    }

    /// The texts that the answered calls of a batch bring: those of the batch before leave.
    pub(super) fn texts_after_batch(&mut self, answered: &[(CallPart, Option<String>)]) {
        let Some(texts) = &mut self.texts else { return };
        let list = &mut self.messages;
        texts.ledger.remove(list, Timing::AfterToolCall);
        for (part, tool) in answered {
            // A call that was passed over is about nothing.
            let Some(tool) = tool else { continue };
            let names = [tool.as_str(), part.function.name.as_str()];
            let call = Some(CalledTool { id: &part.id, names: &names });
            let (round, first_call) = (self.iteration, self.iteration + 1);
            texts.inject(list, InjectionPoint { timing: Timing::AfterToolCall, round, first_call, call });
        }
        texts.close_round(list);
    }

    /// The reply to the planning call, as far as it is to stand in the conversation: the plan, or the answer.
    pub(super) fn take_plan(&mut self, message: KeptMessage, need_tool: bool) {
        if !matches!(self.phase, Phase::Planning | Phase::Round) || !self.plans_still() {
            return;
        }
        self.close_planning();
        let message = Message::from(message);
        let text = message.content.clone();
        if !text.is_empty() {
            self.messages.push(message.into());
        }
        self.phase = Phase::Round;
        if !need_tool {
            self.phase = Phase::Over;
            self.end(TurnEnd::completed(text));
        }
    }

    /// The planning call is over, if there is one.
    pub(super) fn close_planning(&mut self) {
        if self.plans_still() {
            self.open_planning();
            if let Some(texts) = &mut self.texts {
                texts.close_planning(&mut self.messages);
            }
        }
    }

    fn plans_still(&self) -> bool {
        self.texts.as_ref().is_some_and(|texts| texts.way == Way::Planning)
    }

    /// Everything up to `upto` was announced; a turn that is made again goes on until it stands in the list.
    pub(super) fn take_announced(&mut self, upto: MsgId) {
        while self.texts.as_ref().is_some_and(|texts| texts.ledger.last() < upto) {
            let open = |slot: &super::Slot| !matches!(slot.state, Call::Answered(_));
            match self.phase {
                Phase::Batch(_) if !self.batch.iter().any(open) => self.close_batch(),
                Phase::Round if self.texts.as_ref().is_some_and(|texts| !texts.open) => self.open_call(),
                Phase::Batch(_) | Phase::Round | Phase::Planning | Phase::Calling { .. } => break,
                Phase::Over | Phase::Told => break,
            }
        }
        if let Some(texts) = &mut self.texts {
            texts.chunks.retain(|chunk| chunk.id > upto);
        }
    }

    /// Messages that waited enter the conversation. A prompt of the host's own stays behind them.
    pub(super) fn take_in(&mut self, taken: Vec<WaitingMessage>) {
        let prompt = self.texts.as_ref().and_then(|texts| texts.prompt);
        let last = self.messages.pop_if(|message| prompt.is_some() && message.get().id() == prompt);
        for waiting in taken {
            let source = match waiting.from {
                MessageSender::Person => MessageSource::Steering,
                MessageSender::Subturn { .. } => MessageSource::Subagent,
            };
            let from = std::sync::Arc::new(Provenance::new(source, self.iteration + 1));
            for mut message in waiting.into_messages() {
                if message.origin.is_empty() {
                    message.private.from = Some(from.clone());
                }
                self.messages.push(Rendered::new(message));
            }
        }
        self.messages.extend(last);
    }

    /// Takes everything out that is not to stay, once the turn is over; what hooks said is history then.
    pub(super) fn lay_texts_down(&mut self) {
        let Some(texts) = &mut self.texts else { return };
        texts.ledger.finalize(&mut self.messages);
        for message in self.messages.iter_mut().filter(|message| message.get().id().is_some()) {
            let mut kept = message.get().clone();
            if let Some(from) = &kept.private.from {
                let from = Provenance { origin: MessageSource::HookHistory, msg_id: None, ..(**from).clone() };
                kept.private.from = Some(std::sync::Arc::new(from));
            }
            *message = Rendered::new(kept);
        }
    }
}
