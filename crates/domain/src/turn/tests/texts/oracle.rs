//! The turn against a program that says the same in the plainest way: lists, records, and loops over them.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::script::{Asked, Script, script};
use super::*;
use crate::session::{JournalEntry, Session};
use crate::skill::{SkillHook, Timing};

/// How many requests are tried, unless `PINTLE_ORACLE_CASES` says otherwise: a few seconds.
const CASES: u32 = 2_000;

/// Something that can be compared: a text that was announced, or the list of a call.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Frame {
        name: String,
        role: Role,
        content: String,
    },
    Call(Vec<(Role, String)>),
    /// What is left for the next request.
    Left(Vec<(Role, String)>),
}

/// A message of the oracle: its number, who speaks, the text.
#[derive(Clone, Debug)]
struct Said(u32, Role, String);

/// The model of what is right. It knows nothing of turns, facts or ledgers.
struct Oracle<'a> {
    script: &'a Script,
    list: Vec<Said>,
    records: Vec<(Timing, SkillHook, u32)>,
    next: u32,
    seen: Vec<Seen>,
}

impl Oracle<'_> {
    fn play(script: &Script) -> Vec<Seen> {
        let mut oracle = Oracle { script, list: Vec::new(), records: Vec::new(), next: 0, seen: Vec::new() };
        oracle.append(Role::System, "S0");
        oracle.append(Role::User, "U1");
        let prompts = oracle.run();
        assert!(prompts.is_empty(), "a prompt of the host's own is left");
        let records = std::mem::take(&mut oracle.records);
        records.iter().filter(|(_, hook, _)| !hook.persistent).for_each(|(_, _, id)| oracle.delete(*id));
        let left = oracle.shown();
        oracle.seen.push(Seen::Left(left));
        oracle.seen
    }

    fn append(&mut self, role: Role, text: &str) -> u32 {
        self.next += 1;
        self.list.push(Said(self.next, role, text.to_owned()));
        self.next
    }

    fn delete(&mut self, id: u32) {
        self.list.retain(|said| said.0 != id);
    }

    fn inject(&mut self, timing: Timing, names: &[&str]) {
        for hook in self.script.skills.hooks.iter().filter(|hook| hook.timing == timing) {
            let enabled = !self.script.skills.off.contains(&hook.skill);
            let about = timing != Timing::AfterToolCall
                || hook.tool_filter.is_empty()
                || names.iter().any(|name| hook.tool_filter.iter().any(|wanted| wanted == name));
            if !(enabled && about) {
                continue;
            }
            let role = if hook.role == crate::skill::Voice::User { Role::User } else { Role::System };
            let id = self.append(role, &hook.content);
            self.records.push((timing, hook.clone(), id));
            if hook.persistent {
                self.seen.push(Seen::Frame { name: hook.name.clone(), role, content: hook.content.clone() });
            }
        }
    }

    fn remove(&mut self, timing: Timing) {
        for (at, hook, id) in std::mem::take(&mut self.records) {
            if at != timing || hook.persistent {
                self.records.push((at, hook, id));
            } else {
                self.delete(id);
            }
        }
    }

    fn shown(&self) -> Vec<(Role, String)> {
        self.list.iter().map(|said| (said.1, said.2.clone())).collect()
    }

    fn call(&mut self) {
        let list = self.shown();
        self.seen.push(Seen::Call(list));
    }

    /// The whole request. What comes back are prompts that were not taken out.
    fn run(&mut self) -> Vec<u32> {
        let mut prompts = Vec::new();
        let mut waiting: Vec<String> = Vec::new();
        let mut rounds = self.script.rounds.iter();
        let mut iteration = 0;
        self.inject(Timing::AfterUserInput, &[]);
        let mut first = true;
        if self.script.tools != ToolUse::Own {
            self.call();
            iteration = 1;
            let Some(asked) = rounds.next() else {
                self.append(Role::Assistant, "A1");
                return prompts;
            };
            if self.work(asked, iteration, &mut waiting, None) {
                self.append(Role::Assistant, DELIVERED);
                return prompts;
            }
        } else if self.script.planned {
            self.inject(Timing::BeforePlanning, &[]);
            let plan = self.append(Role::System, "PLAN");
            self.call();
            self.delete(plan);
            self.remove(Timing::BeforePlanning);
            if !self.script.plan.is_empty() {
                self.append(Role::Assistant, self.script.plan);
            }
            if !self.script.need_tool {
                return prompts;
            }
        }
        loop {
            // With all rounds spent one more call sums up, and nothing that waits is taken in.
            let last = iteration == self.script.limit;
            iteration += 1;
            if !last {
                for text in waiting.drain(..) {
                    self.append(Role::User, &text);
                }
            }
            self.remove(Timing::BeforeEachAgent);
            self.inject(Timing::BeforeEachAgent, &[]);
            if first {
                self.inject(Timing::BeforeFirstAgent, &[]);
            }
            let text = if first { "FIRST" } else { "LOOP" };
            let step = self.script.planned.then(|| self.append(Role::System, text));
            prompts.extend(step);
            first = false;
            self.call();
            let Some(asked) = rounds.next().filter(|_| !last) else {
                step.into_iter().for_each(|step| self.delete(step));
                prompts.clear();
                self.append(Role::Assistant, &format!("A{iteration}"));
                break;
            };
            let delivered = self.work(asked, iteration, &mut waiting, step);
            prompts.clear();
            if delivered {
                self.append(Role::Assistant, DELIVERED);
                break;
            }
        }
        self.remove(Timing::BeforeFirstAgent);
        self.remove(Timing::AfterToolCall);
        prompts
    }

    /// All calls of a round. Whether the user has every result already.
    fn work(&mut self, asked: &Asked, iteration: u32, waiting: &mut Vec<String>, step: Option<u32>) -> bool {
        self.append(Role::Assistant, &format!("A{iteration}"));
        if asked.brought {
            waiting.push(format!("B{iteration}"));
        }
        let steered = asked.steered_after.filter(|after| *after <= asked.calls.len());
        for place in 0..asked.calls.len() {
            let skipped = steered.is_some_and(|after| place >= after);
            let text = if skipped { SkipReason::Steering.text().to_owned() } else { format!("T{iteration}.{place}") };
            self.append(Role::Tool, &text);
        }
        waiting.extend(steered.map(|_| format!("W{iteration}")));
        self.remove(Timing::AfterToolCall);
        for call in &asked.calls[..steered.unwrap_or(asked.calls.len())] {
            self.inject(Timing::AfterToolCall, &[call.canonical, call.raw]);
        }
        step.into_iter().for_each(|step| self.delete(step));
        steered.is_none() && !asked.brought && asked.calls.iter().all(|call| call.handled)
    }
}

/// The same request, played by a turn; its process is killed once on the way.
struct Played<'a> {
    script: &'a Script,
    turn: Turn,
    journal: Vec<Fact>,
    kills: bool,
    seen: Vec<Seen>,
}

impl Played<'_> {
    fn play(script: &Script, kills: bool) -> Vec<Seen> {
        let turn = Turn::new(vec![Message::text(Role::System, "S0").into()], user("U1"), script.limit);
        let mut played = Played { script, turn, journal: Vec::new(), kills, seen: Vec::new() };
        let flow = if script.planned { planned() } else { TurnFlow::Direct };
        let with = TurnSetup { skills: script.skills.clone(), flow, tools: script.tools };
        played.journal.push(Fact::Begun {
            turn_id: "t".into(),
            prompts: vec![user("U1").into()],
            max_iterations: script.limit,
            key: None,
        });
        played.note(Fact::Equipped { with: Box::new(with) });
        while played.step() {}
        played.seen
    }

    fn note(&mut self, fact: Fact) {
        self.journal.push(fact.clone());
        self.turn.apply(fact);
    }

    /// The same, and perhaps it was the last thing that this process did.
    fn note_or_die(&mut self, fact: Fact) -> bool {
        self.note(fact);
        let dies = self.kills && self.journal.len() > self.script.killed_after;
        if dies {
            self.kills = false;
            self.turn = self.folded();
        }
        dies
    }

    /// The turn that the journal tells of.
    fn folded(&self) -> Turn {
        self.session().open().expect("it has not ended").turn.clone()
    }

    fn session(&self) -> Session {
        let earlier = [
            Fact::Begun {
                turn_id: "t0".into(),
                prompts: vec![Message::text(Role::System, "S0").into()],
                max_iterations: 1,
                key: None,
            },
            Fact::Ended {
                status: crate::checkpoint::runtime::TurnStatus::Completed,
                roll_back: false,
                error: None,
                reply: String::new(),
            },
        ];
        Session::fold(earlier.into_iter().chain(self.journal.iter().cloned()).map(JournalEntry::Turn))
    }

    fn step(&mut self) -> bool {
        let step = self.turn.next();
        let chunks = self.turn.to_announce().to_vec();
        if let Some(last) = chunks.last() {
            let frame = |chunk: &crate::ledger::HookChunk| Seen::Frame {
                name: chunk.name.clone(),
                role: chunk.role.role(),
                content: chunk.content.clone(),
            };
            self.seen.extend(chunks.iter().map(frame));
            if self.note_or_die(Fact::Announced { upto: last.id }) {
                return true;
            }
        }
        match step {
            TurnStep::Plan => {
                self.call();
                let message = Message::text(Role::Assistant, self.script.plan).into();
                self.note_or_die(Fact::Planned { message, need_tool: self.script.need_tool, usage: None });
            }
            TurnStep::CallModel { iteration, terminal } => self.model(iteration, terminal),
            TurnStep::Inject { waiting } => drop(self.note_or_die(Fact::Injected { count: waiting.len() })),
            TurnStep::Skip { call, why, .. } => self.answered(call, ModelAnswer::not_run(why.text())),
            TurnStep::Clear { call, .. } => self.tool(call),
            TurnStep::Start { .. } | TurnStep::Await { .. } => panic!("no call runs here"),
            TurnStep::End(TurnEnd { status, roll_back, error, reply, .. }) => {
                self.note(Fact::Ended { status, roll_back, error, reply });
                let kept = self.session();
                let left = std::mem::replace(&mut self.turn, turn(1)).into_messages();
                assert_eq!(shown(kept.messages()), shown(&left), "the journal tells something else");
                self.seen.push(Seen::Left(shown(&left)));
                return false;
            }
        }
        true
    }

    fn call(&mut self) {
        let list = shown(self.turn.messages());
        self.seen.push(Seen::Call(list));
    }

    fn round(&self) -> Option<&Asked> {
        self.script.rounds.get(self.turn.iteration() as usize - 1)
    }

    fn model(&mut self, iteration: u32, terminal: bool) {
        self.call();
        let asked = self.round().cloned().filter(|_| !terminal);
        let parts = asked.iter().flat_map(|asked| &asked.calls).enumerate();
        let parts = parts.map(|(i, call)| CallPart::new(&format!("c{i}"), call.raw, "{}")).collect();
        let message = Message { tool_calls: parts, ..Message::text(Role::Assistant, format!("A{iteration}")) };
        if asked.as_ref().is_some_and(|asked| asked.brought) {
            self.note(brings(&format!("B{iteration}")));
        }
        let (message, read_only, owners) = (message.into(), Vec::new(), BTreeMap::new());
        let replied = Fact::Replied { iteration, message, read_only, terminal, owners, cut: false, usage: None };
        if asked.is_some_and(|asked| asked.steered_after == Some(0)) {
            self.note(replied);
            self.note_or_die(says(&format!("W{iteration}")));
        } else {
            self.note_or_die(replied);
        }
    }

    fn tool(&mut self, place: usize) {
        let iteration = self.turn.iteration();
        let asked = self.round().expect("it asked for tools").clone();
        let call = &asked.calls[place];
        let answer = ModelAnswer { handled: call.handled, ..ModelAnswer::not_run(format!("T{iteration}.{place}")) };
        self.answered(place, answer.about(call.canonical));
        if asked.steered_after == Some(place + 1) {
            self.note_or_die(says(&format!("W{iteration}")));
        }
    }

    fn answered(&mut self, place: usize, answer: ModelAnswer) {
        self.note(Fact::Answered { place, answer });
    }
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn shown(list: &[Rendered<Message>]) -> Vec<(Role, String)> {
    list.iter().map(|message| (message.get().role, message.get().content.clone())).collect()
}

fn config() -> ProptestConfig {
    let cases = std::env::var("PINTLE_ORACLE_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES);
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(0), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn law_7_every_call_sees_what_the_oracle_says_and_a_kill_changes_nothing(script in script()) {
        let expected = Oracle::play(&script);
        prop_assert_eq!(&Played::play(&script, false), &expected);
        prop_assert_eq!(&Played::play(&script, true), &expected);
    }
}
