//! A turn without effects: the same pure [`Turn`] that a runner works, told what a script answers or what a journal says.
//! Nobody is asked, no tool runs, and nothing is kept. Hooks of other families are not asked either: what stands in a
//! list here is what `before_llm` hooks would get.

use pintle_domain::json::Rendered;
use pintle_domain::ledger::{LedgerEvent, MessageSource, MsgId, Provenance};
use pintle_domain::llm::{LlmReply, LlmRequest, ToolDef};
use pintle_domain::message::{CallPart, Lifetime, Message, ProviderData, Role};
use pintle_domain::planning::need;
use pintle_domain::skill::{Skills, Timing};
use pintle_domain::turn::{Fact, ModelAnswer, ToolUse, Turn, TurnEnd, TurnFlow, TurnSetup, TurnStep};
use pintle_providers::ProviderError;
use pintle_providers::retry::RetryPolicy;

use super::shape::{self, ModelRequest};
use crate::settings::AgentSettings;
use crate::tools;

mod recorded;

pub use recorded::RecordedTurn;

/// An agent, as far as what its models are asked depends on it.
#[derive(Debug)]
pub struct Rehearsal<'a> {
    settings: &'a AgentSettings,
    offered: Vec<Rendered<ToolDef>>,
    skills: Skills,
}

/// What a model is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPurpose {
    /// A plan.
    Plan,
    /// The next step.
    Step,
    /// The last words of a turn that was interrupted, or whose rounds are spent.
    LastWords,
}

impl CallPurpose {
    /// Its word in listings.
    pub fn word(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Step => "step",
            Self::LastWords => "last_words",
        }
    }

    fn asking(self) -> ModelRequest {
        match self {
            Self::Plan => ModelRequest::Plan,
            Self::Step => ModelRequest::Step,
            Self::LastWords => ModelRequest::LastWords,
        }
    }
}

/// One call of a model.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// The round, from 1; 0 for the one that asks for a plan.
    pub round: u32,
    /// What for.
    pub aim: CallPurpose,
    /// What is asked, before hooks see it.
    pub request: LlmRequest,
    /// What happened to texts since the call before.
    pub events: Vec<LedgerEvent>,
    /// What happened beside that, for a person, a line each: attempts that failed, messages that gave way.
    pub notes: Vec<String>,
}

impl ModelCall {
    /// Whether its list holds exactly this message.
    fn holds(&self, message: &Rendered<Message>) -> bool {
        let id = message.get().id();
        // The system text is rendered anew for each call, and is the same in all of them.
        let system = |message: &Message| {
            let from = message.provenance();
            from.origin == MessageSource::Builtin && from.prompt.is_none()
        };
        self.request.messages.iter().any(|other| match id {
            Some(_) => other.get().id() == id,
            None => other.is(message) || (system(message.get()) && other == message),
        })
    }

    /// The last message that the next call of the turn begins with, if its list begins with any of this one.
    pub fn cache_boundary(&self) -> Option<usize> {
        Lifetime::shared(self.request.messages.iter().map(|message| message.get().private.lifetime)).checked_sub(1)
    }
}

/// A turn that was gone through.
#[derive(Clone, Debug)]
pub struct RehearsedTurn {
    /// The calls of a model, in order.
    pub calls: Vec<ModelCall>,
    /// What happened to texts behind the last one.
    pub after: Vec<LedgerEvent>,
    /// The texts in force.
    pub skills: Skills,
    /// Whether anything may stand in a list that nobody said: else each request leaves as it stands.
    pub texts: bool,
    /// How it goes: whether it is planned.
    pub planned: bool,
    /// Which tools there are for it.
    pub tools: ToolUse,
    /// How it ended, if it did.
    pub end: Option<TurnEnd>,
    /// How many calls a journal tells of whose list cannot be made again.
    pub unknown: usize,
}

/// What becomes of a text in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFate {
    /// It leaves right after the call that it was made for.
    LeavesAfterCall,
    /// It leaves before the call of this round.
    LeavesBefore(u32),
    /// It leaves once no further call follows.
    LeavesAfterLoop,
    /// It stands there to the end of the turn.
    Stays,
    /// It is persistent.
    Persists,
}

impl RehearsedTurn {
    fn new(equipment: Option<&TurnSetup>, plain: ToolUse) -> Self {
        Self {
            calls: Vec::new(),
            after: Vec::new(),
            skills: equipment.map_or_else(Skills::none, |with| with.skills.clone()),
            texts: equipment.is_some_and(|with| !with.skills.is_empty() || with.flow != TurnFlow::Direct),
            planned: equipment.is_some_and(|with| matches!(with.flow, TurnFlow::Planned(_))),
            tools: equipment.map_or(plain, |with| with.tools),
            end: None,
            unknown: 0,
        }
    }

    /// The round of the first call that saw `message` of the call number `at`, and whether that is this one.
    pub fn since(&self, at: usize, message: &Rendered<Message>) -> (u32, bool) {
        let first = self.calls[..at].iter().find(|earlier| earlier.holds(message));
        (first.map_or(self.calls[at].round, |first| first.round), first.is_none())
    }

    /// What becomes of the text `id`.
    pub fn fate(&self, id: MsgId) -> TextFate {
        let batches = self.calls.iter().map(|call| (Some(call.round), &call.events));
        let mut events = batches
            .chain([(None, &self.after)])
            .flat_map(|(round, events)| events.iter().map(move |event| (round, event)));
        events.find_map(|(round, event)| self.fate_in(event, round, id)).unwrap_or(TextFate::Stays)
    }

    /// What `event`, before the call of `round` or behind the last one, says of what becomes of the text `id`.
    fn fate_in(&self, event: &LedgerEvent, round: Option<u32>, id: MsgId) -> Option<TextFate> {
        let is_it = |message: &Provenance| message.msg_id == Some(id);
        match event {
            LedgerEvent::Injected { lines, .. } => {
                let line = lines.iter().find(|line| line.went.as_ref().is_ok_and(|message| is_it(message)))?;
                self.skills.hooks[line.hook].persistent.then_some(TextFate::Persists)
            }
            LedgerEvent::Removed { timing, lines } if lines.iter().any(|line| is_it(&line.message)) => {
                Some(match (timing, round) {
                    (Timing::BeforePlanning, _) => TextFate::LeavesAfterCall,
                    (_, Some(round)) => TextFate::LeavesBefore(round),
                    (_, None) => TextFate::LeavesAfterLoop,
                })
            }
            LedgerEvent::PromptRemoved(removal) if is_it(&removal.message) => Some(TextFate::LeavesAfterCall),
            LedgerEvent::Removed { .. } | LedgerEvent::PromptRemoved(_) | LedgerEvent::PromptInjected { .. } => None,
        }
    }
}

impl<'a> Rehearsal<'a> {
    /// An agent that is offered these tools and has these texts.
    pub fn new(settings: &'a AgentSettings, offered: Vec<ToolDef>, skills: Skills) -> Self {
        Self { settings, offered: offered.into_iter().map(Rendered::new).collect(), skills }
    }

    /// A new conversation that begins with `prompt`, in which a model says what `reply` says. A result stands for each
    /// tool that would run.
    pub fn play(
        &self,
        prompt: &str,
        mut reply: impl FnMut(&LlmRequest) -> Result<LlmReply, ProviderError>,
    ) -> RehearsedTurn {
        let prompt = Message::text(Role::User, prompt);
        let mut turn = Turn::new(Vec::new(), prompt, self.settings.max_iterations);
        let with = shape::equipment(self.settings, &self.offered, self.skills.clone(), true);
        let plain = if self.offered.is_empty() { ToolUse::None } else { ToolUse::Own };
        let mut seen = RehearsedTurn::new(with.as_ref(), plain);
        if let Some(with) = with {
            turn.apply(Fact::Equipped { with: Box::new(with) });
        }
        loop {
            let step = turn.next();
            match (aim(&step), step) {
                (Some(aim), _) => {
                    self.see(&mut turn, aim, &mut seen);
                    match seen.calls.last_mut().map(|call| answer(call, &mut reply)) {
                        Some(Ok(reply)) => turn.apply(self.told(&turn, aim, reply)),
                        Some(Err(text)) => turn.end(TurnEnd::failed("llm", text)),
                        None => turn.end(TurnEnd::cancelled()),
                    }
                }
                (None, TurnStep::Clear { call, part }) => turn.answered(call, self.result(&part)),
                (None, TurnStep::End(end)) => {
                    seen.after = turn.take_events();
                    seen.end = Some(end);
                    return seen;
                }
                // Nobody steers a rehearsal, and no tool of it runs.
                (None, TurnStep::Skip { call, .. } | TurnStep::Start { call } | TurnStep::Await { call }) => {
                    turn.answered(call, ModelAnswer::not_run(pintle_domain::turn::CANCELLED));
                }
                (None, TurnStep::Inject { waiting }) => turn.apply(Fact::Injected { count: waiting.len() }),
                (None, TurnStep::Plan | TurnStep::CallModel { .. }) => turn.end(TurnEnd::cancelled()),
            }
        }
    }

    /// Notes the call that `turn` is at.
    fn see(&self, turn: &mut Turn, aim: CallPurpose, seen: &mut RehearsedTurn) {
        let request = shape::request(self.settings, &self.offered, turn, aim.asking());
        let round = if aim == CallPurpose::Plan { 0 } else { turn.iteration() };
        seen.calls.push(ModelCall { round, aim, request, events: turn.take_events(), notes: Vec::new() });
    }

    fn told(&self, turn: &Turn, aim: CallPurpose, reply: LlmReply) -> Fact {
        // What the script adds for those who read replies is none of a provider's blocks.
        let reply = LlmReply { private: ProviderData::default(), ..reply };
        let model = &self.settings.model;
        match aim {
            CallPurpose::Plan => shape::plan(self.settings, &reply, model, shape::goes_on(self.settings, need(&reply))),
            CallPurpose::Step | CallPurpose::LastWords => turn.reply_fact(reply, model, |_| false),
        }
    }

    /// What stands for the result of a call that would be run.
    fn result(&self, part: &CallPart) -> ModelAnswer {
        let raw = part.function.name.as_str();
        let names = || self.offered.iter().map(|tool| tool.get().function.name.as_str());
        let known = tools::canonical_among(raw, names);
        let text = match (part.arguments(), known) {
            (Err(why), _) => format!("the tool did not run: {why}"),
            (Ok(_), Some(name)) => format!("[the result of {name} stands here]"),
            (Ok(_), None) => format!("tool \"{}\" not found", absent(raw)),
        };
        ModelAnswer::not_run(text).about(known.unwrap_or_else(|| absent(raw)))
    }
}

/// The name under which a call is known that no tool is there for.
fn absent(raw: &str) -> &str {
    tools::canonical_builtin(raw).unwrap_or(raw)
}

fn aim(step: &TurnStep) -> Option<CallPurpose> {
    match step {
        TurnStep::Plan => Some(CallPurpose::Plan),
        TurnStep::CallModel { terminal: false, .. } => Some(CallPurpose::Step),
        TurnStep::CallModel { terminal: true, .. } => Some(CallPurpose::LastWords),
        TurnStep::Inject { .. }
        | TurnStep::Skip { .. }
        | TurnStep::Clear { .. }
        | TurnStep::Start { .. }
        | TurnStep::Await { .. }
        | TurnStep::End(_) => None,
    }
}

/// The answer to `call`, asked for again where a turn would ask again; nobody waits here.
fn answer(
    call: &mut ModelCall,
    reply: &mut impl FnMut(&LlmRequest) -> Result<LlmReply, ProviderError>,
) -> Result<LlmReply, String> {
    let policy = RetryPolicy::default();
    let mut attempt = 0;
    loop {
        let error = match reply(&call.request) {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        attempt += 1;
        if policy.wait(attempt, &error, 0.0).is_none() {
            return Err(error.to_string());
        }
        call.notes.push(format!("attempt {attempt} failed: {error}; the same list is sent again"));
    }
}
