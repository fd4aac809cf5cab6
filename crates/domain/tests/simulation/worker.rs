//! One process that works one session: the driver of the agent in small. Its sub-agents are workers of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pintle_domain::approval::ApprovalMode;
use pintle_domain::checkpoint::runtime::{ToolExecution, TurnStatus};
use pintle_domain::checkpoint::{AfterLlm, AfterTool, AgentInfo, BeforeLlm, SubagentStart, UserPromptSubmit};
use pintle_domain::clearing::{ApprovalQuestion, ClearingOutcome};
use pintle_domain::id::{CallId, SessionId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::Object;
use pintle_domain::llm::{LlmReply, LlmRequest, ToolDef};
use pintle_domain::message::{CallPart, Message, Role};
use pintle_domain::roster::Roster;
use pintle_domain::ruling::Ruling;
use pintle_domain::session::{JournalEntry, ReleaseReason, Session};
use pintle_domain::tool::{Digest, ToolCall, ToolOutput};
use pintle_domain::turn::{
    Fact, KeptMessage, MessageSender, ModelAnswer, OUTCOME_UNKNOWN, Turn, TurnEnd, TurnStep, WaitingMessage,
};

use super::disk::Disk;
use super::evidence::{Cleared, chain};
use super::laws::messages_pair;
use super::person::ask_person;
use super::world::{Agent, Dice, parts};

/// Deepest sub-agent; whoever stands there delegates no further.
const MAX_DEPTH: u8 = 3;

/// Everything around the workers of one day.
pub(crate) struct World {
    pub(crate) dice: fastrand::Rng,
    pub(crate) roster: Arc<Roster>,
    /// Whoever acts for this agent may not `write`.
    pub(crate) ruled: Option<&'static str>,
    pub(crate) disk: Disk,
    /// Milliseconds since the day began; nothing but the simulation moves it.
    pub(crate) now: u64,
    /// How many turns there were: names of turns and of messages.
    pub(crate) turns: u32,
    /// Whether messages may be gone: a roll-back or a compaction took some.
    pub(crate) lossy: bool,
    /// Whether a person is there while the day goes on.
    pub(crate) present: bool,
    /// What hooks will say to the call that is parked: most say the same when they are asked again.
    pub(crate) parked: Option<fastrand::Rng>,
    pub(crate) trace: Option<Vec<String>>,
}

impl World {
    pub(crate) fn timestamp(&self) -> Timestamp {
        let millis = i64::try_from(self.now).expect("a day is short");
        Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_millis(millis)).expect("a day is short")
    }

    pub(crate) fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(what());
        }
    }
}

/// A call that runs.
enum Running {
    Tool { call: ToolCall, done_at: u64 },
    Child { call: ToolCall, child: Box<Worker> },
}

impl Running {
    fn call(&self) -> &ToolCall {
        match self {
            Self::Tool { call, .. } | Self::Child { call, .. } => call,
        }
    }
}

/// What came of one step.
#[derive(PartialEq)]
pub(crate) enum Went {
    On,
    /// A call waits for a person who is not there.
    Parked,
    Over(TurnEnd),
}

/// One process and the session that it works.
pub(crate) struct Worker {
    who: Identity,
    mode: ApprovalMode,
    session: Session,
    agent: Agent,
    /// The places of the batch that were cleared, whatever came of it.
    cleared: BTreeSet<usize>,
    /// What a clearing let pass and nobody started yet.
    permits: BTreeMap<usize, ToolCall>,
    running: BTreeMap<usize, Running>,
}

impl Worker {
    /// Opens the session of `who`; whatever its last process left behind is settled first.
    pub(crate) fn open(world: &mut World, who: Identity, mode: ApprovalMode) -> Self {
        let name = who.session_id.as_str();
        if world.disk.fold(name).is_held() {
            world.disk.append(name, JournalEntry::Closed { cause: ReleaseReason::Killed });
        }
        world.disk.append(name, JournalEntry::Opened { by: "pid 1".into(), under: None });
        let acting_for = [vec![who.agent_id.clone()], who.ancestors.clone()].concat();
        let agent = Agent { owners: BTreeMap::new(), acting_for };
        let session = world.disk.fold(name);
        let (cleared, permits, running) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        let mut worker = Self { who, mode, session, agent, cleared, permits, running };
        if let Some(open) = worker.session.open() {
            worker.who.turn_id = open.turn_id.clone();
            worker.agent.owners = open.turn.owners().clone();
            for place in worker.turn().running() {
                let execution = ToolExecution { name: "?".into(), success: false, error_summary: None };
                let answer = ModelAnswer { execution: Some(execution), ..ModelAnswer::not_run(OUTCOME_UNKNOWN) };
                world.note(|| answer.text.clone());
                worker.tell(world, Fact::Answered { place, answer });
            }
        }
        worker
    }

    pub(crate) fn close(self, world: &mut World, cause: ReleaseReason) {
        world.disk.append(self.who.session_id.as_str(), JournalEntry::Closed { cause });
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    fn turn(&mut self) -> &mut Turn {
        &mut self.session.open_mut().expect("a turn is under way").turn
    }

    /// Writes the fact down, and then lets it happen.
    pub(crate) fn tell(&mut self, world: &mut World, fact: Fact) {
        world.lossy |= matches!(fact, Fact::Compacted { .. } | Fact::Ended { roll_back: true, .. });
        let entry = JournalEntry::Turn(fact);
        world.disk.append(self.who.session_id.as_str(), entry.clone());
        self.session.apply(entry);
    }

    /// A message, if the gates let it pass.
    fn gated(&self, world: &mut World, text: &str) -> Option<String> {
        let prompt = UserPromptSubmit::first(text);
        let (_, ruling) = chain(&world.roster, &self.agent, prompt, &mut world.dice, || false);
        match ruling {
            // What a gate makes of it is left out here: texts have to stay unique.
            Ruling::Proceed => Some(text.to_owned()),
            Ruling::Deny(_) => None,
            Ruling::Ask { why: never, .. } | Ruling::Respond { with: never, .. } => match never {},
            Ruling::Abort(aborted) => panic!("a gate cannot abort: {aborted:?}"),
        }
    }

    /// Begins a turn with all that waits and `text`. Says whether it came to a turn.
    pub(crate) fn begin(&mut self, world: &mut World, text: &str) -> bool {
        let Some(text) = self.gated(world, text) else { return false };
        world.turns += 1;
        self.who.turn_id = TurnId::new(format!("t{}", world.turns));
        let mut prompts: Vec<KeptMessage> = self.session.queue().iter().map(|it| it.message.clone()).collect();
        prompts.push(Message::text(Role::User, text).into());
        let max_iterations = if self.who.depth == 0 { world.dice.below(4) + 1 } else { world.dice.below(2) + 1 };
        self.tell(world, Fact::Begun { turn_id: self.who.turn_id.clone(), prompts, max_iterations, key: None });
        self.cleared.clear();
        true
    }

    /// Somebody says something, whenever it is. Says whether it passed the gates.
    pub(crate) fn steer(&mut self, world: &mut World, text: &str) -> bool {
        let Some(text) = self.gated(world, text) else { return false };
        let message = Message::text(Role::User, text).into();
        self.tell(world, Fact::Queued(WaitingMessage { message, from: MessageSender::Person, notes: Vec::new() }));
        true
    }

    /// The turn ends, and so do those of its sub-agents.
    pub(crate) fn end(&mut self, end: TurnEnd) {
        for running in self.running.values_mut() {
            if let Running::Child { child, .. } = running {
                child.end(if end.roll_back { TurnEnd::hard_aborted() } else { TurnEnd::cancelled() });
            }
        }
        if let Some(open) = self.session.open_mut() {
            open.turn.end(end);
        }
    }

    pub(crate) fn step(&mut self, world: &mut World) -> Went {
        world.now += u64::from(world.dice.below(50));
        let step = self.turn().next();
        let (now, depth) = (world.now, self.who.depth);
        world.note(|| format!("{now} {depth} {step:?}"));
        messages_pair(self.turn(), !matches!(step, TurnStep::End(_)));
        match step {
            TurnStep::Inject { waiting } => self.tell(world, Fact::Injected { count: waiting.len() }),
            TurnStep::Plan => unreachable!("no turn of the day plans"),
            TurnStep::CallModel { iteration, terminal } => self.call_model(world, iteration, terminal),
            TurnStep::Skip { call, why, .. } => self.answer(world, call, ModelAnswer::not_run(why.text())),
            TurnStep::Clear { call, part } => return self.clear(world, call, &part),
            TurnStep::Start { call } => self.start(world, call),
            TurnStep::Await { call } => self.wait(world, call),
            TurnStep::End(end) => return self.over(world, end),
        }
        Went::On
    }

    fn over(&mut self, world: &mut World, end: TurnEnd) -> Went {
        assert!(self.running.is_empty(), "the turn ended under a running tool");
        let used = world.disk.used(self.who.session_id.as_str());
        assert_eq!(self.turn().executions().len(), used, "an effect that nobody is told of");
        assert_eq!(self.turn().next(), TurnStep::End(end.clone()), "two ends of one turn");
        let (status, roll_back, error, reply) = (end.status, end.roll_back, end.error.clone(), end.reply.clone());
        self.tell(world, Fact::Ended { status, roll_back, error, reply });
        let folded = world.disk.fold(self.who.session_id.as_str());
        assert_eq!(folded.messages(), self.session.messages(), "the journal tells of another conversation");
        assert_eq!(folded.queue(), self.session.queue(), "the journal tells of other waiting messages");
        Went::Over(end)
    }

    fn answer(&mut self, world: &mut World, place: usize, answer: ModelAnswer) {
        self.tell(world, Fact::Answered { place, answer });
    }

    fn call_model(&mut self, world: &mut World, iteration: u32, terminal: bool) {
        self.cleared.clear();
        self.permits.clear();
        if world.dice.once_in(25) {
            let summary = Some(Message::text(Role::System, "what was before").into());
            let upto = world.dice.below(6) as usize;
            self.tell(world, Fact::Compacted { upto, summary });
        }
        let offered = if terminal { &[][..] } else { &["exec", "read_a"][..] };
        let tools = offered.iter().map(|name| ToolDef::new(name, "", pintle_domain::json::json!({})).into()).collect();
        let (messages, options) = (self.turn().messages().to_vec(), Object::new());
        let request = LlmRequest { model: "m".into(), messages, tools, options, graceful_terminal: terminal };
        let cancel = world.dice.once_in(40);
        let subject = BeforeLlm::new(request);
        let (asked, ruling) = chain(&world.roster, &self.agent, subject, &mut world.dice, || cancel);
        match ruling {
            Ruling::Proceed => {}
            Ruling::Abort(aborted) => return self.end(TurnEnd::stopped(aborted)),
            Ruling::Deny(denied) => panic!("before_llm cannot deny: {denied:?}"),
            Ruling::Ask { why: never, .. } | Ruling::Respond { with: never, .. } => match never {},
        }
        let offers = |name: &String| asked.request.tools.iter().any(|tool| tool.get().function.name == *name);
        assert!(asked.owners.keys().all(offers), "somebody owns what nobody was offered");
        if asked.request.messages.is_empty() {
            return self.end(TurnEnd::failed("llm", "no messages are left to send"));
        }
        if cancel {
            return self.end(TurnEnd::cancelled());
        }
        self.agent.owners = asked.owners;
        self.read_reply(world, iteration, terminal);
    }

    fn read_reply(&mut self, world: &mut World, iteration: u32, terminal: bool) {
        let response = match world.dice.below(if terminal { 12 } else { 6 }) {
            1 => return self.end(TurnEnd::failed("llm", "the provider refused")),
            2..=5 => LlmReply { content: "let me see".into(), ..LlmReply::calls(self.asked_for(world)) },
            _ => LlmReply::text(format!("reply {iteration}")),
        };
        let subject = AfterLlm { model: "m".into(), response };
        let (answered, ruling) = chain(&world.roster, &self.agent, subject, &mut world.dice, || false);
        match ruling {
            Ruling::Proceed => {
                let fact = self.turn().reply_fact(answered.response, &answered.model, read_only);
                let Fact::Replied { iteration, message, read_only, terminal, .. } = fact else {
                    panic!("a reply is a reply")
                };
                let owners = self.agent.owners.clone();
                self.tell(
                    world,
                    Fact::Replied { iteration, message, read_only, terminal, owners, cut: false, usage: None },
                );
            }
            Ruling::Abort(aborted) => self.end(TurnEnd::stopped(aborted)),
            Ruling::Deny(denied) => panic!("after_llm cannot deny: {denied:?}"),
            Ruling::Ask { why: never, .. } | Ruling::Respond { with: never, .. } => match never {},
        }
    }

    /// What the model asks for: sometimes for two sub-agents side by side.
    fn asked_for(&self, world: &mut World) -> Vec<CallPart> {
        let rare = if self.who.depth == 0 { 4 } else { 3 };
        if !world.dice.once_in(rare) {
            return parts(&mut world.dice);
        }
        let helper = |id: &str, name: &str| CallPart::new(id, "delegate", &format!(r#"{{"agent":"{name}"}}"#));
        match world.dice.below(3) {
            0 => vec![helper("d0", "a")],
            1 => vec![helper("d0", "b"), CallPart::new("d1", "write", "{}")],
            _ => vec![helper("d0", "a"), helper("d1", "b"), CallPart::new("d2", "read_a", "{}")],
        }
    }

    fn clear(&mut self, world: &mut World, place: usize, part: &CallPart) -> Went {
        assert!(!self.turn().is_ending(), "a call is cleared in a turn that ends");
        assert!(self.cleared.insert(place), "a call is cleared twice");
        let effect = (self.who.turn_id.to_string(), self.turn().iteration(), place);
        assert!(!world.disk.happened(&effect), "a call is cleared that has run");
        let raw = &part.function.name;
        let alone = self.running.is_empty() || read_only(raw);
        assert!(alone && self.running.values().all(|it| read_only(&it.call().tool)), "clearing beside a writing call");
        let Some(tool) = self.agent.tool(raw) else {
            self.answer(world, place, ModelAnswer::not_run(format!("tool \"{raw}\" not found")));
            return Went::On;
        };
        let (id, arguments) = (CallId::from(part.id.as_str()), part.arguments().expect("models write JSON here"));
        let call = ToolCall { id, tool, raw_tool: raw.clone(), arguments };
        let mut left = if world.dice.once_in(30) { world.dice.below(4) } else { u32::MAX };
        let cancelled = || {
            left = left.saturating_sub(1);
            left == 0
        };
        let (who, mode, now) = (self.who.for_call(&call.id), self.mode, world.timestamp());
        let mut answers = match world.parked.take() {
            Some(same) if !world.dice.once_in(4) => same,
            Some(_) | None => world.dice.fork(),
        };
        let same = answers.clone();
        let World { disk, present, .. } = world;
        let person = |dice: &mut fastrand::Rng, question: ApprovalQuestion<'_>| {
            ask_person(disk, dice, &who, question, (mode, *present, now))
        };
        let cleared = Cleared::play((&world.roster, &self.agent), call, &mut answers, cancelled, person);
        cleared.holds();
        world.note(|| format!("{:?}", cleared.outcome));
        if left == 0 {
            self.end(TurnEnd::cancelled());
        }
        let went = self.take_outcome(world, place, cleared.outcome);
        if went == Went::Parked {
            world.parked = Some(same);
        }
        went
    }

    fn take_outcome(&mut self, world: &mut World, place: usize, outcome: ClearingOutcome) -> Went {
        match outcome {
            ClearingOutcome::Run(call) => {
                self.permitted(world, &call);
                self.turn().cleared(place, read_only(&call.tool));
                self.permits.insert(place, call);
            }
            ClearingOutcome::Substituted { call, result, .. } => {
                self.permitted(world, &call);
                self.answer(world, place, answered(result));
            }
            ClearingOutcome::Ask { .. } => return self.park(world),
            ClearingOutcome::Refused { denied, .. } => self.answer(world, place, ModelAnswer::not_run(denied.text())),
            ClearingOutcome::Abort { aborted, .. } => self.end(TurnEnd::stopped(aborted)),
        }
        Went::On
    }

    /// Rules of an agent hold for whoever works for it, however deep.
    fn permitted(&self, world: &mut World, call: &ToolCall) {
        let ruled = |agent: &str| self.agent.acting_for.iter().any(|it| it.as_str() == agent);
        let forbidden = world.ruled.is_some_and(ruled) && (call.tool == "write" || call.raw_tool == "write");
        assert!(!forbidden, "`write` passes although a rule of {:?} forbids it", world.ruled);
        let depth = self.who.depth;
        if call.tool == "write" && world.ruled.is_some() {
            world.note(|| format!("{depth} writes beside a rule"));
        }
    }

    /// Calls in flight are finished, then the process leaves.
    fn park(&mut self, world: &mut World) -> Went {
        if self.turn().is_ending() {
            return Went::On;
        }
        assert_ne!(self.mode, ApprovalMode::Subagent, "a sub-agent is parked");
        while let Some(place) = self.running.keys().next().copied() {
            self.wait(world, place);
        }
        if self.turn().is_ending() { Went::On } else { Went::Parked }
    }

    /// The effect: from here on the tool does what it does.
    fn start(&mut self, world: &mut World, place: usize) {
        assert!(!self.turn().is_ending(), "a tool starts in a turn that ends");
        let call = self.permits.remove(&place).expect("nothing runs but what was let pass, and that once");
        let alone = self.running.is_empty() || read_only(&call.tool);
        assert!(alone && self.running.values().all(|it| read_only(&it.call().tool)), "a writing call overlaps");
        let (tool, digest) = (call.tool.clone(), Digest::of(&self.who, &call).to_string());
        self.tell(world, Fact::Used { place, read_only: read_only(&call.tool), tool, digest, rewritten: None });
        world.disk.effect((self.who.turn_id.to_string(), self.turn().iteration(), place));
        let running = match call.tool.as_str() {
            "delegate" => self.delegate(world, call),
            _ => Running::Tool { call, done_at: world.now + u64::from(world.dice.below(200)) },
        };
        self.running.insert(place, running);
    }

    /// A sub-agent, or the reason why there is none as the tool's text.
    fn delegate(&self, world: &mut World, call: ToolCall) -> Running {
        let name = call.arguments.get("agent").and_then(pintle_domain::json::Value::as_str).unwrap_or("a").to_owned();
        let depth = self.who.depth + 1;
        let subject = SubagentStart::new(name.as_str().into(), "look", depth, None);
        let (_, ruling) = chain(&world.roster, &self.agent, subject, &mut world.dice, || false);
        if depth > MAX_DEPTH || !matches!(ruling, Ruling::Proceed) {
            return Running::Tool { call, done_at: world.now };
        }
        let who = Identity {
            agent_id: name.as_str().into(),
            session_id: SessionId::new(format!("{}/{}", self.who.turn_id, call.id)),
            parent_turn_id: Some(self.who.turn_id.clone()),
            ancestors: [vec![self.who.agent_id.clone()], self.who.ancestors.clone()].concat(),
            depth,
            ..self.who.clone()
        };
        let mut child = Worker::open(world, who, ApprovalMode::Subagent);
        if child.begin(world, "look") {
            return Running::Child { call, child: Box::new(child) };
        }
        child.close(world, ReleaseReason::Done);
        Running::Tool { call, done_at: world.now }
    }

    /// Waits for the call at `place`; whoever is done before it is reported first, and sub-agents work meanwhile.
    fn wait(&mut self, world: &mut World, place: usize) {
        if let Some(Running::Tool { done_at, .. }) = self.running.get(&place) {
            world.now = world.now.max(*done_at);
        }
        let places: Vec<usize> = self.running.keys().copied().collect();
        let mut done: Vec<(u64, usize)> = Vec::new();
        for place in places {
            match self.running.get_mut(&place).expect("it was running a moment ago") {
                Running::Tool { done_at, .. } if *done_at <= world.now => done.push((*done_at, place)),
                Running::Tool { .. } => {}
                Running::Child { child, .. } => {
                    if world.dice.once_in(2) {
                        continue;
                    }
                    if world.dice.once_in(60) {
                        child.end(TurnEnd::cancelled());
                    }
                    if let Went::Over(end) = child.step(world) {
                        self.child_ended(world, place, &end);
                    }
                }
            }
        }
        done.sort_unstable();
        for (_, place) in done {
            if let Some(running) = self.running.remove(&place) {
                self.settle(world, place, running.call().clone(), "done");
            }
        }
    }

    fn child_ended(&mut self, world: &mut World, place: usize, end: &TurnEnd) {
        let Some(Running::Child { call, child }) = self.running.remove(&place) else { panic!("a child ended") };
        child.close(
            world,
            if end.status == TurnStatus::Completed { ReleaseReason::Done } else { ReleaseReason::Failed },
        );
        if end.roll_back {
            // The whole run stops, root and all.
            self.end(TurnEnd::hard_aborted());
        }
        self.settle(world, place, call, &end.reply);
    }

    fn settle(&mut self, world: &mut World, place: usize, call: ToolCall, text: &str) {
        let execution = Some(ToolExecution { name: call.tool.clone(), success: true, error_summary: None });
        let subject = AfterTool { call, result: ToolOutput::ok(text), duration: Duration::ZERO };
        let (settled, ruling) = chain(&world.roster, &self.agent, subject, &mut world.dice, || false);
        let answer = match ruling {
            Ruling::Proceed => answered(settled.result),
            Ruling::Abort(aborted) => {
                let text = aborted.text();
                self.end(TurnEnd::stopped(aborted));
                ModelAnswer::not_run(text)
            }
            Ruling::Deny(denied) => panic!("after_tool cannot deny: {denied:?}"),
            Ruling::Ask { why: never, .. } | Ruling::Respond { with: never, .. } => match never {},
        };
        self.answer(world, place, ModelAnswer { execution, ..answer });
    }
}

/// Tools that begin with `read` change nothing; what a sub-agent does is its own.
fn read_only(tool: &str) -> bool {
    tool.starts_with("read") || tool == "delegate"
}

fn answered(result: ToolOutput) -> ModelAnswer {
    ModelAnswer { handled: result.response_handled, ..ModelAnswer::not_run(result.for_llm) }
}
