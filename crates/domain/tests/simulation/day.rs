//! Whole sessions from a seed: the loop of the agent in small, with everything that can go wrong in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pintle_domain::checkpoint::runtime::ToolExecution;
use pintle_domain::checkpoint::{AfterLlm, AfterTool, BeforeLlm, Known, UserPromptSubmit};
use pintle_domain::clearing::Outcome;
use pintle_domain::id::CallId;
use pintle_domain::json::{Object, Rendered};
use pintle_domain::llm::{LlmReply, LlmRequest, ToolDef};
use pintle_domain::message::{CallPart, Message, Role};
use pintle_domain::roster::Roster;
use pintle_domain::ruling::Ruling;
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_domain::turn::{Answer, End, Step, Turn};

use super::evidence::{Cleared, chain};
use super::laws::messages_pair;
use super::world::{Agent, Dice, parts, roster};

/// How many seeds a plain test run takes: about a second.
const SEEDS: u64 = 6_000;

/// Most steps of one turn: four rounds of four calls, each cleared, started, awaited, and room to spare.
const MAX_STEPS: usize = 100;

/// A running tool: what runs, and when it will be done.
struct Running {
    call: ToolCall,
    read_only: bool,
    done_at: u64,
}

/// One session in a world of its own.
struct Day {
    dice: fastrand::Rng,
    roster: Arc<Roster>,
    /// Milliseconds since the day began; nothing but the simulation moves it.
    now: u64,
    agent: Agent,
    /// The places of the batch that were cleared, whatever came of it.
    cleared: BTreeSet<usize>,
    /// What a clearing let pass and nobody started yet.
    permits: BTreeMap<usize, ToolCall>,
    running: BTreeMap<usize, Running>,
    effects: usize,
    trace: Vec<String>,
}

impl Day {
    fn new(seed: u64) -> Self {
        let mut dice = fastrand::Rng::with_seed(seed);
        let roster = roster(&mut dice);
        Self {
            dice,
            roster,
            now: 0,
            agent: Agent::default(),
            cleared: BTreeSet::new(),
            permits: BTreeMap::new(),
            running: BTreeMap::new(),
            effects: 0,
            trace: Vec::new(),
        }
    }

    /// Works up to four prompts; the trace tells what happened.
    fn live(mut self) -> Vec<String> {
        let mut history: Vec<Rendered<Message>> = Vec::new();
        for _ in 0..=self.dice.below(4) {
            let prompt = UserPromptSubmit { prompt: "hi".into() };
            let (passed, ruling) = chain(&self.roster, &Agent::default(), prompt, &mut self.dice, || false);
            match ruling {
                Ruling::Proceed => history = self.work(history, Message::text(Role::User, passed.prompt)),
                Ruling::Deny(denied) => self.trace.push(denied.text()),
                Ruling::Ask { why: never, .. } | Ruling::Respond { with: never, .. } => match never {},
                Ruling::Abort(aborted) => panic!("a gate cannot abort: {aborted:?}"),
            }
        }
        self.trace
    }

    fn work(&mut self, history: Vec<Rendered<Message>>, prompt: Message) -> Vec<Rendered<Message>> {
        let before = history.clone();
        let limit = self.dice.below(4) + 1;
        let mut turn = Turn::new(history, prompt, limit);
        let effects = self.effects;
        for _ in 0..MAX_STEPS {
            self.now += u64::from(self.dice.below(50));
            self.interrupt(&mut turn);
            let step = turn.next();
            self.trace.push(format!("{} {step:?}", self.now));
            let ended = matches!(step, Step::End(_));
            messages_pair(&turn, !ended);
            match step {
                Step::CallModel { .. } => self.call_model(&mut turn),
                Step::Clear { call, part } => self.clear(&mut turn, call, &part),
                Step::Start { call } => self.start(&turn, call),
                Step::Await { call } => self.wait(&mut turn, call),
                Step::End(end) => {
                    assert!(self.running.is_empty(), "the turn ended under a running tool");
                    assert_eq!(turn.executions().len(), self.effects - effects, "an effect that nobody is told of");
                    assert_eq!(turn.next(), Step::End(end.clone()), "two ends of one turn");
                    let after = turn.into_messages();
                    assert!(!end.roll_back || after == before, "history did not go back");
                    assert!(end.roll_back || after.len() > before.len(), "the prompt is lost");
                    return after;
                }
            }
        }
        panic!("the turn does not end");
    }

    /// Somebody stops the turn, now and then.
    fn interrupt(&mut self, turn: &mut Turn) {
        match self.dice.below(120) {
            0 => turn.end(End::cancelled()),
            1 => turn.end(End::hard_aborted()),
            2 => turn.end(End::failed("llm", "the provider is gone")),
            _ => {}
        }
    }

    fn call_model(&mut self, turn: &mut Turn) {
        self.cleared.clear();
        self.permits.clear();
        let tools = ["exec", "read_a"].map(|name| ToolDef::new(name, "", serde_json::json!({})).into()).to_vec();
        let (messages, options) = (turn.messages().to_vec(), Object::new());
        let request = LlmRequest { model: "m".into(), messages, tools, options, graceful_terminal: false };
        let cancel = self.dice.once_in(40);
        let subject = BeforeLlm::new(request);
        let (asked, ruling) = chain(&self.roster, &Agent::default(), subject, &mut self.dice, || cancel);
        match ruling {
            Ruling::Proceed => {}
            Ruling::Abort(aborted) => return turn.end(End::stopped(aborted)),
            Ruling::Deny(denied) => panic!("before_llm cannot deny: {denied:?}"),
            Ruling::Ask { why: never, .. } | Ruling::Respond { with: never, .. } => match never {},
        }
        let offered = |name: &String| asked.request.tools.iter().any(|tool| tool.get().function.name == *name);
        assert!(asked.owners.keys().all(offered), "somebody owns what nobody was offered");
        if asked.request.messages.is_empty() {
            return turn.end(End::failed("llm", "no messages are left to send"));
        }
        if cancel {
            return turn.end(End::cancelled());
        }
        self.agent = Agent { owners: asked.owners };
        self.read_reply(turn);
    }

    fn read_reply(&mut self, turn: &mut Turn) {
        let response = match self.dice.below(6) {
            0 => LlmReply::text("hello"),
            1 => return turn.end(End::failed("llm", "the provider refused")),
            _ => LlmReply::calls(parts(&mut self.dice)),
        };
        let subject = AfterLlm { model: "m".into(), response };
        let (answered, ruling) = chain(&self.roster, &self.agent, subject, &mut self.dice, || false);
        match ruling {
            Ruling::Proceed => turn.replied(answered.response, &answered.model, read_only),
            Ruling::Abort(aborted) => turn.end(End::stopped(aborted)),
            Ruling::Deny(denied) => panic!("after_llm cannot deny: {denied:?}"),
            Ruling::Ask { why: never, .. } | Ruling::Respond { with: never, .. } => match never {},
        }
    }

    fn clear(&mut self, turn: &mut Turn, place: usize, part: &CallPart) {
        assert!(!turn.is_ending(), "a call is cleared in a turn that ends");
        assert!(self.cleared.insert(place), "a call is cleared twice");
        let alone = self.running.is_empty() || read_only(&part.function.name);
        assert!(alone && self.running.values().all(|running| running.read_only), "clearing beside a writing call");
        let raw = &part.function.name;
        let Some(tool) = self.agent.tool(raw) else {
            return turn.answered(place, Answer::not_run(format!("tool \"{raw}\" not found")));
        };
        let (id, arguments) = (CallId::from(part.id.as_str()), part.arguments().expect("models write JSON here"));
        let call = ToolCall { id, tool, raw_tool: raw.clone(), arguments };
        let mut left = if self.dice.once_in(30) { self.dice.below(4) } else { u32::MAX };
        let cancelled = || {
            left = left.saturating_sub(1);
            left == 0
        };
        let cleared = Cleared::play(&self.roster, &self.agent, call, &mut self.dice, cancelled);
        cleared.holds();
        self.trace.push(format!("{:?}", cleared.outcome));
        if left == 0 {
            turn.end(End::cancelled());
        }
        match cleared.outcome {
            Outcome::Run(call) => {
                turn.cleared(place, read_only(&call.tool));
                self.permits.insert(place, call);
            }
            Outcome::Substituted { result, .. } => turn.answered(place, answered(result)),
            Outcome::Ask { why, .. } => turn.answered(place, Answer::not_run(format!("nobody answered: {why}"))),
            Outcome::Refused { denied, .. } => turn.answered(place, Answer::not_run(denied.text())),
            Outcome::Abort(aborted) => turn.end(End::stopped(aborted)),
        }
    }

    /// The effect: from here on the tool does what it does.
    fn start(&mut self, turn: &Turn, place: usize) {
        assert!(!turn.is_ending(), "a tool starts in a turn that ends");
        let call = self.permits.remove(&place).expect("nothing runs but what was let pass, and that once");
        let read_only = read_only(&call.tool);
        let alone = self.running.is_empty() || read_only;
        assert!(alone && self.running.values().all(|running| running.read_only), "a writing call overlaps");
        self.effects += 1;
        let done_at = self.now + u64::from(self.dice.below(200));
        self.running.insert(place, Running { call, read_only, done_at });
    }

    /// Waits for the call at `place`; whoever is done before it is reported first.
    fn wait(&mut self, turn: &mut Turn, place: usize) {
        self.now = self.now.max(self.running[&place].done_at);
        let mut done: Vec<(u64, usize)> = self.running.iter().map(|(place, it)| (it.done_at, *place)).collect();
        done.retain(|(at, _)| *at <= self.now);
        done.sort_unstable();
        for (_, place) in done {
            let Running { call, .. } = self.running.remove(&place).expect("it was running a moment ago");
            self.settle(turn, place, call);
        }
    }

    fn settle(&mut self, turn: &mut Turn, place: usize, call: ToolCall) {
        let execution = Some(ToolExecution { name: call.tool.clone(), success: true, error_summary: None });
        let subject = AfterTool { call, result: ToolOutput::ok("done"), duration: Duration::ZERO };
        let (settled, ruling) = chain(&self.roster, &self.agent, subject, &mut self.dice, || false);
        let answer = match ruling {
            Ruling::Proceed => answered(settled.result),
            Ruling::Abort(aborted) => {
                let text = aborted.text();
                turn.end(End::stopped(aborted));
                Answer::not_run(text)
            }
            Ruling::Deny(denied) => panic!("after_tool cannot deny: {denied:?}"),
            Ruling::Ask { why: never, .. } | Ruling::Respond { with: never, .. } => match never {},
        };
        turn.answered(place, Answer { execution, ..answer });
    }
}

/// Tools that begin with `read` change nothing.
fn read_only(tool: &str) -> bool {
    tool.starts_with("read")
}

fn answered(result: ToolOutput) -> Answer {
    Answer { handled: result.response_handled, ..Answer::not_run(result.for_llm) }
}

/// Says which seed to replay when a day goes wrong.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay it: PINTLE_SEED={} cargo test -p pintle-domain --test simulation", self.0);
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, got `{text}`")))
}

#[test]
fn days_of_turns_hooks_faults_and_interruptions() {
    let seeds = match number("PINTLE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PINTLE_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        let _tells = Seed(seed);
        Day::new(seed).live();
    }
}

#[test]
fn a_seed_always_gives_the_same_day() {
    for seed in 0..20 {
        assert_eq!(Day::new(seed).live(), Day::new(seed).live());
    }
}

#[test]
fn days_are_eventful() {
    let traces: Vec<String> = (0..400).flat_map(|seed| Day::new(seed).live()).collect();
    let words = ["Start", "Await", "Run(", "Substituted", "Refused", "Ask {", "Abort(", "Completed", "roll_back: true"];
    for word in words {
        assert!(traces.iter().any(|line| line.contains(word)), "no day has `{word}`");
    }
}
