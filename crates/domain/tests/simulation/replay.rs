//! Turns that are made again of the facts that their driver kept, wherever it was killed.

use std::collections::{BTreeMap, BTreeSet};

use pintle_domain::checkpoint::runtime::{ToolExecution, TurnStatus};
use pintle_domain::id::TurnId;
use pintle_domain::json::Rendered;
use pintle_domain::llm::LlmReply;
use pintle_domain::message::{Message, Role};
use pintle_domain::planning::StepPrompts;
use pintle_domain::session::{JournalEntry, Session};
use pintle_domain::skill::{SkillHook, Skills, Timing, Voice};
use pintle_domain::turn::{
    Fact, MessageSender, ModelAnswer, OUTCOME_UNKNOWN, ToolUse, Turn, TurnEnd, TurnFlow, TurnSetup, TurnStep,
    WaitingMessage,
};
use proptest::prelude::*;

use super::laws::{config, messages_pair, waiting};
use super::tape::{Bytes, Tapes};
use super::world::{Dice, Tape, parts};

/// Most rounds of a turn, and so many texts may come in.
const ROUNDS: u32 = 3;

/// What a live turn looked like.
#[derive(Debug, PartialEq)]
struct Looks {
    messages: Vec<Rendered<Message>>,
    waiting: Vec<WaitingMessage>,
}

/// A turn that is worked by its live methods, and what its driver keeps of it on the way.
struct Kept<'a> {
    dice: Tape<'a>,
    turn: Turn,
    /// Each entry with what the turn looked like after it; nothing once it was to end and the journal did not know.
    journal: Vec<(JournalEntry, Option<Looks>)>,
    /// What the driver knows of the calls that were cleared: whether they change nothing.
    cleared: BTreeMap<usize, bool>,
    stopped: bool,
    ended: Option<TurnEnd>,
    texts: u32,
}

/// The conversation of `turn` once everything that it was told has taken effect.
fn looks(turn: &Turn) -> Looks {
    let mut turn = turn.clone();
    turn.apply(Fact::Compacted { upto: 0, summary: None });
    Looks { messages: turn.messages().to_vec(), waiting: turn.waiting().cloned().collect() }
}

impl Kept<'_> {
    fn live(tape: &Bytes) -> Vec<(JournalEntry, Option<Looks>)> {
        let mut dice = Tape(tape.0.iter());
        let (before, limit) = (dice.below(3), dice.below(ROUNDS) + 1);
        let mut session = Session::default();
        let mut journal = Vec::new();
        for entry in earlier(before) {
            session.apply(entry.clone());
            journal.push((entry, None));
        }
        let prompt = Message::text(Role::User, "prompt");
        let turn = Turn::new(session.messages().to_vec(), prompt.clone(), limit);
        let mut kept = Kept { dice, turn, journal, cleared: BTreeMap::new(), stopped: false, ended: None, texts: 0 };
        let turn_id = TurnId::from("t");
        kept.keep(Fact::Begun { turn_id, prompts: vec![prompt.into()], max_iterations: limit, key: None });
        if let Some(with) = equipment(&mut kept.dice) {
            kept.tell(Fact::Equipped { with: Box::new(with) });
        }
        while kept.ended.is_none() {
            kept.something_comes_in();
            kept.step();
        }
        kept.something_comes_in();
        kept.end();
        kept.journal
    }

    fn keep(&mut self, fact: Fact) {
        let looks = (self.ended.is_none() && !self.stopped).then(|| looks(&self.turn));
        self.journal.push((JournalEntry::Turn(fact), looks));
    }

    /// Tells the turn a fact that has no method of its own, and keeps it.
    fn tell(&mut self, fact: Fact) {
        self.turn.apply(fact.clone());
        self.keep(fact);
    }

    fn something_comes_in(&mut self) {
        match self.dice.below(24) {
            20 | 21 => {
                let from = MessageSender::Subturn { agent: "a".into(), turn_id: "t2".into() };
                self.texts += 1;
                let found = WaitingMessage { from, ..waiting(&format!("text {}", self.texts)) };
                self.tell(Fact::Queued(found));
            }
            16..=19 => {
                self.texts += 1;
                self.tell(Fact::Queued(waiting(&format!("text {}", self.texts))));
            }
            22 => self.tell(Fact::Interrupted),
            23 => match self.dice.below(4) {
                0 => self.stop(TurnEnd::cancelled()),
                1 => self.stop(TurnEnd::hard_aborted()),
                2 => self.stop(TurnEnd::failed("hook.before_tool", "no further")),
                _ => self.stop(TurnEnd::failed("llm", "gone")),
            },
            _ => {}
        }
    }

    fn stop(&mut self, end: TurnEnd) {
        self.stopped = true;
        self.turn.end(end);
    }

    fn step(&mut self) {
        let step = self.turn.next();
        if let TurnStep::End(end) = &step {
            self.ended = Some(end.clone());
        }
        if let Some(upto) = self.turn.to_announce().last().map(|chunk| chunk.id) {
            self.tell(Fact::Announced { upto });
        }
        match step {
            TurnStep::Inject { waiting } => self.tell(Fact::Injected { count: waiting.len() }),
            TurnStep::Plan => self.plan(),
            TurnStep::CallModel { .. } => self.call_model(),
            TurnStep::Skip { call, why, .. } => self.answered(call, ModelAnswer::not_run(why.text())),
            TurnStep::Clear { call, .. } => match self.dice.below(4) {
                3 => self.answered(call, ModelAnswer { handled: true, ..ModelAnswer::not_run("substituted") }),
                2 => self.answered(call, ModelAnswer::not_run("denied").about("exec")),
                _ => {
                    let read_only = self.dice.once_in(2);
                    self.cleared.insert(call, read_only);
                    self.turn.cleared(call, read_only);
                }
            },
            TurnStep::Start { call } => {
                self.turn.started(call);
                let read_only = self.cleared[&call];
                let (tool, digest) = ("exec".into(), "d".into());
                self.keep(Fact::Used { place: call, read_only, tool, digest, rewritten: None });
            }
            TurnStep::Await { call } => {
                let execution = Some(ToolExecution { name: "exec".into(), success: true, error_summary: None });
                let handled = self.dice.once_in(2);
                self.answered(call, ModelAnswer { handled, execution, ..ModelAnswer::not_run("done") }.about("read"));
            }
            TurnStep::End(_) => {}
        }
    }

    fn answered(&mut self, place: usize, answer: ModelAnswer) {
        self.turn.answered(place, answer.clone());
        self.keep(Fact::Answered { place, answer });
    }

    fn plan(&mut self) {
        if self.dice.once_in(4) {
            self.tell(Fact::Compacted { upto: self.turn.messages().len() / 2, summary: None });
        }
        match self.dice.below(8) {
            7 => self.stop(TurnEnd::cancelled()),
            6 => {
                self.texts += 1;
                self.tell(Fact::Queued(waiting(&format!("text {}", self.texts))));
            }
            _ => {}
        }
        if !self.turn.is_ending() {
            let text = if self.dice.once_in(4) { "" } else { "plan" };
            let message = Message::text(Role::Assistant, text).into();
            let need_tool = !self.dice.once_in(4);
            self.tell(Fact::Planned { message, need_tool, usage: None });
        }
    }

    fn call_model(&mut self) {
        if self.dice.once_in(8) {
            let summary = self.dice.once_in(2).then(|| Message::text(Role::System, "summary").into());
            let upto = self.dice.below(9) as usize;
            self.tell(Fact::Compacted { upto, summary });
        }
        self.something_comes_in();
        if self.turn.is_ending() {
            return;
        }
        let reply = match self.dice.below(5) {
            4 => LlmReply::text("reply"),
            _ => LlmReply { content: "wait".into(), ..LlmReply::calls(parts(&mut self.dice)) },
        };
        let read_only = |tool: &str| tool.starts_with("read");
        let fact = self.turn.reply_fact(reply.clone(), "m", read_only);
        self.turn.replied(reply, "m", read_only);
        self.keep(fact);
    }

    fn end(&mut self) {
        let end = self.ended.clone().expect("the turn has ended");
        let waiting = self.turn.take_waiting();
        let looks =
            Looks { messages: self.turn.take_messages(), waiting: if end.roll_back { Vec::new() } else { waiting } };
        let TurnEnd { status, roll_back, error, reply, .. } = end;
        self.journal.push((JournalEntry::Turn(Fact::Ended { status, roll_back, error, reply }), Some(looks)));
    }
}

/// Texts and a flow for about two turns in three. Some texts stay, some do not.
fn equipment(dice: &mut Tape<'_>) -> Option<TurnSetup> {
    let tools = match dice.below(6) {
        0 | 1 => return None,
        2 => ToolUse::None,
        _ => ToolUse::Own,
    };
    let flow = if dice.once_in(2) { TurnFlow::Direct } else { TurnFlow::Planned(StepPrompts::default()) };
    let hook = |number: u32| SkillHook {
        skill: "s".into(),
        name: format!("h{number}"),
        content: "look".into(),
        timing: *dice.pick(&Timing::ALL),
        role: Voice::User,
        persistent: dice.once_in(2),
        tool_filter: if dice.once_in(3) { vec!["exec".into()] } else { Vec::new() },
    };
    Some(TurnSetup { skills: Skills::new((0..4).map(hook).collect()), flow, tools })
}

/// So many turns of before.
fn earlier(turns: u32) -> impl Iterator<Item = JournalEntry> {
    (0..turns).flat_map(|n| {
        let said = |role, text: &str| Message::text(role, format!("{text} {n}")).into();
        let (turn_id, prompts) = (TurnId::from("t0"), vec![said(Role::User, "before")]);
        let (read_only, owners) = (Vec::new(), BTreeMap::new());
        let message = said(Role::Assistant, "then");
        let (status, error, reply) = (TurnStatus::Completed, None, String::new());
        [
            Fact::Begun { turn_id, prompts, max_iterations: 1, key: None },
            Fact::Replied { iteration: 1, message, read_only, terminal: false, owners, cut: false, usage: None },
            Fact::Ended { status, roll_back: false, error, reply },
        ]
        .map(JournalEntry::Turn)
    })
}

/// Works the turn that stands open to its end, as whoever comes after a kill; `used` are the calls that must not run.
fn go_on(session: &mut Session, used: &BTreeSet<(u32, usize)>) {
    let turn = &mut session.open_mut().expect("a turn stands open").turn;
    for place in turn.running() {
        turn.answered(place, ModelAnswer::not_run(OUTCOME_UNKNOWN));
    }
    for _ in 0..100 {
        let round = turn.iteration();
        match turn.next() {
            TurnStep::Inject { waiting } => turn.apply(Fact::Injected { count: waiting.len() }),
            TurnStep::Plan => {
                let message = Message::text(Role::Assistant, "plan").into();
                turn.apply(Fact::Planned { message, need_tool: true, usage: None });
            }
            TurnStep::CallModel { .. } => turn.replied(LlmReply::text("the end"), "m", |_| false),
            TurnStep::Skip { call, why, .. } => turn.answered(call, ModelAnswer::not_run(why.text())),
            TurnStep::Clear { call, .. } => turn.cleared(call, false),
            TurnStep::Start { call } => {
                assert!(!used.contains(&(round, call)), "call {call} of round {round} runs twice");
                turn.started(call);
            }
            TurnStep::Await { call } => turn.answered(call, ModelAnswer::not_run("done")),
            TurnStep::End(end) => {
                messages_pair(turn, false);
                let TurnEnd { status, roll_back, error, reply, .. } = end;
                session.apply(JournalEntry::Turn(Fact::Ended { status, roll_back, error, reply }));
                return;
            }
        }
    }
    panic!("the turn does not end");
}

/// Every text that came in so far stands in the conversation or waits, once; a compaction may have taken it.
fn nothing_is_lost(session: &Session, texts: u32, compacted: bool) {
    let in_conversation = session.messages().iter().map(|message| message.get().content.as_str());
    let found: Vec<&str> = in_conversation.chain(session.queue().iter().map(WaitingMessage::text)).collect();
    for text in (1..=texts).map(|n| format!("text {n}")).chain(["prompt".into()]) {
        let times = found.iter().filter(|it| **it == text).count();
        assert!(times == 1 || (times == 0 && compacted), "`{text}` is there {times} times: {found:?}");
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_turn_is_the_same_again_after_every_fact_and_can_go_on(tape in Tapes) {
        let journal = Kept::live(&tape);
        let mut session = Session::default();
        let (mut texts, mut compacted, mut round, mut used) = (0, false, 0, BTreeSet::new());
        for (at, (entry, live)) in journal.iter().enumerate() {
            match entry {
                JournalEntry::Turn(Fact::Queued(_)) => texts += 1,
                JournalEntry::Turn(Fact::Compacted { .. }) => compacted = true,
                JournalEntry::Turn(Fact::Replied { iteration, .. }) => round = *iteration,
                JournalEntry::Turn(Fact::Used { place, .. }) => prop_assert!(used.insert((round, *place))),
                JournalEntry::Turn(Fact::Begun { turn_id, .. }) if turn_id.as_str() == "t0" => round = 0,
                JournalEntry::Turn(_) | JournalEntry::Opened { .. } | JournalEntry::Closed { .. } | JournalEntry::Kept(_) => {}
            }
            session.apply(entry.clone());
            let folded = match session.open() {
                Some(open) => looks(&open.turn),
                None => Looks { messages: session.messages().to_vec(), waiting: session.queue().to_vec() },
            };
            prop_assert!(live.as_ref().is_none_or(|live| *live == folded), "{:?}\n{:?}", live, folded);
            // Each tape goes on from every fourth place, each place with every fourth tape.
            let here = at % 4 == usize::from(tape.0[1]) % 4;
            if here && session.open().is_some_and(|open| open.turn_id.as_str() == "t") {
                let mut resumed = session.clone();
                go_on(&mut resumed, &used);
                nothing_is_lost(&resumed, texts, compacted);
            }
        }
        let whole = Session::fold(journal.into_iter().map(|(entry, _)| entry));
        prop_assert_eq!(whole.messages(), session.messages());
        prop_assert!(whole.open().is_none());
    }
}
